/* SPDX-License-Identifier: MIT */
/* Memory of a process that is migrated as a whole. */
#define SET_UP set_up_large
#define TEAR_DOWN tear_down
#include "../support/test.h"

#include "mover_fixture.h"

static int set_up_large(void **state);

static struct nm_page_batch *bulk_batch(void)
{
	struct nm_page_batch *batch = fake_batch(0);

	batch->bulk = true;
	batch->to = 1;
	return batch;
}

/* Sets the line of numa_maps of the only mapping. */
static void set_numa_maps(const struct test *test, const char *words)
{
	snprintf(test->memory->numa_maps, FAKE_TEXT, "%" PRIx64 " %s kernelpagesize_kB=4\n",
		 FAKE_BASE, words);
}

/* As set_up(), without a limit on bytes; the process is too large to be moved at once. */
static int set_up_large(void **state)
{
	int r = set_up(state);
	struct test *test = *state;

	test->config->pages.max_mb_per_s = 1U << 20;
	set_numa_maps(test, "default anon=9000 N0=9000");
	return r;
}

static unsigned pages_on(const struct test *test, int node)
{
	unsigned count = 0;

	for (size_t page = 0; page < FAKE_PAGES; page++)
		count += test->memory->node[page] == node;
	return count;
}

/* The migration of the process to node 1: in base pages, those that are moved, that were there
 * before, and that stay although they were to move. 0 calls or searches: not checked; NONE: none.
 */
struct outcome {
	int error;
	unsigned moved, there, stayed;
	unsigned pages_of_one; /* 0: 1; of a pool: the base pages of a huge page */
	unsigned calls_most, searches_most;
};
#define NONE UINT32_MAX

static void assert_most(unsigned count, unsigned most)
{
	if (most != 0)
		assert_true(count <= (most == NONE ? 0 : most));
}

static void migrate(struct test *test, struct outcome expected)
{
	struct nm_page_batch *batch_new = bulk_batch();
	unsigned of_one = expected.pages_of_one ? expected.pages_of_one : 1;
	unsigned calls = test->memory->calls;

	nm_mover_free(NM_TAKE(test->mover));
	RUN(test, batch);
	assert_int_equal(batch->error, expected.error);
	assert_int_equal(pages_on(test, 1), expected.moved + expected.there);
	assert_int_equal(batch->moved, expected.moved / of_one);
	assert_int_equal(batch->bytes, (uint64_t)expected.moved * FAKE_SMALL);
	assert_int_equal(batch->stayed_bytes, (uint64_t)expected.stayed * FAKE_SMALL);
	assert_int_equal(nm_mover_counts(test->mover).moved, batch->moved);
	assert_int_equal(nm_mover_counts(test->mover).bytes, batch->bytes);
	assert_int_equal(nm_mover_counts(test->mover).waiting, 0);
	assert_most(test->memory->calls - calls, expected.calls_most);
	assert_most(test->memory->finds, expected.searches_most);
}
#define MIGRATE(...) migrate(*state, (struct outcome){__VA_ARGS__})

static struct memory *memory_in(void **state)
{
	return ((struct test *)*state)->memory;
}

/* ---- what moves ---- */

/* One search, and one call, however scattered its pages are. */
TEST(few_pages_need_few_calls)
{
	for (size_t page = 0; page < FAKE_PAGES; page++)
		memory_in(state)->node[page] = page % 32 == 0 ? 2 : -ENOENT;
	MIGRATE(.moved = FAKE_PAGES / 32, .calls_most = 1, .searches_most = 1);
}

TEST(all_of_a_large_process_moves)
{
	MIGRATE(.moved = FAKE_PAGES);
	assert_true(memory_in(state)->calls > 1 && memory_in(state)->largest >= 256);
}

TEST(huge_pages_move_whole)
{
	memory_in(state)->whole[0] = memory_in(state)->whole[3] = true;
	MIGRATE(.moved = FAKE_PAGES);
}

