/* SPDX-License-Identifier: MIT */
#include "../support/test.h"

#include <stdint.h>

#include <stdbool.h>

#include "../support/records.h"
#include "numa-migrd/base.h"
#include "sample/sample.h"

#define RING_SIZE 4096U
#define CPU 6U

enum { ID_SIDEBAND = 100, ID_CLOCK, ID_MIN, ID_MAJ, ID_CYCLES, ID_FOREIGN };

static const struct nm_ring_layout layout = {
	.cpu = CPU,
	.count = 5,
	.events = {{.id = ID_SIDEBAND, .kind = NM_EVENT_SIDEBAND},
		   {.id = ID_CLOCK, .kind = NM_EVENT_CLOCK},
		   {.id = ID_MIN, .kind = NM_EVENT_FAULT_MIN},
		   {.id = ID_MAJ, .kind = NM_EVENT_FAULT_MAJ},
		   {.id = ID_CYCLES, .kind = NM_EVENT_CYCLES}},
};

struct seen {
	struct nm_sample samples[64];
	struct nm_task_event tasks[64];
	size_t sample_count, task_count;
	struct nm_ring_counts counts;
};

static void see_sample(void *context, struct nm_sample *sample)
{
	struct seen *seen = context;

	if (seen->sample_count < NM_ARRAY_SIZE(seen->samples))
		seen->samples[seen->sample_count] = *sample;
	seen->sample_count++;
}

static void see_task(void *context, const struct nm_task_event *event)
{
	struct seen *seen = context;

	if (seen->task_count < NM_ARRAY_SIZE(seen->tasks))
		seen->tasks[seen->task_count] = *event;
	seen->task_count++;
}

/* A ring of exactly its size on the heap, so that AddressSanitizer detects access beyond it. */
static struct record_ring new_ring(uint64_t start)
{
	struct record_ring ring = {.bytes = malloc(RING_SIZE), .size = RING_SIZE, .head = start};

	assert_non_null(ring.bytes);
	memset(ring.bytes, 0xa5, RING_SIZE);
	return ring;
}

static void decode(const struct record_ring *ring, uint64_t tail, struct seen *seen)
{
	const struct nm_sample_sink sink = {
		.context = seen, .on_sample = see_sample, .on_task = see_task};

	assert_true(nm_ring_decode(&layout, ring->bytes, ring->size, tail, ring->head, &sink,
				   &seen->counts) == ring->head);
}

TEST(an_empty_ring)
{
	struct record_ring ring = new_ring(640);
	struct seen seen = {0};

	decode(&ring, 640, &seen);
	assert_int_equal(seen.sample_count + seen.task_count, 0);
	assert_int_equal(seen.counts.corrupt, 0);
	free(ring.bytes);
}

TEST(run_samples)
{
	struct record_ring ring = new_ring(0);
	struct seen seen = {0};

	record_run(&ring, ID_CLOCK, 10, 11, 1234);
	record_run(&ring, ID_CYCLES, 20, 21, 5678);
	decode(&ring, 0, &seen);
	assert_int_equal(seen.counts.samples, 2);
	assert_int_equal(seen.samples[0].kind, NM_EVENT_CLOCK);
	assert_int_equal(seen.samples[0].pid, 10);
	assert_int_equal(seen.samples[0].tid, 11);
	assert_int_equal(seen.samples[0].cpu, CPU);
	assert_int_equal(seen.samples[0].time_ns, 1234);
	assert_int_equal(seen.samples[0].address, 0);
	assert_int_equal(seen.samples[0].physical_address, 0);
	assert_int_equal(seen.samples[1].kind, NM_EVENT_CYCLES);
	assert_int_equal(seen.samples[1].tid, 21);
	free(ring.bytes);
}

TEST(fault_samples)
{
	struct record_ring ring = new_ring(0);
	struct seen seen = {0};

	record_fault(&ring, ID_MIN, 10, 11, 1, 0x7f0000001238, 0x100001238);
	record_fault(&ring, ID_MAJ, 10, 12, 2, 0x7f0000002000, 0);
	decode(&ring, 0, &seen);
	assert_int_equal(seen.counts.samples, 2);
	assert_int_equal(seen.samples[0].kind, NM_EVENT_FAULT_MIN);
	assert_true(seen.samples[0].address == 0x7f0000001238);
	assert_true(seen.samples[0].physical_address == 0x100001238);
	assert_int_equal(seen.samples[1].kind, NM_EVENT_FAULT_MAJ);
	assert_int_equal(seen.samples[1].tid, 12);
	assert_int_equal(seen.samples[1].physical_address, 0);
	free(ring.bytes);
}

