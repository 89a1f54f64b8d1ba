/* SPDX-License-Identifier: MIT */
/* Samples of memory accesses and of amounts. */
#define SET_UP set_up
#define TEAR_DOWN tear_down
#include "../support/test.h"

#include <stdint.h>

#include "../support/records.h"
#include "sample/sample.h"

#define RING_SIZE 4096U
#define LOAD_DRAM_REMOTE                                                                           \
	(PERF_MEM_OP_LOAD | (PERF_MEM_LVL_HIT | PERF_MEM_LVL_REM_RAM1) << PERF_MEM_LVL_SHIFT)
#define STORE_L1 (PERF_MEM_OP_STORE | (PERF_MEM_LVL_HIT | PERF_MEM_LVL_L1) << PERF_MEM_LVL_SHIFT)

enum { ID_MEMORY = 7, ID_STORE, ID_INSTRUCTIONS, ID_FLOPS, ID_DRAM };

static const struct nm_ring_layout layout = {
	.cpu = 3,
	.count = 5,
	.events = {{.id = ID_MEMORY, .kind = NM_EVENT_MEMORY},
		   {.id = ID_STORE, .kind = NM_EVENT_STORE},
		   {.id = ID_INSTRUCTIONS, .kind = NM_EVENT_INSTRUCTIONS, .amount = 1000},
		   {.id = ID_FLOPS, .kind = NM_EVENT_FLOPS, .amount = 8000},
		   {.id = ID_DRAM, .kind = NM_EVENT_DRAM, .amount = 64000, .remote = true}},
};

struct world {
	uint8_t bytes[RING_SIZE];
	struct record_ring ring;
	struct nm_ring_counts counts;
	struct nm_sample last;
};

static int set_up(void **state)
{
	struct world *world = calloc(1, sizeof(*world));

	assert_non_null(world);
	world->ring = (struct record_ring){.bytes = world->bytes, .size = RING_SIZE};
	*state = world;
	return 0;
}

static int tear_down(void **state)
{
	free(*state);
	return 0;
}

static void see_sample(void *context, struct nm_sample *sample)
{
	((struct world *)context)->last = *sample;
}

static void see_task(void *context, const struct nm_task_event *event)
{
	(void)context, (void)event;
	fail();
}

static void decode(struct world *world, uint64_t from)
{
	const struct nm_sample_sink sink = {
		.context = world, .on_sample = see_sample, .on_task = see_task};

	(void)nm_ring_decode(&layout, world->bytes, RING_SIZE, from, world->ring.head, &sink,
			     &world->counts);
}

static struct record_access access_of(uint64_t id, uint64_t data_src)
{
	return (struct record_access){.id = id,
				      .pid = 10,
				      .tid = 11,
				      .time = 12,
				      .address = 0x7f0012345678,
				      .weight = 0x0007000b0000017bULL,
				      .data_src = data_src,
				      .physical = 0x123456678};
}

/* The upper half of the weight is a separate field if the kernel splits it. */
TEST(a_load)
{
	struct world *world = *state;
	struct record_access access = access_of(ID_MEMORY, LOAD_DRAM_REMOTE);

	record_memory(&world->ring, &access);
	decode(world, 0);
	assert_int_equal(world->counts.samples, 1);
	assert_int_equal(world->last.kind, NM_EVENT_MEMORY);
	assert_int_equal(world->last.pid, 10);
	assert_int_equal(world->last.tid, 11);
	assert_int_equal(world->last.cpu, 3);
	assert_int_equal(world->last.time_ns, 12);
	assert_int_equal(world->last.address, access.address);
	assert_int_equal(world->last.physical_address, access.physical);
	assert_int_equal(world->last.latency_cycles, 0x17b);
	assert_int_equal(world->last.level, NM_LEVEL_DRAM);
	assert_true(world->last.remote);
	assert_int_equal(world->last.amount, 0);
	assert_int_equal(world->last.page_bytes, 0);
}

