/* SPDX-License-Identifier: MIT */
/* Memory of a process that is migrated as a whole. */
#define SET_UP set_up
#define TEAR_DOWN tear_down
#include "../support/test.h"

#include "mover_fixture.h"

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
	snprintf(test->fake->numa_maps, FAKE_TEXT, "%" PRIx64 " %s kernelpagesize_kB=4\n",
		 FAKE_BASE, words);
}

/* Without a limit on bytes; the process is too large to be moved at once. */
static void begin_large(const struct test *test)
{
	test->config->pages.max_mb_per_s = 1U << 20;
	set_numa_maps(test, "default anon=9000 N0=9000");
}

static unsigned pages_on(const struct test *test, int node)
{
	unsigned count = 0;

	for (size_t page = 0; page < FAKE_PAGES; page++)
		count += test->fake->node[page] == node;
	return count;
}

/* Two searches, and only as many calls as its pages need, however scattered they are. */
TEST(test_few_pages_need_few_calls)
{
	struct test *test = *state;
	struct nm_page_batch *batch_new = bulk_batch();

	begin_large(test);
	for (size_t page = 0; page < FAKE_PAGES; page++)
		test->fake->node[page] = page % 32 == 0 ? 2 : -ENOENT;
	RUN(test, batch);
	assert_int_equal(batch->error, 0);
	assert_int_equal(batch->moved, FAKE_PAGES / 32);
	assert_int_equal(pages_on(test, 1), FAKE_PAGES / 32);
	assert_int_equal(pages_on(test, 2), 0);
	assert_int_equal(test->fake->finds, 1);
	assert_int_equal(test->fake->calls, 1);
}

TEST(test_all_of_a_large_process)
{
	struct test *test = *state;
	struct nm_page_batch *batch_new = bulk_batch();

	begin_large(test);
	RUN(test, batch);
	assert_int_equal(pages_on(test, 1), FAKE_PAGES);
	assert_int_equal(batch->moved, FAKE_PAGES);
	assert_int_equal(batch->bytes, (uint64_t)FAKE_PAGES * 4096);
	assert_true(test->fake->calls > 1 && test->fake->largest >= 256);
	assert_int_equal(nm_mover_counts(test->mover).moved, FAKE_PAGES);
	assert_int_equal(nm_mover_counts(test->mover).waiting, 0);
}

/* Node 1 has page cache; migration stops between two calls if programs are swapped out for it. */
TEST(test_no_move_to_a_swapping_node)
{
	struct test *test = *state;
	struct nm_page_batch *batch_new = bulk_batch();

	begin_large(test);
	test->fake->min_free_kib = 4096;
	test->fake->free_kib[1] = 2048;
	test->fake->idle_kib[1] = 1U << 20;
	test->fake->call_ns = NM_RECLAIM_AGE_NS;
	test->fake->swaps_from = 3;
	RUN(test, batch);
	assert_int_equal(batch->error, -ENOSPC);
	assert_int_equal(test->fake->calls, 3);
	assert_in_range(batch->moved, 1, FAKE_PAGES - 1);
	assert_int_equal(pages_on(test, 1), batch->moved);
}