TEST(task_events)
{
	struct record_ring ring = new_ring(0);
	struct seen seen = {0};

	record_fork_exit(&ring, true, (const uint32_t[]){10, 10, 12, 11}, 1);
	record_fork_exit(&ring, false, (const uint32_t[]){10, 9, 12, 8}, 2);
	record_comm(&ring, false, 10, 12, "worker", 3);
	record_comm(&ring, true, 10, 10, "fifteen letters", 4);
	decode(&ring, 0, &seen);
	assert_int_equal(seen.counts.task_events, 4);
	assert_int_equal(seen.tasks[0].kind, NM_TASK_FORK);
	assert_int_equal(seen.tasks[0].pid, 10);
	assert_int_equal(seen.tasks[0].tid, 12);
	assert_int_equal(seen.tasks[0].parent_pid, 10);
	assert_int_equal(seen.tasks[0].parent_tid, 11);
	assert_int_equal(seen.tasks[0].time_ns, 1);
	assert_int_equal(seen.tasks[1].kind, NM_TASK_EXIT);
	assert_int_equal(seen.tasks[1].tid, 12);
	assert_int_equal(seen.tasks[1].parent_pid, 0);
	assert_int_equal(seen.tasks[1].parent_tid, 0);
	assert_int_equal(seen.tasks[2].kind, NM_TASK_COMM);
	assert_int_equal(seen.tasks[2].tid, 12);
	assert_int_equal(seen.tasks[2].time_ns, 3);
	assert_int_equal(seen.tasks[3].kind, NM_TASK_EXEC);
	assert_int_equal(seen.tasks[3].time_ns, 4);
	free(ring.bytes);
}

TEST(losses_and_throttling)
{
	struct record_ring ring = new_ring(0);
	struct seen seen = {0};

	record_lost(&ring, ID_MIN, 40);
	record_lost_samples(&ring, ID_MIN, 2);
	record_throttle(&ring, true, ID_MIN);
	record_throttle(&ring, false, ID_MIN);
	decode(&ring, 0, &seen);
	assert_int_equal(seen.counts.lost, 42);
	assert_int_equal(seen.counts.throttled, 1);
	assert_int_equal(seen.counts.unknown, 0);
	assert_int_equal(seen.counts.corrupt, 0);
	free(ring.bytes);
}

TEST(unknown_records_are_passed_over)
{
	struct record_ring ring = new_ring(0);
	struct seen seen = {0};

	record_run(&ring, ID_FOREIGN, 10, 11, 1);
	record_run(&ring, ID_SIDEBAND, 10, 11, 1);
	record_header(&ring, PERF_RECORD_MMAP2, 0, 16);
	record_put_u64(&ring, 0);
	record_header(&ring, 999, 0, 8);
	record_run(&ring, ID_CLOCK, 10, 11, 1);
	decode(&ring, 0, &seen);
	assert_int_equal(seen.counts.unknown, 4);
	assert_int_equal(seen.counts.samples, 1);
	assert_int_equal(seen.counts.corrupt, 0);
	free(ring.bytes);
}

/* Every kind of record at every offset of the ring, so that each wraps at each of its bytes. */
TEST(wraps_at_every_offset)
{
	for (uint64_t start = RING_SIZE - 512; start <= RING_SIZE; start += 8) {
		struct record_ring ring = new_ring(start);
		struct seen seen = {0};

		record_run(&ring, ID_CLOCK, 10, 11, 1);
		record_fault(&ring, ID_MIN, 10, 12, 2, 0x1000, 0x2000);
		record_fork_exit(&ring, true, (const uint32_t[]){10, 10, 13, 11}, 3);
		record_comm(&ring, true, 10, 14, "wrapping", 4);
		record_lost(&ring, ID_MIN, 5);
		record_lost_samples(&ring, ID_MIN, 6);
		record_throttle(&ring, true, ID_MIN);
		record_fork_exit(&ring, false, (const uint32_t[]){10, 10, 15, 11}, 7);
		decode(&ring, start, &seen);
		assert_int_equal(seen.counts.samples, 2);
		assert_int_equal(seen.samples[0].tid, 11);
		assert_int_equal(seen.samples[1].tid, 12);
		assert_int_equal(seen.samples[1].physical_address, 0x2000);
		assert_int_equal(seen.counts.task_events, 3);
		assert_int_equal(seen.tasks[0].tid, 13);
		assert_int_equal(seen.tasks[1].kind, NM_TASK_EXEC);
		assert_int_equal(seen.tasks[1].time_ns, 4);
		assert_int_equal(seen.tasks[2].time_ns, 7);
		assert_int_equal(seen.counts.lost, 11);
		assert_int_equal(seen.counts.throttled, 1);
		assert_int_equal(seen.counts.corrupt + seen.counts.unknown, 0);
		free(ring.bytes);
	}
}

/* Positions are 64-bit counters that may wrap. */
TEST(positions_overflow)
{
	uint64_t start = UINT64_MAX - 23;
	struct record_ring ring = new_ring(start);
	struct seen seen = {0};

	record_run(&ring, ID_CLOCK, 10, 11, 1);
	record_run(&ring, ID_CLOCK, 10, 12, 1);
	decode(&ring, start, &seen);
	assert_int_equal(seen.counts.samples, 2);
	assert_int_equal(seen.samples[1].tid, 12);
	free(ring.bytes);
}

