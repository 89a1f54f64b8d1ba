/* SPDX-License-Identifier: MIT */
#include "numa-migrd/base.h"

#include <stdlib.h>

static int compare_users(const void *a, const void *b)
{
	const struct nm_turn *left = a, *right = b;
	return NM_COMPARE(left->tenant.domain, right->tenant.domain)
		       ?: NM_COMPARE(left->tenant.uid, right->tenant.uid)
		       ?: NM_COMPARE(left->index, right->index);
}

static int compare_within(const void *a, const void *b)
{
	const struct nm_turn *left = a, *right = b;
	return NM_COMPARE(left->tenant.domain, right->tenant.domain)
		       ?: NM_COMPARE(left->round, right->round)
		       ?: NM_COMPARE(left->tenant.uid, right->tenant.uid);
}

static int compare_rounds(const void *a, const void *b)
{
	const struct nm_turn *left = a, *right = b;
	return NM_COMPARE(left->round, right->round) ?: NM_COMPARE(left->index, right->index);
}

static uint32_t next_round(const struct nm_turn *before, bool same)
{
	return same ? before->round + 1 : 0;
}

/* Computes the rounds of the users of each domain, and from these the rounds of the domains. */
void nm_turns_order(struct nm_turn *turns, size_t count)
{
	qsort(turns, count, sizeof(*turns), compare_users);
	for (size_t i = 1; i < count; i++)
		turns[i].round = next_round(&turns[i - 1],
					    nm_tenant_same(&turns[i].tenant, &turns[i - 1].tenant));
	qsort(turns, count, sizeof(*turns), compare_within);
	for (size_t i = 0; i < count; i++)
		turns[i].round = i ? next_round(&turns[i - 1], turns[i].tenant.domain ==
								       turns[i - 1].tenant.domain)
				   : 0;
	qsort(turns, count, sizeof(*turns), compare_rounds);
}
