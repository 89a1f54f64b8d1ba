/* SPDX-License-Identifier: MIT */
/*
 * The pages of a process of fake_platform.h, and a move_pages(2) that behaves like that of the
 * kernel: pages for one node move together, and if one of them cannot be migrated,
 * their status is not reported and later pages are not tried. Time advances when a test advances
 * it, or in calls with a duration. A call is answered at once or, if it is deferred, when the mover
 * polls it.
 */
#ifndef NM_TEST_MOVER_FIXTURE_H
#define NM_TEST_MOVER_FIXTURE_H

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "../support/machine.h"
#include "fake_platform.h"
#include "mover/mover.h"
#include "numa-migrd/proc.h"
#include "platform/page_jobs.h"
#include "platform/worker.h"

#define FAKE_PID 42U
#define FAKE_TICKS 777U
#define FAKE_BASE UINT64_C(0x40000000)
#define FAKE_SMALL 4096U
#define FAKE_HUGE 2097152U
#define FAKE_PER_HUGE 512U
#define FAKE_PAGES 8192U
#define FAKE_NODES 4U
#define FAKE_TEXT 65536U
#define FAKE_PIECE 256U /* size of one read of maps and numa_maps */

/* A job of the mover, and the destination of its results. */
struct fake_call {
	enum fake_op kind;
	pid_t tid;
	uint64_t start_ticks;
	const void *order;
	void *ret;
	uint64_t *ret_held_ns;
};

/* One process after another has these pages. */
struct memory {
	struct fake *fake;
	struct nm_platform_ops ops;
	struct fake_call call;
	bool deferred; /* calls are answered by pages_poll */
	bool begun;    /* a call is in progress */
	unsigned cancelled;
	/* Processes whose jobs take NM_WORKER_DEADLINE_NS, and fail; only the first one of their
	 * domain, as the client refuses the others. */
	uint32_t held_from, held_to;
	unsigned held_jobs;
	int node[FAKE_PAGES];	   /* or a negative errno */
	int add_error[FAKE_PAGES]; /* when it is queued */
	unsigned busy[FAKE_PAGES]; /* number of times it cannot be migrated */
	bool whole[FAKE_PAGES / FAKE_PER_HUGE];
	uint64_t barred_nodes; /* by the cpuset, as bits */
	char maps[FAKE_TEXT], numa_maps[FAKE_TEXT];
	struct nm_maps reading;
	size_t offset, taken; /* of its text and mappings, by the jobs before */
	uint64_t read_ns;     /* duration of such a read */
	uint64_t way_ns;      /* duration of the transport both ways */
	unsigned reads;
	uint64_t free_kib[FAKE_NODES], total_kib[FAKE_NODES], idle_kib[FAKE_NODES];
	unsigned huge_blocks[FAKE_NODES], pool_pages[FAKE_NODES];
	uint64_t splits;
	uint64_t min_free_kib;
	unsigned swaps_from; /* from this call on each call swaps out pages; 0: never */
	uint64_t call_ns;    /* duration of a move, and of each page in it */
	uint64_t page_ns;
	int call_error, where_error, maps_error;
	unsigned finds, found_most; /* searches; pages that one queries */
	unsigned searched;	    /* by the last one */
	unsigned calls, largest;
	bool hold_calls,
		hold_reads; /* moves and reads of mappings are not answered while this is set */
};

static inline struct memory *memory_of(struct nm_platform *platform)
{
	return fake_of(platform)->memory;
}

