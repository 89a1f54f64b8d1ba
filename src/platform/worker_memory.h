/* SPDX-License-Identifier: MIT */
/* What a client does with what outlives it (worker.h). Under a lock held for moments. */
#ifndef NUMA_MIGRD_PLATFORM_WORKER_MEMORY_H
#define NUMA_MIGRD_PLATFORM_WORKER_MEMORY_H

#include "worker_bars.h"
#include "worker_link.h"

/* A call about this process begins: 0; -EALREADY, -EINPROGRESS: it may not, as nm_worker_may_ask(). */
int nm_unresponsive_list_begin(struct nm_unresponsive_list *memory,
			       const struct nm_worker_subject *subject);
/*
 * It has ended so. -ETIMEDOUT: its process rests, and the worker is kept as stuck; -ECANCELED,
 * -EINPROGRESS: the worker is kept until it answers; another error: it is let go. *link is NM_WORKER_LINK_NONE then.
 */
void nm_unresponsive_list_end(struct nm_unresponsive_list *memory,
			      const struct nm_worker_subject *subject, struct nm_worker_link *link,
			      int result);
/* Closes it; a child of ours is reaped once it has ended. */
void nm_unresponsive_list_let_go(struct nm_unresponsive_list *memory, struct nm_worker_link *link);
/* Those that have answered since, or ended, are let go before. */
struct nm_worker_counts nm_unresponsive_list_counts(struct nm_unresponsive_list *memory);

#endif
