/* SPDX-License-Identifier: MIT */
/* Policy "auto": the set of processes, the nodes on which they ran, and the time that they waited
 * for CPUs. */
#include <math.h>
#include <string.h>

#include "home_stage.h"

/* Maximum number of files read per interval. Further threads are read in the next intervals. */
#define READS_MOST 256U

/* ---- the set of processes ---- */

/* A process without managed threads has exited or is no longer managed. Its leases end by the usual
 * rules. */
static void replace_items(struct nm_daemon *daemon, struct nm_placed *items, size_t count)
{
	struct nm_placement *placement = daemon->pipeline.placement;
	for (size_t i = 0; i < placement->count; i++) {
		if (placement->items[i].ran_on)
			nm_mover_drop(daemon->pipeline.home_mover, placement->items[i].pid);
		nm_home_stage_cancel_query(daemon, &placement->items[i]);
		nm_placed_clear(&placement->items[i]);
	}
	free(placement->items);
	placement->items = items;
	placement->count = count;
}

static int list_processes(struct nm_daemon *daemon, const struct nm_snapshot *snapshot)
{
	struct nm_placed *items;
	size_t count;
	int r = nm_placement_list(daemon->pipeline.placement, snapshot, &items, &count);
	if (r == 0)
		replace_items(daemon, items, count);
	return r;
}

/* ---- run time and waiting time of threads ---- */

int nm_home_stage_read_times(struct nm_platform *platform, uint32_t pid, uint32_t tid,
			     struct nm_thread_times *ret)
{
	struct nm_proc_schedstat times;
	int r = nm_proc_read_schedstat(platform, pid, tid, &times);
	if (r < 0)
		return r;
	ret->tid = tid;
	ret->run_ns = times.run_ns;
	ret->delay_ns = times.delay_ns;
	ret->runs = times.runs;
	ret->read_ns = times.read_ns;
	return 0;
}

static const struct nm_thread_times *times_of(const struct nm_placement *placement,
					      const struct nm_snap_thread *thread, size_t *at)
{
	while (*at < placement->nr_times && placement->times[*at].tid < thread->tid)
		(*at)++;
	if (*at == placement->nr_times || placement->times[*at].tid != thread->tid ||
	    placement->times[*at].start_ticks != thread->start_ticks)
		return NULL;
	return &placement->times[*at];
}

/*
 * The activity of a thread since the last reading, or since its start if that was in this interval.
 */
struct use {
	double run_s, delay_s, length_s, runs;
};

static bool find_use(const struct nm_thread_times *before, const struct nm_thread_times *now,
		     double age_s, double interval_s, struct use *ret)
{
	const struct nm_thread_times none = {0};
	double length_s = before ? (double)(now->read_ns - before->read_ns) / (double)NM_NSEC_PER_SEC
				 : age_s;
	if (!before && age_s > interval_s)
		return false;
	if (!before)
		before = &none;
	if (now->run_ns < before->run_ns || now->delay_ns < before->delay_ns ||
	    now->runs < before->runs || !(length_s > 0))
		return false;
	ret->run_s = (double)(now->run_ns - before->run_ns) / (double)NM_NSEC_PER_SEC;
	ret->delay_s = (double)(now->delay_ns - before->delay_ns) / (double)NM_NSEC_PER_SEC;
	ret->runs = (double)(now->runs - before->runs);
	ret->length_s = length_s;
	return true;
}

/* Selects the sampled threads whose times are read now, in turns, beginning where the last interval
 * stopped. */
static void choose_reads(struct nm_placement *placement, const struct nm_snapshot *snapshot,
			 bool *reads)
{
	size_t count = snapshot->nr_threads, first = 0, chosen = 0;
	while (first < count && snapshot->threads[first].tid < placement->next_read_tid)
		first++;
	for (size_t k = 0; k < count && chosen < READS_MOST; k++) {
		size_t i = (first + k) % count;
		const struct nm_snap_thread *thread = &snapshot->threads[i];
		if (!(thread->run_share > 0) || !nm_placed_find(placement, thread->pid))
			continue;
		reads[i] = true;
		placement->next_read_tid = thread->tid + 1;
		chosen++;
	}
}

/* Computes the CPUs used by each thread: ret_ran. Threads whose times were not read use samples,
 * which are few; their times are compared with the last reading when their turn comes. */
