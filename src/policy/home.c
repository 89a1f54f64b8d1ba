/* SPDX-License-Identifier: MIT */
#include <math.h>

#include "step.h"

int nm_plan_add_home(const struct nm_snapshot *snapshot, const struct nm_config *config,
		     uint32_t thread, int node, enum nm_step_pin pin, uint64_t id,
		     struct nm_plan *plan)
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
	decision.steps[0].pin = pin;
	decision.nr_steps = 1;
	r = nm_plan_append(plan, &decision);
	if (r == 0)
		decision.nr_steps = 0;
	return r;
}
