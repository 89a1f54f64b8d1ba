/* SPDX-License-Identifier: MIT */
/*
 * Policy "auto": examines one process between intervals, at the cost of one process: the times of
 * its threads from /proc replace samples, and a snapshot of this process replaces that of the
 * machine.
 */
#include <math.h>

#include "home_stage.h"
#include "numa-migrd/proc.h"

#define SPREADS_NS NM_NSEC_PER_SEC
#define RETRY_NS (200 * NM_NSEC_PER_MSEC)
#define ALONE_NS                                                                                   \
	(500 * NM_NSEC_PER_MSEC) /* age from which a process with one thread is examined:          \
				  * most of them, such as compilers, exit earlier */

static int snapshot_of(struct nm_daemon *daemon, const struct nm_process_times *one,
		       uint64_t now_ns, struct nm_snapshot **ret)
{
	struct nm_member members[NM_PROCESS_TIMES_MOST];
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

/* Measures the current activity of a process. Returns 0 or a negative errno; -ESRCH: it has exited.
 * *ret is unchanged if the process is not to be placed. */
static int measure(struct nm_daemon *daemon, const struct nm_examination *due, uint64_t now_ns,
		   struct nm_snapshot **ret)
{
	nm_auto(nm_snapshot_freep) struct nm_snapshot *snapshot = NULL;
	struct nm_platform *platform = daemon->pipeline.platform;
	struct nm_process_times one;
	struct nm_proc_stat leader;
	int r = nm_proc_stat_of(platform, due->pid, due->pid, &leader);
	if (r < 0)
		return r;
	if (leader.nr_threads == 1 && now_ns - due->since_ns < ALONE_NS)
		return 0;
	r = nm_process_times_read(platform, daemon->pipeline.topology, due->pid, &leader, &one);
	/* Building its snapshot costs more than reading the times of its threads. */
	if (r >= 0 && nm_placement_ignores(nm_placement_of(daemon), &one))
		return 0;
	if (r >= 0)
		r = snapshot_of(daemon, &one, now_ns, &snapshot);
	if (r < 0 || snapshot->nr_processes == 0)
		return r;
	nm_placement_measure_one(nm_placement_of(daemon), snapshot, &one);
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