/* Some are there already, some were never touched, and other processes map some, too. */
TEST(each_page_is_counted)
{
	struct memory *memory = memory_in(state);

	for (size_t page = 0; page < FAKE_PER_HUGE; page++) {
		memory->node[page] = 1;
		memory->node[FAKE_PER_HUGE + page] = -ENOENT;
		memory->add_error[3 * FAKE_PER_HUGE + page] = -EACCES;
	}
	MIGRATE(.moved = FAKE_PAGES - 3 * FAKE_PER_HUGE, .there = FAKE_PER_HUGE,
		.stayed = FAKE_PER_HUGE);
}

/* A memory-only node beside the target is equally near. */
TEST(memory_beside_the_target_stays)
{
	struct test *test = *state;

	test->topology->nodes[3].nearest_with_cpus = 1;
	for (size_t page = 0; page < FAKE_PAGES; page++)
		test->memory->node[page] = page % 2 ? 3 : 2;
	MIGRATE(.moved = FAKE_PAGES / 2);
	assert_int_equal(pages_on(test, 3), FAKE_PAGES / 2);
}

/* Each page once, even if a search finds fewer pages than a call takes. */
TEST(every_found_page_is_moved)
{
	memory_in(state)->found_most = 1000;
	MIGRATE(.moved = FAKE_PAGES, .searches_most = FAKE_PAGES / 1000 + 1);
	assert_true(memory_in(state)->finds >= 4);
}

/* ---- pages that return ---- */

static struct nm_page_batch *batch_back(size_t nr_runs)
{
	struct nm_page_batch *batch = fake_batch(0);

	batch->rollback = true;
	batch->nr_back = nr_runs;
	batch->back = calloc(nr_runs + 1, sizeof(*batch->back));
	assert_non_null(batch->back);
	return batch;
}

/* Each page returns to its former node, in any order. */
TEST(pages_are_rolled_back_to_their_nodes)
{
	struct test *test = *state;
	struct nm_page_batch *batch_new = fake_batch(FAKE_PAGES), *returned_new = batch_back(0);
	unsigned pages = 0;

	for (size_t page = 0; page < FAKE_PAGES; page++) {
		test->memory->node[page] = page % 700 < 100 ? 2 : page % 700 == 100 ? 1 : 0;
		batch_new->steps[page].from = -1;
	}
	RUN(test, batch);
	assert_int_equal(pages_on(test, 1), FAKE_PAGES);
	for (size_t i = 0; i < batch->nr_base_pages; i++)
		pages += batch->base_pages[i].pages;
	assert_int_equal(pages, batch->moved);
	assert_int_equal(batch->base_pages_lost, 0);
	free(returned_new->back);
	returned_new->nr_back = batch->nr_base_pages;
	returned_new->back = NM_TAKE(batch->base_pages);
	RUN(test, returned);
	assert_int_equal(returned->error, 0);
	assert_int_equal(returned->moved, pages);
	for (size_t page = 0; page < FAKE_PAGES; page++)
		assert_int_equal(test->memory->node[page], page % 700 < 100    ? 2
							   : page % 700 == 100 ? 1
									       : 0);
}

/* The kernel or another decision moved it again. */
TEST(a_page_that_moved_since_stays)
{
	struct test *test = *state;
	struct nm_page_batch *batch_new = batch_back(1);

	batch_new->back[0] = (struct nm_base_pages){FAKE_BASE, 6, 2, 0};
	test->memory->node[4] = 1;
	RUN(test, batch);
	assert_int_equal(batch->error, 0);
	assert_int_equal(batch->moved, 5);
	assert_int_equal(test->memory->node[4], 1);
	assert_int_equal(test->memory->node[5], 2);
}

/* A node that was removed from its cpuset gets no pages. */
TEST(rollback_respects_the_cpuset)
{
	struct test *test = *state;
	struct nm_page_batch *batch_new = batch_back(2);

	batch_new->back[0] = (struct nm_base_pages){FAKE_BASE, 3, 7, 0};
	batch_new->back[1] = (struct nm_base_pages){FAKE_BASE + 3 * 4096, 2, 2, 0};
	RUN(test, batch);
	assert_int_equal(batch->error, 0);
	assert_int_equal(batch->moved, 2);
	assert_int_equal(pages_on(test, 2), 2);
}

