/* SPDX-License-Identifier: MIT */
/* The functions of struct nm_unresponsive_list (worker.h) that a client calls. */
#ifndef NUMA_MIGRD_PLATFORM_WORKER_MEMORY_H
#define NUMA_MIGRD_PLATFORM_WORKER_MEMORY_H

#include "worker_bars.h"
#include "worker_link.h"

/*
 * Begins a call about this process. Returns 0, or -EALREADY or -EINPROGRESS as nm_worker_may_ask().
 */
int nm_unresponsive_list_begin(struct nm_unresponsive_list *memory,
			       const struct nm_worker_subject *subject);
/*
 * Ends the call with this result. -ETIMEDOUT: the process is not queried for a while, and the
 * worker is kept as stuck; -ECANCELED, -EINPROGRESS: the worker is kept until it answers; another
 * error: the connection is closed. In these cases, *link becomes NM_WORKER_LINK_NONE.
 */
void nm_unresponsive_list_end(struct nm_unresponsive_list *memory,
			      const struct nm_worker_subject *subject, struct nm_worker_link *link,
			      int result);
/* Closes the connection; a worker that is our child is reaped once it has ended. */
void nm_unresponsive_list_let_go(struct nm_unresponsive_list *memory, struct nm_worker_link *link);
/*
 * Returns the counts, after closing the connections to stuck workers that have answered or ended.
 */
struct nm_worker_counts nm_unresponsive_list_counts(struct nm_unresponsive_list *memory);

#endif
