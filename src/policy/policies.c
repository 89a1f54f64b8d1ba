/* SPDX-License-Identifier: MIT */
#include "numa-migrd/balance.h"
#include "numa-migrd/policy.h"

static int propose_lbma(const struct nm_policy_input *input, struct nm_proposals *ret)
{
	return nm_lbma_propose(input->snapshot, input->config, input->rng, ret);
}

static int propose_imar2(const struct nm_policy_input *input, struct nm_proposals *ret)
{
	return nm_imar2_propose(input->snapshot, input->config, input->record, input->rng, ret);
}

/* Policy "kmaf" proposes only at the end of a placement period. */
static int propose_kmaf(const struct nm_policy_input *input, struct nm_proposals *ret)
{
	if (!input->memory || !nm_kmaf_ends_period(input->kmaf_clock, input->config,
						   input->interval_s, input->snapshot->time_ns))
		return 0;
	return nm_kmaf_place(input->snapshot, input->config, input->memory, (uint32_t)input->seed,
			     ret);
}

static int propose_balance(const struct nm_policy_input *input, struct nm_proposals *ret)
{
	return nm_balancer_propose(input->balancer, input->snapshot, input->config, ret);
}

static const struct nm_policy_ops rows[NM_POLICY_MAX] = {
	[NM_POLICY_NONE] = {0},
	[NM_POLICY_AUTO] = {0},
	[NM_POLICY_LBMA] = {.propose = propose_lbma, .by_locality = true},
	[NM_POLICY_IMAR2] = {.propose = propose_imar2, .by_performance = true, .rolls_back = true},
	[NM_POLICY_KMAF] = {.propose = propose_kmaf, .by_sharing = true},
	[NM_POLICY_BALANCE] = {.propose = propose_balance, .by_performance = true},
};

const struct nm_policy_ops *nm_policy_ops(enum nm_thread_policy policy)
{
	return &rows[policy];
}
