/* SPDX-License-Identifier: MIT */
/* Pieces of an AUX area and the ring that announces them: the thread and time of each record. */
#define SET_UP set_up
#define TEAR_DOWN tear_down
#include "../support/test.h"

#include <stdint.h>

#include "../../src/sample/spe_read.h"
#include "../support/spe_golden.h"
#include "../support/spe_records.h"
#include "numa-migrd/base.h"

#define RING_BYTES 4096
#define AUX_BYTES 4096
#define SEEN_MAX 32

struct fixture {
	struct nm_spe_reader reader;
	struct nm_spe_areas areas;
	struct record_ring ring;
	uint64_t tail;
	uint64_t aux_head;
	uint8_t aux[AUX_BYTES], scratch[AUX_BYTES], bytes[RING_BYTES];
	struct nm_sample seen[SEEN_MAX];
	size_t count;
	struct nm_ring_counts counts;
};

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	f->ring = (struct record_ring){.bytes = f->bytes, .size = RING_BYTES};
	f->areas = (struct nm_spe_areas){.ring = f->bytes,
					 .ring_bytes = RING_BYTES,
					 .aux = f->aux,
					 .aux_bytes = AUX_BYTES,
					 .scratch = f->scratch};
	f->reader.cpu = 3;
	f->reader.sources = NM_SPE_SOURCES_ARM;
	/* two nanoseconds per tick, starting at 1000 */
	f->reader.clock =
		(struct nm_spe_clock){.known = true, .shift = 4, .mult = 32, .zero_ns = 1000};
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	nm_spe_reader_clear(&f->reader);
	free(f);
	return 0;
}

static void see(void *context, struct nm_sample *sample)
{
	struct fixture *f = context;

	if (f->count < SEEN_MAX)
		f->seen[f->count] = *sample;
	f->count++;
}

static void read_all(struct fixture *f)
{
	const struct nm_sample_sink sink = {.context = f, .on_sample = see};

	f->count = 0;
	f->tail = nm_spe_read(&f->reader, &f->areas, f->tail, f->ring.head, &sink, &f->counts);
	assert_int_equal(f->tail, f->ring.head);
}

static void load_at(struct fixture *f, uint64_t ticks, uint32_t context)
{
	const struct spe_load load = {
		.address = 0x7000 + ticks, .ticks = ticks, .context = context};

	spe_load_put(f->aux, AUX_BYTES, f->aux_head, &load);
	f->aux_head += SPE_LOAD_BYTES;
}

/* Hands over the data written since the last piece. */
static void piece(struct fixture *f, unsigned loads, uint64_t flags, uint64_t time)
{
	uint64_t bytes = loads * (uint64_t)SPE_LOAD_BYTES;

	record_aux(&f->ring, f->aux_head - bytes, bytes, flags, time);
}

TEST(samples_are_attributed_to_the_running_thread)
{
	struct fixture *f = *state;

	record_switch(&f->ring, false, 10, 11, 1000);
	record_switch(&f->ring, true, 10, 11, 1100);
	record_switch(&f->ring, false, 20, 22, 1101);
	record_switch(&f->ring, false, 30, 33, 1200);
	load_at(f, 20, 0); /* 1040 */
	load_at(f, 50, 0); /* 1100 */
	load_at(f, 51, 0); /* 1102 */
	load_at(f, 25, 0); /* 1050: out of order */
	load_at(f, 500, 0);
	piece(f, 5, 0, 3000);
	read_all(f);
	assert_int_equal(f->count, 5);
	assert_int_equal(f->seen[0].tid, 11);
	assert_int_equal(f->seen[0].pid, 10);
	assert_int_equal(f->seen[0].time_ns, 1040);
	assert_int_equal(f->seen[0].cpu, 3);
	assert_int_equal(f->seen[0].kind, NM_EVENT_MEMORY);
	assert_int_equal(f->seen[0].address, 0x7000 + 20);
	assert_int_equal(f->seen[0].latency_cycles, 321);
	assert_int_equal(f->seen[0].level, NM_LEVEL_DRAM);
	assert_int_equal(f->seen[1].tid, 11);
	assert_int_equal(f->seen[2].tid, 22);
	assert_int_equal(f->seen[3].tid, 11);
	assert_int_equal(f->seen[4].tid, 33);
	assert_int_equal(f->counts.samples, 5);

	/* The last context switch applies to the next piece too. */
	load_at(f, 1100, 0);
	load_at(f, 1300, 0);
	record_switch(&f->ring, false, 40, 44, 3500);
	piece(f, 2, 0, 4000);
	read_all(f);
	assert_int_equal(f->seen[0].tid, 33);
	assert_int_equal(f->seen[1].tid, 44);
}

