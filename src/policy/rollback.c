/* SPDX-License-Identifier: MIT */
#include <math.h>

#include "numa-migrd/judge.h"
#include "step.h"

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
		const struct nm_step_route route = {
			.cpu_from = thread->main_cpu,
			.cpu_to = back->cpu_from,
			.node_from = nm_topology_node_of_cpu(snapshot->topology, thread->main_cpu),
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
		if (nm_step_build(snapshot, config, thread, &route, &decision.steps[0]) < 0)
			continue;
		nm_plan_append(plan, &decision);
		(*next_id)++;
	}
}
