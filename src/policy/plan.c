/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "step.h"

struct nm_decision nm_decision_of_process(enum nm_decision_kind kind, uint64_t id, uint32_t pid,
					  uint64_t start_ticks, const char *comm)
{
	struct nm_decision decision = {
		.id = id,
		.kind = kind,
		.gain = NAN,
		.nr_steps = 1,
		.steps = {{.pid = pid,
			   .start_ticks = start_ticks,
			   .cpu_from = -1,
			   .cpu_to = -1,
			   .node_from = -1,
			   .node_to = -1,
			   .local_before = NAN,
			   .samples_before = NAN,
			   .latency_before = NAN}},
	};
	(void)snprintf(decision.steps[0].comm, sizeof(decision.steps[0].comm), "%s", comm);
	return decision;
}

void nm_plan_clear(struct nm_plan *plan)
{
	for (size_t i = 0; i < plan->count; i++)
		nm_decision_clear(&plan->decisions[i]);
	free(plan->decisions);
	*plan = (struct nm_plan){0};
}

static bool are_allowed(const struct nm_decision *decision,
			bool (*allows)(void *context, uint32_t pid), void *context)
{
	bool allowed = true;
	for (unsigned i = 0; i < decision->nr_steps; i++)
		allowed &= allows(context, decision->steps[i].pid);
	return allowed;
}

void nm_plan_filter(struct nm_plan *plan, bool (*allows)(void *context, uint32_t pid),
		    void *context)
{
	size_t kept = 0;
	for (size_t i = 0; i < plan->count; i++) {
		if (are_allowed(&plan->decisions[i], allows, context))
			plan->decisions[kept++] = plan->decisions[i];
		else
			nm_decision_clear(&plan->decisions[i]);
	}
	plan->count = kept;
}

void nm_plan_append(struct nm_plan *plan, const struct nm_decision *decision)
{
	struct nm_decision *grown =
		nm_must(reallocarray(plan->decisions, plan->count + 1, sizeof(*grown)));
	plan->decisions = grown;
	plan->decisions[plan->count++] = *decision;
}

static unsigned moves_of(const struct nm_proposal *proposal)
{
	return proposal->kind == NM_PROPOSAL_SWAP ? 2 : 1;
}

/* Returns whether a thread is already at its destination and assigned to it, so that there is
 * nothing to do. */
static bool is_idle(const struct nm_snapshot *snapshot, const struct nm_proposal *proposal)
{
	const struct nm_move *move = &proposal->moves[0];
	return moves_of(proposal) == 1 && move->node_from == move->node_to &&
	       move->cpu_from == move->cpu_to &&
	       snapshot->threads[move->thread].assigned == move->node_to;
}

/* Returns -EALREADY if the proposal would change nothing, -ENOENT if its target has no CPU. */
static int decide_proposal(const struct nm_snapshot *snapshot, const struct nm_config *config,
			   enum nm_thread_policy policy, const struct nm_proposal *proposal,
			   struct nm_decision *ret)
{
	bool swap = proposal->kind == NM_PROPOSAL_SWAP;
	nm_auto(nm_decision_clear) struct nm_decision decision = {
		.kind = swap ? NM_DECISION_SWAP : NM_DECISION_MIGRATE,
		.policy = policy,
		.interval = snapshot->interval,
		.by_performance = nm_judged_by_performance(policy, snapshot),
		.by_locality = snapshot->by_locality,
		.cost_before = proposal->cost_before,
		.cost_after = proposal->cost_after,
		.balance = proposal->balance,
		.tickets = proposal->tickets,
		.draw = proposal->draw,
		.gain = proposal->gain,
		.nr_alternatives = proposal->nr_alternatives,
		.nr_candidates = proposal->nr_candidates,
	};
	if (is_idle(snapshot, proposal))
		return -EALREADY;
	memcpy(decision.alternatives, proposal->alternatives, sizeof(decision.alternatives));
	for (unsigned i = 0; i < moves_of(proposal); i++) {
		const struct nm_move *move = &proposal->moves[i];
		struct nm_step_route route = {
			.cpu_from = move->cpu_from,
			.cpu_to = move->cpu_to,
			.node_from = move->node_from,
			.node_to = move->node_to,
			.within = move->within,
		};
		int r = nm_step_build(snapshot, config, &snapshot->threads[move->thread], &route,
				      &decision.steps[i]);
		if (r < 0)
			return r;
		decision.steps[i].record = move->record;
		decision.steps[i].shared = proposal->shared[i];
		decision.nr_steps++;
	}
	*ret = decision;
	decision.nr_steps = 0;
	return 0;
}

void nm_plan_build(const struct nm_snapshot *snapshot, const struct nm_config *config,
		   const struct nm_proposals *proposals, uint64_t *next_id, struct nm_plan *ret)
{
	uint64_t budget = config->rules.moves_per_interval;
	struct nm_plan plan = {
		.decisions = nm_must(calloc(proposals->count + 1, sizeof(*plan.decisions)))};
	for (size_t i = 0; i < proposals->count; i++) {
		const struct nm_proposal *proposal = &proposals->items[i];
		if (moves_of(proposal) > budget ||
		    decide_proposal(snapshot, config, proposals->policy, proposal,
				    &plan.decisions[plan.count]) < 0)
			continue;
		plan.decisions[plan.count++].id = (*next_id)++;
		budget -= moves_of(proposal);
	}
	*ret = plan;
}

int nm_plan_add_home(const struct nm_snapshot *snapshot, const struct nm_config *config,
		     uint32_t thread, int node, uint64_t id, struct nm_plan *plan)
{
	const struct nm_snap_thread *one = &snapshot->threads[thread];
	const struct nm_step_route route = {
		.cpu_from = one->main_cpu,
		.cpu_to = -1,
		.node_from = nm_topology_node_of_cpu(snapshot->topology, one->main_cpu),
		.node_to = node,
		.whole_node = true,
	};
	nm_auto(nm_decision_clear) struct nm_decision decision = {
		.id = id,
		.kind = NM_DECISION_MIGRATE,
		.policy = NM_POLICY_AUTO,
		.interval = snapshot->interval,
		.by_locality = snapshot->by_locality,
		.cost_before = NAN,
		.cost_after = NAN,
		.draw = NAN,
		.gain = NAN,
	};
	int r = nm_step_build(snapshot, config, one, &route, &decision.steps[0]);
	if (r < 0)
		return r;
	decision.nr_steps = 1;
	nm_plan_append(plan, &decision);
	decision.nr_steps = 0;
	return 0;
}
