/* SPDX-License-Identifier: MIT */
/* Parses and validates the requests to a worker. */
#include <string.h>

#include "platform/maps.h"
#include "platform/worker.h"

static bool is_process(const struct nm_worker_request *request)
{
	return request->pid > 0 && request->start_ticks > 0;
}

/* Takes the arguments, of `size` bytes, to their place in the order. Returns whether they are well
 * formed. */
static bool take_arguments(const void *arguments, size_t size, struct nm_worker_order *order)
{
	uint32_t count = order->request.count;

	switch (order->request.act) {
	case NM_WORKER_HELLO:
		return size == 0;
	case NM_WORKER_COUNT:
	case NM_WORKER_SAMPLE:
	case NM_WORKER_IDENTIFY:
		return size == 0 && is_process(&order->request);
	case NM_WORKER_WHERE:
		order->addresses = arguments;
		return is_process(&order->request) && count > 0 && count <= NM_WORKER_PAGES_MOST &&
		       size == count * sizeof(*order->addresses);
	case NM_WORKER_MAPPINGS:
		order->mappings = arguments;
		return is_process(&order->request) && size == sizeof(*order->mappings);
	case NM_WORKER_UNITS:
		order->units = arguments;
		return is_process(&order->request) && size >= NM_UNITS_ORDER_BYTES(0) &&
		       order->units->count <= NM_UNITS_MOST &&
		       size == NM_UNITS_ORDER_BYTES(order->units->count) &&
		       nm_units_order_is_valid(order->units);
	case NM_WORKER_RANGES:
		order->ranges = arguments;
		return is_process(&order->request) && size >= NM_RANGES_ORDER_BYTES(0) &&
		       order->ranges->count <= NM_RANGES_MOST &&
		       size == NM_RANGES_ORDER_BYTES(order->ranges->count) &&
		       nm_ranges_order_is_valid(order->ranges);
	default:
		return false;
	}
}

int nm_worker_parse(const void *message, size_t length, struct nm_worker_order *ret)
{
	struct nm_worker_order order = {0};

	if (length < sizeof(order.request))
		return -EINVAL;
	memcpy(&order.request, message, sizeof(order.request));
	if (order.request.version != NM_WORKER_VERSION)
		return -EPROTO;
	if (!take_arguments((const char *)message + sizeof(order.request),
			    length - sizeof(order.request), &order))
		return -EINVAL;
	*ret = order;
	return 0;
}
