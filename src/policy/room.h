/* SPDX-License-Identifier: MIT */
/*
 * The remaining capacity of a node's CPUs for threads that may run on different subsets of them.
 * Each set of CPUs to which a thread is bound has its own capacity: the demand of its threads, and
 * of those bound to subsets of it, must fit into it. This is exact if the sets are nested or
 * disjoint; with other overlaps too many threads may be admitted. The unit is cores, not hardware
 * threads: another thread on a busy core adds about 0.25.
 */
#ifndef NM_POLICY_ROOM_H
#define NM_POLICY_ROOM_H

#include "numa-migrd/snapshot.h"

/*
 * A machine is usually divided into a few sets; threads of further sets count for the whole node.
 */
#define NM_ROOMS_MAX 64

struct nm_rooms {
	struct nm_node_free {
		hwloc_bitmap_t cpus;
		double capacity, used; /* in cores */
	} items[NM_ROOMS_MAX];	       /* the first is the whole node */
	size_t count;
	const struct nm_snapshot *snapshot;
	double sibling_worth;
};

/* Initializes the usable CPUs of the node. Returns 0, or -ENOMEM with nothing to clear. */
int nm_rooms_init(struct nm_rooms *rooms, const struct nm_snapshot *snapshot, int node);
void nm_rooms_clear(struct nm_rooms *rooms);

/*
 * Finds or adds the set of threads with this affinity, and returns its index. Returns 0 or -ENOMEM.
 */
int nm_rooms_add(struct nm_rooms *rooms, hwloc_const_bitmap_t allowed, size_t *ret);

/* Adds the demand of a thread. Returns false, without a change, if it exceeds the capacity of one
 * of its sets. */
bool nm_rooms_take(struct nm_rooms *rooms, size_t room, double demand);

#endif
