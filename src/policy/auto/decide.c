/* SPDX-License-Identifier: MIT */
/* Policy "auto": homes are judged, ended and assigned. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "policy/homes.h"

#define MEMORY_DELAY_S                                                                             \
	(2 * NM_PLACE_YOUNG_S) /* time that the verdict waits for remote memory, which             \
				* the kernel moves as it scans, or which waits for the             \
				* mover */

/* ---- the list of what is to be done ---- */

void nm_home_actions_clear(struct nm_home_actions *actions)
{
	free(actions->items);
	*actions = (struct nm_home_actions){0};
}

static struct nm_home_action *add_action(struct nm_home_actions *actions,
					 enum nm_home_action_kind kind,
					 const struct nm_home_state *state)
{
	if (actions->count == actions->capacity) {
		actions->capacity = 2 * actions->capacity + 4;
		actions->items = nm_must(
			reallocarray(actions->items, actions->capacity, sizeof(*actions->items)));
	}
	struct nm_home_action *action = &actions->items[actions->count++];
	*action = (struct nm_home_action){.kind = kind,
					  .reason = state->reason,
					  .process = state->process,
					  .pid = state->pid,
					  .home = state->home,
					  .id = state->decision};
	return action;
}

/* ---- homes that end ---- */

static void end_home(struct nm_home_actions *actions, struct nm_home_state *state,
		     enum nm_home_end end)
{
	add_action(actions, NM_HOME_ENDS, state)->end = end;
	state->migration = (struct nm_memory_migration){0};
	state->home = -1;
	state->lost_s = 0;
	state->before = (struct nm_place_measure){.distance = NAN, .performance = NAN};
}

static bool is_without_home(enum nm_place_reason reason)
{
	return reason == NM_PLACE_SPREAD || reason == NM_PLACE_OFTEN_WOKEN ||
	       reason == NM_PLACE_FIXED || reason == NM_PLACE_PINNED ||
	       reason == NM_PLACE_LEFT_ALONE;
}

/* A home that was assigned because few threads ran is not valid for many. */
static void expire(struct nm_placement *placement, const struct nm_home_round *round,
		   const struct nm_placement_view *view, struct nm_home_actions *actions)
{
	nm_autofree enum nm_place_reason *reasons =
		nm_must(calloc(placement->processes.count + 1, sizeof(*reasons)));
	nm_place_find_expired(&view->place, reasons);
	for (size_t i = round->first; i < round->end; i++) {
		struct nm_home_state *state = nm_home_state_at(placement, i);
		if (state->home < 0)
			continue;
		state->reason = state->left_alone ? NM_PLACE_LEFT_ALONE : reasons[i];
		if (!is_without_home(state->reason))
			continue;
		end_home(actions, state, NM_HOME_EXPIRED);
		view->groups[i].home = -1;
	}
}

/* Ends homes on nodes whose run queues are full. */
static void yield(struct nm_placement *placement, const struct nm_home_round *round,
		  const struct nm_placement_view *view, struct nm_home_actions *actions)
{
	nm_autofree bool *given_up =
		nm_must(calloc(placement->processes.count + 1, sizeof(*given_up)));
	nm_place_yield(&view->place, given_up);
	for (size_t i = round->first; i < round->end; i++) {
		if (!given_up[i])
			continue;
		end_home(actions, nm_home_state_at(placement, i), NM_HOME_YIELDED);
		/* It may be assigned another home in the next interval. */
		view->groups[i].home = -1;
		view->groups[i].barred = true;
	}
}

/* ---- verdicts ---- */

static double since_decision_s(const struct nm_snapshot *snapshot,
			       const struct nm_home_state *state)
{
	return (double)(snapshot->time_ns - state->decided_ns) / (double)NM_NSEC_PER_SEC;
}

/* Its memory has yet to follow. */
static bool is_early(const struct nm_snapshot *snapshot, const struct nm_home_state *state)
{
	return state->migration.state != NM_MIGRATION_DONE && state->migration.away_bytes > 0 &&
	       since_decision_s(snapshot, state) < MEMORY_DELAY_S;
}

static struct nm_place_context context_of(const struct nm_place_trend *now,
					  const struct nm_home_state *state,
					  const struct nm_place_view *view,
					  const struct nm_place_group *group)
{
	return (struct nm_place_context){
		.performance_drift = now->performance / state->trend.performance - 1,
		.distance_drift = state->trend.distance / now->distance - 1,
		.waiting_drift = now->waiting - state->trend.waiting,
		.cpus_idle = nm_place_could_run_elsewhere(view, group),
		.controller_full = nm_place_is_controller_full(view, (unsigned)state->home),
	};
}

static struct nm_decision decision_of(const struct nm_home_round *round,
				      const struct nm_home_state *state)
{
	struct nm_decision decision = nm_decision_of_process(
		NM_DECISION_HOME, state->decision, state->pid, state->start_ticks,
		round->snapshot->processes[state->process].comm);
	decision.policy = NM_POLICY_AUTO;
	decision.interval = round->snapshot->interval;
	decision.steps[0].node_to = state->home;
	return decision;
}

