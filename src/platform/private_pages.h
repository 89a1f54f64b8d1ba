/* SPDX-License-Identifier: MIT */
/* Which pages of a process to ask for, to learn where its own memory is. */
#ifndef NUMA_MIGRD_PLATFORM_PRIVATE_PAGES_H
#define NUMA_MIGRD_PLATFORM_PRIVATE_PAGES_H

#include <stddef.h>
#include <stdint.h>

/*
 * Chooses `count` addresses at about the same distance from each other, over all private mappings
 * that may be written and have no file behind them (heap, stacks, anonymous memory, also of huge
 * pages). Many may have never been touched. text: of /proc/PID/maps; its line ends become zeros.
 * Returns the number, less than count where there are not as many pages. Pure.
 */
unsigned nm_private_pages_choose(char *text, size_t length, unsigned count, uint64_t *ret);

#endif
