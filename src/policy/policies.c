/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "numa-migrd/balance.h"
#include "numa-migrd/homes.h"
#include "numa-migrd/plan.h"
#include "numa-migrd/policy.h"

/* ---- LBMA ---- */

static int propose_lbma(void *state, const struct nm_policy_input *input, struct nm_proposals *ret)
{
	(void)state;
	nm_lbma_propose(input->snapshot, input->config, input->rng, ret);
	return 0;
}

/* ---- IMAR² ---- */

static void *open_record(const struct nm_topology *topology, double page_bytes)
{
	struct nm_record *record;
	(void)topology;
	(void)page_bytes;
	nm_record_new(&record);
	return record;
}

static void close_record(void *state)
{
	nm_record_free(state);
}

static void follow_record(void *state, const struct nm_snapshot *snapshot,
			  const struct nm_config *config)
{
	nm_record_update(state, snapshot, config);
}

static int propose_imar2(void *state, const struct nm_policy_input *input, struct nm_proposals *ret)
{
	nm_imar2_propose(input->snapshot, input->config, state, input->rng, ret);
	return 0;
}

/* ---- kMAF ---- */

static void *open_clock(const struct nm_topology *topology, double page_bytes)
{
	(void)topology;
	(void)page_bytes;
	return nm_must(calloc(1, sizeof(struct nm_kmaf_clock)));
}

/* Proposes only at the end of a placement period. */
static int propose_kmaf(void *state, const struct nm_policy_input *input, struct nm_proposals *ret)
{
	if (!input->memory ||
	    !nm_kmaf_ends_period(state, input->config, input->interval_s, input->snapshot->time_ns))
		return 0;
	return nm_kmaf_place(input->snapshot, input->config, input->memory, (uint32_t)input->seed,
			     ret);
}

/* ---- balance ---- */

static void *open_balancer(const struct nm_topology *topology, double page_bytes)
{
	struct nm_balancer *balancer;
	nm_balancer_new(topology, page_bytes, &balancer);
	return balancer;
}

static void close_balancer(void *state)
{
	nm_balancer_free(state);
}

static int propose_balance(void *state, const struct nm_policy_input *input,
			   struct nm_proposals *ret)
{
	nm_balancer_propose(state, input->snapshot, input->config, ret);
	return 0;
}

static void note_balanced(void *state, const struct nm_decision *decision)
{
	nm_balancer_applied(state, decision);
}

/* ---- auto ---- */

static void *open_placement(const struct nm_topology *topology, double page_bytes)
{
	(void)topology, (void)page_bytes;
	return nm_placement_new();
}

static void close_placement(void *state)
{
	nm_placement_free(state);
}

/* ---- the table ---- */

static const struct nm_policy_ops rows[NM_POLICY_MAX] = {
	[NM_POLICY_NONE] = {0},
	[NM_POLICY_AUTO] = {.open = open_placement, .close = close_placement},
	[NM_POLICY_LBMA] = {.propose = propose_lbma, .by_locality = true},
	[NM_POLICY_IMAR2] = {.open = open_record,
			     .close = close_record,
			     .follow = follow_record,
			     .propose = propose_imar2,
			     .by_performance = true,
			     .rolls_back = true},
	[NM_POLICY_KMAF] = {.open = open_clock,
			    .close = free,
			    .propose = propose_kmaf,
			    .by_sharing = true},
	[NM_POLICY_BALANCE] = {.open = open_balancer,
			       .close = close_balancer,
			       .propose = propose_balance,
			       .applied = note_balanced,
			       .by_performance = true},
};

const struct nm_policy_ops *nm_policy_ops(enum nm_thread_policy policy)
{
	return &rows[policy];
}

void nm_policies_open(struct nm_policies *policies, enum nm_thread_policy policy,
		      const struct nm_topology *topology, double page_bytes)
{
	if (!policies->states[policy] && rows[policy].open)
		policies->states[policy] = rows[policy].open(topology, page_bytes);
}

void nm_policy_close(struct nm_policies *policies, enum nm_thread_policy policy)
{
	if (policies->states[policy])
		rows[policy].close(policies->states[policy]);
	policies->states[policy] = NULL;
}

void nm_policies_close(struct nm_policies *policies)
{
	for (size_t i = 0; i < NM_POLICY_MAX; i++)
		nm_policy_close(policies, (enum nm_thread_policy)i);
}
