/* SPDX-License-Identifier: MIT */
/* The communication between two threads, as seen by verify. */
#ifndef NM_TEST_SHARING_H
#define NM_TEST_SHARING_H

#include "observe/memory.h"

struct wanted_pair {
	uint32_t a, b, weight;
};

static inline void keep_wanted(void *context, uint32_t a, uint32_t b, uint32_t weight)
{
	struct wanted_pair *wanted = context;
	if ((a == wanted->a && b == wanted->b) || (a == wanted->b && b == wanted->a))
		wanted->weight += weight;
}

/* The weight between two threads (tids); 0: none, or one of them has exited. */
static inline uint32_t sharing_between(const struct nm_affinity *affinity, uint32_t a, uint32_t b)
{
	struct wanted_pair wanted = {.a = a, .b = b};
	nm_affinity_each(affinity, keep_wanted, &wanted);
	return wanted.weight;
}

#endif