/* Pages that are bound by now, or unmapped, stay; those of the pool return as wholes. */
TEST(rollback_respects_the_mappings)
{
	struct test *test = *state;
	struct nm_page_batch *batch_new = batch_back(5);
	const uint64_t bound = FAKE_BASE + 4 * (uint64_t)FAKE_SMALL;
	const uint64_t pool = FAKE_BASE + FAKE_HUGE;

	snprintf(test->memory->maps, FAKE_TEXT,
		 "%" PRIx64 "-%" PRIx64 " rw-p 0 00:00 0\n%" PRIx64 "-%" PRIx64
		 " rw-p 0 00:00 0\n%" PRIx64 "-%" PRIx64 " rw-p 0 00:00 0\n",
		 FAKE_BASE, bound, bound, bound + 4 * FAKE_SMALL, pool, pool + 2 * FAKE_HUGE);
	snprintf(test->memory->numa_maps, FAKE_TEXT,
		 "%" PRIx64 " default anon=4 N0=4 kernelpagesize_kB=4\n%" PRIx64
		 " bind:0 anon=4 N0=4 kernelpagesize_kB=4\n%" PRIx64
		 " default huge anon=2 N0=2 kernelpagesize_kB=2048\n",
		 FAKE_BASE, bound, pool);
	test->memory->whole[1] = test->memory->whole[2] = true;
	test->memory->pool_pages[2] = 9;
	batch_new->back[0] = (struct nm_base_pages){FAKE_BASE, 8, 2, 0};
	batch_new->back[1] = (struct nm_base_pages){FAKE_BASE + 100 * FAKE_SMALL, 3, 2, 0};
	batch_new->back[2] = (struct nm_base_pages){pool, 2 * FAKE_PER_HUGE, 2, 0};
	/* Base pages, where the process has mapped huge pages since. */
	batch_new->back[3] = (struct nm_base_pages){pool + FAKE_SMALL, 3, 2, 0};
	batch_new->back[4] = (struct nm_base_pages){pool, 3, 2, 0};
	RUN(test, batch);
	assert_int_equal(batch->error, 0);
	assert_int_equal(batch->moved, 4 + 2);
	assert_int_equal(pages_on(test, 2), 4 + 2 * FAKE_PER_HUGE);
}

/* ---- pages that stay ---- */

#define CALLS_OF_ALL (2 * ((FAKE_PAGES + 1023) / 1024))

/* Pages that are in use cost two calls per 1,024 pages at most, and end the batch: also on a
 * machine whose calls are slow. */
TEST(busy_pages_are_tried_twice)
{
	static const uint64_t page_ns[] = {0, 200000};

	for (size_t i = 0; i < NM_ARRAY_SIZE(page_ns); i++) {
		memory_in(state)->page_ns = page_ns[i];
		for (size_t page = 0; page < FAKE_PAGES; page++)
			memory_in(state)->busy[page] = UINT32_MAX;
		MIGRATE(.stayed = FAKE_PAGES, .calls_most = CALLS_OF_ALL);
	}
}

/* The kernel reports a reason for each page: these pages are tried once. */
TEST(refused_pages_are_tried_once)
{
	static const int errors[] = {-EIO, -EBUSY, -ENOMEM, -EPERM, -EACCES};

	for (size_t page = 0; page < FAKE_PAGES; page++)
		memory_in(state)->add_error[page] = errors[page % NM_ARRAY_SIZE(errors)];
	MIGRATE(.stayed = FAKE_PAGES, .calls_most = CALLS_OF_ALL);
}

/* The process has unmapped them meanwhile. */
TEST(vanished_pages_are_no_refusal)
{
	for (size_t page = 0; page < FAKE_PAGES; page++)
		memory_in(state)->add_error[page] = page % 2 ? -ENOENT : -EFAULT;
	MIGRATE(.stayed = 0);
}

