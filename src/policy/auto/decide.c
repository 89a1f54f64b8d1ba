/* SPDX-License-Identifier: MIT */
/* Policy "auto": homes are judged, ended and assigned. */
#include <math.h>
#include <string.h>

#include "numa-migrd/homes.h"

#define FOLLOWS_S (2 * NM_PLACE_YOUNG_S) /* time that the verdict waits for remote memory, which
					  * the kernel moves as it scans, or which waits for the
					  * mover */
#define BARRED_NS (4 * NM_NSEC_PER_SEC) /* doubled by each setback */
#define SETBACKS_MOST 3U
/* Duration after SETBACKS_MOST consecutive setbacks. */
#define WATCHED_NS (600 * NM_NSEC_PER_SEC)

/* ---- homes that end ---- */

static void end_home(const struct nm_home_round *round, struct nm_placed *placed,
		     enum nm_home_end end)
{
	round->handler->ends(round->handler->context, &round->snapshot->processes[placed->process],
			     placed, end);
	nm_placed_forget_memory(placed);
	placed->home = -1;
	placed->lost_s = 0;
	placed->before = (struct nm_place_measure){.distance = NAN, .performance = NAN};
}

static bool is_without_home(enum nm_place_reason reason)
{
	return reason == NM_PLACE_SPREAD || reason == NM_PLACE_WAKES || reason == NM_PLACE_FIXED;
}

/* A home that was assigned because few threads ran is not valid for many. Its end does not count as
 * a setback and bars nothing. */
int nm_placement_expire(struct nm_placement *placement, const struct nm_home_round *round,
			const struct nm_placement_view *view)
{
	nm_autofree enum nm_place_reason *reasons =
		calloc(placement->processes.count + 1, sizeof(*reasons));
	int r = reasons ? nm_place_outgrown(&view->place, reasons) : -ENOMEM;
	for (size_t i = round->first; r == 0 && i < round->end; i++) {
		struct nm_placed *placed = nm_placed_at(placement, i);
		if (placed->home < 0)
			continue;
		placed->reason = reasons[i];
		if (!is_without_home(reasons[i]))
			continue;
		end_home(round, placed, NM_HOME_EXPIRED);
		view->groups[i].home = -1;
	}
	return r;
}

int nm_placement_yield(struct nm_placement *placement, const struct nm_home_round *round,
		       const struct nm_placement_view *view)
{
	nm_autofree bool *given_up = calloc(placement->processes.count + 1, sizeof(*given_up));
	int r = given_up ? nm_place_yield(&view->place, given_up) : -ENOMEM;
	for (size_t i = round->first; r == 0 && i < round->end; i++) {
		if (!given_up[i])
			continue;
		end_home(round, nm_placed_at(placement, i), NM_HOME_YIELDED);
		/* Not a setback, because its node was filled by others. It may be assigned another
		 * home next. */
		view->groups[i].home = -1;
		view->groups[i].barred = true;
	}
	return r;
}

/* ---- verdicts ---- */

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

static struct nm_place_context context_of(const struct nm_place_trend *now,
					  const struct nm_placed *placed,
					  const struct nm_place_view *view,
					  const struct nm_place_group *group)
{
	return (struct nm_place_context){
		.performance_drift = now->performance / placed->trend.performance - 1,
		.distance_drift = placed->trend.distance / now->distance - 1,
		.waiting_drift = now->waiting - placed->trend.waiting,
		.cpus_idle = nm_place_could_run_elsewhere(view, group),
	};
}

static void report_verdict(const struct nm_home_round *round, const struct nm_placed *placed,
			   const struct nm_place_verdict *judged)
{
	struct nm_verdict verdict = {
		.decision = placed->decision,
		.of = NM_DECISION_HOME,
		.kind = judged->kind,
		.policy = NM_POLICY_AUTO,
		.judged_by = judged->judged_by,
		.change = judged->change,
		.results = {.moved = placed->memory.moved},
		.nr_threads = 1,
		.threads = {{.pid = placed->pid,
			     .alive = true,
			     .ran_on_node = true,
			     .cpu_from = -1,
			     .node_from = -1,
			     .node_to = placed->home,
			     .local_before = NAN,
			     .local_after = NAN}},
	};
	memcpy(verdict.threads[0].comm, round->snapshot->processes[placed->process].comm,
	       sizeof(verdict.threads[0].comm));
	round->handler->judged(round->handler->context, &verdict);
}

static void judge_home(const struct nm_home_round *round, const struct nm_place_trend *trend,
		       const struct nm_place_view *view, const struct nm_place_group *group,
		       struct nm_placed *placed)
{
	struct nm_place_measure before = placed->before, after = placed->after;
	bool early = is_early(round->snapshot, placed);
	/* The start of a program is not representative. */
	if ((double)(placed->placed_ns - placed->program_ns) <
	    NM_PLACE_YOUNG_S * (double)NM_NSEC_PER_SEC)
		before.distance = before.performance = before.run_s = NAN;
	if (early)
		after.distance = after.performance = NAN;
	struct nm_place_context context = context_of(trend, placed, view, group);
	struct nm_place_verdict verdict = nm_place_judge(&before, &after, &context);
	if (early && verdict.kind != NM_VERDICT_ROLLED_BACK)
		return;
	placed->judged = true;
	report_verdict(round, placed, &verdict);
	if (verdict.kind == NM_VERDICT_IMPROVED)
		placed->setbacks = 0;
	if (verdict.kind != NM_VERDICT_ROLLED_BACK)
		return;
	end_home(round, placed, NM_HOME_ROLLED_BACK);
	bar(placed, BARRED_NS, round->snapshot->time_ns);
}

