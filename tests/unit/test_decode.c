/* SPDX-License-Identifier: MIT */
#define SET_UP set_up
#define TEAR_DOWN tear_down
#include "../support/test.h"

#include <inttypes.h>

#include "../support/records.h"
#include "../support/script.h"
#include "numa-migrd/base.h"
#include "sample/sample.h"

#define RING_SIZE 4096U
#define CPU 6U
#define ID(event) (100U + (event)) /* of its records */

static const struct nm_ring_layout layout = {
	.cpu = CPU,
	.count = 5,
	.events = {{.id = ID(NM_EVENT_SIDEBAND), .kind = NM_EVENT_SIDEBAND},
		   {.id = ID(NM_EVENT_CLOCK), .kind = NM_EVENT_CLOCK},
		   {.id = ID(NM_EVENT_FAULT_MIN), .kind = NM_EVENT_FAULT_MIN},
		   {.id = ID(NM_EVENT_FAULT_MAJ), .kind = NM_EVENT_FAULT_MAJ},
		   {.id = ID(NM_EVENT_CYCLES), .kind = NM_EVENT_CYCLES}},
};

static struct record_ring ring;
static uint64_t tail;

/* A ring of exactly its size on the heap, so that AddressSanitizer detects access beyond it. */
static void new_ring(uint64_t start)
{
	free(ring.bytes);
	ring = (struct record_ring){.bytes = malloc(RING_SIZE), .size = RING_SIZE, .head = start};
	tail = start;
	assert_non_null(ring.bytes);
	memset(ring.bytes, 0xa5, RING_SIZE);
}

static int set_up(void **state)
{
	(void)state;
	new_ring(0);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	free(NM_TAKE(ring.bytes));
	return 0;
}

/* ---- what is decoded ---- */

NAMES(kind, {"sideband", NM_EVENT_SIDEBAND}, {"clock", NM_EVENT_CLOCK}, {"min", NM_EVENT_FAULT_MIN},
      {"maj", NM_EVENT_FAULT_MAJ}, {"cycles", NM_EVENT_CYCLES}, {"foreign", NM_EVENT_KIND_MAX})
NAMES(task, {"fork", NM_TASK_FORK}, {"exit", NM_TASK_EXIT}, {"comm", NM_TASK_COMM},
      {"exec", NM_TASK_EXEC})

static char text[4000];
static size_t nr_samples, nr_tasks;

__attribute__((format(printf, 1, 2))) static void print(const char *format, ...)
{
	const size_t length = strlen(text);
	va_list arguments;
	va_start(arguments, format);
	(void)vsnprintf(text + length, sizeof(text) - length, format, arguments);
	va_end(arguments);
}

static void see_sample(void *context, struct nm_sample *one)
{
	(void)context;
	nr_samples++;
	assert_int_equal(one->cpu, CPU);
	print("%s %u/%u at %" PRIu64, script_show("kind", one->kind), one->pid, one->tid,
	      one->time_ns);
	if (one->address || one->physical_address)
		print(" 0x%" PRIx64 " 0x%" PRIx64, one->address, one->physical_address);
	print(", ");
}

static void see_task(void *context, const struct nm_task_event *one)
{
	(void)context;
	nr_tasks++;
	print("%s %u/%u", script_show("task", one->kind), one->pid, one->tid);
	if (one->parent_pid || one->parent_tid)
		print(" of %u/%u", one->parent_pid, one->parent_tid);
	print(" at %" PRIu64 ", ", one->time_ns);
}

static struct nm_ring_counts decode(void)
{
	struct nm_ring_counts counts = {0};
	const struct nm_sample_sink sink = {.on_sample = see_sample, .on_task = see_task};
	text[0] = '\0';
	nr_samples = nr_tasks = 0;
	assert_true(nm_ring_decode(&layout, ring.bytes, ring.size, tail, ring.head, &sink,
				   &counts) == ring.head);
	assert_int_equal(counts.samples, nr_samples);
	assert_int_equal(counts.task_events, nr_tasks);
	return counts;
}

/* "clock 10/11 at 1, min 10/11 at 1 0x7000 0x1000, fork 10/12 of 10/11 at 1, 5 lost": samples and
 * task events in their order; then lost, throttled, unknown and corrupt records, if there are any
 */
