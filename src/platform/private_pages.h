/* SPDX-License-Identifier: MIT */
/*
 * Chooses pages of a process whose nodes are queried, to find the location of its memory.
 */
#ifndef NUMA_MIGRD_PLATFORM_PRIVATE_PAGES_H
#define NUMA_MIGRD_PLATFORM_PRIVATE_PAGES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct nm_extent {
	uint64_t start, pages;
};

struct nm_extents {
	struct nm_extent *items; /* owned */
	size_t count, capacity;
	uint64_t all; /* number of pages; many may never have been touched */
};

/* The mappings of a process. Zeroed: none is known yet. */
struct nm_private_pages {
	/* Private and writable, without a file behind them: heap, stacks, anonymous memory, also of
	 * huge pages. */
	struct nm_extents own;
	/* Memory that does not follow the process: shared with others, or of a large file. */
	struct nm_extents staying;
	uint64_t own_huge_bytes; /* the part of `own` from the pool of huge pages */
};

/*
 * Adds the mappings in the next piece of /proc/PID/maps, in which newlines are replaced by NUL.
 * Returns the length of the complete lines. The rest belongs to the next piece.
 */
ssize_t nm_private_pages_add(struct nm_private_pages *pages, char *text, size_t length);
void nm_private_pages_clear(struct nm_private_pages *pages);

/*
 * Chooses `count` addresses at approximately equal distances. Returns their number, which is less
 * than count if there are fewer pages.
 */
unsigned nm_extents_choose(const struct nm_extents *extents, unsigned count, uint64_t *ret);

#endif
