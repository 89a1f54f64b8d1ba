/* SPDX-License-Identifier: MIT */
/* Recordings: written data is read back completely, or up to where it was truncated, and damage is
 * reported. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../src/recording/block.h"
#include "../support/machine.h"
#include "../support/topology_equal.h"
#include "numa-migrd/base.h"
#include "numa-migrd/recording.h"

enum { NODES = 3, CPUS = 6, BYTES_MOST = 1 << 20 };

static int memory_file(void)
{
	int fd = memfd_create("recording", MFD_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

static struct nm_recorder_writer *create(int fd, uint64_t limit_bytes)
{
	struct nm_recorder_writer *writer;
	assert_int_equal(nm_recording_create(dup(fd), limit_bytes, &writer), 0);
	return writer;
}

static struct nm_recording *open_recording(int fd)
{
	char error[256] = "";
	struct nm_recording *recording;
	if (nm_recording_open(dup(fd), error, sizeof(error), &recording) < 0)
		fail_msg("%s", error);
	return recording;
}

/* ---- one of each ---- */

static const struct nm_sample samples[] = {
	{.kind = NM_EVENT_CLOCK, .pid = 7, .tid = 9, .cpu = 2, .time_ns = 1000},
	{.kind = NM_EVENT_MEMORY,
	 .pid = 7,
	 .tid = 9,
	 .cpu = 2,
	 .time_ns = 900,
	 .address = 0x7fff12345678,
	 .page_node = 3,
	 .page_bytes = 2 << 20,
	 .latency_cycles = 313,
	 .level = NM_LEVEL_DRAM,
	 .remote = true,
	 .weight = 300},
	{.kind = NM_EVENT_DRAM,
	 .pid = 4000000,
	 .tid = 4194303,
	 .cpu = 5,
	 .time_ns = UINT64_MAX,
	 .amount = UINT64_MAX},
	{.kind = NM_EVENT_FAULT_MIN, .address = 1},
};
static const struct nm_task_event events[] = {
	{.kind = NM_TASK_FORK, .pid = 8, .tid = 9, .parent_pid = 7, .parent_tid = 7, .time_ns = 5},
	{.kind = NM_TASK_EXEC, .pid = 8, .tid = 8},
};
static const double by_node[NODES] = {1, 0.1, NAN};

static struct nm_recorded start_record(void)
{
	static const char text[] = "general = { seed = 5 }\n";
	return (struct nm_recorded){.kind = NM_RECORDED_START,
				    .start = {.version = "0.1",
					      .time_s = 12,
					      .monotonic_ns = 1234567890123,
					      .seed = UINT64_MAX,
					      .next_decision = 17,
					      .source = "cycles+pebs",
					      .config_name = "a.conf",
					      .config = text,
					      .config_length = sizeof(text) - 1}};
}

static struct nm_recorded decision_record(hwloc_bitmap_t mask)
{
	struct nm_recorded record = {.kind = NM_RECORDED_DECISION};
	record.decision = (struct nm_decision){
		.id = 3,
		.kind = NM_DECISION_SWAP,
		.policy = NM_POLICY_IMAR2,
		.interval = 9,
		.tickets = {.total = 12.5, .free_cpu = 2},
		.draw = 0.3,
		.gain = NAN,
		.alternatives = {{.node_to = 1, .cpu_to = -1, .tickets = 4}},
		.nr_alternatives = 1,
		.nr_candidates = 5,
		.nr_steps = 2,
		.steps = {{.tid = 9,
			   .pid = 7,
			   .cpu_to = 3,
			   .node_from = -1,
			   .target = mask,
			   .local_before = 0.1,
			   .comm = "one"},
			  {.tid = 10, .pid = 7, .comm = "\\x0atwo"}},
	};
	return record;
}

