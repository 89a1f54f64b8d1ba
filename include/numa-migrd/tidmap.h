/* SPDX-License-Identifier: MIT */
/*
 * Maps thread ids to 32-bit values. It is a two-level array instead of a hash table: thread ids are
 * small dense integers (at most 2^22, PID_MAX_LIMIT in proc(5)), so that a lookup takes two loads
 * and no program can choose ids that collide. A leaf of 1024 ids takes 4 KiB and is freed with the
 * last of them.
 */
#ifndef NUMA_MIGRD_TIDMAP_H
#define NUMA_MIGRD_TIDMAP_H

#include <stdint.h>

#include "numa-migrd/base.h"

#define NM_TIDMAP_LEAF_BITS 10
#define NM_TIDMAP_LEAVES (1U << (22 - NM_TIDMAP_LEAF_BITS))
#define NM_TIDMAP_NONE UINT32_MAX

struct nm_tidmap {
	uint32_t **leaves; /* each entry is value + 1; 0: absent */
	uint32_t nr_leaves; /* enough for the ids seen, which are below 2^15 on most machines */
};

int nm_tidmap_new(struct nm_tidmap **ret);
void nm_tidmap_free(struct nm_tidmap *map);
NM_DEFINE_CLEANUP(struct nm_tidmap, nm_tidmap_free);

/* Returns the value of tid, or NM_TIDMAP_NONE, also for ids out of range. */
static inline uint32_t nm_tidmap_get(const struct nm_tidmap *map, uint32_t tid)
{
	uint32_t leaf = tid >> NM_TIDMAP_LEAF_BITS;
	if (leaf >= map->nr_leaves || !map->leaves[leaf])
		return NM_TIDMAP_NONE;
	return map->leaves[leaf][tid & ((1U << NM_TIDMAP_LEAF_BITS) - 1)] - 1U;
}

/* Sets the value of tid (not NM_TIDMAP_NONE). Returns 0, -ERANGE (tid too large) or -ENOMEM. */
int nm_tidmap_set(struct nm_tidmap *map, uint32_t tid, uint32_t value);

/* Removes tid, and frees its leaf if no other id uses it. Unknown ids are ignored. */
void nm_tidmap_remove(struct nm_tidmap *map, uint32_t tid);

#endif
