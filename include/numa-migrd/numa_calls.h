/* SPDX-License-Identifier: MIT */
/* The kernel's calls on the pages of another process, by libnuma. Used by the worker alone. */
#ifndef NUMA_MIGRD_NUMA_CALLS_H
#define NUMA_MIGRD_NUMA_CALLS_H

#include <stdint.h>
#include <sys/types.h>

/*
 * The node of each page, or a negative errno: move_pages(2) without nodes. Returns 0 or -errno; the
 * statuses are unspecified after an error.
 */
int nm_numa_where(pid_t pid, uint32_t count, const uint64_t *addresses, int *ret_statuses);

/*
 * Moves pages to the given nodes: move_pages(2) with MPOL_MF_MOVE. Returns the number of pages that
 * did not move, or -errno. The kernel writes the status of each page that it dealt with, also
 * before an error; the other statuses stay as they were.
 */
int nm_numa_move(pid_t pid, uint32_t count, const uint64_t *addresses, const int *nodes,
		 int *ret_statuses);

/*
 * Moves all pages of a process that are on one of 64 nodes, a bit for each, to a node below 64:
 * migrate_pages(2). Returns the number of pages that did not move, or -errno.
 */
int nm_numa_migrate(pid_t pid, uint64_t from_nodes, unsigned to_node);

#endif
