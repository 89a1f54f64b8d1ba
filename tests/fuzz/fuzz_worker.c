// SPDX-License-Identifier: MIT
// SECURITY: worker-socket
/* Messages to a worker, and its answers. An accepted one must be complete, lie within its message,
 * and meet the conditions of its job. */
#include "fuzz.h"
#include "platform/worker.h"

static const char *begin, *end;

static void require_within(const void *first, size_t size)
{
	FUZZ_REQUIRE((const char *)first >= begin && (const char *)first + size == end);
}

static void check_units(const struct nm_units_order *order)
{
	require_within(order, NM_UNITS_ORDER_BYTES(order->count));
	FUZZ_REQUIRE(order->nr_rooms > 0 && order->nr_rooms <= NM_ROOMS_MOST);
	FUZZ_REQUIRE(order->pages_most > 0 && order->pages_most <= NM_UNITS_MOST);
	for (size_t i = 0; i < order->count; i++) {
		const struct nm_page_unit *unit = &order->units[i];
		FUZZ_REQUIRE(unit->to >= 0 && unit->to < (int)NM_NODE_NUMBERS);
		FUZZ_REQUIRE(unit->pages > 0);
		FUZZ_REQUIRE(unit->kind != NM_UNIT_BASE || unit->pages <= NM_UNIT_PAGES_MOST);
	}
}

static void check_ranges(const struct nm_ranges_order *order)
{
	require_within(order, NM_RANGES_ORDER_BYTES(order->count));
	FUZZ_REQUIRE(order->pages_most > 0 && order->pages_most <= NM_UNITS_MOST);
	FUZZ_REQUIRE(order->page_bytes >= 4096);
	for (size_t i = 0; i < order->count; i++)
		FUZZ_REQUIRE(order->ranges[i].start < order->ranges[i].end);
}

static void check(const struct nm_worker_order *order)
{
	FUZZ_REQUIRE(order->request.version == NM_WORKER_VERSION);
	if (order->request.act != NM_WORKER_HELLO)
		FUZZ_REQUIRE(order->request.pid > 0 && order->request.start_ticks > 0);
	if (order->addresses)
		require_within(order->addresses, order->request.count * UINT64_C(8));
	if (order->mappings)
		require_within(order->mappings, sizeof(*order->mappings));
	if (order->units)
		check_units(order->units);
	if (order->ranges)
		check_ranges(order->ranges);
}

/* An answer to an order of two units. */
static void unpack(const uint8_t *data, size_t size)
{
	static struct nm_units_moved moved;
	static struct nm_units_order order;

	order.count = 2;
	if (size > sizeof(moved))
		return;
	memset(&moved, 0, sizeof(moved));
	memcpy(&moved, data, size);
	if (nm_units_moved_unpack(&moved, size, &order) < 0)
		return;
	FUZZ_REQUIRE(moved.count == 2 && moved.nr_runs <= NM_UNITS_MOST &&
		     moved.nr_tries <= NM_TRIES_MOST);
	FUZZ_REQUIRE(nm_units_moved_pack(&moved) == size);
	FUZZ_REQUIRE(memcmp(&moved, data, size) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct nm_worker_order order;
	uint8_t *message = malloc(size + 1);

	FUZZ_REQUIRE(message);
	memcpy(message, data, size);
	begin = (const char *)message;
	end = begin + size;
	if (nm_worker_parse(message, size, &order) == 0)
		check(&order);
	unpack(data, size);
	free(message);
	return 0;
}