static inline int fake_write_machine(struct memory *memory, const char *path, char *text,
				     size_t size)
{
	unsigned node;
	int length = 0;

	if (sscanf(path, "sys/devices/system/node/node%u/meminf%n", &node, &length) == 1 && length)
		return snprintf(text, size,
				"Node %u MemTotal: %8" PRIu64 " kB\nNode %u MemFree: %" PRIu64
				" kB\nNode %u Inactive(file): %" PRIu64 " kB\n",
				node, memory->total_kib[node], node, memory->free_kib[node], node,
				memory->idle_kib[node]);
	if (sscanf(path,
		   "sys/devices/system/node/node%u/hugepages/hugepages-2048kB/free_hugepage%n",
		   &node, &length) == 1 &&
	    length)
		return snprintf(text, size, "%u\n", memory->pool_pages[node]);
	if (strcmp(path, "proc/vmstat") == 0)
		return snprintf(text, size,
				"nr_free 1\nthp_migration_split %" PRIu64
				"\npgscan_kswapd %u\npswpout %u\n",
				memory->splits, memory->calls,
				memory->swaps_from && memory->calls >= memory->swaps_from
					? memory->calls
					: 0);
	if (strcmp(path, "proc/sys/vm/min_free_kbytes") == 0)
		return snprintf(text, size, "%" PRIu64 "\n", memory->min_free_kib);
	if (strcmp(path, "proc/buddyinfo") != 0)
		return -ENOENT;
	for (node = 0; node < FAKE_NODES; node++)
		length += snprintf(text + length, size - (size_t)length,
				   "Node %u, zone   Normal %6u 2 3 4 5 6 7 8 9 %u 0 \n", node, 1,
				   memory->huge_blocks[node]);
	return length;
}

static inline ssize_t memory_read_file(struct nm_platform *platform, int directory,
				       const char *path, char *buffer, size_t size)
{
	int r = directory == NM_ROOT ? fake_write_machine(memory_of(platform), path, buffer, size)
				     : -ENOENT;
	return r != -ENOENT ? r : fake_read_file(platform, directory, path, buffer, size);
}

static inline size_t fake_index(uint64_t address)
{
	return address >= FAKE_BASE ? (address - FAKE_BASE) / FAKE_SMALL : FAKE_PAGES;
}

/* Returns 0 if the pages of the number can be queried and moved, or an error. */
static inline int fake_owner_error(const struct memory *memory)
{
	const struct fake_thread *thread = fake_find(memory->fake, (uint32_t)memory->call.tid);

	if (thread && thread->state == 'Z')
		return -EINVAL;
	return thread && thread->start_ticks == memory->call.start_ticks ? 0 : -ESRCH;
}

static inline int fake_where(void *context, unsigned count, const uint64_t *addresses, int *ret)
{
	struct memory *memory = context;
	int r = fake_owner_error(memory);

	memory->searched += count;

	if (r == 0)
		r = memory->where_error;
	for (unsigned i = 0; i < count && r == 0; i++) {
		size_t page = fake_index(addresses[i]);
		ret[i] = page < FAKE_PAGES ? memory->node[page] : -EFAULT;
	}
	return r;
}

/* All of a transparent huge page moves with any part of it. */
static inline void fake_migrate(struct memory *memory, size_t page, int node)
{
	size_t first = memory->whole[page / FAKE_PER_HUGE] ? page - page % FAKE_PER_HUGE : page;
	size_t count = first == page && !memory->whole[page / FAKE_PER_HUGE] ? 1 : FAKE_PER_HUGE;

	for (size_t i = first; i < first + count; i++)
		if (memory->node[i] >= 0)
			memory->node[i] = node;
}

/* Migrates the queued pages; returns the number that failed. */
static inline unsigned fake_flush(struct memory *memory, const size_t *queued, unsigned count,
				  int node)
{
	unsigned failed = 0;

	for (unsigned i = 0; i < count; i++) {
		if (memory->busy[queued[i]]) {
			memory->busy[queued[i]]--;
			failed++;
		} else {
			fake_migrate(memory, queued[i], node);
		}
	}
	return failed;
}

static inline int fake_move_pages(struct memory *memory, unsigned count, const uint64_t *addresses,
				  const int *nodes, int *statuses)
{
	size_t queued[4096];
	unsigned start = 0, length = 0, failed;

	for (unsigned i = 0; i <= count; i++) {
		size_t page = i < count ? fake_index(addresses[i]) : 0;
		bool barred = i < count && memory->barred_nodes >> nodes[i] & 1;
		bool joins = i < count && length > 0 && nodes[i] == nodes[start];
		int error = i == count		     ? 0
			    : page >= FAKE_PAGES     ? -EFAULT
			    : memory->node[page] < 0 ? memory->node[page]
						     : memory->add_error[page];
		if (length > 0 && (!joins || error)) {
			failed = fake_flush(memory, queued, length, nodes[start]);
			if (failed)
				return (int)(failed + count - i);
			for (unsigned j = start; j < i; j++)
				statuses[j] = nodes[start];
			length = 0;
		}
		if (i == count)
			break;
		if (barred)
			return -EACCES;
		if (error) {
			statuses[i] = error;
			continue;
		}
		if (length == 0)
			start = i;
		queued[length++] = page;
	}
	return 0;
}