static void expect_corrupt(uint32_t type, size_t size)
{
	struct record_ring ring = new_ring(RING_SIZE - 64);
	struct seen seen = {0};
	uint64_t start = ring.head;

	record_run(&ring, ID_CLOCK, 10, 11, 1);
	record_header(&ring, type, 0, size);
	record_put_u64(&ring, ID_MIN);
	record_put_u64(&ring, 0);
	record_run(&ring, ID_CLOCK, 10, 12, 1);
	decode(&ring, start, &seen);
	assert_int_equal(seen.counts.corrupt, 1);
	assert_int_equal(seen.counts.samples, 1);
	assert_int_equal(seen.counts.task_events, 0);
	free(ring.bytes);
}

/* SECURITY: rings */
TEST(impossible_sizes)
{
	expect_corrupt(PERF_RECORD_SAMPLE, 0);
	expect_corrupt(PERF_RECORD_SAMPLE, 4);
	expect_corrupt(PERF_RECORD_SAMPLE, 7);
	expect_corrupt(PERF_RECORD_SAMPLE, 33); /* not a multiple of 8 */
	expect_corrupt(PERF_RECORD_SAMPLE, 64); /* beyond head */
	expect_corrupt(PERF_RECORD_SAMPLE, 65528);
	expect_corrupt(PERF_RECORD_MMAP, 0);
}

TEST(too_short_for_their_type)
{
	expect_corrupt(PERF_RECORD_SAMPLE, 24);
	expect_corrupt(PERF_RECORD_SAMPLE, 32); /* a fault without its addresses */
	expect_corrupt(PERF_RECORD_FORK, 24);
	expect_corrupt(PERF_RECORD_EXIT, 24);
	expect_corrupt(PERF_RECORD_COMM, 24);
	expect_corrupt(PERF_RECORD_LOST, 16);
	expect_corrupt(PERF_RECORD_LOST_SAMPLES, 8);
}

TEST(impossible_positions)
{
	struct record_ring ring = new_ring(0);
	struct seen seen = {0};

	ring.head = RING_SIZE + 8;
	decode(&ring, 0, &seen);
	assert_int_equal(seen.counts.corrupt, 1);
	ring.head = 32;
	decode(&ring, 4, &seen);
	assert_int_equal(seen.counts.corrupt, 2);
	decode(&ring, 64, &seen); /* tail after head */
	assert_int_equal(seen.counts.corrupt, 3);
	assert_int_equal(seen.sample_count + seen.task_count, 0);
	free(ring.bytes);
}

/* With random bytes, decoding ends, stays inside the ring and counts consistently. */
TEST(random_bytes)
{
	struct record_ring ring = new_ring(0);
	struct nm_rng rng;

	nm_rng_seed(&rng, 20240229);
	for (unsigned round = 0; round < 20000; round++) {
		struct seen seen = {0};
		uint64_t tail = nm_rng_below(&rng, RING_SIZE / 8) * 8;
		ring.head = tail + nm_rng_below(&rng, RING_SIZE + 1);
		for (size_t i = 0; i < RING_SIZE; i += 8) {
			uint64_t word = nm_rng_next(&rng);
			/* mostly plausible headers and ids, so that decoding proceeds */
			if (nm_rng_below(&rng, 4))
				word = (8 * nm_rng_below(&rng, 9)) << 48 | nm_rng_below(&rng, 16);
			else if (nm_rng_below(&rng, 2))
				word = ID_SIDEBAND + nm_rng_below(&rng, 6);
			memcpy(ring.bytes + i, &word, sizeof(word));
		}
		decode(&ring, tail, &seen);
		assert_int_equal(seen.counts.samples, seen.sample_count);
		assert_int_equal(seen.counts.task_events, seen.task_count);
		assert_true(seen.counts.corrupt <= 1);
	}
	free(ring.bytes);
}

/* A stream of valid records with one flipped byte: records before it are still decoded. */
TEST(flipped_bytes)
{
	struct nm_rng rng;

	nm_rng_seed(&rng, 7);
	for (unsigned round = 0; round < 20000; round++) {
		struct record_ring ring = new_ring(nm_rng_below(&rng, 512) * 8);
		uint64_t start = ring.head;
		struct seen seen = {0};

		for (unsigned i = 0; i < 32; i++)
			record_run(&ring, ID_CLOCK, 10, 100 + i, i);
		uint64_t flip = nm_rng_below(&rng, ring.head - start);
		ring.bytes[(start + flip) & (RING_SIZE - 1)] ^=
			(uint8_t)(1U << nm_rng_below(&rng, 8));
		decode(&ring, start, &seen);
		assert_true(seen.sample_count >= flip / 32);
		for (size_t i = 0; i < flip / 32; i++)
			assert_int_equal(seen.samples[i].tid, 100 + i);
		free(ring.bytes);
	}
}

RUN_TESTS()