/* Returns the part of its time that the home has saved; NaN: not measured. */
static double measured_gain(const struct nm_home_state *state, const struct nm_judgement *judgement)
{
	double before = state->before.distance / NM_DISTANCE_LOCAL;
	double after = before / (1 + judgement->change);
	switch (judgement->by) {
	case NM_BY_PERFORMANCE:
		return 1 - 1 / (1 + judgement->change);
	case NM_BY_DISTANCE:
		return state->stalled * (before - after) / (1 + state->stalled * (before - 1));
	default:
		return NAN;
	}
}

static void note_error(struct nm_prediction_errors *errors, double error)
{
	if (isnan(error))
		return;
	errors->values[errors->next] = error;
	errors->next = (errors->next + 1) % NM_PREDICTION_ERRORS;
	errors->count += errors->count < NM_PREDICTION_ERRORS;
}

static void add_verdict(const struct nm_home_round *round, const struct nm_home_state *state,
			const struct nm_judgement *judgement, double gain,
			struct nm_home_actions *actions)
{
	const struct nm_decision decision = decision_of(round, state);
	struct nm_verdict verdict = nm_verdict_of(&decision);
	verdict.kind = judgement->kind;
	verdict.judged_by = judgement->by;
	verdict.change = judgement->change;
	verdict.expected_gain = state->expected_gain;
	verdict.measured_gain = gain;
	verdict.needed = judgement->needed;
	verdict.results.moved = state->migration.moved;
	verdict.threads[0].alive = true;
	add_action(actions, NM_HOME_JUDGED, state)->verdict = verdict;
}

static void judge_home(struct nm_placement *placement, const struct nm_home_round *round,
		       const struct nm_place_view *view, const struct nm_place_group *group,
		       struct nm_home_state *state, struct nm_home_actions *actions)
{
	struct nm_place_measure before = state->before;
	/* The start of a program is not representative. */
	bool young = (double)(state->placed_ns - state->program_ns) <
		     NM_PLACE_YOUNG_S * (double)NM_NSEC_PER_SEC;
	if (young)
		before.distance = before.performance = before.run_s = NAN;
	struct nm_place_context context = context_of(&placement->trend, state, view, group);
	context.tolerance = round->config->verify.tolerance_percent / 100;
	struct nm_judgement verdict = nm_place_judge(&before, &state->after, &context);
	state->judged = true;
	if (young && verdict.by == NM_BY_NOTHING)
		verdict.kind = NM_VERDICT_UNVERIFIED;
	double gain = measured_gain(state, &verdict);
	note_error(&placement->errors, fabs(gain - state->expected_gain));
	add_verdict(round, state, &verdict, gain, actions);
}

/* Its memory has arrived, and the measurements are from after that. */
static bool is_verdict_due(const struct nm_snapshot *snapshot, struct nm_home_state *state)
{
	if (state->home < 0 || state->judged)
		return false;
	if (state->migration.state == NM_MIGRATION_READY ||
	    state->migration.state == NM_MIGRATION_RUNNING) {
		state->after = (struct nm_place_measure){.distance = NAN, .performance = NAN};
		state->decided_ns = snapshot->time_ns;
		return false;
	}
	return since_decision_s(snapshot, state) >= NM_PLACE_OBSERVED_S &&
	       !is_early(snapshot, state);
}

/* Gives the verdicts that are due. */
static void judge(struct nm_placement *placement, const struct nm_home_round *round,
		  const struct nm_placement_view *view, struct nm_home_actions *actions)
{
	for (size_t i = round->first; i < round->end; i++) {
		struct nm_home_state *state = nm_home_state_at(placement, i);
		if (!is_verdict_due(round->snapshot, state))
			continue;
		judge_home(placement, round, &view->place, &view->groups[i], state, actions);
	}
}

void nm_placement_review(struct nm_placement *placement, const struct nm_home_round *round,
			 struct nm_placement_view *view, struct nm_home_actions *actions)
{
	/* A dry run reports homes; moves of threads are neither attempted nor judged. */
	if (round->whole && !round->dry_run)
		judge(placement, round, view, actions);
	expire(placement, round, view, actions);
	if (round->whole)
		yield(placement, round, view, actions);
}

/* ---- homes that are assigned ---- */

static struct nm_home_reason reason_of(const struct nm_placement *placement,
				       const struct nm_snap_process *process,
				       const struct nm_home_state *state,
				       const struct nm_place_proposal *proposal)
{
	double move_s = nm_place_migration_cost_s(placement->page_cost.page_ns,
						  (double)proposal->bytes_away);
	struct nm_home_reason ret = {
		.reason = proposal->reason,
		.threads = state->input.running,
		.demand_cpus = state->input.demand_cpus,
		.age_s = process->age_s,
		.distance_now = proposal->distance_now,
		.distance_home = proposal->distance_home,
		.load = proposal->load,
		.bytes_away = proposal->bytes_away,
		.gain = proposal->gain,
		.nr_candidates = proposal->nr_candidates,
		.move_s = state->migration.state == NM_MIGRATION_NONE ? NAN : move_s,
		.keeps_memory = process->keeps_memory,
	};
	memcpy(ret.candidates, proposal->candidates, sizeof(ret.candidates));
	return ret;
}

