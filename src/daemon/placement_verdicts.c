/* SPDX-License-Identifier: MIT */
/* Policy "auto": verdicts on homes. */
#include <math.h>

#include "daemon.h"
#include "placement_stage.h"

#define FOLLOWS_S (2 * NM_PLACE_YOUNG_S) /* time that the verdict waits for remote memory, which
					  * the kernel moves as it scans, or which waits for the
					  * mover */
#define BARRED_NS (4 * NM_NSEC_PER_SEC) /* doubled by each setback */
#define SETBACKS_MOST 3U
/* Duration after SETBACKS_MOST consecutive setbacks. */
#define WATCHED_NS (600 * NM_NSEC_PER_SEC)

void nm_placement_give_up(struct nm_daemon *daemon, struct nm_placed *placed, bool memory_goes_back)
{
	(void)nm_actuator_return_process(daemon->pipeline.actuator, placed->pid);
	nm_mover_drop(daemon->pipeline.placement->mover, placed->pid);
	if (memory_goes_back)
		nm_placement_send_back(daemon, placed);
	nm_placement_forget_memory(placed);
	placed->home = -1;
	placed->lost_s = 0;
	placed->before = (struct nm_place_measure){.distance = NAN, .performance = NAN};
}

/* Bars it for first_ns, doubled by each setback, up to a limit. */
static void bar(struct nm_placed *placed, uint64_t first_ns, uint64_t now_ns)
{
	placed->setbacks++;
	placed->barred_until_ns =
		now_ns + (placed->setbacks < SETBACKS_MOST ? first_ns << placed->setbacks
							   : WATCHED_NS);
}

static double since_decision_s(const struct nm_snapshot *snapshot, const struct nm_placed *placed)
{
	return (double)(snapshot->time_ns - placed->decided_ns) / (double)NM_NSEC_PER_SEC;
}

/* Its memory has yet to follow, so only the wait for CPUs can be judged. */
static bool is_early(const struct nm_snapshot *snapshot, const struct nm_placed *placed)
{
	return placed->memory.state != NM_BRING_DONE && placed->memory.away_bytes > 0 &&
	       since_decision_s(snapshot, placed) < FOLLOWS_S;
}

static struct nm_place_context context_of(const struct nm_daemon *daemon,
					  const struct nm_placed *placed,
					  const struct nm_place_view *view,
					  const struct nm_place_group *group)
{
	const struct nm_place_trend *now = &daemon->pipeline.placement->trend;
	return (struct nm_place_context){
		.performance_drift = now->performance / placed->trend.performance - 1,
		.distance_drift = placed->trend.distance / now->distance - 1,
		.waiting_drift = now->waiting - placed->trend.waiting,
		.cpus_idle = nm_place_could_run_elsewhere(view, group),
	};
}

static void judge(struct nm_daemon *daemon, const struct nm_snapshot *snapshot,
		  const struct nm_place_view *view, const struct nm_place_group *group,
		  struct nm_placed *placed)
{
	struct nm_place_measure before = placed->before, after = placed->after;
	bool early = is_early(snapshot, placed);
	/* The start of a program is not representative. */
	if ((double)(placed->placed_ns - placed->program_ns) <
	    NM_PLACE_YOUNG_S * (double)NM_NSEC_PER_SEC)
		before.distance = before.performance = before.run_s = NAN;
	if (early)
		after.distance = after.performance = NAN;
	struct nm_place_context context = context_of(daemon, placed, view, group);
	struct nm_place_verdict verdict = nm_place_judge(&before, &after, &context);
	if (early && verdict.outcome != NM_PLACE_WORSE)
		return;
	placed->judged = true;
	nm_report_placement_verdict(daemon, snapshot, placed, &verdict);
	switch (verdict.outcome) {
	case NM_PLACE_IMPROVED:
		daemon->tally.improved++;
		placed->setbacks = 0;
		break;
	case NM_PLACE_NEUTRAL:
		daemon->tally.neutral++;
		break;
	case NM_PLACE_WORSE:
		daemon->tally.rolled_back++;
		daemon->tally.homes.rolled_back++;
		nm_placement_give_up(daemon, placed, true);
		bar(placed, BARRED_NS, snapshot->time_ns);
		break;
	case NM_PLACE_INCONCLUSIVE:
		daemon->tally.inconclusive++;
		break;
	}
}

/* Its memory has arrived, and the measurements are from after that. */
static bool is_due(const struct nm_snapshot *snapshot, struct nm_placed *placed)
{
	if (placed->home < 0 || placed->judged)
		return false;
	if (placed->memory.state == NM_BRING_WANTED || placed->memory.state == NM_BRING_UNDER_WAY) {
		placed->after = (struct nm_place_measure){.distance = NAN, .performance = NAN};
		placed->decided_ns = snapshot->time_ns;
		return false;
	}
	return since_decision_s(snapshot, placed) >= NM_PLACE_WATCHED_S;
}

void nm_placement_judge(struct nm_daemon *daemon, const struct nm_snapshot *snapshot,
		      const struct nm_placement_view *view)
{
	struct nm_placement *placement = daemon->pipeline.placement;
	for (size_t i = 0; i < placement->count; i++) {
		struct nm_placed *placed = &placement->items[i];
		if (nm_daemon_is_dry_run(daemon) || !is_due(snapshot, placed))
			continue;
		judge(daemon, snapshot, &view->place, &view->groups[i], placed);
		nm_placement_fill_group(placed, snapshot->time_ns, &view->groups[i]);
	}
}
