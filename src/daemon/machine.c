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
#define MEMORY_LOOK_NS (10 * NM_NSEC_PER_SEC)
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

static int reserve_cpus(struct nm_daemon *daemon, unsigned nr_cpus)
{
	if (nr_cpus <= daemon->machine.nr_cpus)
		return 0;
	struct nm_cpu_times *times =
		reallocarray(daemon->machine.cpu_times, nr_cpus, sizeof(*times));
	if (times)
		daemon->machine.cpu_times = times;
	double *shares = reallocarray(daemon->machine.busy_share, nr_cpus, sizeof(*shares));
	if (shares)
		daemon->machine.busy_share = shares;
	if (!times || !shares)
		return -ENOMEM;
	for (unsigned cpu = daemon->machine.nr_cpus; cpu < nr_cpus; cpu++) {
		times[cpu] = (struct nm_cpu_times){0};
		shares[cpu] = (double)NAN;
	}
	daemon->machine.nr_cpus = nr_cpus;
	return 0;
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
		nm_autofree char *text = malloc(daemon->machine.stat_bytes);
		if (!text)
			return -ENOMEM;
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

int nm_machine_read_load(struct nm_daemon *daemon)
{
	nm_autofree char *text = NULL;
	int r = reserve_cpus(daemon, daemon->pipeline.topology->nr_cpus);
	if (r < 0)
		return r;
	nm_autofree struct nm_cpu_times *now = calloc(daemon->machine.nr_cpus, sizeof(*now));
	r = now ? read_cpu_stat(daemon, &text) : -ENOMEM;
	if (r == -ENOMEM)
		return 0;
	/* If the load cannot be read, no CPU is free: unknown shares stay NaN. */
	if (r == 0)
		(void)nm_proc_parse_cpu_times(text, now, daemon->machine.nr_cpus);
	compute_shares(daemon, now);
	return 0;
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
		return given < 0 ? given : nm_physmap_empty(ret_physmap);
	}
	if (cpus.xml_path)
		cpus.root_path = NULL; /* the tree is then only used for the memory blocks */
	int r = nm_topology_load(&cpus, error, error_size, &topology);
	if (r < 0)
		return r;
	r = nm_physmap_load(topology, source->root_path, &physmap);
	if (r == -ENOMEM)
		return r;
	*ret_topology = NM_TAKE(topology);
	*ret_physmap = physmap; /* NULL if no file has the information: the nodes of addresses are
				 * then not known */
	return 0;
}

/* Passes the new topology to every stage that uses the old one, and then frees the old one. Returns
 * 0, or -ENOMEM with nothing changed. */
static int adopt_topology(struct nm_daemon *daemon, struct nm_topology *topology,
			  struct nm_physmap *physmap)
{
	struct nm_pipeline *pipeline = &daemon->pipeline;
	struct nm_verifier *verifier;
	/* Pending evaluations use the old node indices, and are dropped. */
	int r = nm_verifier_new(&verifier);
	if (r < 0)
		return r;
	r = nm_metrics_retarget(pipeline->metrics, topology, physmap != NULL);
	if (r < 0) {
		nm_verifier_free(verifier);
		return r;
	}
	nm_verifier_free(pipeline->verifier);
	pipeline->verifier = verifier;
	if (pipeline->source)
		(void)nm_source_retarget(pipeline->source, topology);
	nm_actuator_retarget(pipeline->actuator, topology);
	nm_roster_configure(pipeline->roster, topology, daemon->config);
	nm_balance_stage_end(daemon);
	nm_home_stage_end(daemon);
	nm_views_clear(daemon);
	nm_topology_free(pipeline->topology);
	nm_physmap_free(pipeline->physmap);
	pipeline->topology = topology;
	pipeline->physmap = physmap;
	/* If memory is short, pages are not tracked until the next change. */
	(void)nm_page_tracking_restart(daemon);
	if (!pipeline->source || nm_topology_is_single(topology))
		nm_pipeline_open_source(daemon); /* or close it */
	return 0;
}

static int reload_topology(struct nm_daemon *daemon, char *error, size_t error_size)
{
	struct nm_topology *topology;
	struct nm_physmap *physmap;
	struct nm_topology_source source = daemon->options.topology;
	source.isolated = daemon->machine.isolation.isolated;
	int r = nm_machine_load_topology(&source, &topology, &physmap, error, error_size);
	if (r < 0)
		return r;
	r = adopt_topology(daemon, topology, physmap);
	if (r < 0) {
		snprintf(error, error_size, "%s", strerror(-r));
		nm_topology_free(topology);
		nm_physmap_free(physmap);
	}
	return r;
}

