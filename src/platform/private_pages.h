/* SPDX-License-Identifier: MIT */
/* Which pages of a process to ask for, to learn where its own memory is. */
#ifndef NUMA_MIGRD_PLATFORM_PRIVATE_PAGES_H
#define NUMA_MIGRD_PLATFORM_PRIVATE_PAGES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct nm_private_extent {
	uint64_t start, pages;
};

/*
 * The private mappings of a process that may be written and have no file behind them (heap, stacks,
 * anonymous memory, also of huge pages). Zeroed: none is known yet.
 */
struct nm_private_pages {
	struct nm_private_extent *extents; /* owned */
	size_t count, capacity;
	uint64_t all; /* pages; many may have never been touched */
};

/*
 * Adds those of the next piece of /proc/PID/maps, whose line ends become zeros. Returns how much of
 * it was whole lines: the rest belongs to the next piece. -ENOMEM.
 */
ssize_t nm_private_pages_add(struct nm_private_pages *pages, char *text, size_t length);
void nm_private_pages_clear(struct nm_private_pages *pages);

/*
 * Chooses `count` addresses at about the same distance from each other. Returns the number, less
 * than count where there are not as many pages.
 */
unsigned nm_private_pages_choose(const struct nm_private_pages *pages, unsigned count,
				 uint64_t *ret);

#endif