/* Its memory has arrived, and the measurements are from after that. */
static bool is_verdict_due(const struct nm_snapshot *snapshot, struct nm_placed *placed)
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

void nm_placement_judge(struct nm_placement *placement, const struct nm_home_round *round,
			const struct nm_placement_view *view)
{
	for (size_t i = round->first; i < round->end; i++) {
		struct nm_placed *placed = nm_placed_at(placement, i);
		if (!is_verdict_due(round->snapshot, placed))
			continue;
		judge_home(round, &placement->trend, &view->place, &view->groups[i], placed);
		nm_placement_fill_group(placed, round->snapshot->time_ns, &view->groups[i]);
	}
}

/* ---- homes that are assigned ---- */

static struct nm_home_reason reason_of(const struct nm_placement *placement,
				       const struct nm_snap_process *process,
				       const struct nm_placed *placed,
				       const struct nm_place_proposal *proposal)
{
	double move_s = nm_place_move_s(&placement->page_cost, (double)proposal->bytes_away);
	return (struct nm_home_reason){
		.reason = proposal->reason,
		.threads = placed->running,
		.demand_cpus = placed->demand_cpus,
		.age_s = process->age_s,
		.distance_now = proposal->distance_now,
		.distance_home = proposal->distance_home,
		.load = proposal->load,
		.bytes_away = proposal->bytes_away,
		.move_s = placed->memory.state == NM_BRING_NOTHING ? NAN : move_s,
	};
}

static void report_home(const struct nm_placement *placement, const struct nm_home_round *round,
			const struct nm_placed *placed, const struct nm_place_proposal *proposal)
{
	const struct nm_snap_process *process = &round->snapshot->processes[placed->process];
	bool nudged = round->config->threads.pin == NM_PIN_AUTO &&
		      nm_runtime_counts_again(process->runtime);
	struct nm_decision decision = {
		.id = placed->decision,
		.kind = NM_DECISION_HOME,
		.policy = NM_POLICY_AUTO,
		.interval = round->snapshot->interval,
		.gain = NAN,
		.home = reason_of(placement, process, placed, proposal),
		.nr_steps = 1,
		.steps = {{.pid = placed->pid,
			   .start_ticks = placed->start_ticks,
			   .pin = nudged ? NM_STEP_NUDGE : NM_STEP_LEASE,
			   .runtime = process->runtime,
			   .cpu_from = -1,
			   .cpu_to = -1,
			   .node_from = -1,
			   .node_to = placed->home,
			   .local_before = NAN,
			   .samples_before = NAN}},
	};
	memcpy(decision.steps[0].comm, process->comm, sizeof(decision.steps[0].comm));
	round->handler->granted(round->handler->context, &decision);
}

static void assign(struct nm_placement *placement, const struct nm_home_round *round,
		   struct nm_placed *placed, const struct nm_place_proposal *proposal, bool may_move)
{
	placed->decision = (*round->next_id)++;
	placed->home = proposal->node;
	placed->home_ran_most = placed->ran_most;
	placed->home_immovable = placed->immovable;
	placed->decided_ns = placed->placed_ns = round->snapshot->time_ns;
	placed->judged = false;
	placed->trend = placement->trend;
	placed->after = (struct nm_place_measure){.distance = NAN, .performance = NAN};
	nm_placed_forget_memory(placed);
	/* Once, even with automatic NUMA balancing: its scans take seconds, and it does not reclaim
	 * page cache. */
	placed->memory = (struct nm_bring_memory){
		.state = may_move && !placed->immovable ? NM_BRING_WANTED : NM_BRING_NOTHING,
		.away_bytes = proposal->bytes_away,
		.away_distance = proposal->distance_away,
	};
	uint64_t *available = &placement->available_bytes[proposal->node];
	*available -= proposal->bytes_away < *available ? proposal->bytes_away : *available;
	report_home(placement, round, placed, proposal);
}

bool nm_placement_wants_homes(const struct nm_home_round *round,
			      const struct nm_placement_view *view)
{
	for (size_t i = round->first; i < round->end; i++)
		if (view->groups[i].home < 0 && view->groups[i].running > 0)
			return true;
	return false;
}

int nm_placement_assign(struct nm_placement *placement, const struct nm_home_round *round,
			bool may_move, struct nm_placement_view *view)
{
	nm_autofree struct nm_place_proposal *proposals =
		calloc(placement->processes.count + 1, sizeof(*proposals));
	for (unsigned k = 0; nm_placement_wants_homes(round, view) && k < placement->nr_nodes; k++)
		view->nodes[k].free_bytes = placement->available_bytes[k];
	int r = proposals ? nm_place_propose(&view->place, proposals) : -ENOMEM;
	for (size_t i = round->first; r == 0 && i < round->end; i++) {
		struct nm_placed *placed = nm_placed_at(placement, i);
		if (placed->home < 0 || proposals[i].reason != NM_PLACE_HELD)
			placed->reason = proposals[i].reason;
		if (placed->home < 0 && proposals[i].node >= 0)
			assign(placement, round, placed, &proposals[i], may_move);
	}
	return r;
}
