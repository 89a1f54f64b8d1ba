/* SPDX-License-Identifier: MIT */
/*
 * Policy "auto": examines one process between intervals, at the cost of one process: the times of
 * its threads from /proc replace samples, and a snapshot of this process replaces that of the
 * machine.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "home_stage.h"
#include "numa-migrd/proc.h"

#define SPREADS_NS NM_NSEC_PER_SEC
#define RETRY_NS (200 * NM_NSEC_PER_MSEC)
#define ALONE_NS                                                                                   \
	(500 * NM_NSEC_PER_MSEC) /* age from which a process with one thread is examined:          \
				  * most of them, such as compilers, exit earlier */
#define THREADS_MAX                                                                               \
	64U /* a process with more threads is left to the next interval, and to                    \
	     * samples */

struct examined {
	uint32_t pid, tids[THREADS_MAX];
	size_t nr_tids;
	struct nm_figures figures[THREADS_MAX];
	double wanted_cpus[THREADS_MAX]; /* of each thread with metrics */
	size_t count;
	double run_s, runs; /* of all its threads, since they began */
	bool creating;	    /* one of them is younger than NM_PLACE_MIN_AGE_S */
};

static int add_tid(void *context, const char *name)
{
	struct examined *one = context;
	if (one->nr_tids == THREADS_MAX)
		return -E2BIG;
	one->tids[one->nr_tids++] = (uint32_t)strtoul(name, NULL, 10);
	return 0;
}

static int list_threads(struct nm_platform *platform, struct examined *one)
{
	char path[32];
	(void)snprintf(path, sizeof(path), "proc/%u/task", one->pid);
	int r = platform->ops->list_directory(platform, NM_ROOT, path, add_tid, one);
	qsort(one->tids, one->nr_tids, sizeof(*one->tids), nm_compare_u32);
	return r == -ENOENT ? -ESRCH : r;
}

/* Computes the activity of a thread since its start. */
static void add_thread(const struct nm_daemon *daemon, struct examined *one, uint32_t tid,
		       const struct nm_proc_stat *stat, uint64_t now_ticks)
{
	struct nm_proc_schedstat times;
	if (nm_proc_read_schedstat(daemon->pipeline.platform, one->pid, tid, &times) < 0)
		return; /* it has exited */
	double ticks = now_ticks > stat->start_ticks ? (double)(now_ticks - stat->start_ticks) : 1;
	double age_ns = ticks * (double)NM_NSEC_PER_SEC / (double)sysconf(_SC_CLK_TCK);
	one->creating |= tid != one->pid && age_ns < NM_PLACE_MIN_AGE_S * (double)NM_NSEC_PER_SEC;
	one->run_s += (double)times.run_ns / (double)NM_NSEC_PER_SEC;
	one->runs += (double)times.runs;
	one->wanted_cpus[one->count] = fmin((double)(times.run_ns + times.delay_ns) / age_ns, 1);
	one->figures[one->count++] = (struct nm_figures){
		.pid = one->pid,
		.tid = tid,
		.run_samples = 1,
		.run_share = fmin((double)times.run_ns / age_ns, 1),
		.main_cpu = stat->processor,
		.main_node = nm_topology_node_of_cpu(daemon->pipeline.topology, stat->processor),
		.main_node_share = 1,
		.access_total = NAN,
		.latency = NAN,
		.recent_latency = NAN,
		.instructions = NAN,
		.operations = NAN,
		.traffic = NAN,
	};
}

/* Most processes have one thread, and need no list. */
static int read_threads(const struct nm_daemon *daemon, const struct nm_proc_stat *leader,
			struct examined *one)
{
	struct nm_platform *platform = daemon->pipeline.platform;
	struct nm_proc_stat stat;
	uint64_t now_ticks = nm_proc_ticks_now(platform);
	int r = 0;
	if (leader->nr_threads > 1)
		r = list_threads(platform, one);
	else
		add_thread(daemon, one, one->pid, leader, now_ticks);
	for (size_t i = 0; r == 0 && i < one->nr_tids; i++)
		if (nm_proc_stat_of(platform, one->pid, one->tids[i], &stat) == 0)
			add_thread(daemon, one, one->tids[i], &stat, now_ticks);
	return r == 0 && one->count == 0 ? -ESRCH : r;
}

static int snapshot_of(struct nm_daemon *daemon, const struct examined *one, uint64_t now_ns,
		       struct nm_snapshot **ret)
{
	struct nm_member members[THREADS_MAX];
	struct nm_snapshot_input input = {
		.interval = daemon->tally.intervals,
		.time_ns = now_ns,
		.topology = daemon->pipeline.topology,
		.config = daemon->config,
		.figures = one->figures,
		.nr_figures = one->count,
		.members = members,
		.busy_share = daemon->machine.busy_share,
	};
	int r = nm_roster_meet(daemon->pipeline.roster, one->figures, one->count, now_ns, members,
			       &input.nr_members);
	return r < 0 ? r : nm_snapshot_build(&input, ret);
}

/* The behaviour of a young process becomes visible over time: it is examined again at twice its
 * age, and at first more often, because the scheduler spreads threads that are not leased yet. */