static inline int fake_round_move(void *context, unsigned count, const uint64_t *addresses,
				  const int *nodes, int *statuses, uint64_t *ret_held_ns)
{
	struct memory *memory = context;

	memory->calls++;
	if (count > memory->largest)
		memory->largest = count;
	*ret_held_ns = memory->call_ns + memory->page_ns * count;
	memory->fake->now_ns += *ret_held_ns;
	int r = fake_owner_error(memory);
	if (r == 0)
		r = memory->call_error;
	return r == 0 ? fake_move_pages(memory, count, addresses, nodes, statuses) : r;
}

static inline bool fake_has_time(void *context)
{
	const struct memory *memory = context;

	return memory->call.kind != FAKE_RANGES || memory->searched < memory->found_most;
}

/* Adds the next piece of a file, and ends the file after the last one. */
static inline int fake_read_piece(struct memory *memory)
{
	const char *text = memory->reading.described ? memory->numa_maps : memory->maps;
	size_t length = strnlen(text + memory->offset, FAKE_PIECE);
	int r = nm_maps_add(&memory->reading, text + memory->offset, length);

	memory->offset += length;
	memory->reads++;
	memory->fake->now_ns += memory->read_ns;
	if (length > 0)
		return r;
	nm_maps_end_file(&memory->reading);
	memory->offset = 0;
	return 0;
}

static inline int fake_perform_mappings(struct memory *memory,
					const struct nm_mappings_order *order,
					struct nm_mappings_piece *ret, uint64_t *ret_held_ns)
{
	const struct nm_maps_rules rules = {.move_bound = order->move_bound,
					    .move_shared = order->move_shared};
	uint64_t began_ns = memory->fake->now_ns;
	int r = memory->maps_error ? memory->maps_error : fake_owner_error(memory);

	if (order->begin) {
		nm_maps_clear(&memory->reading);
		memory->offset = memory->taken = 0;
	}
	if (r < 0)
		return r;
	do
		r = fake_read_piece(memory);
	while (r == 0 && !memory->reading.complete &&
	       memory->fake->now_ns - began_ns < order->budget_ns);
	*ret_held_ns = memory->fake->now_ns - began_ns;
	memory->fake->now_ns += memory->way_ns;
	(void)nm_mappings_take(&memory->reading, &rules, &memory->taken, ret);
	return r;
}

static inline int fake_perform(struct memory *memory)
{
	const struct nm_page_calls calls = {fake_where, fake_round_move, fake_has_time, memory};
	const struct fake_call *call = &memory->call;

	memory->searched = 0;
	if ((uint32_t)call->tid >= memory->held_from && (uint32_t)call->tid < memory->held_to) {
		if (memory->held_jobs++ > 0)
			return -EALREADY;
		memory->fake->now_ns += NM_WORKER_DEADLINE_NS;
		return -ETIMEDOUT;
	}
	if (call->kind == FAKE_MAPPINGS)
		return fake_perform_mappings(memory, call->order, call->ret, call->ret_held_ns);
	if (call->kind == FAKE_UNITS) {
		assert_true(nm_units_order_is_valid(call->order));
		return nm_units_move(call->order, &calls, call->ret);
	}
	assert_true(nm_ranges_order_is_valid(call->order));
	memory->finds++;
	return nm_ranges_move(call->order, &calls, call->ret);
}

/* ---- jobs of the mover ---- */

static inline int fake_begin(struct nm_platform *platform, struct fake_call call)
{
	struct memory *memory = memory_of(platform);
	int r = fake_enter(memory->fake, call.kind);

	if (r < 0)
		return r;
	assert_false(memory->begun);
	memory->call = call;
	memory->begun = memory->deferred;
	return memory->deferred ? NM_CALL_BEGUN : fake_perform(memory);
}