/* Pages that are local, or placed by their owner, are not even searched. */
TEST(pages_that_may_not_move_are_not_searched)
{
	static const char *const words[] = {"default anon=8192 N1=8192",
					    "bind:0 anon=8192 N0=8192"};

	for (size_t i = 0; i < NM_ARRAY_SIZE(words); i++) {
		set_numa_maps(*state, words[i]);
		MIGRATE(.searches_most = NONE);
	}
}

/* SECURITY: sparse */
TEST(a_sparse_mapping_is_not_searched)
{
	snprintf(memory_in(state)->maps, FAKE_TEXT,
		 "%" PRIx64 "-%" PRIx64 " rw-p 00000000 00:00 0\n", FAKE_BASE,
		 FAKE_BASE + ((uint64_t)4 << 30));
	MIGRATE(.searches_most = NONE);
}

TEST(a_migration_ends_with_its_process)
{
	memory_in(state)->where_error = -ESRCH;
	MIGRATE(.error = -ESRCH);
}

TEST(there_is_no_such_node)
{
	struct test *test = *state;
	struct nm_page_batch *batch_new = bulk_batch();

	batch_new->to = 99;
	RUN(test, batch);
	assert_int_equal(batch->error, -EPERM);
	assert_int_equal(test->memory->finds, 0);
}

TEST(the_node_is_outside_the_cpuset)
{
	memory_in(state)->barred_nodes = 1 << 1;
	MIGRATE(.stayed = FAKE_PAGES);
}

/* ---- room ---- */

/* Programs are swapped out for node 1, which has page cache: migration stops between two calls. */
TEST(nothing_moves_to_a_swapping_node)
{
	struct memory *memory = memory_in(state);

	memory->min_free_kib = 4096;
	memory->free_kib[1] = 2048;
	memory->idle_kib[1] = 1U << 20;
	memory->call_ns = NM_RECLAIM_AGE_NS;
	memory->swaps_from = 3;
	MIGRATE(.error = -ENOSPC, .moved = 3 * 1024, .calls_most = 3);
}

/* The node has free memory, so any swapping is elsewhere. */
TEST(swapping_elsewhere_does_not_matter)
{
	memory_in(state)->min_free_kib = 4096;
	memory_in(state)->call_ns = NM_RECLAIM_AGE_NS;
	memory_in(state)->swaps_from = 3;
	MIGRATE(.moved = FAKE_PAGES);
}

/* A pool that is used up is not expected to be refilled. */
TEST(a_used_up_pool_is_a_refusal)
{
	snprintf(memory_in(state)->numa_maps, FAKE_TEXT,
		 "%" PRIx64 " default huge anon=%u N0=%u kernelpagesize_kB=2048\n", FAKE_BASE,
		 FAKE_PAGES / FAKE_PER_HUGE, FAKE_PAGES / FAKE_PER_HUGE);
	memset(memory_in(state)->whole, true, sizeof(memory_in(state)->whole));
	memory_in(state)->pool_pages[1] = 1;
	MIGRATE(.moved = FAKE_PER_HUGE, .pages_of_one = FAKE_PER_HUGE,
		.stayed = FAKE_PAGES - FAKE_PER_HUGE);
}

/* Pages of which a block of 2 MiB has few are moved while there is room for them: whole blocks of 8
 * pages. */
TEST(a_node_nearly_full_takes_what_fits)
{
	struct test *test = *state;

	for (size_t page = 0; page < FAKE_PAGES; page++)
		if (page % 64)
			test->memory->node[page] = -ENOENT;
	test->config->pages.keep_free_percent = 0;
	test->memory->free_kib[1] = 4 * 100;
	MIGRATE(.error = -ENOSPC, .moved = 12 * 8);
}

