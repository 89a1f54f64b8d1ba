/* SPDX-License-Identifier: MIT */
/* The order of work for several users: each has one turn in a round, so that no user waits for all
 * work of another. Pure. */
#ifndef NM_ACTUATE_TURNS_H
#define NM_ACTUATE_TURNS_H

#include <stddef.h>
#include <stdint.h>

struct nm_turn {
	uint32_t uid;
	uint32_t index; /* the caller's, ascending */
	uint32_t round; /* filled in */
};

/* Puts them in order of rounds; one user's stay in their order. Restoration. */
void nm_turns_order(struct nm_turn *turns, size_t count);

#endif