static const char *print_decoded(void)
{
	const struct nm_ring_counts counts = decode();
	if (counts.lost > 0)
		print("%" PRIu64 " lost, ", counts.lost);
	if (counts.throttled > 0)
		print("%" PRIu64 " throttled, ", counts.throttled);
	if (counts.unknown > 0)
		print("%" PRIu64 " unknown, ", counts.unknown);
	if (counts.corrupt > 0)
		print("%" PRIu64 " corrupt, ", counts.corrupt);
	text[*text ? strlen(text) - 2 : 0] = '\0';
	return *text ? text : NULL;
}

TEXT(decoded, print_decoded())

/* ---- records ---- */

static uint64_t id_of(const struct step *step)
{
	return ID((uint64_t)script_value(step, "kind", step->word[0]));
}

NAMES(type, {"sample", PERF_RECORD_SAMPLE}, {"mmap", PERF_RECORD_MMAP},
      {"mmap2", PERF_RECORD_MMAP2}, {"fork", PERF_RECORD_FORK}, {"exit", PERF_RECORD_EXIT},
      {"comm", PERF_RECORD_COMM}, {"lost", PERF_RECORD_LOST},
      {"lost-samples", PERF_RECORD_LOST_SAMPLES}, {"unknown", 999})

/* start 640: an empty ring at this position; positions 0 32: of the reader and the writer */
ACTION(start, new_ring((uint64_t)(int64_t)N(0)))
ACTION(positions, tail = U(0), ring.head = U(1))
/* run clock 10 11 1234: process, thread, time; fault min 10 11 1 0x7000 0x1000: and addresses */
ACTION(run, record_run(&ring, id_of(step), U(0), U(1), U(2)))
ACTION(fault, record_fault(&ring, id_of(step), U(0), U(1), U(2), (uint64_t)N(3), (uint64_t)N(4)))
/* fork 10 9 12 8 1: process, its parent, thread, its parent, time */
ACTION(fork, record_fork_exit(&ring, true, (const uint32_t[]){U(0), U(1), U(2), U(3)}, U(4)))
ACTION(exit, record_fork_exit(&ring, false, (const uint32_t[]){U(0), U(1), U(2), U(3)}, U(4)))
/* comm 10 12 3 worker: process, thread, time, name */
ACTION(comm, record_comm(&ring, false, U(0), U(1), step->word[3], U(2)))
ACTION(exec, record_comm(&ring, true, U(0), U(1), step->word[3], U(2)))
ACTION(lost, record_lost(&ring, ID(NM_EVENT_FAULT_MIN), U(0)))
ACTION(lost_samples, record_lost_samples(&ring, ID(NM_EVENT_FAULT_MIN), U(0)))
ACTION(throttle, record_throttle(&ring, true, ID(NM_EVENT_FAULT_MIN)))
ACTION(unthrottle, record_throttle(&ring, false, ID(NM_EVENT_FAULT_MIN)))

/* header sample 33 2: a record of this type and size, with two words after its header */
WORD(header)
{
	record_header(&ring, (uint32_t)script_value(step, "type", step->word[0]), 0, U(0));
	for (unsigned i = 0; i < U(1); i++)
		record_put_u64(&ring, i == 0 ? ID(NM_EVENT_FAULT_MIN) : 0);
}

/* ---- valid records ---- */

SCRIPT(an_empty_ring, "start 640; decoded = none")

SCRIPT(run_samples, "run clock 10 11 1234; run cycles 20 21 5678",
       "decoded = clock 10/11 at 1234, cycles 20/21 at 5678")

SCRIPT(fault_samples,
       "fault min 10 11 1 0x7f0000001238 0x100001238; fault maj 10 12 2 0x7f0000002000 0",
       "decoded = min 10/11 at 1 0x7f0000001238 0x100001238, maj 10/12 at 2 0x7f0000002000 0x0")

SCRIPT(task_events,
       "fork 10 10 12 11 1; exit 10 9 12 8 2; comm 10 12 3 worker; exec 10 10 4 fifteen_letters",
       "decoded = fork 10/12 of 10/11 at 1, exit 10/12 at 2, comm 10/12 at 3, exec 10/10 at 4")

SCRIPT(losses_and_throttling, "lost 40; lost_samples 2; throttle; unthrottle",
       "decoded = 42 lost, 1 throttled")

SCRIPT(unknown_records_are_passed_over,
       "run foreign 10 11 1; run sideband 10 11 1; header mmap2 16 1; header unknown 8 0",
       "run clock 10 11 1; decoded = clock 10/11 at 1, 4 unknown")