/* IBS and configured PMUs sample loads and stores by one event. */
TEST(the_operation_determines_the_kind)
{
	struct world *world = *state;
	struct record_access store = access_of(ID_MEMORY, STORE_L1);
	struct record_access load = access_of(ID_STORE, LOAD_DRAM_REMOTE);

	record_memory(&world->ring, &store);
	decode(world, 0);
	assert_int_equal(world->last.kind, NM_EVENT_STORE);
	assert_int_equal(world->last.level, NM_LEVEL_L1);
	uint64_t tail = world->ring.head;
	record_memory(&world->ring, &load);
	decode(world, tail);
	assert_int_equal(world->last.kind, NM_EVENT_MEMORY);
}

TEST(operations_without_memory_are_dropped)
{
	static const uint64_t words[] = {0x1e05080021, 0x5080021, 0, PERF_MEM_OP_EXEC,
					 PERF_MEM_OP_PFETCH};
	struct world *world = *state;

	for (size_t i = 0; i < NM_ARRAY_SIZE(words); i++) {
		struct record_access access = access_of(ID_MEMORY, words[i]);
		record_memory(&world->ring, &access);
	}
	decode(world, 0);
	assert_int_equal(world->counts.no_access, NM_ARRAY_SIZE(words));
	assert_int_equal(world->counts.samples, 0);
	assert_int_equal(world->counts.corrupt, 0);
}

TEST(kernel_addresses_are_dropped)
{
	struct world *world = *state;
	struct record_access access = access_of(ID_MEMORY, LOAD_DRAM_REMOTE);

	access.address = 0xffff888012345678;
	record_memory(&world->ring, &access);
	access.address = 0xff11000012345678;
	record_memory(&world->ring, &access);
	decode(world, 0);
	assert_int_equal(world->counts.kernel, 2);
	assert_int_equal(world->counts.samples, 0);
}

TEST(amounts)
{
	struct world *world = *state;

	record_run(&world->ring, ID_INSTRUCTIONS, 1, 2, 3);
	decode(world, 0);
	assert_int_equal(world->last.kind, NM_EVENT_INSTRUCTIONS);
	assert_int_equal(world->last.amount, 1000);
	uint64_t tail = world->ring.head;
	record_run(&world->ring, ID_FLOPS, 1, 2, 3);
	decode(world, tail);
	assert_int_equal(world->last.amount, 8000);
	assert_false(world->last.remote);
	tail = world->ring.head;
	record_run(&world->ring, ID_DRAM, 1, 2, 3);
	decode(world, tail);
	assert_int_equal(world->last.amount, 64000);
	assert_true(world->last.remote);
	assert_int_equal(world->counts.samples, 3);
}

/* Too short for the fields of its event: later records cannot be trusted. */
TEST(short_records_are_corrupt)
{
	struct world *world = *state;

	record_header(&world->ring, PERF_RECORD_SAMPLE, 0, 56);
	record_put_u64(&world->ring, ID_MEMORY);
	for (unsigned i = 0; i < 5; i++)
		record_put_u64(&world->ring, PERF_MEM_OP_LOAD);
	record_run(&world->ring, ID_INSTRUCTIONS, 1, 2, 3);
	decode(world, 0);
	assert_int_equal(world->counts.corrupt, 1);
	assert_int_equal(world->counts.samples, 0);
}

TEST(records_wrap)
{
	struct world *world = *state;
	struct record_access access = access_of(ID_MEMORY, LOAD_DRAM_REMOTE);

	for (uint64_t from = RING_SIZE - 64; from < RING_SIZE; from += 8) {
		world->ring.head = from;
		access.time = from;
		record_memory(&world->ring, &access);
		decode(world, from);
		assert_int_equal(world->last.time_ns, from);
		assert_int_equal(world->last.physical_address, access.physical);
	}
	assert_int_equal(world->counts.corrupt, 0);
}

RUN_TESTS()
