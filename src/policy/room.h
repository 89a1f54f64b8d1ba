/* SPDX-License-Identifier: MIT */
/*
 * How much of a node's CPUs is still to be had for threads that may not all run on the same of
 * them. Each set of CPUs that some thread is bound to has room of its own: what its threads and
 * those bound to parts of it use together must fit into it. Exact where the sets lie in each other
 * or apart; of sets that overlap otherwise too much may be let in. Cores count, not hardware
 * threads: a further thread on a busy core adds about a quarter of one.
 */
#ifndef NM_POLICY_ROOM_H
#define NM_POLICY_ROOM_H

#include "numa-migrd/snapshot.h"

/* Machines are divided into a handful of sets; threads of further ones count by the whole node. */
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

/* The usable CPUs of the node. -ENOMEM, with nothing to clear. */
int nm_rooms_init(struct nm_rooms *rooms, const struct nm_snapshot *snapshot, int node);
void nm_rooms_clear(struct nm_rooms *rooms);

/* The room of threads with this mask, made if it is new, its index in *ret. -ENOMEM. */
int nm_rooms_add(struct nm_rooms *rooms, hwloc_const_bitmap_t allowed, size_t *ret);

/* Takes up a thread's demand, or says that there is no room for it in one of the sets it counts in.
 */
bool nm_rooms_take(struct nm_rooms *rooms, size_t room, double demand);

#endif
