/* SPDX-License-Identifier: MIT */
/*
 * A process whose pages are in an array behind the ops table, and a move_pages(2) that behaves like
 * that of the kernel: pages for one node move together, and if one of them cannot be migrated,
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
#include "mover/mover.h"
#include "platform/page_jobs.h"
#include "numa-migrd/proc.h"
#include "platform/worker.h"

#define FAKE_PID 42U
#define FAKE_TICKS 777U
#define FAKE_BASE UINT64_C(0x40000000)
#define FAKE_SMALL 4096U
#define FAKE_HUGE 2097152U
#define FAKE_PER_HUGE 512U
#define FAKE_PAGES 8192U
#define FAKE_DIRECTORY 1000
#define FAKE_THREAD 1001
#define FAKE_HELD 2000 /* the directories of processes that hold their lock, by number */
#define FAKE_NODES 4U
#define FAKE_FIRST_EXITED 100000U
#define FAKE_LATER_TICKS 5U /* start time of the other thread after that of the first */
#define FAKE_TEXT 65536U
#define FAKE_PIECE 256U /* size of one read of maps and numa_maps */

/* A job of the mover, and the destination of its results. */
struct fake_call {
	enum { FAKE_MAPPINGS, FAKE_UNITS, FAKE_RANGES } kind;
	pid_t tid;
	uint64_t start_ticks;
	const void *order;
	void *ret;
	uint64_t *ret_held_ns;
};