TEST(before_the_first_switch_the_thread_is_unknown)
{
	struct fixture *f = *state;

	load_at(f, 10, 0);
	piece(f, 1, 0, 1500);
	read_all(f);
	assert_int_equal(f->count, 0);
	record_itrace_start(&f->ring, 5, 6, 2000);
	load_at(f, 20, 0); /* 1040, before that */
	load_at(f, 600, 0);
	piece(f, 2, 0, 3000);
	read_all(f);
	assert_int_equal(f->count, 1);
	assert_int_equal(f->seen[0].tid, 6);
	assert_int_equal(f->counts.unknown, 2);
}

TEST(the_context_packet_decides)
{
	struct fixture *f = *state;

	record_switch(&f->ring, false, 10, 11, 1000);
	record_switch(&f->ring, false, 20, 22, 1100);
	load_at(f, 1, 22);
	load_at(f, 90, 22);
	load_at(f, 90, 77); /* a thread without context switches: its time decides */
	piece(f, 3, 0, 2000);
	read_all(f);
	assert_int_equal(f->count, 3);
	assert_int_equal(f->seen[0].tid, 22);
	assert_int_equal(f->seen[0].pid, 20);
	assert_int_equal(f->seen[1].tid, 22);
	assert_int_equal(f->seen[2].tid, 22);
}

TEST(without_a_clock_only_certain_cases_are_reported)
{
	struct fixture *f = *state;

	f->reader.clock.known = false;
	record_switch(&f->ring, false, 10, 11, 1000);
	load_at(f, 5, 0); /* possibly from before the switch */
	piece(f, 1, 0, 2000);
	load_at(f, 6, 0);
	record_switch(&f->ring, true, 10, 11, 2900); /* the end of a turn gives no thread */
	piece(f, 1, 0, 3000);
	read_all(f);
	assert_int_equal(f->count, 1);
	assert_int_equal(f->seen[0].tid, 11);
	assert_int_equal(f->seen[0].time_ns, 3000); /* the time of the handover */
	record_switch(&f->ring, false, 20, 22, 3100);
	load_at(f, 7, 0);
	load_at(f, 8, 22);
	piece(f, 2, 0, 4000);
	read_all(f);
	assert_int_equal(f->count, 1);
	assert_int_equal(f->seen[0].tid, 22);
}

TEST(both_areas_wrap)
{
	struct fixture *f = *state;

	f->ring.head = f->tail = RING_BYTES - 24;
	f->aux_head = 7 * AUX_BYTES - 96;
	record_switch(&f->ring, false, 10, 11, 1000);
	for (uint64_t i = 1; i <= 40; i++) {
		load_at(f, i, 0);
		load_at(f, i + 1, 0);
		load_at(f, i + 2, 0);
		piece(f, 3, 0, 2000 + i);
		read_all(f);
		assert_int_equal(f->count, 3);
		assert_int_equal(f->seen[1].address, 0x7000 + i + 1);
		assert_int_equal(f->seen[2].tid, 11);
	}
	assert_int_equal(f->counts.corrupt, 0);
}

/* The driver pads with zeros up to an alignment, and those belong to no piece. */
TEST(pieces_need_not_touch)
{
	struct fixture *f = *state;

	record_switch(&f->ring, false, 10, 11, 1000);
	load_at(f, 1, 0);
	piece(f, 1, 0, 2000);
	f->aux_head += 192;
	load_at(f, 2, 0);
	piece(f, 1, 0, 3000);
	piece(f, 0, 0, 3001);
	read_all(f);
	assert_int_equal(f->count, 2);
}

TEST(truncated_pieces_count_as_losses)
{
	struct fixture *f = *state;

	record_switch(&f->ring, false, 10, 11, 1000);
	load_at(f, 1, 0);
	piece(f, 1, PERF_AUX_FLAG_COLLISION, 2000);
	read_all(f);
	assert_int_equal(f->counts.lost, 1);
	assert_false(f->reader.stopped);
	load_at(f, 2, 0);
	record_aux(&f->ring, f->aux_head - SPE_LOAD_BYTES, SPE_LOAD_BYTES - 3,
		   PERF_AUX_FLAG_TRUNCATED | PERF_AUX_FLAG_PARTIAL, 2100);
	read_all(f);
	assert_int_equal(f->count, 0); /* the record is incomplete */
	assert_int_equal(f->counts.lost, 2);
	assert_true(f->reader.stopped);
	load_at(f, 3, 0);
	piece(f, 1, 0, 2200);
	read_all(f);
	assert_int_equal(f->count, 1);
	assert_int_equal(f->seen[0].tid, 11);
}

/* A context switch may have been among them. */
TEST(lost_records_make_the_thread_unknown)
{
	struct fixture *f = *state;

	record_switch(&f->ring, false, 10, 11, 1000);
	record_lost(&f->ring, 7, 5);
	load_at(f, 500, 0);
	load_at(f, 501, 11);
	piece(f, 2, 0, 3000);
	record_switch(&f->ring, false, 20, 22, 3001);
	record_lost_samples(&f->ring, 7, 2);
	record_switch(&f->ring, false, 30, 33, 3100);
	load_at(f, 1010, 0); /* 3020: before that */
	load_at(f, 1100, 0);
	piece(f, 2, 0, 4000);
	read_all(f);
	assert_int_equal(f->counts.lost, 7);
	assert_int_equal(f->count, 1);
	assert_int_equal(f->seen[0].tid, 33);
}