static struct nm_recorded threads_record(void)
{
	static const struct nm_recorded_thread threads[] = {
		{.tid = 9,
		 .pid = 7,
		 .main_cpu = 1,
		 .main_node = 0,
		 .preferred = -1,
		 .latency = 313.25,
		 .operations = 1e9,
		 .intensity = 0.1},
		{.tid = 10, .pid = 7, .leased = true},
	};
	struct nm_recorded record = {.kind = NM_RECORDED_THREADS};
	record.threads.items = threads;
	record.threads.count = 2;
	return record;
}

static void add(struct nm_recorder_writer *writer, const struct nm_recorded *record)
{
	assert_int_equal(nm_recording_add(writer, record), 0);
}

static void add_process(struct nm_recorder_writer *writer)
{
	static const struct nm_recorded_process process = {.pid = 7, .comm = "one"};
	struct nm_recorded record = {.kind = NM_RECORDED_PROCESSES,
				     .processes = {.items = &process, .count = 1}};
	add(writer, &record);
}

static void add_inputs(struct nm_recorder_writer *writer)
{
	struct nm_recorded record = {
		.kind = NM_RECORDED_CALL,
		.step = {.call = NM_CALL_RELOAD, .text = "x = 1\n", .length = 6}};
	add(writer, &record);
	record = (struct nm_recorded){.kind = NM_RECORDED_ANSWER,
				      .answer = {.operation = "read_file",
						 .handle = -1,
						 .path = "proc/stat",
						 .result = -2,
						 .bytes = (const uint8_t *)"a\0b",
						 .length = 3}};
	add(writer, &record);
	record = (struct nm_recorded){
		.kind = NM_RECORDED_SOURCE,
		.source = {.open = true,
			   .status = {.runs = true, .name = "clock", .run_sample_ns = 1e7},
			   .taken_per_seen = by_node,
			   .nr_cpus = 2}};
	add(writer, &record);
	record = (struct nm_recorded){.kind = NM_RECORDED_SAMPLES,
				      .samples = {.samples = samples,
						  .nr_samples = NM_ARRAY_SIZE(samples),
						  .events = events,
						  .nr_events = NM_ARRAY_SIZE(events)}};
	add(writer, &record);
}

static void add_outcomes(struct nm_recorder_writer *writer, hwloc_bitmap_t mask)
{
	struct nm_recorded record = {.kind = NM_RECORDED_VERDICT,
				     .verdict = {.decision = 3,
						 .kind = NM_VERDICT_ROLLED_BACK,
						 .figure = NAN,
						 .nr_threads = 1,
						 .threads = {{.tid = 9, .local_after = 0.9}}}};
	add(writer, &record);
	record = decision_record(mask);
	add(writer, &record);
	record = (struct nm_recorded){
		.kind = NM_RECORDED_RECEIPT,
		.receipt = {
			.decision = 3,
			.nr_steps = 2,
			.steps = {{.tried = true, .error = -1, .what = "identity"}, {.what = ""}}}};
	add(writer, &record);
	record = (struct nm_recorded){.kind = NM_RECORDED_DECISION,
				      .decision = {.id = 4,
						   .kind = NM_DECISION_PAGES,
						   .pages = {.pages = 5},
						   .nr_steps = 1,
						   .steps = {{.comm = "one", .node_from = -1}}}};
	add(writer, &record);
	record = (struct nm_recorded){.kind = NM_RECORDED_VERDICT,
				      .verdict = {.decision = 4,
						  .of = NM_DECISION_PAGES,
						  .results = {.moved = 5, .error = -3}}};
	add(writer, &record);
	record = (struct nm_recorded){
		.kind = NM_RECORDED_ENTRY,
		.entry = {.decision = 3, .priority = 5, .text = "moved", .fields = "A=1\nB=2"}};
	add(writer, &record);
}

