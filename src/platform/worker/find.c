// SPDX-License-Identifier: MIT
/* Queries the node of every page. /proc/PID/pagemap would show faster which pages are in memory,
 * but only the owner of the process may read it. */
#include "find.h"
#include "numa-migrd/base.h"
#include "numa_calls.h"

#define PIECE 2048U /* pages per query */

struct search {
	const struct nm_worker_request *request;
	uint64_t until_ns;
	struct nm_worker_found *found;
};

static int ask(const struct search *search, uint64_t count, uint64_t page_bytes, int *nodes)
{
	uint64_t addresses[PIECE];

	for (uint64_t i = 0; i < count; i++)
		addresses[i] = search->found->next + i * page_bytes;
	return nm_numa_where(search->request->pid, (uint32_t)count, addresses, nodes);
}

/* Returns 1 if the range was searched, 0 if there is no more space or time (at least one piece was
 * searched), or a negative errno. */
static int search_range(struct search *search, const struct nm_worker_range *range)
{
	struct nm_worker_found *found = search->found;
	uint64_t before = found->count, most = range->resident ? range->resident : UINT64_MAX;
	int nodes[PIECE];

	for (found->next = range->start; found->next < range->end;) {
		uint64_t left = (range->end - found->next) / range->page_bytes;
		uint64_t count = left < PIECE ? left : PIECE;
		int r = ask(search, count, range->page_bytes, nodes);
		if (r < 0)
			return r;
		for (uint64_t i = 0; i < count; i++, found->next += range->page_bytes) {
			if (nodes[i] < 0)
				continue;
			if (found->count == NM_WORKER_PAGES_MOST)
				return 0;
			found->addresses[found->count] = found->next;
			found->nodes[found->count++] = nodes[i];
		}
		if (found->count - before >= most)
			found->next = range->end;
		if (nm_clock_ns() >= search->until_ns)
			return 0;
	}
	return 1;
}

int nm_worker_find(const struct nm_worker_order *order, struct nm_worker_found *ret)
{
	struct search search = {.request = &order->request,
				.until_ns = nm_clock_ns() + order->request.budget_ns,
				.found = ret};
	int r = 1;

	ret->count = 0;
	for (uint32_t i = 0; i < order->request.count && r > 0; i++)
		r = search_range(&search, &order->ranges[i]);
	return r < 0 ? r : 0;
}
