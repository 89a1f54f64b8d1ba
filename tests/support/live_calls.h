/* SPDX-License-Identifier: MIT */
/* Calls of the mover on a real machine with a worker. */
#ifndef NM_SUPPORT_LIVE_CALLS_H
#define NM_SUPPORT_LIVE_CALLS_H

#include <poll.h>
#include <stdlib.h>

#include "../../src/mover/mappings.h"

/* Waits until a call or a query can advance, or for a short time. */
static inline void live_wait(struct nm_platform *platform)
{
	struct pollfd end = {.fd = platform->ops->query_fd(platform), .events = POLLIN};

	if (poll(&end, 1, 10) < 0)
		abort();
}

/* Waits for the result of a call that returned `r`. */
static inline int live_result(struct nm_platform *platform, int r)
{
	while (r == NM_CALL_BEGUN) {
		live_wait(platform);
		if (!platform->ops->pages_poll(platform, &r))
			r = NM_CALL_BEGUN;
	}
	return r;
}

/* Returns the node of one page; the thread is one of the process. */
static inline int live_where(struct nm_platform *platform, pid_t tid, uint64_t start_ticks,
			     const uint64_t *address, int *ret_node)
{
	return live_result(platform, platform->ops->pages_where(platform, tid, start_ticks, 1,
								address, ret_node));
}

/* Reads the mappings of a process within one budget; takes over its directory. */
static inline int live_read(struct nm_platform *platform, struct nm_mappings *mappings,
			    int directory, uint64_t budget_ns)
{
	int r = nm_mappings_read(mappings, directory, budget_ns);

	while (r == NM_CALL_BEGUN)
		r = nm_mappings_continue(mappings, live_result(platform, r));
	return r;
}

#endif