struct fake {
	struct nm_platform platform;
	struct fake_call call;
	bool deferred; /* calls are answered by pages_poll */
	bool begun;    /* a call is in progress */
	unsigned cancelled;
	uint64_t now_ns;
	uint32_t pid;	 /* 0: exited */
	uint32_t thread; /* that continues after the first has exited; 0: the first is running */
	size_t exited_threads; /* listed before it */
	unsigned directories;  /* attempts to open one */
	uint64_t start_ticks;
	/* Processes whose jobs take NM_WORKER_DEADLINE_NS, and fail; only the first one of their
	 * domain, as the client refuses the others. */
	uint32_t held_from, held_to;
	unsigned held_jobs;
	int node[FAKE_PAGES];	   /* or a negative errno */
	int add_error[FAKE_PAGES]; /* when it is queued */
	unsigned busy[FAKE_PAGES]; /* number of times it cannot be migrated */
	bool whole[FAKE_PAGES / FAKE_PER_HUGE];
	uint64_t barred_nodes; /* by the cpuset, as bits */
	uint64_t rss_kib;
	bool many_groups; /* so that its status is too long */
	unsigned long_statuses;
	char maps[FAKE_TEXT], numa_maps[FAKE_TEXT];
	struct nm_maps reading;
	size_t offset, taken; /* of its text and mappings, by the jobs before */
	uint64_t read_ns;     /* duration of such a read */
	uint64_t way_ns;      /* duration of the transport both ways */
	unsigned reads, open_files;
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

static inline struct fake *fake_of(struct nm_platform *platform)
{
	return NM_CONTAINER_OF(platform, struct fake, platform);
}

static inline uint64_t fake_now_ns(struct nm_platform *platform)
{
	return fake_of(platform)->now_ns;
}

static inline int fake_open_directory(struct nm_platform *platform, int directory, const char *path)
{
	struct fake *fake = fake_of(platform);
	char process[32], thread[32];

	snprintf(process, sizeof(process), directory == NM_ROOT ? "proc/%u" : "task/%u", fake->pid);
	snprintf(thread, sizeof(thread), "task/%u", fake->thread);
	int r = strcmp(path, process) == 0 ? FAKE_DIRECTORY : -ENOENT;
	uint32_t pid = 0;
	if (directory == NM_ROOT && sscanf(path, "proc/%" SCNu32, &pid) == 1 &&
	    pid >= fake->held_from && pid < fake->held_to)
		r = FAKE_HELD + (int)(pid - fake->held_from);
	bool lives = fake->thread && fake->thread != fake->pid;
	if (directory == FAKE_DIRECTORY && lives && strcmp(path, thread) == 0)
		r = FAKE_THREAD;
	fake->open_files += r >= 0;
	fake->directories++;
	return r;
}

static inline int fake_list_directory(struct nm_platform *platform, int directory, const char *path,
				      nm_name_fn each, void *context)
{
	struct fake *fake = fake_of(platform);
	const uint32_t tids[] = {fake->pid, fake->thread};
	int r = directory == FAKE_DIRECTORY && strcmp(path, "task") == 0 ? 0 : -ENOENT;

	for (size_t i = 0; i < fake->exited_threads + NM_ARRAY_SIZE(tids) && r == 0; i++) {
		char name[32];
		snprintf(name, sizeof(name), "%u",
			 i < fake->exited_threads ? FAKE_FIRST_EXITED + (unsigned)i
						  : tids[i - fake->exited_threads]);
		r = each(context, name);
	}
	return r;
}

static inline void fake_close(struct nm_platform *platform, int fd)
{
	struct fake *fake = fake_of(platform);

	(void)fd;
	fake->open_files--;
}

static inline int fake_write_machine(struct fake *fake, const char *path, char *text, size_t size)
{
	unsigned node;
	int length = 0;

	if (sscanf(path, "sys/devices/system/node/node%u/meminf%n", &node, &length) == 1 && length)
		return snprintf(text, size,
				"Node %u MemTotal: %8" PRIu64 " kB\nNode %u MemFree: %" PRIu64
				" kB\nNode %u Inactive(file): %" PRIu64 " kB\n",
				node, fake->total_kib[node], node, fake->free_kib[node], node,
				fake->idle_kib[node]);
	if (sscanf(path,
		   "sys/devices/system/node/node%u/hugepages/hugepages-2048kB/free_hugepage%n",
		   &node, &length) == 1 &&
	    length)
		return snprintf(text, size, "%u\n", fake->pool_pages[node]);
	if (strcmp(path, "proc/vmstat") == 0)
		return snprintf(text, size,
				"nr_free 1\nthp_migration_split %" PRIu64
				"\npgscan_kswapd %u\npswpout %u\n",
				fake->splits, fake->calls,
				fake->swaps_from && fake->calls >= fake->swaps_from ? fake->calls
										    : 0);
	if (strcmp(path, "proc/sys/vm/min_free_kbytes") == 0)
		return snprintf(text, size, "%" PRIu64 "\n", fake->min_free_kib);
	if (strcmp(path, "proc/buddyinfo") != 0)
		return -ENOENT;
	for (node = 0; node < FAKE_NODES; node++)
		length += snprintf(text + length, size - (size_t)length,
				   "Node %u, zone   Normal %6u 2 3 4 5 6 7 8 9 %u 0 \n", node, 1,
				   fake->huge_blocks[node]);
	return length;
}

static inline uint64_t fake_start(const struct fake *fake, bool thread)
{
	return fake->start_ticks + (thread ? FAKE_LATER_TICKS : 0);
}

static inline int fake_write_process(struct fake *fake, int directory, const char *path, char *text,
				     size_t size)
{
	char state = fake->thread && directory == FAKE_DIRECTORY ? 'Z' : 'S';
	uint32_t pid = directory >= FAKE_HELD ? fake->held_from + (uint32_t)directory - FAKE_HELD
					      : fake->pid;

	if (fake->pid == 0)
		return -ESRCH;
	if (strcmp(path, "stat") == 0)
		return snprintf(text, size,
				"%u (a) b) %c 1 1 1 0 -1 0 11 0 12 0 13 14 0 0 20 0 1 0 %" PRIu64
				" 4096 25 18446744073709551615 1 1 7 0 0 0 0 0 0 0 0 0 17 0 0 0\n",
				pid, state, fake_start(fake, directory == FAKE_THREAD));
	if (strcmp(path, "statm") == 0)
		return snprintf(text, size, "99999 %" PRIu64 " 0 1 0 9 0\n", fake->rss_kib / 4);
	return -ENOENT;
}

static inline ssize_t fake_read_file(struct nm_platform *platform, int directory, const char *path,
				     char *buffer, size_t size)
{
	struct fake *fake = fake_of(platform);

	int r = directory == NM_ROOT ? fake_write_machine(fake, path, buffer, size)
				     : fake_write_process(fake, directory, path, buffer, size);
	return r;
}

static inline int fake_owner(struct nm_platform *platform, int directory, struct nm_owner *ret)
{
	(void)platform, (void)directory;
	*ret = (struct nm_owner){.uid = 7};
	return 0;
}

static inline size_t fake_index(uint64_t address)
{
	return address >= FAKE_BASE ? (address - FAKE_BASE) / FAKE_SMALL : FAKE_PAGES;
}

/* Returns 0 if the pages of the number can be queried and moved, or an error. */
static inline int fake_owner_error(const struct fake *fake, pid_t tid, uint64_t start_ticks)
{
	if (fake->thread && (uint32_t)tid == fake->pid)
		return -EINVAL;
	if (start_ticks != fake_start(fake, fake->thread))
		return -ESRCH;
	return (uint32_t)tid == (fake->thread ? fake->thread : fake->pid) ? 0 : -ESRCH;
}

static inline int fake_where(void *context, unsigned count, const uint64_t *addresses, int *ret)
{
	struct fake *fake = context;
	int r = fake_owner_error(fake, fake->call.tid, fake->call.start_ticks);

	fake->searched += count;

	if (r == 0)
		r = fake->where_error;
	for (unsigned i = 0; i < count && r == 0; i++) {
		size_t page = fake_index(addresses[i]);
		ret[i] = page < FAKE_PAGES ? fake->node[page] : -EFAULT;
	}
	return r;
}

/* All of a transparent huge page moves with any part of it. */
static inline void fake_migrate(struct fake *fake, size_t page, int node)
{
	size_t first = fake->whole[page / FAKE_PER_HUGE] ? page - page % FAKE_PER_HUGE : page;
	size_t count = first == page && !fake->whole[page / FAKE_PER_HUGE] ? 1 : FAKE_PER_HUGE;

	for (size_t i = first; i < first + count; i++)
		if (fake->node[i] >= 0)
			fake->node[i] = node;
}

/* Migrates the queued pages; returns the number that failed. */
static inline unsigned fake_flush(struct fake *fake, const size_t *queued, unsigned count, int node)
{
	unsigned failed = 0;

	for (unsigned i = 0; i < count; i++) {
		if (fake->busy[queued[i]]) {
			fake->busy[queued[i]]--;
			failed++;
		} else {
			fake_migrate(fake, queued[i], node);
		}
	}
	return failed;
}

static inline int fake_move(struct fake *fake, unsigned count, const uint64_t *addresses,
			    const int *nodes, int *statuses)
{
	size_t queued[4096];
	unsigned start = 0, length = 0, failed;

	for (unsigned i = 0; i <= count; i++) {
		size_t page = i < count ? fake_index(addresses[i]) : 0;
		bool barred = i < count && fake->barred_nodes >> nodes[i] & 1;
		bool joins = i < count && length > 0 && nodes[i] == nodes[start];
		int error = i == count		   ? 0
			    : page >= FAKE_PAGES   ? -EFAULT
			    : fake->node[page] < 0 ? fake->node[page]
						   : fake->add_error[page];
		if (length > 0 && (!joins || error)) {
			failed = fake_flush(fake, queued, length, nodes[start]);
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
	struct fake *fake = context;

	fake->calls++;
	if (count > fake->largest)
		fake->largest = count;
	*ret_held_ns = fake->call_ns + fake->page_ns * count;
	fake->now_ns += *ret_held_ns;
	int r = fake_owner_error(fake, fake->call.tid, fake->call.start_ticks);
	if (r == 0)
		r = fake->call_error;
	return r == 0 ? fake_move(fake, count, addresses, nodes, statuses) : r;
}

static inline bool fake_has_time(void *context)
{
	const struct fake *fake = context;

	return fake->call.kind != FAKE_RANGES || fake->searched < fake->found_most;
}

/* Adds the next piece of a file, and ends the file after the last one. */
static inline int fake_read_piece(struct fake *fake)
{
	const char *text = fake->reading.described ? fake->numa_maps : fake->maps;
	size_t length = strnlen(text + fake->offset, FAKE_PIECE);
	int r = nm_maps_add(&fake->reading, text + fake->offset, length);

	fake->offset += length;
	fake->reads++;
	fake->now_ns += fake->read_ns;
	if (length > 0)
		return r;
	nm_maps_end_file(&fake->reading);
	fake->offset = 0;
	return 0;
}

static inline int fake_perform_mappings(struct fake *fake, const struct nm_mappings_order *order,
					struct nm_mappings_piece *ret, uint64_t *ret_held_ns)
{
	const struct nm_maps_rules rules = {.move_bound = order->move_bound,
					    .move_shared = order->move_shared};
	uint64_t began_ns = fake->now_ns;
	int r = fake->maps_error ? fake->maps_error
				 : fake_owner_error(fake, fake->call.tid, fake->call.start_ticks);

	if (order->begin) {
		nm_maps_clear(&fake->reading);
		fake->offset = fake->taken = 0;
	}
	if (r < 0)
		return r;
	do
		r = fake_read_piece(fake);
	while (r == 0 && !fake->reading.complete && fake->now_ns - began_ns < order->budget_ns);
	*ret_held_ns = fake->now_ns - began_ns;
	fake->now_ns += fake->way_ns;
	(void)nm_mappings_take(&fake->reading, &rules, &fake->taken, ret);
	return r;
}

static inline int fake_perform(struct fake *fake)
{
	const struct nm_page_calls calls = {fake_where, fake_round_move, fake_has_time, fake};
	const struct fake_call *call = &fake->call;

	fake->searched = 0;
	if ((uint32_t)call->tid >= fake->held_from && (uint32_t)call->tid < fake->held_to) {
		if (fake->held_jobs++ > 0)
			return -EALREADY;
		fake->now_ns += NM_WORKER_DEADLINE_NS;
		return -ETIMEDOUT;
	}
	if (call->kind == FAKE_MAPPINGS)
		return fake_perform_mappings(fake, call->order, call->ret, call->ret_held_ns);
	if (call->kind == FAKE_UNITS) {
		assert_true(nm_units_order_is_valid(call->order));
		return nm_units_move(call->order, &calls, call->ret);
	}
	assert_true(nm_ranges_order_is_valid(call->order));
	fake->finds++;
	return nm_ranges_move(call->order, &calls, call->ret);
}

/* ---- jobs of the mover ---- */

static inline int fake_begin(struct nm_platform *platform, struct fake_call call)
{
	struct fake *fake = fake_of(platform);

	assert_false(fake->begun);
	fake->call = call;
	fake->begun = fake->deferred;
	return fake->deferred ? NM_CALL_BEGUN : fake_perform(fake);
}

static inline bool fake_holds(const struct fake *fake)
{
	return fake->call.kind == FAKE_MAPPINGS ? fake->hold_reads : fake->hold_calls;
}

static inline bool fake_pages_poll(struct nm_platform *platform, int *ret)
{
	struct fake *fake = fake_of(platform);

	assert_true(fake->begun);
	if (fake_holds(fake))
		return false;
	fake->begun = false;
	*ret = fake_perform(fake);
	return true;
}

static inline void fake_pages_cancel(struct nm_platform *platform)
{
	struct fake *fake = fake_of(platform);

	assert_true(fake->begun);
	fake->begun = false;
	fake->cancelled++;
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

static inline void fake_free(struct nm_platform *platform)
{
	nm_maps_clear(&fake_of(platform)->reading);
	free(fake_of(platform));
}

/* ---- actions of a test ---- */

/* All pages are small, on node 0, in one mapping with default policy. */
static inline struct fake *fake_new(void)
{
	static const struct nm_platform_ops ops = {
		.now_ns = fake_now_ns,
		.open_directory = fake_open_directory,
		.list_directory = fake_list_directory,
		.mappings_read = fake_mappings_read,
		.read_file = fake_read_file,
		.owner = fake_owner,
		.close = fake_close,
		.units_move = fake_units_move,
		.ranges_move = fake_ranges_move,
		.pages_poll = fake_pages_poll,
		.pages_cancel = fake_pages_cancel,
	};
	struct fake *fake = calloc(1, sizeof(*fake));

	if (!fake)
		abort();
	fake->platform = (struct nm_platform){.ops = &ops, .free = fake_free};
	fake->pid = FAKE_PID;
	fake->start_ticks = FAKE_TICKS;
	fake->now_ns = 1000 * NM_NSEC_PER_SEC;
	fake->found_most = UINT32_MAX;
	for (unsigned i = 0; i < FAKE_NODES; i++) {
		fake->total_kib[i] = 1 << 20;
		fake->free_kib[i] = 1 << 19;
		fake->huge_blocks[i] = 100;
	}
	snprintf(fake->maps, FAKE_TEXT, "%" PRIx64 "-%" PRIx64 " rw-p 00000000 00:00 0 \n",
		 FAKE_BASE, FAKE_BASE + FAKE_PAGES * FAKE_SMALL);
	snprintf(fake->numa_maps, FAKE_TEXT,
		 "%" PRIx64 " default anon=9 N0=9 kernelpagesize_kB=4\n", FAKE_BASE);
	return fake;
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
static inline void fake_work(struct fake *fake, struct nm_mover *mover)
{
	do
		nm_mover_work(mover);
	while (fake->begun && !fake_holds(fake));
}

/* Returns a finished batch of either kind, or NULL. */
static inline struct nm_page_batch *fake_done(struct nm_mover *mover)
{
	struct nm_page_batch *batch = nm_mover_collect(mover, false);

	return batch ? batch : nm_mover_collect(mover, true);
}

/* As fake_done(), after fake_work(). */
static inline struct nm_page_batch *fake_collect(struct fake *fake, struct nm_mover *mover)
{
	fake_work(fake, mover);
	return fake_done(mover);
}

static inline void fake_pass_ms(struct fake *fake, struct nm_mover *mover, uint64_t ms)
{
	fake->now_ns += ms * NM_NSEC_PER_MSEC;
	fake_work(fake, mover);
}

/* Runs the mover until its next move, which is held. */
static inline void fake_hold(struct fake *fake, struct nm_mover *mover)
{
	fake->hold_calls = true;
	fake_work(fake, mover);
	assert_true(fake->begun && fake_holds(fake));
}

static inline void fake_release(struct fake *fake)
{
	fake->hold_calls = fake->hold_reads = false;
}

/* ---- a mover on the fake ---- */

struct test {
	struct fake *fake;
	struct nm_topology *topology;
	struct nm_config *config;
	struct nm_mover *mover;
};

static inline int set_up(void **state)
{
	struct test *test = calloc(1, sizeof(*test));

	test->fake = fake_new();
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
	int left_open = test->fake ? (int)test->fake->open_files : 0;
	if (test->fake)
		nm_platform_free(&test->fake->platform);
	nm_topology_free(test->topology);
	nm_config_free(test->config);
	free(test);
	return left_open ? -1 : 0;
}

/* Moves N pages to node 1 and checks the total. */
static inline void assert_moved(struct test *test, unsigned wanted)
{
	unsigned count = 0;

	fake_work(test->fake, test->mover);
	for (size_t page = 0; page < FAKE_PAGES; page++)
		count += test->fake->node[page] == 1;
	assert_int_equal(count, wanted);
}

static inline void start(struct test *test)
{
	test->fake->deferred = true;
	if (!test->mover)
		nm_mover_new(&test->fake->platform, test->topology, test->config, &test->mover);
}

static inline struct nm_page_batch *run(struct test *test, struct nm_page_batch *batch)
{
	start(test);
	assert_int_equal(nm_mover_submit(test->mover, batch), 0);
	struct nm_page_batch *done = fake_collect(test->fake, test->mover);
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
	fake_hold(test->fake, test->mover);
	return batch;
}

#endif
