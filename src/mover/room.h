/* SPDX-License-Identifier: MIT */
/* The memory that moves may still use on each node. */
#ifndef NM_MOVER_ROOM_H
#define NM_MOVER_ROOM_H

#include "numa-migrd/proc.h"

#define NM_ROOM_AGE_NS (100 * NM_NSEC_PER_MSEC) /* validity of the values read */

/* Returns the bytes of a node that are free in blocks of at least 2 MiB, from the text of
 * /proc/buddyinfo. Pure. */
uint64_t nm_huge_free_parse(const char *text, unsigned node);

/* The bytes of one node that may still be taken. */
struct nm_node_free {
	uint64_t memory_ns, huge_ns, pool_ns; /* when they were read; 0: never */
	uint64_t memory, huge, pool;
	uint64_t pool_page_bytes; /* page size of that pool */
};

struct nm_node_free_page {
	uint64_t now_ns; /* the clock is read once for many pages */
	uint64_t bytes;
	bool pool; /* from the pool of huge pages instead of ordinary memory */
};

/*
 * Takes memory for a page on the node with this kernel number. keep_free: fraction of the node that
 * stays free. Returns false if there is not enough, if that is unknown, or if the node is
 * reclaiming memory. Called by the mover.
 */
bool nm_node_free_take(struct nm_platform *platform, struct nm_reclaim_watch *watch,
		       struct nm_node_free *room, unsigned node, double keep_free,
		       struct nm_node_free_page page);

#endif
