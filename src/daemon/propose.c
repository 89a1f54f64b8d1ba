/* SPDX-License-Identifier: MIT */
/* Runs the configured policy, and plans its proposals. */
#include "daemon.h"
#include "numa-migrd/policy.h"

int nm_propose(struct nm_daemon *daemon, const struct nm_snapshot *snapshot, struct nm_plan *plan)
{
	nm_auto(nm_proposals_clear) struct nm_proposals proposals = {0};
	const struct nm_config *config = daemon->config;
	const struct nm_policy_ops *ops = nm_policy_ops(config->threads.policy);
	const struct nm_policy_input input = {
		.snapshot = snapshot,
		.config = config,
		.interval_s = nm_loop_interval_s(daemon),
		.rng = &daemon->rng,
		.seed = daemon->seed,
		.record = daemon->pipeline.record,
		.memory = daemon->pipeline.memory,
		.kmaf_clock = &daemon->pipeline.kmaf_clock,
		.balancer = daemon->pipeline.balancer,
	};
	if (!ops->propose)
		return 0;
	int r = ops->propose(&input, &proposals);
	nm_plan_clear(plan);
	if (r == 0)
		r = nm_plan_build(snapshot, config, &proposals, &daemon->next_decision, plan);
	if (r == 0)
		nm_recorder_proposals(daemon, &proposals, plan);
	return r;
}
