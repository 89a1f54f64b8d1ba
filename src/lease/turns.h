/* SPDX-License-Identifier: MIT */
/* The order of work for several tenants: each domain has one turn in a round, and the users of a
 * domain have its turns in turn, so that nobody's work waits for all of another's. Pure. */
#ifndef NM_ACTUATE_TURNS_H
#define NM_ACTUATE_TURNS_H

#include <stddef.h>
#include <stdint.h>

#include "numa-migrd/tenant.h"

struct nm_turn {
	struct nm_tenant tenant;
	uint32_t index; /* the caller's, ascending */
	uint32_t round; /* filled in */
};

/* Puts them in order of rounds; one user's stay in their order. Restoration. */
void nm_turns_order(struct nm_turn *turns, size_t count);

#endif
