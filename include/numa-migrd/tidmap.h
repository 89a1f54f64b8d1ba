/* SPDX-License-Identifier: MIT */
/*
 * Thread id → 32-bit value. A two-level array rather than a hash table: thread ids are small dense
 * integers (at most 2^22, PID_MAX_LIMIT in proc(5)), so a lookup is two loads, and nobody can choose
 * ids that collide. A leaf of 1024 ids costs 4 KiB and goes with the last of them.
 */
#ifndef NUMA_MIGRD_TIDMAP_H
#define NUMA_MIGRD_TIDMAP_H

#include <stdint.h>

#include "numa-migrd/base.h"

#define NM_TIDMAP_LEAF_BITS 10
#define NM_TIDMAP_LEAVES (1U << (22 - NM_TIDMAP_LEAF_BITS))
#define NM_TIDMAP_NONE UINT32_MAX

struct nm_tidmap {
	uint32_t **leaves; /* each entry is value + 1; 0 = absent */
	uint32_t nr_leaves; /* as many as the ids seen took: most machines' are below 2^15 */
};

int nm_tidmap_new(struct nm_tidmap **ret);
void nm_tidmap_free(struct nm_tidmap *map);
NM_DEFINE_CLEANUP(struct nm_tidmap, nm_tidmap_free);

/* The value of tid, or NM_TIDMAP_NONE (also for ids out of range). */
static inline uint32_t nm_tidmap_get(const struct nm_tidmap *map, uint32_t tid)
{
	uint32_t leaf = tid >> NM_TIDMAP_LEAF_BITS;
	if (leaf >= map->nr_leaves || !map->leaves[leaf])
		return NM_TIDMAP_NONE;
	return map->leaves[leaf][tid & ((1U << NM_TIDMAP_LEAF_BITS) - 1)] - 1U;
}

/* Sets tid's value (not NM_TIDMAP_NONE). Returns 0, -ERANGE (tid too large) or -ENOMEM. */
int nm_tidmap_set(struct nm_tidmap *map, uint32_t tid, uint32_t value);

/* Forgets tid, and a leaf that holds no other; unknown ids are fine. */
void nm_tidmap_remove(struct nm_tidmap *map, uint32_t tid);

#endif