/* Every kind of record at every offset of the ring, so that each wraps at each of its bytes. */
TEST(wraps_at_every_offset)
{
	for (unsigned start = RING_SIZE - 512; start <= RING_SIZE; start += 8) {
		new_ring(start);
		run_script((const char *const[]){
			"run clock 10 11 1; fault min 10 12 2 0x1000 0x2000; fork 10 10 13 11 3",
			"exec 10 14 4 wrapping; lost 5; lost_samples 6; throttle; exit 10 10 15 11 "
			"7",
			NULL});
		assert_string_equal(print_decoded(),
				    "clock 10/11 at 1, min 10/12 at 2 0x1000 0x2000, "
				    "fork 10/13 of 10/11 at 3, exec 10/14 at 4, exit 10/15 at 7, "
				    "11 lost, 1 throttled");
	}
}

/* Positions are 64-bit counters that may wrap. */
SCRIPT(positions_overflow, "start -24; run clock 10 11 1; run clock 10 12 1",
       "decoded = clock 10/11 at 1, clock 10/12 at 1")

/* ---- corrupt ones ---- */

#define CORRUPT(type_and_size)                                                                     \
	"start 4032; run clock 10 11 1; header " type_and_size " 2; run clock 10 12 1; "           \
	"decoded = clock 10/11 at 1, 1 corrupt"

/* 33 is not a multiple of 8, and 64 is beyond head. */
/* SECURITY: rings */
SCRIPT(impossible_sizes, CORRUPT("sample 0"), CORRUPT("sample 4"), CORRUPT("sample 7"),
       CORRUPT("sample 33"), CORRUPT("sample 64"), CORRUPT("sample 65528"), CORRUPT("mmap 0"))

/* With 32 bytes it is a fault without its addresses. */
SCRIPT(too_short_for_their_type, CORRUPT("sample 24"), CORRUPT("sample 32"), CORRUPT("fork 24"),
       CORRUPT("exit 24"), CORRUPT("comm 24"), CORRUPT("lost 16"), CORRUPT("lost-samples 8"))

/* Too far apart, not at a multiple of 8, and tail after head. */
SCRIPT(impossible_positions, "positions 0 4104; decoded = 1 corrupt; positions 4 32",
       "decoded = 1 corrupt; positions 64 32; decoded = 1 corrupt")

/* With random bytes, decoding ends, stays inside the ring and counts consistently. */
TEST(random_bytes)
{
	struct nm_rng rng;

	nm_rng_seed(&rng, 20240229);
	for (unsigned round = 0; round < 20000; round++) {
		tail = nm_rng_below(&rng, RING_SIZE / 8) * 8;
		ring.head = tail + nm_rng_below(&rng, RING_SIZE + 1);
		for (size_t i = 0; i < RING_SIZE; i += 8) {
			uint64_t word = nm_rng_next(&rng);
			/* mostly plausible headers and ids, so that decoding proceeds */
			if (nm_rng_below(&rng, 4))
				word = (8 * nm_rng_below(&rng, 9)) << 48 | nm_rng_below(&rng, 16);
			else if (nm_rng_below(&rng, 2))
				word = ID(NM_EVENT_SIDEBAND) + nm_rng_below(&rng, 6);
			memcpy(ring.bytes + i, &word, sizeof(word));
		}
		assert_true(decode().corrupt <= 1);
	}
}

/* A stream of valid records with one flipped byte: records before it are still decoded. */
TEST(flipped_bytes)
{
	struct nm_rng rng;

	nm_rng_seed(&rng, 7);
	for (unsigned round = 0; round < 20000; round++) {
		new_ring(nm_rng_below(&rng, 512) * 8);
		for (unsigned i = 0; i < 32; i++)
			record_run(&ring, ID(NM_EVENT_CLOCK), 10, 100 + i, i);
		uint64_t flip = nm_rng_below(&rng, ring.head - tail);
		ring.bytes[(tail + flip) & (RING_SIZE - 1)] ^=
			(uint8_t)(1U << nm_rng_below(&rng, 8));
		(void)decode();
		assert_true(nr_samples >= flip / 32);
		const char *found = text;
		for (uint64_t i = 0; i < flip / 32; i++) {
			char expected[64];
			snprintf(expected, sizeof(expected), "clock 10/%u at %u, ",
				 (unsigned)(100 + i), (unsigned)i);
			assert_memory_equal(found, expected, strlen(expected));
			found += strlen(expected);
		}
	}
}

RUN_TESTS()
