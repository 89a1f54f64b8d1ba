/* SPDX-License-Identifier: MIT */
#include <math.h>

#include "step.h"

static bool is_undone(const struct nm_rollback *rollback, const struct nm_snap_thread *thread)
{
	for (unsigned i = 0; i < rollback->nr_threads; i++)
		if (rollback->threads[i].tid == thread->tid)
			return true;
	return false;
}

/* Returns whether the CPU is offline, or is the main CPU of a managed thread that stays: the two
 * threads of a swap make room for each other. */
static bool is_occupied(const struct nm_snapshot *snapshot, const struct nm_rollback *rollback,
			int cpu)
{
	if (cpu < 0 || (unsigned)cpu >= snapshot->topology->nr_cpus)
		return true;
	const struct nm_snap_cpu *there = &snapshot->cpus[cpu];
	if (!there->usable)
		return true;
	for (unsigned i = 0; i < there->homes; i++) {
		uint32_t thread = snapshot->home_threads[there->first_home + i];
		if (!is_undone(rollback, &snapshot->threads[thread]))
			return true;
	}
	return false;
}

/* Also returns -ENOENT for a thread that has exited, or must not be moved any more. */
static int build_step(const struct nm_snapshot *snapshot, const struct nm_config *config,
		      const struct nm_rollback *rollback, unsigned index, struct nm_step *ret)
{
	int cpu = rollback->threads[index].cpu_from, node = rollback->threads[index].node_from;
	const struct nm_snap_thread *thread =
		nm_snapshot_thread(snapshot, rollback->threads[index].tid);
	if (!thread || thread->only_watched ||
	    thread->start_ticks != rollback->threads[index].start_ticks ||
	    thread->adopted_ns != rollback->threads[index].adopted_ns || node < 0 ||
	    node >= (int)snapshot->topology->nr_nodes)
		return -ENOENT;
	struct nm_step_route route = {
		.cpu_from = thread->main_cpu,
		.cpu_to = cpu,
		.node_from = nm_topology_node_of_cpu(snapshot->topology, thread->main_cpu),
		.node_to = node,
		.whole_node = is_occupied(snapshot, rollback, cpu),
	};
	return nm_step_build(snapshot, config, thread, &route, ret);
}

static int add_step(const struct nm_snapshot *snapshot, const struct nm_config *config,
		    const struct nm_rollback *rollback, unsigned index, uint64_t *next_id,
		    struct nm_plan *plan)
{
	nm_auto(nm_decision_clear) struct nm_decision decision = {
		.id = *next_id,
		.kind = NM_DECISION_ROLLBACK,
		.policy = config->threads.policy,
		.interval = snapshot->interval,
		.undoes = rollback->decision,
		.by_performance = nm_judged_by_performance(config->threads.policy, snapshot),
		.by_locality = snapshot->by_locality,
		.cost_before = NAN,
		.cost_after = NAN,
		.draw = NAN,
		.gain = NAN,
	};
	int r = build_step(snapshot, config, rollback, index, &decision.steps[0]);
	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return r;
	decision.nr_steps = 1;
	r = nm_plan_append(plan, &decision);
	if (r < 0)
		return r;
	decision.nr_steps = 0;
	(*next_id)++;
	return 0;
}

int nm_plan_add_rollback(const struct nm_snapshot *snapshot, const struct nm_config *config,
			 const struct nm_rollback *rollback, uint64_t *next_id,
			 struct nm_plan *plan)
{
	int r = 0;
	for (unsigned i = 0; r == 0 && i < rollback->nr_threads; i++)
		r = add_step(snapshot, config, rollback, i, next_id, plan);
	return r;
}
