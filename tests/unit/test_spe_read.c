/* SPDX-License-Identifier: MIT */
/*
 * Pieces of an AUX area and the ring that announces them: the thread and time of each record.
 *
 *	in 10 11 1000; out 10 11 1100	a context switch to thread 11 of process 10, at 1000 ns
 *	load 20; load 20 11		data of a load at tick 20, which is at 1040 ns, with a
 *context piece 5 3000 truncated		hands over the last five loads
 *	seen = 11 22			reads all, and compares the threads of the samples
 *	sample 0 = ...			one of them
 */
#define SET_UP set_up
#define TEAR_DOWN tear_down
#include "../support/test.h"

#include <stdint.h>

#include "../../src/sample/spe_read.h"
#include "../support/script.h"
#include "../support/spe_golden.h"
#include "../support/spe_records.h"
#include "numa-migrd/base.h"

#define RING_BYTES 4096
#define AUX_BYTES 4096
#define SEEN_MAX 32

static struct fixture {
	struct nm_spe_reader reader;
	struct nm_spe_areas areas;
	struct record_ring ring;
	uint64_t tail;
	uint64_t aux_head;
	uint8_t aux[AUX_BYTES], scratch[AUX_BYTES], bytes[RING_BYTES];
	struct nm_sample seen[SEEN_MAX];
	size_t count;
	struct nm_ring_counts counts;
} * f;

static int set_up(void **state)
{
	(void)state;
	f = calloc(1, sizeof(*f));
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
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	nm_spe_reader_clear(&f->reader);
	free(f);
	return 0;
}

static void see(void *context, struct nm_sample *sample)
{
	(void)context;
	if (f->count < SEEN_MAX)
		f->seen[f->count] = *sample;
	f->count++;
}

static void read_all(void)
{
	const struct nm_sample_sink sink = {.on_sample = see};
	f->count = 0;
	f->tail = nm_spe_read(&f->reader, &f->areas, f->tail, f->ring.head, &sink, &f->counts);
	assert_int_equal(f->tail, f->ring.head);
}

static void load_at(uint64_t ticks, uint32_t context)
{
	const struct spe_load load = {
		.address = 0x7000 + ticks, .ticks = ticks, .context = context};
	spe_load_put(f->aux, AUX_BYTES, f->aux_head, &load);
	f->aux_head += SPE_LOAD_BYTES;
}

static void piece(unsigned loads, uint64_t flags, uint64_t time)
{
	const uint64_t bytes = loads * (uint64_t)SPE_LOAD_BYTES;
	record_aux(&f->ring, f->aux_head - bytes, bytes, flags, time);
}

static const char *read_threads(void)
{
	static char text[SEEN_MAX * 12];
	size_t length = 0;
	read_all();
	for (size_t i = 0; i < f->count && i < SEEN_MAX; i++)
		length += (size_t)snprintf(text + length, sizeof(text) - length, "%s%u",
					   i ? " " : "", f->seen[i].tid);
	return length ? text : NULL;
}

static const char *print_sample(const struct nm_sample *sample)
{
	static char text[128];
	snprintf(text, sizeof(text), "%u/%u at %llu ns cpu %u %s %#llx %s %u cycles", sample->pid,
		 sample->tid, (unsigned long long)sample->time_ns, sample->cpu,
		 sample->kind == NM_EVENT_MEMORY ? "memory" : "other",
		 (unsigned long long)sample->address,
		 sample->level == NM_LEVEL_DRAM ? "dram" : "elsewhere", sample->latency_cycles);
	return text;
}

/* ---- words ---- */

static uint64_t flags_of(const struct step *step)
{
	return (step_has(step, "collision") ? PERF_AUX_FLAG_COLLISION : 0) |
	       (step_has(step, "truncated") ? PERF_AUX_FLAG_TRUNCATED | PERF_AUX_FLAG_PARTIAL : 0);
}

ACTION(in, record_switch(&f->ring, false, U(0), U(1), U(2)))
ACTION(out, record_switch(&f->ring, true, U(0), U(1), U(2)))
ACTION(start, record_itrace_start(&f->ring, U(0), U(1), U(2)))
ACTION(load, load_at(U(0), step->nr_numbers > 1 ? U(1) : 0))
ACTION(piece, piece(U(0), flags_of(step), U(1)))
ACTION(lose, record_lost(&f->ring, 7, U(0)))
ACTION(lose_samples, record_lost_samples(&f->ring, 7, U(0)))
ACTION(aux, record_aux(&f->ring, U(0), U(1), flags_of(step), U(2)))
ACTION(pad, f->aux_head += U(0))
ACTION(switch_header, record_header(&f->ring, PERF_RECORD_SWITCH_CPU_WIDE, 0, 4096))
ACTION(aux_header, record_header(&f->ring, PERF_RECORD_AUX, 0, 16); record_put_u64(&f->ring, 0))
KNOB(clock, f->reader.clock.known)
QUANTITY(stopped, f->reader.stopped)
QUANTITY(turns, f->reader.nr_turns)
QUANTITY(samples, f->counts.samples)
QUANTITY(unknown, f->counts.unknown)
QUANTITY(lost, f->counts.lost)
QUANTITY(corrupt, f->counts.corrupt)
QUANTITY(no_access, f->counts.no_access)
TEXT(seen, read_threads())
TEXT(sample, print_sample(&f->seen[U(0)]))

/* ---- threads ---- */