static inline bool fake_holds(const struct memory *memory)
{
	return memory->call.kind == FAKE_MAPPINGS ? memory->hold_reads : memory->hold_calls;
}

static inline bool fake_pages_poll(struct nm_platform *platform, int *ret)
{
	struct memory *memory = memory_of(platform);

	assert_true(memory->begun);
	if (fake_holds(memory))
		return false;
	memory->begun = false;
	*ret = fake_perform(memory);
	return true;
}

static inline void fake_pages_cancel(struct nm_platform *platform)
{
	struct memory *memory = memory_of(platform);

	assert_true(memory->begun);
	memory->begun = false;
	memory->cancelled++;
}

static inline int fake_mappings_read(struct nm_platform *platform, pid_t tid, uint64_t start_ticks,
				     const struct nm_mappings_order *order,
				     struct nm_mappings_piece *ret, uint64_t *ret_held_ns)
{
	return fake_begin(platform, (struct fake_call){FAKE_MAPPINGS, tid, start_ticks, order, ret,
						       ret_held_ns});
}

static inline int fake_units_move(struct nm_platform *platform, pid_t tid, uint64_t start_ticks,
				  const struct nm_units_order *order, struct nm_units_moved *ret)
{
	return fake_begin(platform,
			  (struct fake_call){FAKE_UNITS, tid, start_ticks, order, ret, NULL});
}

static inline int fake_ranges_move(struct nm_platform *platform, pid_t tid, uint64_t start_ticks,
				   const struct nm_ranges_order *order, struct nm_ranges_moved *ret)
{
	return fake_begin(platform,
			  (struct fake_call){FAKE_RANGES, tid, start_ticks, order, ret, NULL});
}

/* ---- actions of a test ---- */

/* A process whose pages are small, on node 0, in one mapping with default policy. */
static inline struct memory *memory_new(struct fake *fake)
{
	struct memory *memory = calloc(1, sizeof(*memory));

	if (!memory)
		abort();
	memory->fake = fake;
	memory->ops = *fake->platform.ops;
	memory->ops.read_file = memory_read_file;
	memory->ops.mappings_read = fake_mappings_read;
	memory->ops.units_move = fake_units_move;
	memory->ops.ranges_move = fake_ranges_move;
	memory->ops.pages_poll = fake_pages_poll;
	memory->ops.pages_cancel = fake_pages_cancel;
	fake->platform.ops = &memory->ops;
	fake->memory = memory;
	memory->found_most = UINT32_MAX;
	for (unsigned i = 0; i < FAKE_NODES; i++) {
		memory->total_kib[i] = 1 << 20;
		memory->free_kib[i] = 1 << 19;
		memory->huge_blocks[i] = 100;
	}
	snprintf(memory->maps, FAKE_TEXT, "%" PRIx64 "-%" PRIx64 " rw-p 00000000 00:00 0 \n",
		 FAKE_BASE, FAKE_BASE + FAKE_PAGES * FAKE_SMALL);
	snprintf(memory->numa_maps, FAKE_TEXT,
		 "%" PRIx64 " default anon=9 N0=9 kernelpagesize_kB=4\n", FAKE_BASE);
	return memory;
}

static inline struct nm_page_batch *fake_batch(size_t count)
{
	struct nm_page_batch *batch = calloc(1, sizeof(*batch));

	if (!batch || !(batch->steps = calloc(count + 1, sizeof(*batch->steps))))
		abort();
	batch->pid = FAKE_PID;
	batch->start_ticks = FAKE_TICKS;
	batch->count = count;
	for (size_t i = 0; i < count; i++)
		batch->steps[i] = (struct nm_page_step){.address = FAKE_BASE + i * FAKE_SMALL,
							.bytes = FAKE_SMALL,
							.from = 0,
							.to = 1};
	return batch;
}

/* Runs the mover until it waits for time to pass or for a held call. */
static inline void fake_work(struct memory *memory, struct nm_mover *mover)
{
	do
		nm_mover_work(mover);
	while (memory->begun && !fake_holds(memory));
}

/* Returns a finished batch of either kind, or NULL. */
static inline struct nm_page_batch *fake_done(struct nm_mover *mover)
{
	struct nm_page_batch *batch = nm_mover_collect(mover, false);

	return batch ? batch : nm_mover_collect(mover, true);
}