/* The node has free memory, so any swapping is elsewhere. */
TEST(test_swapping_elsewhere_does_not_matter)
{
	struct test *test = *state;
	struct nm_page_batch *batch_new = bulk_batch();

	begin_large(test);
	test->fake->min_free_kib = 4096;
	test->fake->call_ns = NM_RECLAIM_AGE_NS;
	test->fake->swaps_from = 3;
	RUN(test, batch);
	assert_int_equal(batch->error, 0);
	assert_int_equal(pages_on(test, 1), FAKE_PAGES);
}

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
TEST(test_pages_are_rolled_back_to_their_nodes)
{
	struct test *test = *state;
	struct nm_page_batch *batch_new = fake_batch(FAKE_PAGES), *returned_new = batch_back(0);
	unsigned pages = 0;

	begin_large(test);
	for (size_t page = 0; page < FAKE_PAGES; page++) {
		test->fake->node[page] = page % 700 < 100 ? 2 : page % 700 == 100 ? 1 : 0;
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
		assert_int_equal(test->fake->node[page], page % 700 < 100    ? 2
							 : page % 700 == 100 ? 1
									     : 0);
}

/* The kernel or another decision moved it again. */
TEST(test_a_page_that_moved_since_stays)
{
	struct test *test = *state;
	struct nm_page_batch *batch_new = batch_back(1);

	batch_new->back[0] = (struct nm_base_pages){FAKE_BASE, 6, 2, 0};
	test->fake->node[4] = 1;
	RUN(test, batch);
	assert_int_equal(batch->error, 0);
	assert_int_equal(batch->moved, 5);
	assert_int_equal(test->fake->node[4], 1);
	assert_int_equal(test->fake->node[5], 2);
}

/* A node that was removed from its cpuset gets no pages. */
TEST(test_rollback_respects_the_cpuset)
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
TEST(test_rollback_respects_the_mappings)
{
	struct test *test = *state;
	struct nm_page_batch *batch_new = batch_back(3);
	const uint64_t bound = FAKE_BASE + 4 * (uint64_t)FAKE_SMALL;
	const uint64_t pool = FAKE_BASE + FAKE_HUGE;

	snprintf(test->fake->maps, FAKE_TEXT,
		 "%" PRIx64 "-%" PRIx64 " rw-p 0 00:00 0\n%" PRIx64 "-%" PRIx64
		 " rw-p 0 00:00 0\n%" PRIx64 "-%" PRIx64 " rw-p 0 00:00 0\n",
		 FAKE_BASE, bound, bound, bound + 4 * FAKE_SMALL, pool, pool + 2 * FAKE_HUGE);
	snprintf(test->fake->numa_maps, FAKE_TEXT,
		 "%" PRIx64 " default anon=4 N0=4 kernelpagesize_kB=4\n%" PRIx64
		 " bind:0 anon=4 N0=4 kernelpagesize_kB=4\n%" PRIx64
		 " default huge anon=2 N0=2 kernelpagesize_kB=2048\n",
		 FAKE_BASE, bound, pool);
	test->fake->whole[1] = test->fake->whole[2] = true;
	test->fake->pool_pages[2] = 9;
	batch_new->back[0] = (struct nm_base_pages){FAKE_BASE, 8, 2, 0};
	batch_new->back[1] = (struct nm_base_pages){FAKE_BASE + 100 * FAKE_SMALL, 3, 2, 0};
	batch_new->back[2] = (struct nm_base_pages){pool, 2 * FAKE_PER_HUGE, 2, 0};
	RUN(test, batch);
	assert_int_equal(batch->error, 0);
	assert_int_equal(batch->moved, 4 + 2);
	assert_int_equal(pages_on(test, 2), 4 + 2 * FAKE_PER_HUGE);
}

TEST(test_huge_pages_move_whole)
{
	struct test *test = *state;
	struct nm_page_batch *batch_new = bulk_batch();

	begin_large(test);
	test->fake->whole[0] = test->fake->whole[3] = true;
	RUN(test, batch);
	assert_int_equal(batch->error, 0);
	assert_int_equal(pages_on(test, 1), FAKE_PAGES);
}

TEST(test_each_page_is_counted)
{
	struct test *test = *state;
	struct nm_page_batch *batch_new = bulk_batch();

	begin_large(test);
	for (size_t page = 0; page < FAKE_PER_HUGE; page++) {
		test->fake->node[page] = 1;			  /* there already */
		test->fake->node[FAKE_PER_HUGE + page] = -ENOENT; /* never touched */
		test->fake->add_error[3 * FAKE_PER_HUGE + page] =
			-EACCES; /* other processes map it too */
	}
	RUN(test, batch);
	assert_int_equal(batch->moved, FAKE_PAGES - 3 * FAKE_PER_HUGE);
}

/* A memory-only node beside the target is equally near. */
TEST(test_memory_beside_the_target_stays)
{
	struct test *test = *state;
	struct nm_page_batch *batch_new = bulk_batch();

	begin_large(test);
	test->topology->nodes[3].nearest_with_cpus = 1;
	for (size_t page = 0; page < FAKE_PAGES; page++)
		test->fake->node[page] = page % 2 ? 3 : 2;
	RUN(test, batch);
	assert_int_equal(batch->error, 0);
	assert_int_equal(pages_on(test, 3), FAKE_PAGES / 2);
	assert_int_equal(pages_on(test, 1), FAKE_PAGES / 2);
}

/* Each page once, even if a search finds fewer pages than a call takes. */
TEST(test_every_found_page_is_moved)
{
	struct test *test = *state;
	struct nm_page_batch *batch_new = bulk_batch();

	begin_large(test);
	test->fake->found_most = 1000;
	RUN(test, batch);
	assert_int_equal(batch->moved, FAKE_PAGES);
	assert_in_range(test->fake->finds, 4, FAKE_PAGES / 1000 + 1);
}

/* A full node takes what fits. */
/* Pages that are in use cost two calls per 1,024 pages at most, and end the batch. */
TEST(test_busy_pages_are_tried_twice)
{
	struct test *test = *state;
	struct nm_page_batch *batch_new = bulk_batch();

	begin_large(test);
	for (size_t page = 0; page < FAKE_PAGES; page++)
		test->fake->busy[page] = UINT32_MAX;
	RUN(test, batch);
	assert_int_equal(batch->error, 0);
	assert_int_equal(batch->moved, 0);
	assert_int_equal(batch->stayed_bytes, FAKE_PAGES * FAKE_SMALL);
	assert_true(test->fake->calls <= 2 * ((FAKE_PAGES + 1023) / 1024));
	unsigned calls = test->fake->calls;
	(void)nm_mover_work(test->mover);
	assert_int_equal(test->fake->calls, calls);
}

/* A machine whose calls are slow gets no more of them. */
TEST(test_busy_pages_on_a_slow_machine)
{
	((struct test *)*state)->fake->page_ns = 200000;
	test_busy_pages_are_tried_twice(state);
}

/* The kernel reports a reason for each page: these pages are tried once. */
TEST(test_refused_pages_are_tried_once)
{
	static const int errors[] = {-EIO, -EBUSY, -ENOMEM, -EPERM, -EACCES};
	struct test *test = *state;
	struct nm_page_batch *batch_new = bulk_batch();

	begin_large(test);
	for (size_t page = 0; page < FAKE_PAGES; page++)
		test->fake->add_error[page] = errors[page % NM_ARRAY_SIZE(errors)];
	RUN(test, batch);
	assert_int_equal(batch->error, 0);
	assert_int_equal(batch->stayed_bytes, FAKE_PAGES * FAKE_SMALL);
	assert_true(test->fake->calls <= 2 * ((FAKE_PAGES + 1023) / 1024));
}

/* A pool that is used up is not expected to be refilled. */
TEST(test_a_used_up_pool_is_a_refusal)
{
	struct test *test = *state;
	struct nm_page_batch *batch_new = bulk_batch();

	begin_large(test);
	snprintf(test->fake->numa_maps, FAKE_TEXT,
		 "%" PRIx64 " default huge anon=%u N0=%u kernelpagesize_kB=2048\n", FAKE_BASE,
		 FAKE_PAGES / FAKE_PER_HUGE, FAKE_PAGES / FAKE_PER_HUGE);
	memset(test->fake->whole, true, sizeof(test->fake->whole));
	test->fake->pool_pages[1] = 1;
	RUN(test, batch);
	assert_int_equal(batch->error, 0);
	assert_int_equal(pages_on(test, 1), FAKE_PER_HUGE);
	assert_int_equal(batch->bytes, FAKE_HUGE);
	assert_int_equal(batch->stayed_bytes, FAKE_PAGES * FAKE_SMALL - FAKE_HUGE);
}

/* The process has unmapped them meanwhile. */
TEST(test_vanished_pages_are_no_refusal)
{
	struct test *test = *state;
	struct nm_page_batch *batch_new = bulk_batch();

	begin_large(test);
	for (size_t page = 0; page < FAKE_PAGES; page++)
		test->fake->add_error[page] = page % 2 ? -ENOENT : -EFAULT;
	RUN(test, batch);
	assert_int_equal(batch->error, 0);
	assert_int_equal(batch->stayed_bytes, 0);
}

/* Pages of which a block of 2 MiB has few are moved while there is room for them. */
TEST(test_a_node_nearly_full)
{
	struct test *test = *state;
	struct nm_page_batch *batch_new = bulk_batch();

	begin_large(test);
	for (size_t page = 0; page < FAKE_PAGES; page++)
		if (page % 64)
			test->fake->node[page] = -ENOENT;
	test->config->pages.keep_free_percent = 0;
	test->fake->free_kib[1] = 4 * 100;
	RUN(test, batch);
	assert_int_equal(batch->error, -ENOSPC);
	assert_int_equal(pages_on(test, 1), 12 * 8); /* whole blocks of 8 pages */
}

/* The kernel moves a huge page with the first of its base pages, and the mappings show none. */
TEST(test_huge_pages_need_room)
{
	static const struct {
		unsigned free, moved;
	} cases[] = {{1, 0}, {100, 0}, {511, 0}, {512, 512}, {600, 512}, {1024, 1024}};
	struct test *test = *state;

	begin_large(test);
	test->config->pages.keep_free_percent = 0;
	for (size_t i = 0; i < NM_ARRAY_SIZE(cases); i++) {
		struct nm_page_batch *batch_new = bulk_batch();
		memset(test->fake->node, 0, sizeof(test->fake->node));
		memset(test->fake->whole, true, sizeof(test->fake->whole));
		test->fake->free_kib[1] = 4 * cases[i].free;
		nm_mover_free(NM_TAKE(test->mover));
		RUN(test, batch);
		assert_int_equal(batch->error, -ENOSPC);
		assert_int_equal(pages_on(test, 1), cases[i].moved);
		assert_int_equal(batch->moved, cases[i].moved);
	}
}

TEST(test_node_outside_the_cpuset)
{
	struct test *test = *state;
	struct nm_page_batch *batch_new = bulk_batch();

	begin_large(test);
	test->fake->barred_nodes = 1 << 1;
	RUN(test, batch);
	assert_int_equal(batch->moved, 0);
	assert_int_equal(pages_on(test, 1), 0);
}

TEST(test_no_such_node)
{
	struct test *test = *state;
	struct nm_page_batch *batch_new = bulk_batch();

	begin_large(test);
	batch_new->to = 99;
	RUN(test, batch);
	assert_int_equal(batch->error, -EPERM);
	assert_int_equal(test->fake->finds, 0);
}

/* Pages that are local, shared or placed by their owner are not even queried. */
static void assert_left(struct test *test, const char *words)
{
	struct nm_page_batch *batch_new = bulk_batch();

	set_numa_maps(test, words);
	RUN(test, batch);
	assert_int_equal(batch->error, 0);
	assert_int_equal(batch->moved, 0);
	assert_int_equal(test->fake->finds, 0);
}

TEST(test_pages_already_there)
{
	assert_left(*state, "default anon=8192 N1=8192");
}

TEST(test_bound)
{
	assert_left(*state, "bind:0 anon=8192 N0=8192");
}

/* ---- pages that other processes map, too ---- */

/* One page of the large mapping is mapped by another process, after fork(2) or by KSM. `words`
 * describe the large mapping, whose last 1 MiB is a mapping of its own. */
static void share_a_page(struct test *test, const char *mode, const char *words)
{
	const uint64_t split = FAKE_BASE + (FAKE_PAGES - 256) * (uint64_t)FAKE_SMALL;

	snprintf(test->fake->maps, FAKE_TEXT,
		 "%" PRIx64 "-%" PRIx64 " %s \n%" PRIx64 "-%" PRIx64 " rw-p 00000000 00:00 0 \n",
		 FAKE_BASE, split, mode, split, FAKE_BASE + FAKE_PAGES * (uint64_t)FAKE_SMALL);
	snprintf(test->fake->numa_maps, FAKE_TEXT,
		 "%" PRIx64 " %s\n%" PRIx64
		 " default anon=256 dirty=256 N0=256 kernelpagesize_kB=4\n",
		 FAKE_BASE, words, split);
	test->fake->add_error[17] = -EACCES;
}

#define SHARED_PAGE "default anon=7936 dirty=7936 mapmax=2 N0=7936 kernelpagesize_kB=4"
#define PRIVATE "rw-p 00000000 00:00 0"

/* All pages except the one that the kernel leaves out move, and are counted. */
TEST(test_one_shared_page_stays_alone)
{
	struct test *test = *state;
	struct nm_page_batch *batch_new = bulk_batch();

	test->config->pages.max_mb_per_s = 1U << 20;
	share_a_page(test, PRIVATE, SHARED_PAGE);
	RUN(test, batch);
	assert_int_equal(pages_on(test, 1), FAKE_PAGES - 1);
	assert_int_equal(batch->moved, FAKE_PAGES - 1);
	assert_int_equal(batch->stayed_bytes, FAKE_SMALL);
	assert_int_equal(test->fake->node[17], 0);
}

/* 4 MiB are free there. */
static void assert_room_is_kept(struct test *test)
{
	struct nm_page_batch *batch_new = bulk_batch();

	test->config->pages.max_mb_per_s = 1U << 20;
	test->config->pages.keep_free_percent = 0;
	test->fake->free_kib[1] = 4096;
	RUN(test, batch);
	assert_in_range(pages_on(test, 1), 1, 1024);
	assert_int_equal(batch->moved, pages_on(test, 1));
}

TEST(test_room_is_kept_beside_a_shared_page)
{
	share_a_page(*state, PRIVATE, SHARED_PAGE);
	assert_room_is_kept(*state);
}

/* One page of a large file is mapped by another process; the rest moves with nothing. */
TEST(test_room_is_kept_beside_a_shared_file)
{
	share_a_page(*state, "r--p 00000000 fd:01 7 /model",
		     "default file=/model mapped=7936 mapmax=2 N0=7936 kernelpagesize_kB=4");
	assert_room_is_kept(*state);
}

/* The process has used more memory since its mappings were read, or they show a wrong amount. */
TEST(test_room_is_kept_whatever_the_mappings_say)
{
	static const char *const claims[] = {"default anon=1 N0=1", "default anon=1 N77=1",
					     "default anon=1 mapmax=9 N0=1",
					     "default anon=18446744073709551615 N0=1"};
	struct test *test = *state;

	for (size_t i = 0; i < NM_ARRAY_SIZE(claims); i++) {
		memset(test->fake->node, 0, sizeof(test->fake->node));
		set_numa_maps(test, claims[i]);
		nm_mover_free(NM_TAKE(test->mover));
		assert_room_is_kept(test);
	}
}

/* The rate allows the bytes of 0.1 s in one call. */
TEST(test_no_call_exceeds_the_rate)
{
	struct test *test = *state;
	struct nm_page_batch *batch = bulk_batch();

	test->config->pages.max_mb_per_s = 16;
	share_a_page(test, PRIVATE, SHARED_PAGE);
	start(test);
	assert_int_equal(nm_mover_submit(test->mover, batch), 0);
	for (struct nm_page_batch *done = NULL; !done; done = fake_done(test->mover)) {
		unsigned before = pages_on(test, 1);
		fake_pass_ms(test->fake, test->mover, 100);
		assert_true(pages_on(test, 1) - before <= 2 * 410); /* of 1.6 MiB */
	}
	assert_true(test->fake->largest <= 410);
	assert_int_equal(batch->moved, FAKE_PAGES - 1);
	nm_page_batch_free(batch);
}

/* ---- memory that stays ---- */

/* If one mapping must stay, the location of each page is queried. */
static void assert_searched(struct test *test, const char *mode, const char *words)
{
	struct nm_page_batch *batch_new = bulk_batch();
	const uint64_t middle = FAKE_BASE + 100 * FAKE_SMALL;

	snprintf(test->fake->maps, FAKE_TEXT,
		 "%" PRIx64 "-%" PRIx64 " rw-p 00000000 00:00 0 \n%" PRIx64 "-%" PRIx64
		 " %s 00000000 00:00 0 \nffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0\n",
		 FAKE_BASE, middle, middle, FAKE_BASE + 120 * FAKE_SMALL, mode);
	snprintf(test->fake->numa_maps, FAKE_TEXT,
		 "%" PRIx64 " default anon=100 N0=100 kernelpagesize_kB=4\n%" PRIx64
		 " %s kernelpagesize_kB=4\n",
		 FAKE_BASE, words ? middle : middle + FAKE_SMALL, words ? words : "default");
	RUN(test, batch);
	assert_int_equal(batch->error, 0);
	assert_int_equal(batch->moved, 100);
	assert_int_equal(pages_on(test, 1), 100);
}

/* The mapping was merged or split since its location was read. */
TEST(test_unknown_mappings_are_not_moved)
{
	assert_searched(*state, "rw-p", NULL);
}

TEST(test_bound_mapping_added_meanwhile)
{
	struct test *test = *state;
	struct nm_page_batch *batch_new = bulk_batch();

	set_numa_maps(test, "default anon=9 N0=9");
	snprintf(test->fake->numa_maps + strlen(test->fake->numa_maps), FAKE_TEXT / 2,
		 "%" PRIx64 " bind:0 anon=9 N0=9 kernelpagesize_kB=4\n",
		 FAKE_BASE + 2 * FAKE_PAGES * FAKE_SMALL);
	RUN(test, batch);
	assert_int_equal(batch->error, 0);
}

TEST(test_unbound_memory_beside_bound_memory)
{
	assert_searched(*state, "rw-p", "bind:0 anon=20 N0=20");
}

TEST(test_private_memory_beside_shared_memory)
{
	assert_searched(*state, "rw-s", "default file=/x dirty=20 N0=20");
}

TEST(test_small_pages_beside_the_pool)
{
	assert_searched(*state, "rw-p", "default huge anon=20 N0=20");
}

/* ---- turns ---- */

/* Other processes do not wait until a large one is done. */
TEST(test_processes_take_turns)
{
	struct test *test = *state;
	struct nm_page_batch *first = bulk_batch(), *second = fake_batch(1);

	begin_large(test);
	test->config->pages.max_mb_per_s = 16;
	start(test);
	assert_int_equal(nm_mover_submit(test->mover, first), 0);
	fake_hold(test->fake, test->mover);
	assert_int_equal(nm_mover_submit(test->mover, second), 0);
	fake_release(test->fake);
	assert_ptr_equal(fake_collect(test->fake, test->mover), second);
	assert_true(pages_on(test, 1) < FAKE_PAGES);
	for (struct nm_page_batch *done; !(done = fake_done(test->mover));) {
		fake_pass_ms(test->fake, test->mover, 500);
	}
	assert_int_equal(pages_on(test, 1), FAKE_PAGES);
	nm_page_batch_free(first);
	nm_page_batch_free(second);
}

/* It waits in the mover for its mappings, which take several turns. */
TEST(test_a_batch_waits_for_its_mappings)
{
	struct test *test = *state;
	struct nm_page_batch *batch = bulk_batch();

	begin_large(test);
	test->fake->maps_error = -EAGAIN;
	start(test);
	assert_int_equal(nm_mover_submit(test->mover, batch), 0);
	for (unsigned i = 0; i < 20; i++) {
		fake_pass_ms(test->fake, test->mover, 100);
		assert_null(fake_done(test->mover));
	}
	test->fake->maps_error = 0;
	for (struct nm_page_batch *done = NULL; !done; done = fake_done(test->mover)) {
		fake_pass_ms(test->fake, test->mover, 500);
	}
	assert_int_equal(batch->error, 0);
	assert_int_equal(batch->moved, FAKE_PAGES);
	nm_page_batch_free(batch);
}

/* No page of a rollback is left out when its worker is still busy after a round. */
TEST(test_a_rollback_waits_for_its_worker)
{
	struct test *test = *state;
	struct nm_page_batch *batch = batch_back(1);

	batch->back[0] = (struct nm_base_pages){FAKE_BASE, 6, 2, 0};
	test->fake->where_error = -EINPROGRESS;
	start(test);
	assert_int_equal(nm_mover_submit(test->mover, batch), 0);
	for (unsigned i = 0; i < 20; i++)
		fake_pass_ms(test->fake, test->mover, 100);
	test->fake->where_error = 0;
	for (struct nm_page_batch *done = NULL; !done; done = fake_done(test->mover))
		fake_pass_ms(test->fake, test->mover, 500);
	assert_int_equal(batch->error, 0);
	assert_int_equal(batch->moved, 6);
	assert_int_equal(pages_on(test, 2), 6);
	nm_page_batch_free(batch);
}

/* Its worker is still busy after a round: other batches continue, and this one does when the worker
 * is done. */
/* SECURITY: held-lock */
TEST(test_others_go_on_while_a_worker_is_at_work)
{
	struct test *test = *state;
	struct nm_page_batch *busy = bulk_batch(), *other = bulk_batch();

	begin_large(test);
	test->fake->where_error = -EINPROGRESS;
	start(test);
	assert_int_equal(nm_mover_submit(test->mover, busy), 0);
	for (unsigned i = 0; i < 20; i++) {
		fake_pass_ms(test->fake, test->mover, 100);
		assert_null(fake_done(test->mover));
	}
	other->pid = FAKE_PID + 1; /* a process that does not exist */
	assert_int_equal(nm_mover_submit(test->mover, other), 0);
	assert_ptr_equal(fake_collect(test->fake, test->mover), other);
	assert_int_equal(other->error, -ESRCH);
	test->fake->where_error = 0;
	for (struct nm_page_batch *done = NULL; !done; done = fake_done(test->mover)) {
		fake_pass_ms(test->fake, test->mover, 500);
	}
	assert_int_equal(busy->error, 0);
	nm_page_batch_free(busy);
	nm_page_batch_free(other);
}

/* SECURITY: sparse */
TEST(test_a_sparse_mapping_is_not_searched)
{
	struct test *test = *state;
	struct nm_page_batch *batch_new = bulk_batch();

	begin_large(test);
	snprintf(test->fake->maps, FAKE_TEXT, "%" PRIx64 "-%" PRIx64 " rw-p 00000000 00:00 0\n",
		 FAKE_BASE, FAKE_BASE + ((uint64_t)4 << 30));
	RUN(test, batch);
	assert_int_equal(batch->error, 0);
	assert_int_equal(batch->moved, 0);
	assert_int_equal(test->fake->finds, 0);
}

/* A turn of reading is followed by a pause of the same length, for any number of turns. */
TEST(test_long_mappings_take_twice_their_time)
{
	struct test *test = *state;
	struct nm_page_batch *batch = bulk_batch(), *done;
	uint64_t begun_ns = test->fake->now_ns;

	set_numa_maps(test, "default anon=9000 N0=9000");
	test->fake->read_ns = 20 * NM_NSEC_PER_MSEC; /* longer than pages.maps_budget_ms */
	start(test);
	assert_int_equal(nm_mover_submit(test->mover, batch), 0);
	while (!(done = fake_done(test->mover))) {
		fake_work(test->fake, test->mover);
		test->fake->now_ns += NM_NSEC_PER_MSEC;
	}
	assert_ptr_equal(done, batch);
	assert_int_equal(batch->moved, FAKE_PAGES);
	assert_true(test->fake->reads >= 4);
	assert_true(test->fake->now_ns - begun_ns <= test->fake->reads * 45 * NM_NSEC_PER_MSEC);
	nm_page_batch_free(batch);
}

TEST(test_a_waiting_batch_is_dropped)
{
	struct test *test = *state;
	struct nm_page_batch *batch = bulk_batch();

	test->fake->maps_error = -EAGAIN;
	start(test);
	assert_int_equal(nm_mover_submit(test->mover, batch), 0);
	nm_mover_drop(test->mover, FAKE_PID, true);
	assert_ptr_equal(fake_collect(test->fake, test->mover), batch);
	assert_int_equal(batch->error, -ECANCELED);
	nm_page_batch_free(batch);
}

TEST(test_migration_ends_with_its_process)
{
	struct test *test = *state;
	struct nm_page_batch *batch_new = bulk_batch();

	begin_large(test);
	test->fake->where_error = -ESRCH;
	RUN(test, batch);
	assert_int_equal(batch->error, -ESRCH);
}

RUN_TESTS()