static void reload_after_change(struct nm_daemon *daemon, const char *what, const char *online)
{
	char error[256];

	if (reload_topology(daemon, error, sizeof(error)) == 0) {
		bool single = nm_topology_is_single(daemon->pipeline.topology);
		nm_report(daemon, NM_MESSAGE_PROBLEM, LOG_NOTICE, "%s changed; online: %s%s", what,
			  online, single ? "; one node has CPUs: nothing to move" : "");
		return;
	}
	nm_report(daemon, NM_MESSAGE_PROBLEM, LOG_WARNING,
		  "%s changed (online: %s); topology not read again: %s", what, online, error);
}

static void check_cpus(struct nm_daemon *daemon)
{
	struct nm_platform *platform = daemon->pipeline.platform;
	char online[sizeof(daemon->machine.online)];

	if (platform->ops->read_file(platform, NM_ROOT, "sys/devices/system/cpu/online", online,
				     sizeof(online)) <= 0 ||
	    strcmp(online, daemon->machine.online) == 0)
		return;
	bool first = daemon->machine.online[0] == '\0';
	memcpy(daemon->machine.online, online, sizeof(online));
	if (first)
		return;
	online[strcspn(online, "\n")] = '\0';
	reload_after_change(daemon, "CPUs", online);
}

/* ---- memory ---- */

/*
 * Reads the set of nodes and the amount of memory, in a short form that suffices to detect changes.
 */
static bool read_memory(struct nm_platform *platform, struct nm_memory_fingerprint *ret)
{
	char text[8192];

	if (platform->ops->read_file(platform, NM_ROOT, "sys/devices/system/node/online",
				     ret->nodes, sizeof(ret->nodes)) <= 0 ||
	    platform->ops->read_file(platform, NM_ROOT, "proc/meminfo", text, sizeof(text)) <= 0)
		return false;
	ret->nodes[strcspn(ret->nodes, "\n")] = '\0';
	return sscanf(text, "MemTotal: %" SCNu64, &ret->total_kb) == 1;
}

static int add_block(void *context, const char *name)
{
	struct nm_memory_fingerprint *mark = context;
	uint64_t number;

	if (sscanf(name, "memory%" SCNu64, &number) == 1) {
		mark->blocks++;
		mark->block_sum += number;
	}
	return 0;
}

/* A balloon changes the sum, and blocks that are switched off stay in the directory; neither counts
 * as a change. */
static bool has_changed(const struct nm_memory_fingerprint *before,
			const struct nm_memory_fingerprint *now)
{
	return before->blocks != now->blocks || before->block_sum != now->block_sum ||
	       strcmp(before->nodes, now->nodes) != 0;
}

static void check_memory(struct nm_daemon *daemon, uint64_t now_ns)
{
	struct nm_platform *platform = daemon->pipeline.platform;
	struct nm_memory_fingerprint *before = &daemon->machine.memory_fingerprint;
	struct nm_memory_fingerprint now = {.seen_ns = now_ns};
	char text[sizeof(now.nodes) + 64];

	if (before->seen_ns && now_ns - before->seen_ns < MEMORY_LOOK_NS)
		return;
	before->seen_ns = now_ns;
	if (!read_memory(platform, &now) ||
	    (now.total_kb == before->total_kb && strcmp(now.nodes, before->nodes) == 0) ||
	    platform->ops->list_directory(platform, NM_ROOT, "sys/devices/system/memory", add_block,
					  &now) < 0)
		return;
	bool changed = before->total_kb && has_changed(before, &now);
	*before = now;
	if (!changed)
		return;
	(void)snprintf(text, sizeof(text), "nodes %s with %" PRIu64 " MiB", now.nodes,
		       now.total_kb >> 10);
	reload_after_change(daemon, "memory", text);
}

/* ---- isolated CPUs ---- */

/* The first time, what the kernel lists has been loaded, but not what the cgroups show. */
static void check_isolation(struct nm_daemon *daemon, uint64_t now_ns)
{
	struct nm_isolation *isolation = &daemon->machine.isolation;
	char error[256];
	bool first = isolation->listed == 0;
	if (daemon->options.topology.load ||
	    nm_isolation_follow(isolation, daemon->pipeline.platform, now_ns) <= 0 ||
	    (first && !isolation->found[0]))
		return;
	if (reload_topology(daemon, error, sizeof(error)) < 0)
		nm_report(daemon, NM_MESSAGE_PROBLEM, LOG_WARNING,
			  "Isolated CPUs changed; topology not read again: %s", error);
	else
		nm_report(daemon, NM_MESSAGE_PROBLEM, LOG_NOTICE,
			  "Isolated CPUs or partitions changed; isolated: %s",
			  isolation->isolated[0] ? isolation->isolated : "none");
}

void nm_machine_follow_topology(struct nm_daemon *daemon, uint64_t now_ns)
{
	check_cpus(daemon);
	check_memory(daemon, now_ns);
	check_isolation(daemon, now_ns);
}
