/* SPDX-License-Identifier: MIT */
/* Recordings of real machines through the decoder. */
#include "../support/test.h"

#include <stdint.h>

#include "../support/data.h"
#include "../support/perf_data.h"
#include "../support/records.h"
#include "sample/sample.h"

#define ID 5U
#define RING_SIZE (1U << 17)

static const struct nm_ring_layout layout = {.count = 1,
					     .events = {{.id = ID, .kind = NM_EVENT_MEMORY}}};

struct seen {
	unsigned loads, stores, tasks, with_latency, remote, levels[NM_LEVEL_DRAM + 1];
	uint32_t latency_min, latency_max;
	struct nm_ring_counts counts;
};

static void see_sample(void *context, struct nm_sample *sample)
{
	struct seen *seen = context;
	uint32_t latency = sample->latency_cycles;

	seen->loads += sample->kind == NM_EVENT_MEMORY;
	seen->stores += sample->kind == NM_EVENT_STORE;
	seen->with_latency += latency > 0;
	seen->remote += sample->remote;
	seen->levels[sample->level]++;
	seen->latency_max = latency > seen->latency_max ? latency : seen->latency_max;
	if (seen->latency_min == 0 || latency < seen->latency_min)
		seen->latency_min = latency;
}

static void see_task(void *context, const struct nm_task_event *event)
{
	(void)event;
	((struct seen *)context)->tasks++;
}

static void decode(const struct record_ring *ring, struct seen *seen)
{
	const struct nm_sample_sink sink = {
		.context = seen, .on_sample = see_sample, .on_task = see_task};

	(void)nm_ring_decode(&layout, ring->bytes, ring->size, 0, ring->head, &sink, &seen->counts);
}

/* One sample of the recording, with the fields of our own events. */
static void decode_sample(const struct perf_data *file, const struct perf_event_header *header,
			  struct seen *seen)
{
	uint8_t bytes[128];
	struct record_ring ring = {.bytes = bytes, .size = sizeof(bytes)};
	struct perf_data_sample sample = {0};

	assert_true(perf_data_sample(file, header, &sample));
	record_memory(&ring, &(struct record_access){.id = ID,
						     .pid = sample.pid,
						     .tid = sample.tid,
						     .time = sample.time,
						     .address = sample.address,
						     .weight = sample.weight,
						     .data_src = sample.data_src});
	decode(&ring, seen);
}

/* Side-band records are the kernel's own bytes. */
static void decode_other(const struct perf_event_header *header, struct seen *seen)
{
	uint8_t *bytes = malloc(RING_SIZE);
	struct record_ring ring = {.bytes = bytes, .size = RING_SIZE};

	assert_non_null(bytes);
	record_put(&ring, header, header->size);
	decode(&ring, seen);
	free(bytes);
}

static struct seen replay(const char *name)
{
	struct seen seen = {0};
	struct perf_data file;
	const struct perf_event_header *header;
	size_t size;
	uint8_t *bytes = data_read(name, &size);

	if (!bytes)
		skip();
	assert_true(perf_data_open(&file, bytes, size));
	while ((header = perf_data_next(&file))) {
		if (header->type == PERF_RECORD_SAMPLE)
			decode_sample(&file, header, &seen);
		else if (header->type < 64) /* beyond: internal records of perf */
			decode_other(header, &seen);
	}
	assert_true(file.at == file.end);
	assert_int_equal(seen.counts.corrupt, 0);
	free(bytes);
	return seen;
}

/* Skylake-SP with the weight split into latency and two more. */
TEST(split_weights)
{
	struct seen seen = replay("perf-data/quipper.weight_struct.perf.data");

	assert_int_equal(seen.loads + seen.stores + seen.counts.kernel, 14);
	assert_true(seen.tasks > 1000);
	assert_true(seen.latency_max < 100000);
}

/* Ivy Bridge-EP, four nodes, loads of three cycles and more. */
TEST(loads_with_latency)
{
	struct seen seen = replay("perf-data/e5-4610v2-mem-loads.perf.data");

	assert_int_equal(seen.loads + seen.counts.kernel, 14);
	assert_int_equal(seen.stores, 0);
	assert_int_equal(seen.with_latency, seen.loads);
	assert_in_range(seen.latency_min, 3, 100);
	assert_in_range(seen.latency_max, seen.latency_min, 10000);
	assert_int_equal(seen.levels[NM_LEVEL_UNKNOWN], 0);
}

/* Page faults recorded with -d -W: addresses, but no memory operation. */
TEST(no_memory_information)
{
	struct seen seen = replay("perf-data/live-pagefault-npb-cg.perf.data");

	assert_int_equal(seen.loads + seen.stores, 0);
	assert_true(seen.counts.no_access > 100);
}

TEST(losses_and_throttling)
{
	struct seen lost = replay("perf-data/quipper.lost_samples-4.4.perf.data");
	struct seen throttled = replay("perf-data/quipper.throttle-3.8.perf.data");

	assert_true(lost.counts.lost > 0);
	assert_true(throttled.counts.throttled > 0);
}

RUN_TESTS()
