/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "daemon.h"

/* Size of /proc/stat: about 80 bytes per CPU, and the interrupt counts, of which there can be a
 * million. */
#define STAT_BYTES (1U << 20)
#define STAT_BYTES_MAX (16U << 20)
#define BALANCING_LOOK_INTERVALS 10

int nm_machine_open_platform(const struct nm_daemon *daemon,
			     const struct nm_platform_options *options, struct nm_platform **ret)
{
	const struct nm_options *asked = &daemon->options;
	if (asked->open_platform)
		return asked->open_platform(asked->platform_context, options, ret);
	return nm_platform_linux_new(options, ret);
}

int nm_machine_read_boot_id(struct nm_platform *platform, char *ret, size_t size)
{
	ssize_t length = platform->ops->read_file(platform, NM_ROOT,
						  "proc/sys/kernel/random/boot_id", ret, size);
	if (length < 0)
		return (int)length;
	ret[strcspn(ret, "\n")] = '\0';
	return ret[0] ? 0 : -ENODATA;
}

int nm_machine_read_balancing(struct nm_daemon *daemon)
{
	char text[32];
	int value;
	struct nm_platform *platform = daemon->pipeline.platform;
	if (platform->ops->read_file(platform, NM_ROOT, "proc/sys/kernel/numa_balancing", text,
				     sizeof(text)) <= 0 ||
	    sscanf(text, "%d", &value) != 1)
		return -1;
	return value;
}

/* If reading fails, the last value stays. */
void nm_machine_follow_balancing(struct nm_daemon *daemon)
{
	if (daemon->tally.intervals % BALANCING_LOOK_INTERVALS != 0)
		return;
	int value = nm_machine_read_balancing(daemon);
	if (value >= 0)
		daemon->machine.balancing = value;
}

static void reserve_cpus(struct nm_daemon *daemon, unsigned nr_cpus)
{
	if (nr_cpus <= daemon->machine.nr_cpus)
		return;
	struct nm_cpu_times *times =
		nm_must(reallocarray(daemon->machine.cpu_times, nr_cpus, sizeof(*times)));
	double *shares =
		nm_must(reallocarray(daemon->machine.busy_share, nr_cpus, sizeof(*shares)));
	daemon->machine.cpu_times = times;
	daemon->machine.busy_share = shares;
	for (unsigned cpu = daemon->machine.nr_cpus; cpu < nr_cpus; cpu++) {
		times[cpu] = (struct nm_cpu_times){0};
		shares[cpu] = (double)NAN;
	}
	daemon->machine.nr_cpus = nr_cpus;
}

/* Returns the whole text, which the caller frees. After a longer text the buffer is larger from the
 * start. */
static int read_cpu_stat(struct nm_daemon *daemon, char **ret)
{
	struct nm_platform *platform = daemon->pipeline.platform;
	ssize_t length = -EFBIG;
	if (daemon->machine.stat_bytes == 0)
		daemon->machine.stat_bytes = STAT_BYTES;
	while (length == -EFBIG) {
		nm_autofree char *text = nm_must(malloc(daemon->machine.stat_bytes));
		length = platform->ops->read_file(platform, NM_ROOT, "proc/stat", text,
						  daemon->machine.stat_bytes);
		if (length > 0)
			*ret = NM_TAKE(text);
		if (length == -EFBIG && daemon->machine.stat_bytes >= STAT_BYTES_MAX)
			break;
		if (length == -EFBIG)
			daemon->machine.stat_bytes *= 2;
	}
	return length > 0 ? 0 : -ENODATA;
}

static void compute_shares(struct nm_daemon *daemon, const struct nm_cpu_times *now)
{
	for (unsigned cpu = 0; cpu < daemon->machine.nr_cpus; cpu++) {
		uint64_t total = now[cpu].total - daemon->machine.cpu_times[cpu].total;
		uint64_t busy = now[cpu].busy - daemon->machine.cpu_times[cpu].busy;
		bool known = daemon->machine.cpu_times[cpu].total && now[cpu].total && total &&
			     busy <= total;
		daemon->machine.busy_share[cpu] =
			known ? (double)busy / (double)total : (double)NAN;
		daemon->machine.cpu_times[cpu] = now[cpu];
	}
}

void nm_machine_read_load(struct nm_daemon *daemon)
{
	nm_autofree char *text = NULL;
	reserve_cpus(daemon, daemon->pipeline.topology->nr_cpus);
	nm_autofree struct nm_cpu_times *now =
		nm_must(calloc(daemon->machine.nr_cpus, sizeof(*now)));
	/* If the load cannot be read, no CPU is free: unknown shares stay NaN. */
	if (read_cpu_stat(daemon, &text) == 0)
		(void)nm_proc_parse_cpu_times(text, now, daemon->machine.nr_cpus);
	compute_shares(daemon, now);
}

int nm_machine_load_topology(const struct nm_topology_source *source,
			     struct nm_topology **ret_topology, struct nm_physmap **ret_physmap,
			     char *error, size_t error_size)
{
	nm_auto(nm_topology_freep) struct nm_topology *topology = NULL;
	struct nm_physmap *physmap = NULL;
	struct nm_topology_source cpus = *source;
	if (source->load) {
		int given = source->load(source->context, ret_topology);
		if (given >= 0)
			nm_physmap_empty(ret_physmap);
		return given;
	}
	if (cpus.xml_path)
		cpus.root_path = NULL; /* the tree is then only used for the memory blocks */
	int r = nm_topology_load(&cpus, error, error_size, &topology);
	if (r < 0)
		return r;
	(void)nm_physmap_load(topology, source->root_path, &physmap);
	*ret_topology = NM_TAKE(topology);
	*ret_physmap = physmap; /* NULL if no file has the information: the nodes of addresses are
				 * then not known */
	return 0;
}
