/* SPDX-License-Identifier: MIT */
/* Turns proposals, homes and rollbacks into decisions, each with a step for every thread. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "policy/judge.h"
#include "policy/plan.h"

/* ---- steps ---- */

struct step_route {
	int cpu_from, cpu_to, node_from, node_to;
	bool whole_node;	     /* also with the rules of a paper */
	hwloc_const_bitmap_t within; /* subset of the node's CPUs; NULL: all */
	bool below_cache;	     /* only those with the last-level cache of cpu_to */
};

NM_DEFINE_CLEANUP(struct hwloc_bitmap_s, hwloc_bitmap_free);

static void keep_below_cache(const struct nm_topology *topology, int cpu_to, hwloc_bitmap_t cpus)
{
	for (int cpu = hwloc_bitmap_first(cpus); cpu >= 0; cpu = hwloc_bitmap_next(cpus, cpu))
		if (topology->cpus[cpu].cache != topology->cpus[cpu_to].cache)
			nm_must_do(hwloc_bitmap_clr(cpus, (unsigned)cpu));
}

static int build_target(const struct nm_snapshot *snapshot, const struct nm_config *config,
			const struct nm_snap_thread *thread, const struct step_route *route,
			hwloc_bitmap_t *ret)
{
	nm_auto(hwloc_bitmap_freep) struct hwloc_bitmap_s *target =
		nm_must(hwloc_bitmap_dup(snapshot->topology->nodes[route->node_to].cpus));
	nm_must_do(hwloc_bitmap_and(target, target, thread->allowed));
	if (route->within)
		nm_must_do(hwloc_bitmap_and(target, target, route->within));
	if (route->below_cache)
		keep_below_cache(snapshot->topology, route->cpu_to, target);
	/* The papers move a thread to one CPU. */
	if (config->rules.paper && !route->whole_node && route->cpu_to >= 0) {
		unsigned cpu = (unsigned)route->cpu_to;
		if (!hwloc_bitmap_isset(target, cpu))
			return -ENOENT;
		nm_must_do(hwloc_bitmap_only(target, cpu));
	}
	if (hwloc_bitmap_iszero(target))
		return -ENOENT;
	*ret = NM_TAKE(target);
	return 0;
}

static double cost_where_it_was(const struct nm_snapshot *snapshot,
				const struct nm_snap_thread *thread, int node)
{
	if (node < 0)
		return NAN;
	return nm_selection_access_cost(snapshot->topology, thread->stats.accesses, node);
}

/* Returns 0 or -ENOENT (the thread may use no CPU there); *ret is unchanged on failure. */
static int step_build(const struct nm_snapshot *snapshot, const struct nm_config *config,
		      const struct nm_snap_thread *thread, const struct step_route *route,
		      struct nm_step *ret)
{
	const struct nm_snap_process *process = &snapshot->processes[thread->process];
	hwloc_bitmap_t target;
	int r = build_target(snapshot, config, thread, route, &target);
	if (r < 0)
		return r;
	*ret = (struct nm_step){
		.tid = thread->tid,
		.pid = thread->pid,
		.start_ticks = thread->start_ticks,
		.adopted_ns = thread->adopted_ns,
		.cpu_from = route->cpu_from,
		.cpu_to = route->cpu_to,
		.node_from = route->node_from,
		.node_to = route->node_to,
		.target = target,
		.original = thread->allowed,
		.unrestricted = thread->unrestricted,
		.local_before = thread->local_share,
		.samples_before = thread->stats.access_samples,
		.latency_before = thread->stats.latency,
		.latency_samples_before = thread->stats.latency_samples,
		.performance_before = thread->performance,
		.relative_before = thread->relative,
		.record = NAN,
		.shared = NAN,
		.access_cost_before = cost_where_it_was(snapshot, thread, route->node_from),
	};
	memcpy(ret->comm, process->comm, sizeof(ret->comm));
	return 0;
}

static void nm_decision_clear(struct nm_decision *decision)
{
	for (unsigned i = 0; i < decision->nr_steps; i++)
		hwloc_bitmap_free(decision->steps[i].target);
	decision->nr_steps = 0;
}

/* ---- decisions ---- */

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