static void write_all_kinds(int fd)
{
	hwloc_bitmap_t mask = hwloc_bitmap_alloc();
	hwloc_bitmap_set_range(mask, 2, 4);
	struct nm_topology *topology = machine_topology(NODES, CPUS);
	struct nm_recorder_writer *writer = create(fd, 0);
	struct nm_recorded record = start_record();
	add(writer, &record);
	record = (struct nm_recorded){.kind = NM_RECORDED_TOPOLOGY, .topology = topology};
	add(writer, &record);
	record = (struct nm_recorded){.kind = NM_RECORDED_INTERVAL,
				      .about = {.number = 9, .time_ns = 5, .local_share = NAN}};
	add(writer, &record);
	assert_int_equal(nm_recording_flush(writer), 0);
	record = threads_record();
	add(writer, &record);
	add_process(writer);
	assert_int_equal(nm_recording_flush(writer), 0);
	add_outcomes(writer, mask);
	add_inputs(writer);
	record = (struct nm_recorded){.kind = NM_RECORDED_END, .end = "as asked"};
	add(writer, &record);
	nm_recording_close(writer);
	nm_topology_free(topology);
	hwloc_bitmap_free(mask);
}

/* ---- round trips ---- */

static void assert_next(struct nm_recording *recording, enum nm_recorded_kind kind,
			struct nm_recorded *ret)
{
	int r = nm_recording_next(recording, ret);
	if (r != 1)
		fail_msg("%d: %s", r, nm_recording_error(recording));
	assert_string_equal(nm_recorded_kind_name(ret->kind), nm_recorded_kind_name(kind));
}

/* Each kind once; data that is read and written again is identical byte for byte. */
static void test_every_kind_comes_back(void **state)
{
	(void)state;
	int fd = memory_file(), copy = memory_file();
	uint32_t seen = 0;
	struct nm_recorded record;
	write_all_kinds(fd);
	struct nm_recording *recording = open_recording(fd);
	struct nm_recorder_writer *writer = create(copy, 0);
	while (nm_recording_next(recording, &record) > 0) {
		seen |= 1U << record.kind;
		assert_int_equal(nm_recording_add(writer, &record), 0);
		/* Blocks end at the same positions. */
		if (record.kind == NM_RECORDED_INTERVAL || record.kind == NM_RECORDED_PROCESSES)
			assert_int_equal(nm_recording_flush(writer), 0);
	}
	assert_string_equal(nm_recording_error(recording), "");
	assert_int_equal(nm_recording_torn(recording), 0);
	assert_int_equal(seen, (1U << NM_RECORDED_KINDS) - 1);
	nm_recording_close(writer);
	nm_recording_free(recording);
	off_t size = lseek(fd, 0, SEEK_END);
	assert_int_equal(lseek(copy, 0, SEEK_END), size);
	char *one = mmap(NULL, (size_t)size, PROT_READ, MAP_SHARED, fd, 0);
	char *other = mmap(NULL, (size_t)size, PROT_READ, MAP_SHARED, copy, 0);
	assert_memory_equal(one, other, (size_t)size);
	munmap(one, (size_t)size);
	munmap(other, (size_t)size);
	close(fd);
	close(copy);
}

static void assert_sample_equal(const struct nm_sample *a, const struct nm_sample *b)
{
	assert_int_equal(a->kind, b->kind);
	assert_int_equal(a->pid, b->pid);
	assert_int_equal(a->tid, b->tid);
	assert_int_equal(a->cpu, b->cpu);
	assert_true(a->time_ns == b->time_ns);
	assert_true(a->address == b->address);
	assert_int_equal(a->page_node, b->page_node);
	assert_true(a->page_bytes == b->page_bytes);
	assert_int_equal(a->latency_cycles, b->latency_cycles);
	assert_int_equal(a->level, b->level);
	assert_int_equal(a->remote, b->remote);
	assert_int_equal(a->weight, b->weight);
	assert_true(a->amount == b->amount);
}