/* The kernel moves a huge page with the first of its base pages, and the mappings show none. */
TEST(huge_pages_need_room)
{
	static const struct {
		unsigned free, moved;
	} cases[] = {{1, 0}, {100, 0}, {511, 0}, {512, 512}, {600, 512}, {1024, 1024}};
	struct test *test = *state;

	test->config->pages.keep_free_percent = 0;
	for (size_t i = 0; i < NM_ARRAY_SIZE(cases); i++) {
		memset(test->memory->node, 0, sizeof(test->memory->node));
		memset(test->memory->whole, true, sizeof(test->memory->whole));
		test->memory->free_kib[1] = 4 * cases[i].free;
		MIGRATE(.error = -ENOSPC, .moved = cases[i].moved);
	}
}

/* ---- pages that other processes map, too ---- */

/* One page of the large mapping is mapped by another process, after fork(2) or by KSM. `words`
 * describe the large mapping, whose last 1 MiB is a mapping of its own. */
static void share_a_page(struct test *test, const char *mode, const char *words)
{
	const uint64_t split = FAKE_BASE + (FAKE_PAGES - 256) * (uint64_t)FAKE_SMALL;

	snprintf(test->memory->maps, FAKE_TEXT,
		 "%" PRIx64 "-%" PRIx64 " %s \n%" PRIx64 "-%" PRIx64 " rw-p 00000000 00:00 0 \n",
		 FAKE_BASE, split, mode, split, FAKE_BASE + FAKE_PAGES * (uint64_t)FAKE_SMALL);
	snprintf(test->memory->numa_maps, FAKE_TEXT,
		 "%" PRIx64 " %s\n%" PRIx64
		 " default anon=256 dirty=256 N0=256 kernelpagesize_kB=4\n",
		 FAKE_BASE, words, split);
	test->memory->add_error[17] = -EACCES;
}

#define SHARED_PAGE "default anon=7936 dirty=7936 mapmax=2 N0=7936 kernelpagesize_kB=4"
#define PRIVATE "rw-p 00000000 00:00 0"

/* All pages except the one that the kernel leaves out move, and are counted. */
TEST(one_shared_page_stays_alone)
{
	share_a_page(*state, PRIVATE, SHARED_PAGE);
	MIGRATE(.moved = FAKE_PAGES - 1, .stayed = 1);
	assert_int_equal(memory_in(state)->node[17], 0);
}

/* 4 MiB are free on the node: the rest of a large file stays with its page that is shared; the
 * process has used more memory since its mappings were read, or they show a wrong amount. */
TEST(room_is_kept_whatever_the_mappings_say)
{
	static const struct {
		const char *name, *mode, *words;
		struct outcome expected;
	} rows[] = {
		{"a shared page", PRIVATE, SHARED_PAGE, {-ENOSPC, 1023, .stayed = 1}},
		{"a shared file",
		 "r--p 00000000 fd:01 7 /model",
		 "default file=/model mapped=7936 mapmax=2 N0=7936 kernelpagesize_kB=4",
		 {0, 256}},
		{"one page", NULL, "default anon=1 N0=1", {0, 1024}},
		{"a node that is not known", NULL, "default anon=1 N77=1", {0, 1024}},
		{"one shared page", NULL, "default anon=1 mapmax=9 N0=1", {0, 1024}},
		{"any number", NULL, "default anon=18446744073709551615 N0=1", {0, 1024}},
	};

	EACH_ROW(row, rows)
	{
		tear_down(state);
		set_up_large(state);
		struct test *test = *state;
		test->config->pages.keep_free_percent = 0;
		test->memory->free_kib[1] = 4096;
		if (row->mode)
			share_a_page(test, row->mode, row->words);
		else
			set_numa_maps(test, row->words);
		migrate(test, row->expected);
	}
}

/* The rate allows the bytes of 0.1 s in one call. */
TEST(no_call_exceeds_the_rate)
{
	struct test *test = *state;
	struct nm_page_batch *batch = bulk_batch();

	test->config->pages.max_mb_per_s = 16;
	share_a_page(test, PRIVATE, SHARED_PAGE);
	start(test);
	assert_int_equal(nm_mover_submit(test->mover, batch), 0);
	for (struct nm_page_batch *done = NULL; !done; done = fake_done(test->mover)) {
		unsigned before = pages_on(test, 1);
		fake_pass_ms(test->memory, test->mover, 100);
		assert_true(pages_on(test, 1) - before <= 2 * 410); /* of 1.6 MiB */
	}
	assert_true(test->memory->largest <= 410);
	assert_int_equal(batch->moved, FAKE_PAGES - 1);
	nm_page_batch_free(batch);
}