/* The fourth load is out of order; the last context switch applies to the next piece too. */
SCRIPT(samples_are_attributed_to_the_running_thread,
       "in 10 11 1000; out 10 11 1100; in 20 22 1101; in 30 33 1200; load 20; load 50; load 51",
       "load 25; load 500; piece 5 3000; seen = 11 11 22 11 33; samples = 5",
       "sample 0 = 10/11 at 1040 ns cpu 3 memory 0x7014 dram 321 cycles",
       "load 1100; load 1300; in 40 44 3500; piece 2 4000; seen = 33 44")

/* The load at 1040 is from before the start. */
SCRIPT(before_the_first_switch_the_thread_is_unknown,
       "load 10; piece 1 1500; seen = none; start 5 6 2000; load 20; load 600; piece 2 3000",
       "seen = 6; unknown = 2")

/* Thread 77 is without context switches: its time decides. */
SCRIPT(the_context_packet_decides,
       "in 10 11 1000; in 20 22 1100; load 1 22; load 90 22; load 90 77; piece 3 2000",
       "seen = 22 22 22; sample 0 ~ 20/22 ")

/* The first load is possibly from before the switch; the end of a turn gives no thread. The time is
 * that of the handover. */
SCRIPT(without_a_clock_only_certain_cases_are_reported,
       "set clock = 0; in 10 11 1000; load 5; piece 1 2000; load 6; out 10 11 2900; piece 1 3000",
       "seen = 11; sample 0 ~ at 3000 ns; in 20 22 3100; load 7; load 8 22; piece 2 4000",
       "seen = 22")

/* A context switch may have been among them. The load at 3020 is from before the last switch. */
SCRIPT(lost_records_make_the_thread_unknown,
       "in 10 11 1000; lose 5; load 500; load 501 11; piece 2 3000; in 20 22 3001",
       "lose_samples 2; in 30 33 3100; load 1010; load 1100; piece 2 4000; seen = 33; lost = 7")

WORD(many_turns)
{
	for (uint32_t i = 0; i < 20000; i++) {
		record_switch(&f->ring, false, 1, 100 + i, 1000 + 2 * i);
		read_all();
		assert_true(f->reader.nr_turns <= 8192);
	}
}

/* The thread of the second load is dropped. */
SCRIPT(old_turns_are_dropped,
       "many_turns; load 19999; load 5; load 15000; piece 3 50000; seen = 20099 15100")

/* ---- pieces ---- */

TEST(both_areas_wrap)
{
	f->ring.head = f->tail = RING_BYTES - 24;
	f->aux_head = 7 * AUX_BYTES - 96;
	record_switch(&f->ring, false, 10, 11, 1000);
	for (uint64_t i = 1; i <= 40; i++) {
		for (uint64_t k = 0; k < 3; k++)
			load_at(i + k, 0);
		piece(3, 0, 2000 + i);
		assert_string_equal(read_threads(), "11 11 11");
		assert_int_equal(f->seen[1].address, 0x7000 + i + 1);
	}
	assert_int_equal(f->counts.corrupt, 0);
}

/* With records of 40 bytes, and one of 16 that does not matter. */
WORD(fill)
{
	while (f->ring.head - f->tail < RING_BYTES - 16)
		record_switch(&f->ring, false, 10, 11, 1000);
	record_header(&f->ring, PERF_RECORD_THROTTLE, 0, 16);
	record_put_u64(&f->ring, 0);
	assert_int_equal(f->ring.head - f->tail, RING_BYTES);
}

SCRIPT(a_full_ring_is_read, "fill; seen = none; corrupt = 0; load 1; piece 1 2000; seen = 11")

/* The driver pads with zeros up to an alignment, and those belong to no piece. */
SCRIPT(pieces_need_not_touch,
       "in 10 11 1000; load 1; piece 1 2000; pad 192; load 2; piece 1 3000; piece 0 3001",
       "seen = 11 11")

/* The second record is incomplete. */
SCRIPT(truncated_pieces_count_as_losses,
       "in 10 11 1000; load 1; piece 1 2000 collision; seen = 11; lost = 1; stopped = 0; load 2",
       "aux 64 61 2100 truncated; seen = none; lost = 2; stopped = 1; load 3; piece 1 2200",
       "seen = 11")

WORD(branch)
{
	static const uint8_t branch[] = {0x4a, 0x01, 0x01};
	memcpy(f->aux, branch, sizeof(branch));
	f->aux_head += sizeof(branch);
}

SCRIPT(other_operations_are_dropped,
       "in 10 11 1000; branch; aux 0 3 2000; seen = none; no_access = 1")

/* The recorded ones are of the kernel without memory access; a synthetic load behind them is
 * found. */
TEST(recorded_packets_as_a_piece)
{
	f->aux_head = spe_golden(f->aux, 76); /* the complete records */
	if (f->aux_head == 0)
		skip();
	assert_int_equal(f->aux_head, 76);
	record_switch(&f->ring, false, 10, 11, 1000);
	load_at(7, 0);
	record_aux(&f->ring, 0, f->aux_head, 0, 2000);
	run_script((const char *const[]){"seen = 11; no_access = 2; corrupt = 0", NULL});
}

/* An AUX record that is too large, one that is too short, and a switch that is too large. */
/* SECURITY: rings */
SCRIPT(invalid_records_end_the_pass,
       "in 10 11 1000; aux 0 4097 2000; seen = none; corrupt = 1; aux_header",
       "in 10 12 1000; seen = none; corrupt = 2; turns = 0; switch_header; seen = none",
       "corrupt = 3")

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
		read_all();
	}
	assert_true(f->counts.corrupt > 0);
}

RUN_TESTS()
