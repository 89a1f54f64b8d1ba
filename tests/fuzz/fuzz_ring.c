// SPDX-License-Identifier: MIT
// SECURITY: rings
/* Records of a perf ring that begin at any offset, so that they wrap. */
#include "fuzz.h"
#include "sample/sample.h"

#define RING_BYTES 4096U

static void take_sample(void *context, struct nm_sample *sample)
{
	FUZZ_REQUIRE(sample->kind < NM_EVENT_KIND_MAX);
	FUZZ_REQUIRE(sample->level <= NM_LEVEL_DRAM);
	FUZZ_REQUIRE(sample->cpu == 3);
	++*(uint64_t *)context;
}

static void take_task(void *context, const struct nm_task_event *event)
{
	FUZZ_REQUIRE(event->kind <= NM_TASK_EXEC);
	++*(uint64_t *)context;
}

/* An event for each kind, with the ids of seeds.c. */
static struct nm_ring_layout layout(void)
{
	struct nm_ring_layout layout = {.cpu = 3};

	for (unsigned i = 0; i < NM_EVENT_KIND_MAX && i < NM_RING_EVENTS_MAX; i++) {
		layout.events[i].id = 1000 + i;
		layout.events[i].kind = (enum nm_event_kind)i;
		layout.events[i].amount = 7;
		layout.count++;
	}
	return layout;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct nm_ring_layout events = layout();
	struct fuzz_input input = {data, size};
	struct nm_ring_counts counts = {0};
	uint64_t tail = fuzz_u64(&input) & ~7ULL;
	size_t length = input.size < RING_BYTES ? input.size & ~7UL : RING_BYTES;
	uint8_t *ring = calloc(1, RING_BYTES);
	uint64_t seen = 0;
	const struct nm_sample_sink sink = {
		.context = &seen, .on_sample = take_sample, .on_task = take_task};

	FUZZ_REQUIRE(ring);
	for (size_t i = 0; i < length; i++)
		ring[(tail + i) & (RING_BYTES - 1)] = input.data[i];
	uint64_t end =
		nm_ring_decode(&events, ring, RING_BYTES, tail, tail + length, &sink, &counts);
	FUZZ_REQUIRE(end == tail + length);
	FUZZ_REQUIRE(seen == counts.samples + counts.task_events);
	free(ring);
	return 0;
}