/* ---- memory beside it ---- */

/* The first 100 pages move; 20 pages behind them do not, for this reason, or are not described. */
TEST(memory_that_stays_does_not_hold_the_rest)
{
	static const struct {
		const char *name, *mode, *words;
		unsigned stayed; /* although they were to move */
	} rows[] = {
		{"merged or split meanwhile", "rw-p", NULL},
		{"bound", "rw-p", "bind:0 anon=20 N0=20"},
		{"shared", "rw-s", "default file=/x dirty=20 N0=20"},
		{"from an empty pool", "rw-p", "default huge anon=20 N0=20", 20},
	};
	const uint64_t middle = FAKE_BASE + 100 * FAKE_SMALL;

	EACH_ROW(row, rows)
	{
		struct memory *memory = memory_in(state);
		memset(memory->node, 0, sizeof(memory->node));
		snprintf(memory->maps, FAKE_TEXT,
			 "%" PRIx64 "-%" PRIx64 " rw-p 00000000 00:00 0 \n%" PRIx64 "-%" PRIx64
			 " %s 00000000 00:00 0 \n"
			 "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0\n",
			 FAKE_BASE, middle, middle, FAKE_BASE + 120 * FAKE_SMALL, row->mode);
		snprintf(memory->numa_maps, FAKE_TEXT,
			 "%" PRIx64 " default anon=100 N0=100 kernelpagesize_kB=4\n%" PRIx64
			 " %s kernelpagesize_kB=4\n",
			 FAKE_BASE, row->words ? middle : middle + FAKE_SMALL,
			 row->words ? row->words : "default");
		MIGRATE(.moved = 100, .stayed = row->stayed);
	}
}

TEST(a_mapping_that_was_bound_meanwhile_is_left_out)
{
	struct memory *memory = memory_in(state);

	snprintf(memory->numa_maps + strlen(memory->numa_maps), FAKE_TEXT / 2,
		 "%" PRIx64 " bind:0 anon=9 N0=9 kernelpagesize_kB=4\n",
		 FAKE_BASE + 2 * FAKE_PAGES * FAKE_SMALL);
	MIGRATE(.moved = FAKE_PAGES);
}

/* ---- turns ---- */

/* Other processes do not wait until a large one is done. */
TEST(processes_take_turns)
{
	struct test *test = *state;
	struct nm_page_batch *first = bulk_batch(), *second = fake_batch(1);

	test->config->pages.max_mb_per_s = 16;
	start(test);
	assert_int_equal(nm_mover_submit(test->mover, first), 0);
	fake_hold(test->memory, test->mover);
	assert_int_equal(nm_mover_submit(test->mover, second), 0);
	fake_release(test->memory);
	assert_ptr_equal(fake_collect(test->memory, test->mover), second);
	assert_true(pages_on(test, 1) < FAKE_PAGES);
	for (struct nm_page_batch *done; !(done = fake_done(test->mover));) {
		fake_pass_ms(test->memory, test->mover, 500);
	}
	assert_int_equal(pages_on(test, 1), FAKE_PAGES);
	nm_page_batch_free(first);
	nm_page_batch_free(second);
}

/* It waits in the mover for its mappings, which take several turns. */
TEST(a_batch_waits_for_its_mappings)
{
	struct test *test = *state;
	struct nm_page_batch *batch = bulk_batch();

	test->memory->maps_error = -EAGAIN;
	start(test);
	assert_int_equal(nm_mover_submit(test->mover, batch), 0);
	for (unsigned i = 0; i < 20; i++) {
		fake_pass_ms(test->memory, test->mover, 100);
		assert_null(fake_done(test->mover));
	}
	test->memory->maps_error = 0;
	for (struct nm_page_batch *done = NULL; !done; done = fake_done(test->mover)) {
		fake_pass_ms(test->memory, test->mover, 500);
	}
	assert_int_equal(batch->error, 0);
	assert_int_equal(batch->moved, FAKE_PAGES);
	nm_page_batch_free(batch);
}