/* As fake_done(), after fake_work(). */
static inline struct nm_page_batch *fake_collect(struct memory *memory, struct nm_mover *mover)
{
	fake_work(memory, mover);
	return fake_done(mover);
}

static inline void fake_pass_ms(struct memory *memory, struct nm_mover *mover, uint64_t ms)
{
	fake_sleep(memory->fake, (unsigned)ms);
	fake_work(memory, mover);
}

/* Runs the mover until its next move, which is held. */
static inline void fake_hold(struct memory *memory, struct nm_mover *mover)
{
	memory->hold_calls = true;
	fake_work(memory, mover);
	assert_true(memory->begun && fake_holds(memory));
}

static inline void fake_release(struct memory *memory)
{
	memory->hold_calls = memory->hold_reads = false;
}

/* ---- a mover on the fake ---- */

struct test {
	struct fake *fake;
	struct fake_thread *process;
	struct memory *memory;
	struct nm_topology *topology;
	struct nm_config *config;
	struct nm_mover *mover;
};

static inline int set_up(void **state)
{
	struct test *test = calloc(1, sizeof(*test));

	test->fake = fake_new(8);
	test->memory = memory_new(test->fake);
	test->process = fake_process(test->fake, FAKE_PID, 1);
	test->process->rss_kb = 0;
	test->process->start_ticks = FAKE_TICKS;
	test->topology = machine_topology(FAKE_NODES, 8);
	if (!test->topology || nm_config_default(&test->config) < 0)
		return -1;
	test->config->rules.maps_budget_ms = 5; /* the times in tests depend on it */
	*state = test;
	return 0;
}

static inline int tear_down(void **state)
{
	struct test *test = *state;

	nm_mover_free(test->mover);
	unsigned left_open = fake_open_fds(test->fake);
	nm_maps_clear(&test->memory->reading);
	nm_platform_free(&test->fake->platform);
	free(test->memory);
	nm_topology_free(test->topology);
	nm_config_free(test->config);
	free(test);
	return left_open ? -1 : 0;
}

/* Another process with this number has the pages. */
static inline void renumber(struct test *test, uint32_t pid, uint64_t start_ticks)
{
	test->process->pid = test->process->tid = pid;
	test->process->start_ticks = start_ticks;
}

/* Moves N pages to node 1 and checks the total. */
static inline void assert_moved(struct test *test, unsigned wanted)
{
	unsigned count = 0;

	fake_work(test->memory, test->mover);
	for (size_t page = 0; page < FAKE_PAGES; page++)
		count += test->memory->node[page] == 1;
	assert_int_equal(count, wanted);
}

static inline void start(struct test *test)
{
	test->memory->deferred = true;
	if (!test->mover)
		nm_mover_new(&test->fake->platform, test->topology, test->config, &test->mover);
}

static inline struct nm_page_batch *run(struct test *test, struct nm_page_batch *batch)
{
	start(test);
	assert_int_equal(nm_mover_submit(test->mover, batch), 0);
	struct nm_page_batch *done = fake_collect(test->memory, test->mover);
	assert_ptr_equal(done, batch);
	return done;
}

/* Makes the step a huge page, one of the blocks of 2 MiB of the process. */
static inline void make_huge(struct nm_page_step *step, size_t block)
{
	step->address = FAKE_BASE + block * FAKE_HUGE;
	step->bytes = FAKE_HUGE;
}

#define RUN(test, batch)                                                                           \
	nm_auto(nm_page_batch_freep) struct nm_page_batch *batch = run(test, batch##_new)
#define BATCH(count) struct nm_page_batch *batch_new = fake_batch(count)

static inline void assert_all(const struct nm_page_batch *batch, enum nm_page_fate fate)
{
	for (size_t i = 0; i < batch->count; i++)
		assert_int_equal(batch->steps[i].fate, fate);
}

/* Begins a large batch whose first call is not answered yet. */
static inline struct nm_page_batch *begin_held(struct test *test)
{
	struct nm_page_batch *batch = fake_batch(400);

	start(test);
	assert_int_equal(nm_mover_submit(test->mover, batch), 0);
	fake_hold(test->memory, test->mover);
	return batch;
}

#endif
