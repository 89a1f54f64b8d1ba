/* SPDX-License-Identifier: MIT */
/* Parses and validates the requests to a worker. */
#include <string.h>

#include "numa-migrd/maps.h"
#include "numa-migrd/worker.h"

static bool is_about_pages(uint32_t act)
{
	return act == NM_WORKER_WHERE || act == NM_WORKER_ROUND;
}

/*
 * Returns the length of the whole message, or 0 if the request contains too many elements or none.
 */
static size_t length_of(const struct nm_worker_request *request)
{
	bool finds = request->act == NM_WORKER_FIND;
	size_t most = finds ? NM_WORKER_RANGES_MOST : NM_WORKER_PAGES_MOST;
	size_t each = finds				? sizeof(struct nm_worker_range)
		      : request->act == NM_WORKER_ROUND ? 12
							: 8;

	if (!finds && !is_about_pages(request->act))
		return sizeof(*request);
	if (request->count == 0 || request->count > most)
		return 0;
	return sizeof(*request) + request->count * each;
}

static bool is_well_formed(const struct nm_worker_request *request)
{
	if (request->act < NM_WORKER_HELLO || request->act > NM_WORKER_IDENTIFY)
		return false;
	if (request->act == NM_WORKER_HELLO)
		return true;
	if (request->act == NM_WORKER_READ_MAPS)
		return request->count > 0 && request->count <= NM_WORKER_TEXT_MOST;
	if (request->act == NM_WORKER_ROUND && request->last_offset > NM_WORKER_PAGE_BYTES_MOST)
		return false;
	return request->pid > 0 && request->start_ticks > 0 && request->file <= NM_NUMA_MAPS;
}

static bool are_ranges(const struct nm_worker_range *ranges, uint32_t count)
{
	uint64_t last = 0;

	for (uint32_t i = 0; i < count; i++) {
		const struct nm_worker_range *range = &ranges[i];
		uint64_t page = range->page_bytes;
		if (range->start < last || range->end <= range->start || range->end > INT64_MAX ||
		    page < 4096 || page > NM_WORKER_PAGE_BYTES_MOST || range->start % page != 0 ||
		    range->end % page != 0)
			return false;
		last = range->end;
	}
	return true;
}

int nm_worker_parse(const void *message, size_t length, bool has_fd, struct nm_worker_order *ret)
{
	struct nm_worker_order order = {0};
	const char *arguments = (const char *)message + sizeof(order.request);

	if (length < sizeof(order.request))
		return -EINVAL;
	memcpy(&order.request, message, sizeof(order.request));
	if (order.request.version != NM_WORKER_VERSION)
		return -EPROTO;
	uint32_t act = order.request.act;
	bool takes_fd = act == NM_WORKER_READ_MAPS;
	if (!is_well_formed(&order.request) || length != length_of(&order.request) ||
	    has_fd != takes_fd)
		return -EINVAL;
	if (is_about_pages(act))
		order.addresses = (const uint64_t *)arguments;
	if (act == NM_WORKER_FIND) {
		order.ranges = (const struct nm_worker_range *)arguments;
		if (!are_ranges(order.ranges, order.request.count))
			return -EINVAL;
	}
	if (act == NM_WORKER_ROUND) {
		order.nodes = (const int32_t *)(order.addresses + order.request.count);
		for (uint32_t i = 0; i < order.request.count; i++)
			if (order.nodes[i] < 0 || order.nodes[i] >= (int)NM_NODE_NUMBERS)
				return -EINVAL;
	}
	*ret = order;
	return 0;
}