static void assign(struct nm_placement *placement, const struct nm_home_round *round,
		   const struct nm_placement_view *view, struct nm_home_state *state,
		   const struct nm_place_proposal *proposal, struct nm_home_actions *actions)
{
	bool after_draw = state->drawn;
	double staying = nm_place_staying_share(&view->place, &view->groups[proposal->group],
						(unsigned)proposal->node);
	if (after_draw) {
		state->drawn = false;
		state->stays_until = round->snapshot->interval + NM_PLACE_STAYS_INTERVALS;
	}
	state->decision = (*round->next_id)++;
	state->home = proposal->node;
	state->input.home_max_running = state->input.max_running;
	state->expected_gain = proposal->gain;
	state->stalled = proposal->candidates[0].at.stalled;
	/* Only what was known then. */
	state->input.home_despite_memory = staying >= 0.5;
	state->decided_ns = state->placed_ns = round->snapshot->time_ns;
	state->judged = false;
	state->trend = placement->trend;
	state->after = (struct nm_place_measure){.distance = NAN, .performance = NAN};
	/* Once, even with automatic NUMA balancing: its scans take seconds, and it does not reclaim
	 * page cache. */
	state->migration = (struct nm_memory_migration){
		.state = round->may_move && staying < 1 ? NM_MIGRATION_READY : NM_MIGRATION_NONE,
		.away_bytes = proposal->bytes_away,
		.away_distance = proposal->distance_away,
	};
	uint64_t *available = &placement->available_bytes[proposal->node];
	*available -= proposal->bytes_away < *available ? proposal->bytes_away : *available;
	struct nm_home_action *action = add_action(actions, NM_HOME_BEGINS, state);
	action->after_draw = after_draw;
	action->decision = decision_of(round, state);
	action->decision.home =
		reason_of(placement, &round->snapshot->processes[state->process], state, proposal);
}

bool nm_placement_wants_homes(const struct nm_home_round *round,
			      const struct nm_placement_view *view)
{
	for (size_t i = round->first; i < round->end; i++)
		if (view->groups[i].home < 0 && view->groups[i].running > 0)
			return true;
	return false;
}

void nm_placement_leave_alone(struct nm_placement *placement, struct nm_placement_view *view,
			      size_t process)
{
	nm_home_state_at(placement, process)->left_alone = true;
	view->groups[process].barred = true;
}

void nm_placement_propose(const struct nm_placement *placement, const struct nm_home_round *round,
			  struct nm_placement_view *view, struct nm_place_proposal *ret)
{
	view->place.kernel_moves = round->kernel_moves;
	if (nm_placement_wants_homes(round, view)) {
		view->place.memory_stays = round->memory_stays;
		for (unsigned k = 0; k < placement->nr_nodes; k++)
			view->nodes[k].free_bytes = placement->available_bytes[k];
	}
	nm_place_propose(&view->place, ret);
}

/* Neither a decision for it nor a verdict is to be expected. */
static bool is_stable(const struct nm_home_round *round, const struct nm_home_state *state,
		      const struct nm_place_proposal *proposal)
{
	if (state->home < 0 || round->dry_run)
		return proposal->stable;
	return state->judged && (state->migration.state == NM_MIGRATION_NONE ||
				 state->migration.state == NM_MIGRATION_DONE);
}

void nm_placement_assign(struct nm_placement *placement, const struct nm_home_round *round,
			 const struct nm_placement_view *view,
			 const struct nm_place_proposal *proposals, struct nm_home_actions *actions)
{
	bool stable = placement->unstable_ns > 0;
	for (size_t i = round->first; i < round->end; i++) {
		struct nm_home_state *state = nm_home_state_at(placement, i);
		if (state->drawn && round->snapshot->interval < state->stays_until) {
			stable = false;
			continue;
		}
		if (state->home < 0 || proposals[i].reason != NM_PLACE_HAS_HOME)
			state->reason = proposals[i].reason;
		if (state->left_alone)
			state->reason = NM_PLACE_LEFT_ALONE;
		if (state->home < 0 && proposals[i].node >= 0)
			assign(placement, round, view, state, &proposals[i], actions);
		stable = stable && is_stable(round, state, &proposals[i]);
	}
	const uint64_t now_ns = round->snapshot->time_ns;
	if (!stable)
		placement->unstable_ns = now_ns;
	placement->settled_s = (double)(now_ns - placement->unstable_ns) / (double)NM_NSEC_PER_SEC;
}