static void test_values_are_what_was_written(void **state)
{
	(void)state;
	int fd = memory_file();
	struct nm_recorded record;
	write_all_kinds(fd);
	struct nm_recording *recording = open_recording(fd);
	nm_recording_only(recording, 1U << NM_RECORDED_START | 1U << NM_RECORDED_THREADS |
					     1U << NM_RECORDED_DECISION |
					     1U << NM_RECORDED_SAMPLES);
	assert_next(recording, NM_RECORDED_START, &record);
	assert_true(record.start.seed == UINT64_MAX);
	assert_string_equal(record.start.config, "general = { seed = 5 }\n");
	assert_next(recording, NM_RECORDED_THREADS, &record);
	assert_int_equal(record.interval, 9);
	assert_int_equal(record.threads.count, 2);
	assert_true(record.threads.items[0].latency == 313.25);
	assert_true(record.threads.items[1].leased);
	assert_true(record.threads.items[0].intensity == 0.1);
	assert_next(recording, NM_RECORDED_DECISION, &record);
	assert_int_equal(record.decision.nr_steps, 2);
	assert_true(isnan(record.decision.gain));
	assert_int_equal(hwloc_bitmap_weight(record.decision.steps[0].target), 3);
	assert_string_equal(record.decision.steps[1].comm, "\\x0atwo");
	assert_next(recording, NM_RECORDED_DECISION, &record);
	assert_int_equal(record.decision.kind, NM_DECISION_PAGES);
	assert_int_equal(record.decision.pages.pages, 5);
	assert_next(recording, NM_RECORDED_SAMPLES, &record);
	assert_int_equal(record.samples.nr_samples, NM_ARRAY_SIZE(samples));
	for (size_t i = 0; i < NM_ARRAY_SIZE(samples); i++)
		assert_sample_equal(&record.samples.samples[i], &samples[i]);
	assert_int_equal(record.samples.events[0].parent_tid, 7);
	assert_int_equal(nm_recording_next(recording, &record), 0);
	nm_recording_free(recording);
	close(fd);
}

static void test_topology_can_be_kept(void **state)
{
	(void)state;
	int fd = memory_file();
	struct nm_recorded record;
	struct nm_topology *kept;
	struct nm_topology *topology = machine_topology(NODES, CPUS);
	write_all_kinds(fd);
	struct nm_recording *recording = open_recording(fd);
	nm_recording_only(recording, 1U << NM_RECORDED_TOPOLOGY);
	assert_next(recording, NM_RECORDED_TOPOLOGY, &record);
	assert_int_equal(nm_topology_copy(record.topology, &kept), 0);
	nm_recording_free(recording);
	assert_true(topology_equal(kept, topology));
	nm_topology_free(kept);
	nm_topology_free(topology);
	close(fd);
}

/* Enough for several blocks, which end anywhere in them. */
static void test_many_samples(void **state)
{
	(void)state;
	enum { MANY = 20000 };
	int fd = memory_file();
	struct nm_rng rng;
	struct nm_recorded record = {.kind = NM_RECORDED_SAMPLES};
	struct nm_sample *many = calloc(MANY, sizeof(*many));
	nm_rng_seed(&rng, 3);
	for (size_t i = 0; i < MANY; i++) {
		many[i] = samples[nm_rng_below(&rng, NM_ARRAY_SIZE(samples))];
		many[i].time_ns = 1000 * i;
		many[i].address += nm_rng_below(&rng, 1 << 30);
	}
	struct nm_recorder_writer *writer = create(fd, 0);
	record.samples.samples = many;
	record.samples.nr_samples = MANY;
	add(writer, &record);
	record.samples.nr_samples = 100;
	add(writer, &record);
	nm_recording_close(writer);
	struct nm_recording *recording = open_recording(fd);
	assert_next(recording, NM_RECORDED_SAMPLES, &record);
	assert_int_equal(record.samples.nr_samples, MANY);
	for (size_t i = 0; i < MANY; i++)
		assert_sample_equal(&record.samples.samples[i], &many[i]);
	assert_next(recording, NM_RECORDED_SAMPLES, &record);
	assert_int_equal(record.samples.nr_samples, 100);
	nm_recording_free(recording);
	free(many);
	close(fd);
}