static int follow_times(struct nm_daemon *daemon, const struct nm_snapshot *snapshot,
			double interval_s, double *ret_ran)
{
	struct nm_placement *placement = daemon->pipeline.placement;
	nm_autofree bool *reads = calloc(snapshot->nr_threads + 1, sizeof(*reads));
	struct nm_thread_times *times = calloc(snapshot->nr_threads + 1, sizeof(*times));
	size_t count = 0, at = 0;
	if (!times || !reads) {
		free(times);
		return -ENOMEM;
	}
	choose_reads(placement, snapshot, reads);
	for (size_t i = 0; i < snapshot->nr_threads; i++) {
		const struct nm_snap_thread *thread = &snapshot->threads[i];
		struct nm_placed *placed = nm_placed_find(placement, thread->pid);
		const struct nm_thread_times *before = times_of(placement, thread, &at);
		struct use use;
		ret_ran[i] = thread->run_share;
		if (!placed || !(thread->run_share > 0))
			continue;
		bool read = reads[i] && nm_home_stage_read_times(daemon->pipeline.platform,
								thread->pid, thread->tid,
								&times[count]) == 0;
		times[count].start_ticks = thread->start_ticks;
		if (!read || !find_use(before, &times[count],
				       snapshot->processes[thread->process].age_s, interval_s,
				       &use)) {
			placed->wanted_cpus += thread->run_share;
		} else {
			placed->run_s += use.run_s;
			placed->delay_s += use.delay_s;
			placed->runs += use.runs;
			placed->wanted_cpus += fmin((use.run_s + use.delay_s) / use.length_s, 1);
			ret_ran[i] = fmin(use.run_s / fmax(use.length_s, interval_s), 1);
		}
		if (!read && before)
			times[count] = *before;
		count += read || before;
	}
	free(placement->times);
	placement->times = times;
	placement->nr_times = count;
	return 0;
}

int nm_home_stage_follow(struct nm_daemon *daemon, const struct nm_snapshot *snapshot,
			uint64_t interval_ns)
{
	struct nm_placement *placement = daemon->pipeline.placement;
	int r = list_processes(daemon, snapshot);
	if (r < 0)
		return r;
	for (size_t i = 0; i < placement->count; i++)
		nm_placed_clear_interval(&placement->items[i], snapshot->topology->nr_nodes);
	double interval_s = (double)interval_ns / (double)NM_NSEC_PER_SEC;
	nm_autofree double *ran = calloc(snapshot->nr_threads + 1, sizeof(*ran));
	r = ran ? follow_times(daemon, snapshot, interval_s, ran) : -ENOMEM;
	if (r < 0)
		return r;
	/* First touches alone would show that all accesses are local. */
	bool sees = daemon->pipeline.source && !nm_pipeline_sees_first_touches_only(daemon);
	return nm_placement_measure(placement, snapshot, interval_s, ran, sees);
}

/* ---- one process between intervals ---- */

/* Replaces the entry of a process that runs another program. Returns 0 or -ENOMEM. */
static int replace_item(struct nm_daemon *daemon, const struct nm_snap_process *process,
			struct nm_placed *placed)
{
	struct nm_placement *placement = daemon->pipeline.placement;
	struct nm_placed item;
	int r = nm_placed_init(process, placement->nr_nodes, &item);
	if (r < 0)
		return r;
	for (unsigned k = 0; k < placement->nr_nodes; k++)
		placement->nodes[k].busy_cpus -= placed->ran_on[k];
	nm_mover_drop(daemon->pipeline.home_mover, placed->pid);
	nm_home_stage_cancel_query(daemon, placed);
	nm_placed_clear(placed);
	*placed = item;
	return 0;
}

/* Returns 0 or -ENOMEM. */
static int meet(struct nm_daemon *daemon, const struct nm_snapshot *snapshot,
		struct nm_placed **ret)
{
	struct nm_placement *placement = daemon->pipeline.placement;
	const struct nm_snap_process *process = &snapshot->processes[0];
	struct nm_placed item, *known = nm_placed_find_same(placement, process);
	if (known) {
		*ret = known;
		return 0;
	}
	struct nm_placed *former = nm_placed_find(placement, process->pid);
	if (former)
		return replace_item(daemon, process, *ret = former);
	struct nm_placed *items =
		reallocarray(placement->items, placement->count + 1, sizeof(*items));
	if (!items)
		return -ENOMEM;
	placement->items = items;
	int r = nm_placed_init(process, snapshot->topology->nr_nodes, &item);
	if (r < 0)
		return r;
	size_t at = 0;
	while (at < placement->count && items[at].pid < item.pid)
		at++;
	memmove(&items[at + 1], &items[at], (placement->count++ - at) * sizeof(*items));
	items[at] = item;
	*ret = &items[at];
	return 0;
}

int nm_home_stage_follow_one(struct nm_daemon *daemon, const struct nm_snapshot *snapshot,
			     const double *wanted_cpus, double burst_s)
{
	struct nm_placed *placed;
	int r = meet(daemon, snapshot, &placed);
	if (r < 0)
		return r;
	nm_placed_take(snapshot, 0, placed);
	nm_placement_measure_one(daemon->pipeline.placement, snapshot, wanted_cpus, burst_s, placed);
	return 0;
}
