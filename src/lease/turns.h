/* SPDX-License-Identifier: MIT */
/* The order of work for several tenants. Each domain has one turn in a round, and the users of a
 * domain use its turns in rotation, so that no tenant waits for all the work of another. Pure. */
#ifndef NM_ACTUATE_TURNS_H
#define NM_ACTUATE_TURNS_H

#include <stddef.h>
#include <stdint.h>

#include "numa-migrd/base.h"

struct nm_turn {
	struct nm_tenant tenant;
	uint32_t index; /* the caller's index, in ascending order */
	uint32_t round; /* set by nm_turns_order() */
};

/* Sorts the turns by round; the turns of one user keep their order. Called for restoration. */
void nm_turns_order(struct nm_turn *turns, size_t count);

#endif