static void test_dump_prints_every_entry(void **state)
{
	(void)state;
	int fd = memory_file();
	char *text = NULL;
	size_t size;
	write_all_kinds(fd);
	struct nm_recording *recording = open_recording(fd);
	FILE *out = open_memstream(&text, &size);
	assert_int_equal(nm_recording_dump(recording, out), 0);
	fclose(out);
	for (unsigned kind = 0; kind < NM_RECORDED_KINDS; kind++) {
		char line[64];
		snprintf(line, sizeof(line), "\n%s ", nm_recorded_kind_name(kind));
		if (kind != NM_RECORDED_START && !strstr(text, line))
			fail_msg("no line for \"%s\"", nm_recorded_kind_name(kind));
	}
	assert_non_null(strstr(text, "draw=0.29999999999999999"));
	assert_non_null(strstr(text, "target=2-4"));
	assert_non_null(strstr(text, "bytes=\"a\\x00b\""));
	assert_non_null(strstr(text, "latency_cycles=313"));
	assert_non_null(strstr(text, "local_share=-"));
	free(text);
	nm_recording_free(recording);
	close(fd);
}

/* ---- damage ---- */

/* Reads to the end; returns the result. */
static int read_all(int fd, unsigned *ret_records, uint64_t *ret_torn)
{
	char error[256] = "";
	struct nm_recording *recording;
	struct nm_recorded record;
	*ret_records = 0;
	*ret_torn = 0;
	int r = nm_recording_open(dup(fd), error, sizeof(error), &recording);
	if (r < 0) {
		assert_true(error[0] != '\0');
		return r;
	}
	while ((r = nm_recording_next(recording, &record)) > 0)
		++*ret_records;
	*ret_torn = nm_recording_torn(recording);
	if (r < 0)
		assert_true(nm_recording_error(recording)[0] != '\0');
	nm_recording_free(recording);
	return r;
}

static size_t contents(int fd, uint8_t *ret)
{
	ssize_t size = pread(fd, ret, BYTES_MOST, 0);
	assert_true(size > 0);
	return (size_t)size;
}

static void test_torn_tail_is_cut(void **state)
{
	(void)state;
	int fd = memory_file();
	unsigned whole, records, most = 0;
	uint64_t torn;
	write_all_kinds(fd);
	off_t size = lseek(fd, 0, SEEK_END);
	assert_int_equal(read_all(fd, &whole, &torn), 0);
	assert_int_equal(torn, 0);
	for (off_t length = 0; length < size; length++) {
		int cut = memory_file();
		static uint8_t bytes[BYTES_MOST];
		(void)contents(fd, bytes);
		assert_int_equal(write(cut, bytes, (size_t)length), length);
		int r = read_all(cut, &records, &torn);
		assert_true(length < 24 ? r == -EPROTO : r == 0);
		assert_true(records < whole && records >= most);
		most = records;
		/* Content of a dump that is outside the recording. */
		assert_int_equal(ftruncate(cut, size), 0);
		r = read_all(cut, &records, &torn);
		if (length >= 24)
			assert_true(r == -EBADMSG || torn > 0);
		close(cut);
	}
	close(fd);
}

static void test_every_flipped_byte_is_found(void **state)
{
	(void)state;
	static uint8_t bytes[BYTES_MOST];
	int fd = memory_file(), damaged = memory_file();
	unsigned whole, records;
	uint64_t torn;
	write_all_kinds(fd);
	size_t size = contents(fd, bytes);
	assert_int_equal(read_all(fd, &whole, &torn), 0);
	for (size_t i = 0; i < size; i++) {
		bytes[i] ^= (uint8_t)(1U << i % 8);
		assert_int_equal(pwrite(damaged, bytes, size, 0), size);
		int r = read_all(damaged, &records, &torn);
		assert_true(r < 0 || torn > 0);
		assert_true(records < whole);
		bytes[i] ^= (uint8_t)(1U << i % 8);
	}
	close(fd);
	close(damaged);
}

