/* SPDX-License-Identifier: MIT */
/* How much memory moves may still take on each node. */
#ifndef NM_MOVER_ROOM_H
#define NM_MOVER_ROOM_H

#include "numa-migrd/node_memory.h"

#define NM_ROOM_AGE_NS                                                                             \
	(100 * NM_NSEC_PER_MSEC) /* what was read holds so long, less what we took                 \
				  */

/* Bytes of a node that are free in blocks of 2 MiB at least, from /proc/buddyinfo. Pure. */
uint64_t nm_huge_free_parse(const char *text, unsigned node);

/* Of one node: bytes that may still be taken. */
struct nm_node_free {
	uint64_t memory_ns, huge_ns, pool_ns; /* when they were read; 0: never */
	uint64_t memory, huge, pool;
	uint64_t pool_page_bytes; /* whose pool that is */
};

struct nm_node_free_page {
	uint64_t now_ns; /* the clock is read once for many pages */
	uint64_t bytes;
	bool pool; /* of the pool of huge pages rather than of ordinary memory */
};

/*
 * Takes room for a page on the node of that (kernel's) number. keep_free: share of the node that
 * stays free. False: there is none, it is not known, or memory is being reclaimed there. Mover.
 */
bool nm_node_free_take(struct nm_platform *platform, struct nm_reclaim_watch *watch,
		       struct nm_node_free *room, unsigned node, double keep_free,
		       struct nm_node_free_page page);

#endif
