/* SPDX-License-Identifier: MIT */
/* Jobs of the mover on a real machine with a worker. */
#ifndef NM_SUPPORT_LIVE_CALLS_H
#define NM_SUPPORT_LIVE_CALLS_H

#include <poll.h>
#include <stdlib.h>

#include "numa-migrd/platform.h"

/* Waits until a job or a query can advance, or for a short time. */
static inline void live_wait(struct nm_platform *platform)
{
	struct pollfd end = {.fd = platform->ops->query_fd(platform), .events = POLLIN};

	if (poll(&end, 1, 10) < 0)
		abort();
}

/* Waits for the result of a job that returned `r`. */
static inline int live_result(struct nm_platform *platform, int r)
{
	while (r == NM_CALL_BEGUN) {
		live_wait(platform);
		if (!platform->ops->pages_poll(platform, &r))
			r = NM_CALL_BEGUN;
	}
	return r;
}

/* Queries the nodes of pages; the thread is one of the process. */
static inline int live_where(struct nm_platform *platform, pid_t tid, uint64_t start_ticks,
			     unsigned count, const uint64_t *addresses, int *ret_nodes)
{
	const struct nm_memory_query query = {.kind = NM_MEMORY_QUERY_WHERE,
					      .pid = (uint32_t)tid,
					      .start_ticks = start_ticks,
					      .count = count,
					      .addresses = addresses};
	nm_auto(nm_memory_answer_clear) struct nm_memory_answer answer = {0};
	uint64_t query_id;

	int r = platform->ops->memory_query(platform, &query, &query_id);
	if (r < 0)
		return r;
	while (platform->ops->memory_poll(platform, query_id, &answer) == -EAGAIN)
		live_wait(platform);
	for (unsigned i = 0; answer.result == 0 && i < count; i++)
		ret_nodes[i] = answer.nodes[i];
	return answer.result;
}

#endif