/* No page of a rollback is left out when its worker is still busy after a round. */
TEST(a_rollback_waits_for_its_worker)
{
	struct test *test = *state;
	struct nm_page_batch *batch = batch_back(1);

	batch->back[0] = (struct nm_base_pages){FAKE_BASE, 6, 2, 0};
	test->memory->where_error = -EINPROGRESS;
	start(test);
	assert_int_equal(nm_mover_submit(test->mover, batch), 0);
	for (unsigned i = 0; i < 20; i++)
		fake_pass_ms(test->memory, test->mover, 100);
	test->memory->where_error = 0;
	for (struct nm_page_batch *done = NULL; !done; done = fake_done(test->mover))
		fake_pass_ms(test->memory, test->mover, 500);
	assert_int_equal(batch->error, 0);
	assert_int_equal(batch->moved, 6);
	assert_int_equal(pages_on(test, 2), 6);
	nm_page_batch_free(batch);
}

/* Its worker is still busy after a round: other batches continue, and this one does when the worker
 * is done. */
/* SECURITY: held-lock */
TEST(others_go_on_while_a_worker_is_at_work)
{
	struct test *test = *state;
	struct nm_page_batch *busy = bulk_batch(), *other = bulk_batch();

	test->memory->where_error = -EINPROGRESS;
	start(test);
	assert_int_equal(nm_mover_submit(test->mover, busy), 0);
	for (unsigned i = 0; i < 20; i++) {
		fake_pass_ms(test->memory, test->mover, 100);
		assert_null(fake_done(test->mover));
	}
	other->pid = FAKE_PID + 1; /* a process that does not exist */
	assert_int_equal(nm_mover_submit(test->mover, other), 0);
	assert_ptr_equal(fake_collect(test->memory, test->mover), other);
	assert_int_equal(other->error, -ESRCH);
	test->memory->where_error = 0;
	for (struct nm_page_batch *done = NULL; !done; done = fake_done(test->mover)) {
		fake_pass_ms(test->memory, test->mover, 500);
	}
	assert_int_equal(busy->error, 0);
	nm_page_batch_free(busy);
	nm_page_batch_free(other);
}

/* A turn of reading is followed by a pause of the same length, for any number of turns. */
TEST(long_mappings_take_twice_their_time)
{
	struct test *test = *state;
	struct nm_page_batch *batch = bulk_batch(), *done;
	uint64_t begun_ns = test->fake->now_ns;

	test->memory->read_ns = 20 * NM_NSEC_PER_MSEC; /* longer than pages.maps_budget_ms */
	start(test);
	assert_int_equal(nm_mover_submit(test->mover, batch), 0);
	while (!(done = fake_done(test->mover))) {
		fake_work(test->memory, test->mover);
		test->fake->now_ns += NM_NSEC_PER_MSEC;
	}
	assert_ptr_equal(done, batch);
	assert_int_equal(batch->moved, FAKE_PAGES);
	assert_true(test->memory->reads >= 4);
	assert_true(test->fake->now_ns - begun_ns <= test->memory->reads * 45 * NM_NSEC_PER_MSEC);
	nm_page_batch_free(batch);
}

TEST(a_waiting_batch_is_dropped)
{
	struct test *test = *state;
	struct nm_page_batch *batch = bulk_batch();

	test->memory->maps_error = -EAGAIN;
	start(test);
	assert_int_equal(nm_mover_submit(test->mover, batch), 0);
	nm_mover_drop(test->mover, FAKE_PID, true);
	assert_ptr_equal(fake_collect(test->memory, test->mover), batch);
	assert_int_equal(batch->error, -ECANCELED);
	nm_page_batch_free(batch);
}

RUN_TESTS()
