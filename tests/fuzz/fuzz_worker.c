// SPDX-License-Identifier: MIT
// SECURITY: worker-socket
/* Messages to a worker. An accepted request must be complete and lie within its message. */
#include "fuzz.h"
#include "numa-migrd/maps.h"
#include "numa-migrd/worker.h"

static void require_within(const void *message, size_t size, const struct nm_worker_order *order)
{
	const char *begin = message, *end = begin + size;
	size_t count = order->request.count;

	FUZZ_REQUIRE(order->request.version == NM_WORKER_VERSION);
	if (order->addresses) {
		FUZZ_REQUIRE(count > 0 && count <= NM_WORKER_PAGES_MOST);
		FUZZ_REQUIRE((const char *)order->addresses >= begin &&
			     (const char *)(order->addresses + count) <= end);
		FUZZ_REQUIRE(order->request.pid > 0 && order->request.start_ticks > 0);
	}
	if (order->nodes)
		FUZZ_REQUIRE(order->addresses && (const char *)(order->nodes + count) == end);
	for (size_t i = 0; order->nodes && i < count; i++)
		FUZZ_REQUIRE(order->nodes[i] >= 0 && order->nodes[i] < (int)NM_NODE_NUMBERS);
	if (order->ranges) {
		FUZZ_REQUIRE(count > 0 && count <= NM_WORKER_RANGES_MOST && !order->addresses);
		FUZZ_REQUIRE((const char *)order->ranges >= begin &&
			     (const char *)(order->ranges + count) == end);
		FUZZ_REQUIRE(order->request.pid > 0 && order->request.start_ticks > 0);
	}
	for (size_t i = 0; order->ranges && i < count; i++)
		FUZZ_REQUIRE(order->ranges[i].start < order->ranges[i].end &&
			     order->ranges[i].page_bytes > 0);
	if (order->request.act == NM_WORKER_READ_MAPS)
		FUZZ_REQUIRE(count > 0 && count <= NM_WORKER_TEXT_MOST);
}

/* The first byte states whether a descriptor is attached, the rest is the message. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input input = {data, size};
	bool has_fd = fuzz_byte(&input) & 1;
	struct nm_worker_order order;
	uint8_t *message = malloc(input.size + 1);

	FUZZ_REQUIRE(message);
	memcpy(message, input.data, input.size);
	if (nm_worker_parse(message, input.size, has_fd, &order) == 0)
		require_within(message, input.size, &order);
	free(message);
	return 0;
}
