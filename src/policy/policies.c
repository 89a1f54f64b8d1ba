/* SPDX-License-Identifier: MIT */
#include "policy/policy.h"

const struct nm_policy_ops nm_none_policy = {0};

#define REFERENCE(constant, name) &nm_##name##_policy,
static const struct nm_policy_ops *const rows[] = {NM_POLICIES(REFERENCE)};

const struct nm_policy_ops *nm_policy_ops(enum nm_thread_policy policy)
{
	return rows[policy];
}

void nm_policies_open(struct nm_policies *policies, enum nm_thread_policy policy,
		      const struct nm_topology *topology, double page_bytes)
{
	if (!policies->states[policy] && rows[policy]->open)
		policies->states[policy] = rows[policy]->open(topology, page_bytes);
}

void nm_policy_close(struct nm_policies *policies, enum nm_thread_policy policy)
{
	if (policies->states[policy])
		rows[policy]->close(policies->states[policy]);
	policies->states[policy] = NULL;
}

void nm_policies_close(struct nm_policies *policies)
{
	for (size_t i = 0; i < NM_POLICY_MAX; i++)
		nm_policy_close(policies, (enum nm_thread_policy)i);
}

void nm_proposals_clear(struct nm_proposals *proposals)
{
	free(proposals->items);
	*proposals = (struct nm_proposals){0};
}
