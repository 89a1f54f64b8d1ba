/* SPDX-License-Identifier: MIT */
/* System calls on the pages of another process, through libnuma. Used only by the worker. */
#ifndef NM_PLATFORM_WORKER_NUMA_CALLS_H
#define NM_PLATFORM_WORKER_NUMA_CALLS_H

#include <stdint.h>
#include <sys/types.h>

/* Queries the node of each page, or a negative errno: move_pages(2) without nodes. Returns 0 or a
 * negative errno; the statuses are unspecified after an error. */
int nm_numa_where(pid_t pid, uint32_t count, const uint64_t *addresses, int *ret_statuses);

/*
 * Moves pages to the given nodes: move_pages(2) with MPOL_MF_MOVE. Returns the number of pages that
 * did not move, or a negative errno. The kernel writes the status of each page that it processed,
 * also before an error; the other statuses are unchanged.
 */
int nm_numa_move(pid_t pid, uint32_t count, const uint64_t *addresses, const int *nodes,
		 int *ret_statuses);

#endif
