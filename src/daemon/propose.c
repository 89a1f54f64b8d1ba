/* SPDX-License-Identifier: MIT */
/* Runs the configured policy, and plans its proposals. */
#include "daemon.h"

/* Policy "kmaf" proposes only at the end of a placement period. */
static int place(struct nm_daemon *daemon, const struct nm_snapshot *snapshot,
		 struct nm_proposals *ret)
{
	struct nm_memory *memory = daemon->pipeline.memory;
	if (!memory || !nm_kmaf_ends_period(&daemon->pipeline.kmaf_clock, daemon->config,
					    nm_loop_interval_s(daemon), snapshot->time_ns))
		return 0;
	return nm_kmaf_place(snapshot, daemon->config, memory, (uint32_t)daemon->seed, ret);
}

int nm_propose(struct nm_daemon *daemon, const struct nm_snapshot *snapshot, struct nm_plan *plan)
{
	nm_auto(nm_proposals_clear) struct nm_proposals proposals = {0};
	const struct nm_config *config = daemon->config;
	int r = 0;

	switch (config->threads.policy) {
	case NM_POLICY_NONE:
	case NM_POLICY_AUTO: /* decides about groups: placement.c */
		return 0;
	case NM_POLICY_LBMA:
		r = nm_lbma_propose(snapshot, config, &daemon->rng, &proposals);
		break;
	case NM_POLICY_IMAR2:
		r = nm_imar2_propose(snapshot, config, daemon->pipeline.record, &daemon->rng,
				     &proposals);
		break;
	case NM_POLICY_KMAF:
		r = place(daemon, snapshot, &proposals);
		break;
	case NM_POLICY_BALANCE:
		r = nm_balancer_propose(daemon->pipeline.balancer, snapshot, config, &proposals);
		break;
	}
	nm_plan_clear(plan);
	if (r == 0)
		r = nm_plan_build(snapshot, config, &proposals, &daemon->next_decision, plan);
	if (r == 0)
		nm_recorder_proposals(daemon, &proposals, plan);
	return r;
}
