/* SPDX-License-Identifier: MIT */
/* Policy "auto": the set of processes, the nodes on which they ran, and the time that they waited
 * for CPUs. */
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "home_stage.h"

/* Maximum number of files read per interval. Further threads are read in the next intervals. */
#define READS_MAX 256U

/* ---- run time and waiting time of threads ---- */

/*
 * The activity of a thread since the last reading, or since its start if that was in this interval.
 */
struct use {
	double run_s, delay_s, length_s, runs;
};

static bool find_use(const struct nm_proc_schedstat *before, const struct nm_proc_schedstat *now,
		     double age_s, double interval_s, struct use *ret)
{
	bool known = before->read_ns > 0;
	double length_s =
		known ? (double)(now->read_ns - before->read_ns) / (double)NM_NSEC_PER_SEC : age_s;
	if (!known && age_s > interval_s)
		return false;
	if (now->run_ns < before->run_ns || now->delay_ns < before->delay_ns ||
	    now->runs < before->runs || !(length_s > 0))
		return false;
	ret->run_s = (double)(now->run_ns - before->run_ns) / (double)NM_NSEC_PER_SEC;
	ret->delay_s = (double)(now->delay_ns - before->delay_ns) / (double)NM_NSEC_PER_SEC;
	ret->runs = (double)(now->runs - before->runs);
	ret->length_s = length_s;
	return true;
}

/* Returns the seconds since the thread was created. */
static double age_of(const struct nm_snap_thread *thread, uint64_t now_ticks)
{
	double ticks =
		now_ticks > thread->start_ticks ? (double)(now_ticks - thread->start_ticks) : 1;
	return ticks / (double)sysconf(_SC_CLK_TCK);
}

/* Selects the sampled threads whose times are read now, in turns, beginning where the last interval
 * stopped. */
static void choose_reads(struct nm_placement *placement, const struct nm_snapshot *snapshot,
			 bool *reads)
{
	size_t count = snapshot->nr_threads, first = 0, chosen = 0;
	while (first < count && snapshot->threads[first].tid < placement->next_read_tid)
		first++;
	for (size_t k = 0; k < count && chosen < READS_MAX; k++) {
		size_t i = (first + k) % count;
		const struct nm_snap_thread *thread = &snapshot->threads[i];
		if (!(thread->run_share > 0))
			continue;
		reads[i] = true;
		placement->next_read_tid = thread->tid + 1;
		chosen++;
	}
}

/* Computes the CPUs used by each thread: ret_ran. Threads whose times were not read use samples,
 * which are few; their times are compared with the last reading when their turn comes. */
static void follow_times(struct nm_daemon *daemon, const struct nm_snapshot *snapshot,
			 double interval_s, double *ret_ran)
{
	struct nm_placement *placement = nm_placement_of(daemon);
	nm_autofree bool *reads = nm_must(calloc(snapshot->nr_threads + 1, sizeof(*reads)));
	nm_column_follow_threads(&placement->times, snapshot);
	choose_reads(placement, snapshot, reads);
	uint64_t now_ticks = nm_proc_ticks_now(daemon->pipeline.platform);
	for (size_t i = 0; i < snapshot->nr_threads; i++) {
		const struct nm_snap_thread *thread = &snapshot->threads[i];
		struct nm_proc_schedstat now,
			*last = (struct nm_proc_schedstat *)placement->times.cells + i;
		struct nm_home_state *state = nm_home_state_at(placement, thread->process);
		struct use use;
		ret_ran[i] = thread->run_share;
		if (!(thread->run_share > 0)) {
			*last = (struct nm_proc_schedstat){0};
			continue;
		}
		bool read = reads[i] && nm_proc_read_schedstat(daemon->pipeline.platform,
							       thread->pid, thread->tid, &now) == 0;
		if (!read || !find_use(last, &now, age_of(thread, now_ticks), interval_s, &use)) {
			nm_home_state_add_demand(state, thread, thread->run_share);
		} else {
			state->run_s += use.run_s;
			state->delay_s += use.delay_s;
			state->runs += use.runs;
			nm_home_state_add_demand(state, thread,
						 fmin((use.run_s + use.delay_s) / use.length_s, 1));
			ret_ran[i] = fmin(use.run_s / fmax(use.length_s, interval_s), 1);
		}
		if (read)
			*last = now;
	}
}

void nm_home_stage_follow(struct nm_daemon *daemon, const struct nm_snapshot *snapshot,
			  double interval_s)
{
	struct nm_placement *placement = nm_placement_of(daemon);
	nm_column_follow_processes(&placement->processes, snapshot);
	for (size_t i = 0; i < snapshot->nr_processes; i++) {
		nm_home_state_update(snapshot, i, nm_home_state_at(placement, i));
		nm_home_state_clear_interval(nm_home_state_at(placement, i),
					     snapshot->topology->nr_nodes);
	}
	nm_autofree double *ran = nm_must(calloc(snapshot->nr_threads + 1, sizeof(*ran)));
	follow_times(daemon, snapshot, interval_s, ran);
	/* First touches alone would show that all accesses are local. */
	bool sees = daemon->pipeline.source && !nm_samples_first_touches_only(daemon);
	nm_placement_measure(placement, snapshot, interval_s, ran, sees);
}
