/* SPDX-License-Identifier: MIT */
/*
 * Queries the location of the private memory of a process, as counted by the kernel. Called by the
 * stages of the policies "auto" and "balance".
 */
#ifndef NUMA_MIGRD_DAEMON_PAGE_QUERY_H
#define NUMA_MIGRD_DAEMON_PAGE_QUERY_H

#include "numa-migrd/homes.h"
#include "numa-migrd/platform.h"
#include "numa-migrd/topology.h"

/*
 * Sends a query about a process of this size. Returns 0, or the negative errno of memory_query with
 * no query pending.
 */
int nm_page_query_send(struct nm_platform *platform, uint32_t pid, uint64_t start_ticks,
		       uint64_t bytes, struct nm_page_query *ret);

/*
 * Adds the number of pages found on each node to `pages` (nr_nodes values, in any unit), and stores
 * in *ret_huge_bytes the memory from the pool of huge pages, which RssAnon does not include.
 * Returns 0, -EAGAIN while there is no answer, or another negative errno; after both others no
 * query is pending. Too small a sample counts as no pages.
 */
int nm_page_query_poll(struct nm_platform *platform, const struct nm_topology *topology,
		       struct nm_page_query *query, double *pages, uint64_t *ret_huge_bytes);

/* Ends a pending query. */
void nm_page_query_cancel(struct nm_platform *platform, struct nm_page_query *query);

#endif