static void reschedule(struct nm_placement *placement, const struct nm_examination *one,
		       uint64_t now_ns)
{
	uint64_t age_ns = now_ns - one->since_ns;
	struct nm_examination next = *one;
	next.due_ns = now_ns + (age_ns < SPREADS_NS ? RETRY_NS : age_ns);
	if ((double)age_ns < NM_PLACE_YOUNG_S * (double)NM_NSEC_PER_SEC)
		nm_placement_schedule(placement, &next);
}

/* The metrics are in the order of the members, with other threads in between. */
static void match_demand(const struct nm_snapshot *snapshot, struct examined *one)
{
	for (size_t i = 0, k = 0; i < snapshot->nr_threads; i++) {
		while (one->figures[k].tid != snapshot->threads[i].tid)
			k++;
		one->wanted_cpus[i] = one->wanted_cpus[k];
	}
}

/* Returns whether the process is not known yet, and demands too little CPU time for a home. */
static bool has_little_demand(const struct nm_daemon *daemon, const struct examined *one)
{
	double wanted_cpus = 0;
	for (size_t i = 0; i < one->count; i++)
		wanted_cpus += one->wanted_cpus[i];
	return wanted_cpus < NM_PLACE_MIN_DEMAND &&
	       !nm_home_state_find(nm_placement_of(daemon), one->pid);
}

/* Measures the current activity of a process. Returns 0 or a negative errno; -ESRCH: it has exited.
 * *ret is unchanged if the process is not to be placed. */
static int measure(struct nm_daemon *daemon, const struct nm_examination *due, uint64_t now_ns,
		   struct nm_snapshot **ret)
{
	nm_auto(nm_snapshot_freep) struct nm_snapshot *snapshot = NULL;
	struct examined one = {.pid = due->pid};
	struct nm_proc_stat leader;
	int r = nm_proc_stat_of(daemon->pipeline.platform, due->pid, due->pid, &leader);
	if (r < 0)
		return r;
	if (leader.nr_threads == 1 && now_ns - due->since_ns < ALONE_NS)
		return 0;
	r = read_threads(daemon, &leader, &one);
	/* Building its snapshot costs more than reading the times of its threads. */
	if (r >= 0 && has_little_demand(daemon, &one))
		return 0;
	if (r >= 0)
		r = snapshot_of(daemon, &one, now_ns, &snapshot);
	if (r < 0 || snapshot->nr_processes == 0)
		return r;
	match_demand(snapshot, &one);
	struct nm_placement *placement = nm_placement_of(daemon);
	nm_column_add_process(&placement->processes, snapshot, 0);
	struct nm_home_state *state = nm_home_state_find(placement, due->pid);
	nm_home_state_update(snapshot, 0, state);
	nm_placement_measure_one(placement, snapshot, one.wanted_cpus,
				 one.run_s / fmax(one.runs, 1), state);
	state->creating = one.creating;
	*ret = NM_TAKE(snapshot);
	return 0;
}

/* The same, charged to its domain, which may be known only afterwards. Errors are those of
 * measure(). */
static int measure_charged(struct nm_daemon *daemon, struct nm_examination *one, uint64_t now_ns,
			   struct nm_snapshot **ret)
{
	struct nm_placement *placement = nm_placement_of(daemon);
	uint64_t before_ns = nm_own_cpu_ns();
	int r = measure(daemon, one, now_ns, ret);
	uint64_t domain = nm_roster_domain(daemon->pipeline.roster, one->pid);
	if (!nm_placement_is_unknown(domain))
		one->domain = domain;
	/* In a simulation the cost of the model must not affect decisions. */
	if (!daemon->options.feed)
		nm_debts_add(&placement->debts, one->domain,
			     (double)(nm_own_cpu_ns() - before_ns) / (double)NM_NSEC_PER_SEC,
			     INFINITY);
	return r;
}

/* Measures all processes that are due, before deciding about any of them, because programs often
 * start together. Processes beyond `most`, and failures, are left to the next interval. */
static size_t measure_due(struct nm_daemon *daemon, uint64_t now_ns, unsigned most,
			  struct nm_snapshot **ret)
{
	struct nm_placement *placement = nm_placement_of(daemon);
	struct nm_examination one;
	size_t count = 0;
	for (unsigned done = 0; nm_placement_next_due(placement, now_ns, &one); done++) {
		if (done >= most || done >= NM_EXAMINED_AT_ONCE)
			continue;
		if (measure_charged(daemon, &one, now_ns, &ret[count]) != -ESRCH)
			reschedule(placement, &one, now_ns);
		count += ret[count] != NULL;
	}
	return count;
}

void nm_home_stage_examine(struct nm_daemon *daemon, unsigned most)
{
	struct nm_placement *placement = nm_placement_of(daemon);
	struct nm_platform *platform = daemon->pipeline.platform;
	struct nm_snapshot *snapshots[NM_EXAMINED_AT_ONCE] = {NULL};
	if (!placement || placement->nr_nodes != daemon->pipeline.topology->nr_nodes)
		return;
	uint64_t now_ns = platform->ops->now_ns(platform);
	nm_home_stage_collect(daemon);
	/* Without the answer nothing is leased. */
	nm_roster_ask_runtimes(daemon->pipeline.roster, now_ns);
	size_t count = measure_due(daemon, now_ns, most, snapshots);
	for (size_t i = 0; i < count; i++) {
		nm_home_stage_decide(daemon, snapshots[i]);
		nm_snapshot_free(snapshots[i]);
	}
	nm_home_stage_migrate(daemon, 0);
}