TEST(old_turns_are_dropped)
{
	struct fixture *f = *state;

	for (uint32_t i = 0; i < 20000; i++) {
		record_switch(&f->ring, false, 1, 100 + i, 1000 + 2 * i);
		read_all(f);
		assert_true(f->reader.nr_turns <= 8192);
	}
	load_at(f, 19999, 0);
	load_at(f, 5, 0); /* its thread is dropped */
	load_at(f, 15000, 0);
	piece(f, 3, 0, 50000);
	read_all(f);
	assert_int_equal(f->count, 2);
	assert_int_equal(f->seen[1].tid, 100 + 15000);
	assert_int_equal(f->seen[0].tid, 100 + 19999);
}

TEST(other_operations_are_dropped)
{
	static const uint8_t branch[] = {0x4a, 0x01, 0x01};
	struct fixture *f = *state;

	record_switch(&f->ring, false, 10, 11, 1000);
	memcpy(f->aux, branch, sizeof(branch));
	record_aux(&f->ring, 0, sizeof(branch), 0, 2000);
	read_all(f);
	assert_int_equal(f->count, 0);
	assert_int_equal(f->counts.no_access, 1);
}

/* The recorded ones are of the kernel without memory access; a synthetic load behind them is
 * found. */
TEST(recorded_packets_as_a_piece)
{
	struct fixture *f = *state;
	size_t size = spe_golden(f->aux, 76); /* the complete records */

	if (size == 0)
		skip();
	assert_int_equal(size, 76);
	record_switch(&f->ring, false, 10, 11, 1000);
	f->aux_head = size;
	load_at(f, 7, 0);
	record_aux(&f->ring, 0, f->aux_head, 0, 2000);
	read_all(f);
	assert_int_equal(f->counts.no_access, 2);
	assert_int_equal(f->counts.corrupt, 0);
	assert_int_equal(f->count, 1);
	assert_int_equal(f->seen[0].tid, 11);
}

/* SECURITY: rings */
TEST(invalid_records_end_the_pass)
{
	struct fixture *f = *state;

	record_switch(&f->ring, false, 10, 11, 1000);
	record_aux(&f->ring, 0, AUX_BYTES + 1, 0, 2000);
	read_all(f);
	assert_int_equal(f->counts.corrupt, 1);
	record_header(&f->ring, PERF_RECORD_AUX, 0, 16); /* too short */
	record_put_u64(&f->ring, 0);
	record_switch(&f->ring, false, 10, 12, 1000);
	read_all(f);
	assert_int_equal(f->counts.corrupt, 2);
	assert_int_equal(f->reader.nr_turns, 0);
	record_header(&f->ring, PERF_RECORD_SWITCH_CPU_WIDE, 0, 4096);
	read_all(f);
	assert_int_equal(f->counts.corrupt, 3);
}

TEST(times)
{
	struct nm_spe_clock clock = {.known = true, .shift = 0, .mult = 1, .zero_ns = 5};

	assert_int_equal(nm_spe_time_ns(&clock, 7), 12);
	/* 24 MHz as scaled by the kernel: no overflow for centuries */
	clock = (struct nm_spe_clock){.known = true, .shift = 24, .mult = 699050667};
	assert_in_range(nm_spe_time_ns(&clock, 24000000ULL * 3600 * 24 * 365), 31535999000000000,
			31536001000000000);
	clock = (struct nm_spe_clock){
		.known = true, .wraps = true, .mult = 1, .cycles = 0x1fffffff0, .mask = 0xffffffff};
	assert_int_equal(nm_spe_time_ns(&clock, 0x10), 0x200000010);
}

TEST(any_bytes)
{
	struct fixture *f = *state;
	struct nm_rng rng;

	nm_rng_seed(&rng, 815);
	for (unsigned round = 0; round < 3000; round++) {
		for (size_t i = 0; i < AUX_BYTES; i++)
			f->aux[i] = (uint8_t)nm_rng_below(&rng, 256);
		for (size_t i = 0; i < RING_BYTES; i++)
			f->bytes[i] = (uint8_t)nm_rng_below(&rng, i % 8 == 6 ? 64 : 20);
		f->ring.head = f->tail;
		record_switch(&f->ring, false, 1, 2, 3);
		record_aux(&f->ring, nm_rng_below(&rng, 1 << 20), nm_rng_below(&rng, AUX_BYTES + 1),
			   nm_rng_below(&rng, 16), round);
		f->ring.head += nm_rng_below(&rng, RING_BYTES / 8 - 16) * 8;
		read_all(f);
	}
	assert_true(f->counts.corrupt > 0);
}

RUN_TESTS()