static void test_other_files_are_refused(void **state)
{
	(void)state;
	static const struct {
		const char *bytes;
		size_t size;
		int error;
	} cases[] = {
		{"", 0, -EPROTO},
		{"numamigr", 8, -EPROTO},
		{"#!/bin/sh and so on, for as long as it takes", 44, -EPROTO},
		{"numamigr\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 24, -EPROTO},
	};
	for (size_t i = 0; i < NM_ARRAY_SIZE(cases); i++) {
		int fd = memory_file();
		unsigned records;
		uint64_t torn;
		assert_int_equal(write(fd, cases[i].bytes, cases[i].size), cases[i].size);
		assert_int_equal(read_all(fd, &records, &torn), cases[i].error);
		close(fd);
	}
}

/* Kinds and fields are those of one version: a file of another one is not read. */
static void test_other_versions_are_refused(void **state)
{
	(void)state;
	static const struct {
		uint32_t version;
		const char *error;
	} cases[] = {
		{1, "a recording of version 1, by an older numa-migrd; this one reads version 2"},
		{3, "a recording of version 3, by a newer numa-migrd; this one reads version 2"},
	};
	for (size_t i = 0; i < NM_ARRAY_SIZE(cases); i++) {
		uint8_t head[NM_FILE_HEAD];
		char error[256] = "";
		struct nm_recording *recording;
		int fd = memory_file();
		write_all_kinds(fd);
		nm_file_head_write(cases[i].version, head);
		assert_int_equal(pwrite(fd, head, sizeof(head), 0), sizeof(head));
		assert_int_equal(nm_recording_open(fd, error, sizeof(error), &recording),
				 -EPROTONOSUPPORT);
		assert_string_equal(error, cases[i].error);
	}
}

/* Reads and prints all of a block with valid checksums; it ends, or is damaged. */
static void read_block(const uint8_t *contents, size_t size, FILE *out)
{
	uint8_t head[NM_FILE_HEAD];
	struct nm_bytes block = {0};
	struct nm_recorded record;
	int r, fd = memory_file();
	nm_file_head_write(NM_RECORDING_VERSION, head);
	assert_int_equal(nm_block_write(contents, size, &block), 0);
	assert_int_equal(write(fd, head, sizeof(head)), sizeof(head));
	assert_int_equal(write(fd, block.data, block.used), block.used);
	struct nm_recording *recording = open_recording(fd);
	while ((r = nm_recording_next(recording, &record)) > 0)
		nm_recorded_print(&record, out);
	assert_true(r == 0 || r == -EBADMSG);
	nm_recording_free(recording);
	nm_bytes_clear(&block);
	close(fd);
}

/* Valid checksums around any content: invalid content must be rejected. */
/* SECURITY: recordings */
static void test_crafted_records_end_in_an_error(void **state)
{
	(void)state;
	FILE *out = fopen("/dev/null", "w");
	struct nm_rng rng;
	nm_rng_seed(&rng, 11);
	for (unsigned round = 0; round < 20000; round++) {
		uint8_t payload[256];
		size_t size = 1 + nm_rng_below(&rng, sizeof(payload) - 1);
		for (size_t i = 0; i < size; i++)
			payload[i] = (uint8_t)nm_rng_below(&rng, nm_rng_below(&rng, 2) ? 256 : 4);
		read_block(payload, size, out);
	}
	fclose(out);
}

/* Reads with a few bytes changed and possibly some missing. */
static void read_altered(struct nm_rng *rng, const struct nm_bytes *block, FILE *out)
{
	nm_autofree uint8_t *altered = malloc(block->used + 1);
	assert_non_null(altered);
	memcpy(altered, block->data, block->used);
	for (size_t i = 1 + nm_rng_below(rng, 4); i > 0; i--)
		altered[nm_rng_below(rng, block->used)] =
			(uint8_t)nm_rng_below(rng, nm_rng_below(rng, 2) ? 256 : 4);
	size_t cut = nm_rng_below(rng, 4) ? 0 : nm_rng_below(rng, block->used);
	read_block(altered, block->used - cut, out);
}

/* Whole records with some bytes changed, with valid checksums. */
/* SECURITY: recordings */
static void test_altered_records_do_no_harm(void **state)
{
	(void)state;
	static uint8_t bytes[BYTES_MOST];
	struct nm_block_head head;
	struct nm_bytes block = {0};
	struct nm_rng rng;
	int fd = memory_file();
	FILE *out = fopen("/dev/null", "w");
	nm_rng_seed(&rng, 5);
	write_all_kinds(fd);
	size_t size = contents(fd, bytes), at = NM_FILE_HEAD, blocks = 0;
	for (; at < size; at += NM_BLOCK_HEAD + head.stored, blocks++) {
		assert_int_equal(nm_block_head_read(bytes + at, &head), 0);
		assert_int_equal(nm_block_unpack(&head, bytes + at + NM_BLOCK_HEAD, &block), 0);
		for (unsigned round = 0; round < 3000; round++)
			read_altered(&rng, &block, out);
	}
	assert_true(blocks >= 3);
	nm_bytes_clear(&block);
	fclose(out);
	close(fd);
}

/* ---- writing ---- */

static void test_limit_holds(void **state)
{
	(void)state;
	enum { LIMIT = 20000 };
	int fd = memory_file(), r = 0;
	struct nm_rng rng;
	unsigned added = 0;
	uint8_t noise[1000];
	struct nm_recorded record = {.kind = NM_RECORDED_ANSWER,
				     .answer = {.operation = "read_file",
						.path = "x",
						.bytes = noise,
						.length = sizeof(noise)}};
	struct nm_recorder_writer *writer = create(fd, LIMIT);
	nm_rng_seed(&rng, 1);
	while (r == 0 && added < 1000) {
		for (size_t i = 0; i < sizeof(noise); i++)
			noise[i] = (uint8_t)nm_rng_below(&rng, 256);
		r = nm_recording_add(writer, &record);
		if (r == 0)
			r = nm_recording_flush(writer);
		added += r == 0;
	}
	assert_int_equal(r, -EFBIG);
	assert_int_equal(nm_recording_add(writer, &record), -EFBIG);
	nm_recording_close(writer);
	assert_in_range(lseek(fd, 0, SEEK_END), LIMIT / 2, LIMIT);
	struct nm_recording *recording = open_recording(fd);
	for (unsigned i = 0; i < added; i++)
		assert_next(recording, NM_RECORDED_ANSWER, &record);
	assert_next(recording, NM_RECORDED_END, &record);
	assert_string_equal(record.end, "its size limit was reached");
	nm_recording_free(recording);
	close(fd);
}

static void test_only_empty_writable_files(void **state)
{
	(void)state;
	struct nm_recorder_writer *writer;
	int ends[2];
	assert_int_equal(pipe(ends), 0);
	close(ends[0]);
	assert_int_equal(nm_recording_create(ends[1], 0, &writer), -EBADF);
	assert_int_equal(nm_recording_create(open("/dev/null", O_WRONLY), 0, &writer), -EBADF);
	assert_int_equal(nm_recording_create(open("/proc/self/exe", O_RDONLY), 0, &writer), -EBADF);
	int fd = memory_file();
	assert_int_equal(write(fd, "x", 1), 1);
	assert_int_equal(nm_recording_create(fd, 0, &writer), -EEXIST);
	assert_int_equal(nm_recording_create(-1, 0, &writer), -EBADF);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_kind_comes_back),
		cmocka_unit_test(test_values_are_what_was_written),
		cmocka_unit_test(test_topology_can_be_kept),
		cmocka_unit_test(test_many_samples),
		cmocka_unit_test(test_dump_prints_every_entry),
		cmocka_unit_test(test_torn_tail_is_cut),
		cmocka_unit_test(test_every_flipped_byte_is_found),
		cmocka_unit_test(test_other_files_are_refused),
		cmocka_unit_test(test_other_versions_are_refused),
		cmocka_unit_test(test_crafted_records_end_in_an_error),
		cmocka_unit_test(test_altered_records_do_no_harm),
		cmocka_unit_test(test_limit_holds),
		cmocka_unit_test(test_only_empty_writable_files),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