/* Appends the decision to the plan, which takes it over. */
static void append(struct nm_plan *plan, const struct nm_decision *decision)
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
		struct step_route route = {
			.cpu_from = move->cpu_from,
			.cpu_to = move->cpu_to,
			.node_from = move->node_from,
			.node_to = move->node_to,
			.within = move->within,
			.below_cache = move->below_cache,
		};
		int r = step_build(snapshot, config, &snapshot->threads[move->thread], &route,
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
	const struct step_route route = {
		.cpu_from = one->stats.main_cpu,
		.cpu_to = -1,
		.node_from = nm_topology_node_of_cpu(snapshot->topology, one->stats.main_cpu),
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
	int r = step_build(snapshot, config, one, &route, &decision.steps[0]);
	if (r < 0)
		return r;
	decision.nr_steps = 1;
	append(plan, &decision);
	decision.nr_steps = 0;
	return 0;
}

/* ---- rollbacks ---- */

bool nm_verdict_restores(const struct nm_verdict *verdict)
{
	bool only_bound = verdict->nr_threads == 1 &&
			  verdict->threads[0].node_from == verdict->threads[0].node_to;
	return verdict->kind == NM_VERDICT_CANCELLED ||
	       (verdict->kind == NM_VERDICT_ROLLED_BACK && only_bound);
}

bool nm_verdict_bars(const struct nm_verdict *verdict, const struct nm_verdict_thread *thread,
		     bool stays)
{
	if (verdict->kind != NM_VERDICT_IMPROVED && verdict->kind != NM_VERDICT_NEUTRAL)
		return true;
	return !stays || (nm_policy_is_by(verdict->policy, NM_BY_PERFORMANCE) &&
			  verdict->of != NM_DECISION_ROLLBACK &&
			  thread->performance_after <= thread->performance_before);
}

static bool is_undone(const struct nm_verdict *verdict, const struct nm_snap_thread *thread)
{
	for (unsigned i = 0; i < verdict->nr_threads; i++)
		if (verdict->threads[i].tid == thread->tid)
			return true;
	return false;
}

/* Returns whether the CPU is offline, or is the main CPU of a managed thread that stays: the two
 * threads of a swap make room for each other. */
static bool is_occupied(const struct nm_snapshot *snapshot, const struct nm_verdict *verdict,
			int cpu)
{
	if (cpu < 0 || (unsigned)cpu >= snapshot->topology->nr_cpus)
		return true;
	const struct nm_snap_cpu *there = &snapshot->cpus[cpu];
	if (!there->usable)
		return true;
	for (unsigned i = 0; i < there->nr_main_threads; i++) {
		uint32_t thread = snapshot->main_threads[there->first_main_thread + i];
		if (!is_undone(verdict, &snapshot->threads[thread]))
			return true;
	}
	return false;
}

void nm_plan_add_rollback(const struct nm_snapshot *snapshot, const struct nm_config *config,
			  const struct nm_verdict *verdict, uint64_t *next_id, struct nm_plan *plan)
{
	for (unsigned i = 0; i < verdict->nr_threads; i++) {
		const struct nm_verdict_thread *back = &verdict->threads[i];
		const struct nm_snap_thread *thread = nm_snapshot_thread(snapshot, back->tid);
		/* A thread that has exited, or must not be moved any more, stays. */
		if (!thread || thread->only_watched || thread->start_ticks != back->start_ticks ||
		    thread->adopted_ns != back->adopted_ns || back->node_from < 0 ||
		    back->node_from >= (int)snapshot->topology->nr_nodes)
			continue;
		const struct step_route route = {
			.cpu_from = thread->stats.main_cpu,
			.cpu_to = back->cpu_from,
			.node_from =
				nm_topology_node_of_cpu(snapshot->topology, thread->stats.main_cpu),
			.node_to = back->node_from,
			.whole_node = is_occupied(snapshot, verdict, back->cpu_from),
		};
		struct nm_decision decision = {
			.id = *next_id,
			.kind = NM_DECISION_ROLLBACK,
			.policy = verdict->policy,
			.interval = snapshot->interval,
			.undoes = verdict->decision,
			.by_performance = nm_judged_by_performance(verdict->policy, snapshot),
			.by_locality = snapshot->by_locality,
			.cost_before = NAN,
			.cost_after = NAN,
			.draw = NAN,
			.gain = NAN,
			.nr_steps = 1,
		};
		if (step_build(snapshot, config, thread, &route, &decision.steps[0]) < 0)
			continue;
		append(plan, &decision);
		(*next_id)++;
	}
}
