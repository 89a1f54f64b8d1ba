/* SPDX-License-Identifier: MIT */
/* How long threads ran and waited for CPUs, from schedstat in /proc. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tasks/tasks.h"

/* At least a tick. */
static uint64_t age_at(uint64_t now_ticks, uint64_t start_ticks)
{
	uint64_t ticks = now_ticks > start_ticks ? now_ticks - start_ticks : 1;
	return ticks * (NM_NSEC_PER_SEC / (uint64_t)sysconf(_SC_CLK_TCK));
}

void nm_times_read(struct nm_platform *platform, struct nm_times_reading *readings, size_t count)
{
	uint64_t now_ticks = nm_proc_ticks_now(platform);
	for (size_t i = 0; i < count; i++) {
		struct nm_times_reading *one = &readings[i];
		one->error = nm_proc_read_schedstat(platform, one->pid, one->tid, &one->now);
		one->age_ns = age_at(now_ticks, one->start_ticks);
	}
}

/* ---- all threads of one process ---- */

static void add_thread(struct nm_platform *platform, const struct nm_topology *topology,
		       const struct nm_proc_stat *stat, uint32_t tid, uint64_t now_ticks,
		       struct nm_process_times *process)
{
	struct nm_proc_schedstat now;
	if (nm_proc_read_schedstat(platform, process->pid, tid, &now) < 0)
		return; /* it has exited */
	const struct nm_thread_times times = nm_times_since(&(struct nm_proc_schedstat){0}, &now,
							    age_at(now_ticks, stat->start_ticks));
	process->times[process->count] = times;
	struct nm_sampled_thread *one = &process->sampled[process->count++];
	one->pid = process->pid;
	one->tid = tid;
	one->stats = (struct nm_thread_stats){
		.run_samples = 1,
		.run_share = fmin((double)times.run_ns / (double)times.length_ns, 1),
		.main_cpu = stat->processor,
		.main_node = nm_topology_node_of_cpu(topology, stat->processor),
		.main_node_share = 1,
		.access_total = NAN,
		.latency = NAN,
		.recent_latency = NAN,
		.instructions = NAN,
		.operations = NAN,
		.traffic = NAN,
	};
}

struct tids {
	uint32_t tids[NM_PROCESS_TIMES_MOST];
	size_t count;
};

static int add_tid(void *context, const char *name)
{
	struct tids *list = context;
	if (list->count == NM_PROCESS_TIMES_MOST)
		return -E2BIG;
	list->tids[list->count++] = (uint32_t)strtoul(name, NULL, 10);
	return 0;
}

/* Most processes have one thread, and need no list. */
int nm_process_times_read(struct nm_platform *platform, const struct nm_topology *topology,
			  uint32_t pid, const struct nm_proc_stat *leader,
			  struct nm_process_times *ret)
{
	struct nm_process_times process = {.pid = pid};
	struct tids list = {0};
	struct nm_proc_stat stat;
	uint64_t now_ticks = nm_proc_ticks_now(platform);
	char path[32];
	if (leader->nr_threads <= 1) {
		add_thread(platform, topology, leader, pid, now_ticks, &process);
	} else {
		(void)snprintf(path, sizeof(path), "proc/%u/task", pid);
		int r = platform->ops->list_directory(platform, NM_ROOT, path, add_tid, &list);
		if (r < 0)
			return r == -ENOENT ? -ESRCH : r;
	}
	qsort(list.tids, list.count, sizeof(*list.tids), nm_compare_u32);
	for (size_t i = 0; i < list.count; i++)
		if (nm_proc_stat_of(platform, pid, list.tids[i], &stat) == 0)
			add_thread(platform, topology, &stat, list.tids[i], now_ticks, &process);
	if (process.count == 0)
		return -ESRCH;
	*ret = process;
	return 0;
}
