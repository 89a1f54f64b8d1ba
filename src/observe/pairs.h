/* SPDX-License-Identifier: MIT */
/* The nonzero cells of the communication matrix, each pair once. */
#ifndef NUMA_MIGRD_MEMORY_PAIRS_H
#define NUMA_MIGRD_MEMORY_PAIRS_H

#include "numa-migrd/base.h"
#include "observe/memory.h"

#define NM_PAIRS_FEWEST ((size_t)1 << 14)
#define NM_PAIRS_MOST ((size_t)1 << 21) /* shared: first */

struct nm_pair {
	uint32_t ids; /* lower id << 16 | higher id; 0: free */
	uint32_t weight;
};

struct nm_vertex {
	uint32_t tid;	     /* 0: exited, or never assigned */
	uint32_t left_s;     /* time of its exit */
	uint32_t left_aging; /* number of agings at its exit */
	uint16_t next_free;
};

struct nm_affinity {
	struct nm_pair *pairs; /* `slots` entries, a power of two; linear probing */
	size_t slots, used;
	struct nm_vertex *vertices; /* by id; 0 is not used */
	size_t vertex_capacity, vertex_count, live;
	uint16_t first_free, last_free; /* list of exited threads, in the order of their exits; 0:
					 * none */
	struct nm_tidmap *id_of;
	uint32_t window_s, agings;
	uint64_t lost;
};

static inline uint16_t nm_pair_low(struct nm_pair pair)
{
	return (uint16_t)(pair.ids >> 16);
}

static inline uint16_t nm_pair_high(struct nm_pair pair)
{
	return (uint16_t)pair.ids;
}

static inline bool nm_pair_lives(const struct nm_affinity *affinity, struct nm_pair pair)
{
	return pair.ids && affinity->vertices[nm_pair_low(pair)].tid &&
	       affinity->vertices[nm_pair_high(pair)].tid;
}

#endif
