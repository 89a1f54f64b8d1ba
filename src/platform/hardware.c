/* SPDX-License-Identifier: MIT */
#include "platform/hardware.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "numa-migrd/base.h"
#include "numa-migrd/proc.h"

/* Size of /proc/stat: about 80 bytes per CPU, and the interrupt counts, of which there can be a
 * million. */
#define STAT_BYTES (1U << 20)
#define STAT_BYTES_MAX (16U << 20)
#define MEMORY_LOOK_NS (10 * NM_NSEC_PER_SEC)

/* ---- load ---- */

static void reserve_cpus(struct nm_cpu_load *load, unsigned nr_cpus)
{
	if (nr_cpus <= load->nr_cpus)
		return;
	load->times = nm_must(reallocarray(load->times, nr_cpus, sizeof(*load->times)));
	load->busy_share =
		nm_must(reallocarray(load->busy_share, nr_cpus, sizeof(*load->busy_share)));
	for (; load->nr_cpus < nr_cpus; load->nr_cpus++) {
		load->times[load->nr_cpus] = (struct nm_cpu_times){0};
		load->busy_share[load->nr_cpus] = (double)NAN;
	}
}

/* Returns the whole text, which the caller frees, or NULL. After a longer text the buffer is larger
 * from the start. */
static char *read_stat(struct nm_cpu_load *load, struct nm_platform *platform)
{
	if (load->stat_bytes == 0)
		load->stat_bytes = STAT_BYTES;
	for (;;) {
		nm_autofree char *text = nm_must(malloc(load->stat_bytes));
		ssize_t length = platform->ops->read_file(platform, NM_ROOT, "proc/stat", text,
							  load->stat_bytes);
		if (length > 0)
			return NM_TAKE(text);
		if (length != -EFBIG || load->stat_bytes >= STAT_BYTES_MAX)
			return NULL;
		load->stat_bytes *= 2;
	}
}

/* Returns the load between two readings; NaN: not known. The time that a CPU was idle or waited for
 * input and output may go back (proc(5)), as may all times of one that was switched off. */
static double busy_share(const struct nm_cpu_times *before, const struct nm_cpu_times *now)
{
	uint64_t idle_before = before->total - before->busy, idle = now->total - now->busy;

	if (!before->total || now->busy < before->busy || idle < idle_before ||
	    now->total == before->total)
		return NAN;
	return (double)(now->busy - before->busy) / (double)(now->total - before->total);
}

void nm_cpu_load_read(struct nm_cpu_load *load, struct nm_platform *platform, unsigned nr_cpus)
{
	reserve_cpus(load, nr_cpus);
	nm_autofree char *text = read_stat(load, platform);
	nm_autofree struct nm_cpu_times *now = nm_must(calloc(load->nr_cpus, sizeof(*now)));
	/* If the load cannot be read, no CPU is free: unknown shares stay NaN. */
	if (text)
		(void)nm_proc_parse_cpu_times(text, now, load->nr_cpus);
	for (unsigned cpu = 0; cpu < load->nr_cpus; cpu++) {
		load->busy_share[cpu] = busy_share(&load->times[cpu], &now[cpu]);
		load->times[cpu] = now[cpu];
	}
}

void nm_cpu_load_clear(struct nm_cpu_load *load)
{
	free(load->times);
	free(load->busy_share);
	*load = (struct nm_cpu_load){0};
}

/* ---- what is online ---- */

static bool have_cpus_changed(struct nm_online *online, struct nm_platform *platform)
{
	char cpus[sizeof(online->cpus)];
	if (platform->ops->read_file(platform, NM_ROOT, "sys/devices/system/cpu/online", cpus,
				     sizeof(cpus)) <= 0)
		return false;
	cpus[strcspn(cpus, "\n")] = '\0';
	bool changed = online->cpus[0] && strcmp(cpus, online->cpus) != 0;
	memcpy(online->cpus, cpus, sizeof(cpus));
	return changed;
}

/* Reads the set of nodes and the amount of memory, which suffice to detect changes. */
static bool read_memory(struct nm_platform *platform, struct nm_online_memory *ret)
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
	struct nm_online_memory *memory = context;
	uint64_t number;
	if (sscanf(name, "memory%" SCNu64, &number) == 1) {
		memory->blocks++;
		memory->block_sum += number;
	}
	return 0;
}

static bool has_memory_changed(struct nm_online *online, struct nm_platform *platform,
			       uint64_t now_ns)
{
	struct nm_online_memory now = {0};
	const struct nm_online_memory before = online->memory;
	if (online->memory_seen_ns && now_ns - online->memory_seen_ns < MEMORY_LOOK_NS)
		return false;
	online->memory_seen_ns = now_ns;
	if (!read_memory(platform, &now) ||
	    (now.total_kb == before.total_kb && strcmp(now.nodes, before.nodes) == 0) ||
	    platform->ops->list_directory(platform, NM_ROOT, "sys/devices/system/memory", add_block,
					  &now) < 0)
		return false;
	online->memory = now;
	/* A balloon changes the total, and blocks that are switched off stay in the directory;
	 * neither counts as a change. */
	return before.total_kb &&
	       (before.blocks != now.blocks || before.block_sum != now.block_sum ||
		strcmp(before.nodes, now.nodes) != 0);
}

const char *nm_online_follow(struct nm_online *online, struct nm_platform *platform,
			     uint64_t now_ns, char *ret, size_t size)
{
	if (have_cpus_changed(online, platform)) {
		(void)snprintf(ret, size, "%s", online->cpus);
		return "CPUs";
	}
	if (!has_memory_changed(online, platform, now_ns))
		return NULL;
	(void)snprintf(ret, size, "nodes %s with %" PRIu64 " MiB", online->memory.nodes,
		       online->memory.total_kb >> 10);
	return "memory";
}
