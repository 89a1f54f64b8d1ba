/* SPDX-License-Identifier: MIT */
/* The fates of pages: moved, left, refused, failed; and huge pages. */
#define SET_UP set_up
#define TEAR_DOWN tear_down
#include "../support/test.h"

#include "mover_fixture.h"

/* ---- moved or left ---- */

TEST(test_moves)
{
	struct test *test = *state;
	BATCH(1000);
	RUN(test, batch);

	assert_int_equal(batch->error, 0);
	assert_all(batch, NM_PAGE_FATE_MOVED);
	for (size_t i = 0; i < FAKE_PAGES; i++)
		assert_int_equal(test->fake->node[i], i < 1000);
	assert_int_equal(batch->moved, 1000);
	assert_int_equal(batch->steps[999].found_on, 0);
	struct nm_mover_counts counts = nm_mover_counts(test->mover);
	assert_int_equal(counts.moved, 1000);
	assert_int_equal(counts.bytes, 1000 * FAKE_SMALL);
	assert_int_equal(counts.calls, batch->calls);
	assert_int_equal(counts.calls, test->fake->calls);
	assert_int_equal(counts.map_reads, 1);
	assert_int_equal(counts.waiting, 0);
	assert_null(fake_done(test->mover));
}

/* Node numbers of the kernel have gaps, indices have none. */
TEST(test_sparse_nodes)
{
	struct test *test = *state;
	BATCH(4);

	test->topology->nodes[1].os_id = 3;
	test->topology->nodes[3].os_id = 1;
	test->fake->node[3] = 1;
	batch_new->steps[3].from = 3;
	RUN(test, batch);
	assert_all(batch, NM_PAGE_FATE_MOVED);
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(test->fake->node[i], 3);
	assert_int_equal(batch->steps[3].found_on, 3);
}

TEST(test_pages_found_elsewhere)
{
	struct test *test = *state;
	BATCH(5);

	test->fake->node[0] = 2; /* seen on 0 */
	test->fake->node[1] = 1; /* there already */
	test->fake->node[2] = 1;
	batch_new->steps[2].from = -1;
	test->fake->node[3] = 2;
	batch_new->steps[3].from = -1; /* from any node */
	RUN(test, batch);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(batch->steps[i].fate, NM_PAGE_FATE_ELSEWHERE);
	assert_int_equal(batch->steps[0].found_on, 2);
	assert_int_equal(batch->steps[2].found_on, 1);
	assert_int_equal(batch->steps[3].fate, NM_PAGE_FATE_MOVED);
	assert_int_equal(batch->steps[3].found_on, 2);
	assert_int_equal(test->fake->node[0], 2);
}

/* ---- the process ---- */

TEST(test_other_process)
{
	struct test *test = *state;
	BATCH(3);

	batch_new->start_ticks = FAKE_TICKS + 1;
	RUN(test, batch);
	assert_int_equal(batch->error, -ESRCH);
	assert_all(batch, NM_PAGE_FATE_UNTRIED);
	assert_int_equal(test->fake->calls, 0);
}

TEST(test_process_gone)
{
	struct test *test = *state;
	BATCH(3);

	test->fake->pid = 0;
	RUN(test, batch);
	assert_int_equal(batch->error, -ESRCH);
	assert_all(batch, NM_PAGE_FATE_UNTRIED);
}

/* No page of the waiting call or of later ones is moved. */
static void assert_no_page_is_moved(struct test *test, struct nm_page_batch *batch)
{
	fake_release(test->fake);
	assert_ptr_equal(fake_collect(test->fake, test->mover), batch);
	assert_int_equal(batch->error, -ESRCH);
	assert_all(batch, NM_PAGE_FATE_UNTRIED);
	nm_page_batch_free(batch);
}

TEST(test_process_ends_midway)
{
	struct test *test = *state;
	struct nm_page_batch *batch = begin_held(test);

	test->fake->pid = 0;
	assert_no_page_is_moved(test, batch);
}

/* At the same time, so that no check is due: the call itself detects it. */
TEST(test_number_is_anothers_midway)
{
	struct test *test = *state;
	struct nm_page_batch *batch = begin_held(test);

	test->fake->start_ticks = FAKE_TICKS + 1;
	assert_no_page_is_moved(test, batch);
}

/* Its first thread has exited before the others: its number has no memory any more. */
TEST(test_first_thread_gone)
{
	struct test *test = *state;
	BATCH(3);

	test->fake->thread = FAKE_PID + 1;
	RUN(test, batch);
	assert_int_equal(batch->error, 0);
	assert_all(batch, NM_PAGE_FATE_MOVED);
}

TEST(test_call_refused)
{
	/* EINVAL: the process is exiting, and has no memory any more. */
	static const struct {
		int call, batch;
	} errors[] = {{-EPERM, -EPERM}, {-EROFS, -EROFS}, {-ENOSYS, -ENOSYS}, {-EINVAL, -ESRCH}};
	struct test *test = *state;

	for (size_t i = 0; i < NM_ARRAY_SIZE(errors); i++) {
		BATCH(2);
		test->fake->call_error = errors[i].call;
		RUN(test, batch);
		assert_int_equal(batch->error, errors[i].batch);
		assert_all(batch, NM_PAGE_FATE_UNTRIED);
	}
	BATCH(2);
	test->fake->where_error = -EACCES;
	RUN(test, batch);
	assert_int_equal(batch->error, -EPERM);
}

/* ---- errors of the kernel ---- */

TEST(test_errors_of_pages)
{
	static const struct {
		int at, error;
	} bad[] = {{3, -EBUSY}, {10, -ENOENT}, {11, -EACCES}, {40, -ENOMEM}, {41, -EFAULT}};
	struct test *test = *state;
	BATCH(100);

	for (size_t i = 0; i < NM_ARRAY_SIZE(bad); i++)
		test->fake->add_error[bad[i].at] = bad[i].error;
	RUN(test, batch);
	size_t next = 0;
	for (size_t i = 0; i < 100; i++) {
		bool is_bad = next < NM_ARRAY_SIZE(bad) && bad[next].at == (int)i;
		assert_int_equal(batch->steps[i].fate,
				 is_bad ? NM_PAGE_FATE_FAILED : NM_PAGE_FATE_MOVED);
		assert_int_equal(batch->steps[i].error, is_bad ? bad[next++].error : 0);
	}
	assert_int_equal(batch->error, 0);
}

TEST(test_absent_pages_are_not_asked_for)
{
	struct test *test = *state;
	BATCH(20);

	for (size_t i = 0; i < 20; i++)
		test->fake->node[i] = -ENOENT;
	RUN(test, batch);
	assert_all(batch, NM_PAGE_FATE_FAILED);
	assert_int_equal(test->fake->calls, 0);
}

/* The kernel does not report the status of pages in the group of a stuck page, and does not try
 * later ones. */
TEST(test_stuck_page_is_retried)
{
	struct test *test = *state;
	BATCH(16);

	test->fake->busy[5] = 1000;
	test->fake->add_error[9] = -EACCES; /* ends the group */
	RUN(test, batch);
	for (size_t i = 0; i < 16; i++)
		assert_int_equal(batch->steps[i].fate,
				 i == 5 || i == 9 ? NM_PAGE_FATE_FAILED : NM_PAGE_FATE_MOVED);
	assert_int_equal(batch->steps[5].error, -EBUSY);
	assert_int_equal(batch->steps[9].error, -EACCES);
	assert_int_equal(test->fake->calls, 2);
}

/* After a slow call there is a pause instead of a second attempt. */
TEST(test_stuck_page_and_slow_call)
{
	struct test *test = *state;
	BATCH(8);

	test->fake->busy[5] = 1;
	test->fake->call_ns = 11 * NM_NSEC_PER_MSEC;
	RUN(test, batch);
	for (size_t i = 0; i < 8; i++)
		assert_int_equal(batch->steps[i].fate,
				 i == 5 ? NM_PAGE_FATE_FAILED : NM_PAGE_FATE_MOVED);
	assert_int_equal(test->fake->calls, 1);
}

/* Calls for the first batch are slow, for example because its process holds the lock of its memory:
 * the batch of another domain does not wait for it, and the first one is continued later. */
/* SECURITY: slow-calls */
TEST(test_a_slow_domain_does_not_delay_others)
{
	struct test *test = *state;
	struct nm_page_batch *slow = begin_held(test), *other = fake_batch(8);

	slow->domain = 1;
	other->domain = 2;
	for (size_t i = 0; i < other->count; i++)
		other->steps[i].address += 400 * FAKE_SMALL;
	assert_int_equal(nm_mover_submit(test->mover, other), 0);
	test->fake->call_ns = 11 * NM_NSEC_PER_MSEC;
	fake_release(test->fake);
	while (test->fake->calls == 0)
		nm_mover_work(test->mover);
	test->fake->call_ns = 0;
	assert_ptr_equal(fake_collect(test->fake, test->mover), other);
	assert_all(other, NM_PAGE_FATE_MOVED);
	assert_ptr_equal(fake_done(test->mover), NULL);
	fake_pass_ms(test->fake, test->mover, 10000);
	assert_ptr_equal(fake_done(test->mover), slow);
	assert_all(slow, NM_PAGE_FATE_MOVED);
	assert_int_equal(slow->moved, 400);
	nm_page_batch_free(other);
	nm_page_batch_free(slow);
}

/* SECURITY: quota */
TEST(test_a_domain_with_many_batches_does_not_delay_others)
{
	struct test *test = *state;
	struct nm_page_batch *batches[6];

	start(test);
	for (size_t i = 0; i < NM_ARRAY_SIZE(batches); i++) {
		batches[i] = fake_batch(8);
		batches[i]->domain = i < 5 ? 1 : 2;
		for (size_t k = 0; k < 8; k++)
			batches[i]->steps[k].address += 8 * i * FAKE_SMALL;
		assert_int_equal(nm_mover_submit(test->mover, batches[i]), 0);
	}
	static const size_t order[] = {0, 5, 1, 2, 3, 4};
	for (size_t i = 0; i < NM_ARRAY_SIZE(batches); i++) {
		assert_ptr_equal(fake_collect(test->fake, test->mover), batches[order[i]]);
		assert_all(batches[order[i]], NM_PAGE_FATE_MOVED);
		nm_page_batch_free(batches[order[i]]);
	}
}

TEST(test_node_refuses)
{
	struct test *test = *state;
	BATCH(8);

	test->fake->call_error = -ENOMEM;
	RUN(test, batch);
	assert_int_equal(batch->error, 0);
	assert_all(batch, NM_PAGE_FATE_FAILED);
	assert_int_equal(test->fake->calls, 1);
}

/* ---- pages that must not move ---- */

/* One mapping of 16 pages per line, contiguous. */
static void map_lines(struct fake *fake, const char *const *perms, const char *const *lines,
		      size_t count)
{
	size_t maps = 0, numa_maps = 0;

	for (size_t i = 0; i < count; i++) {
		uint64_t begin = FAKE_BASE + i * 16 * FAKE_SMALL;
		maps += (size_t)snprintf(fake->maps + maps, FAKE_TEXT - maps,
					 "%" PRIx64 "-%" PRIx64 " %s\n", begin,
					 begin + 16 * FAKE_SMALL, perms[i]);
		if (lines[i])
			numa_maps +=
				(size_t)snprintf(fake->numa_maps + numa_maps, FAKE_TEXT - numa_maps,
						 "%" PRIx64 " %s\n", begin, lines[i]);
	}
}

#define ANONYMOUS "rw-p 00000000 00:00 0 "
#define KINDS 11U

static void map_kinds(struct fake *fake)
{
	static const char *const perms[KINDS] = {ANONYMOUS,
						 ANONYMOUS,
						 ANONYMOUS,
						 ANONYMOUS,
						 ANONYMOUS,
						 ANONYMOUS,
						 ANONYMOUS,
						 ANONYMOUS,
						 "rw-s 00000000 00:01 77 /dev/zero (deleted)",
						 "r--p 00000000 fd:01 78 /usr/lib/x.so",
						 ANONYMOUS};
	static const char *const lines[KINDS] = {
		"default anon=3 N0=3 kernelpagesize_kB=4",
		"local anon=3 N0=3 kernelpagesize_kB=4",
		"bind:0 anon=3 N0=3 kernelpagesize_kB=4",
		"prefer (many):0-1 anon=3 N0=3 kernelpagesize_kB=4",
		"prefer=static:1 anon=3 N0=3 kernelpagesize_kB=4",
		"weighted interleave:0-3 anon=3 N0=3 kernelpagesize_kB=4",
		"strange:0-3 anon=3 N0=3 kernelpagesize_kB=4",
		"default anon=3 mapmax=2 N0=3 kernelpagesize_kB=4",
		"default file=/dev/zero\\040(deleted) dirty=3 N0=3 kernelpagesize_kB=4",
		"default file=/usr/lib/x.so mapped=3 N0=3 kernelpagesize_kB=4",
		NULL};

	map_lines(fake, perms, lines, KINDS);
}

static struct nm_page_batch *batch_of_kinds(void)
{
	struct nm_page_batch *batch = fake_batch(KINDS + 1);

	for (size_t i = 0; i <= KINDS; i++) /* the last is in no mapping */
		batch->steps[i].address = FAKE_BASE + i * 16 * FAKE_SMALL;
	return batch;
}

static void expect_kinds(const struct nm_page_batch *batch, const char *fates)
{
	for (size_t i = 0; i < batch->count; i++)
		assert_int_equal(batch->steps[i].fate,
				 fates[i] == 'm' ? NM_PAGE_FATE_MOVED : NM_PAGE_FATE_REFUSED);
}

TEST(test_owners_policy)
{
	struct test *test = *state;
	struct nm_page_batch *batch_new = batch_of_kinds();

	map_kinds(test->fake);
	RUN(test, batch);
	expect_kinds(batch, "mmrrrrrmrrrr");
}

TEST(test_owners_policy_set_aside)
{
	struct test *test = *state;
	struct nm_page_batch *batch_new = batch_of_kinds();

	map_kinds(test->fake);
	test->config->pages.also = NM_ALSO_BOUND;
	RUN(test, batch);
	expect_kinds(batch, "mmmmmmmmrrrr");
}

TEST(test_shared_allowed)
{
	struct test *test = *state;
	struct nm_page_batch *batch_new = batch_of_kinds();

	map_kinds(test->fake);
	test->config->pages.also = NM_ALSO_SHARED;
	RUN(test, batch);
	expect_kinds(batch, "mmrrrrrmmmrr");
}

/* A reload changes the rules for later batches. */
TEST(test_reload_rules)
{
	struct test *test = *state;
	struct nm_page_batch *first = batch_of_kinds(), *second = batch_of_kinds();

	map_kinds(test->fake);
	first = run(test, first);
	expect_kinds(first, "mmrrrrrmrrrr");
	test->config->pages.also = NM_ALSO_BOUND;
	nm_mover_configure(test->mover, test->topology, test->config);
	for (size_t i = 0; i < second->count; i++)
		if (first->steps[i].fate == NM_PAGE_FATE_MOVED)
			second->steps[i].from = 1, second->steps[i].to = 0;
	second = run(test, second);
	expect_kinds(second, "mmmmmmmmrrrr");
	nm_page_batch_free(first);
	nm_page_batch_free(second);
}

TEST(test_cpuset)
{
	struct test *test = *state;
	BATCH(4);

	test->fake->barred_nodes = 1 << 1;
	batch_new->steps[1].to = 2;
	batch_new->steps[2].to = 9;
	batch_new->steps[3].to = -1;
	RUN(test, batch);
	assert_int_equal(batch->steps[0].fate, NM_PAGE_FATE_FAILED);
	assert_int_equal(batch->steps[0].error, -EACCES);
	assert_int_equal(batch->steps[1].fate, NM_PAGE_FATE_MOVED);
	assert_int_equal(batch->steps[2].fate, NM_PAGE_FATE_REFUSED);
	assert_int_equal(batch->steps[3].fate, NM_PAGE_FATE_REFUSED);
}

/* ---- free memory ---- */

TEST(test_node_nearly_full)
{
	struct test *test = *state;
	BATCH(20);

	test->config->pages.keep_free_percent = 25;
	test->fake->free_kib[1] = (1 << 18) + 20;
	test->fake->idle_kib[1] = 20; /* ten pages in all above 25 % */
	RUN(test, batch);
	for (size_t i = 0; i < 20; i++)
		assert_int_equal(batch->steps[i].fate,
				 i < 10 ? NM_PAGE_FATE_MOVED : NM_PAGE_FATE_REFUSED);
}

TEST(test_no_free_huge_page)
{
	struct test *test = *state;
	BATCH(3);

	for (size_t i = 0; i < 3; i++) {
		make_huge(&batch_new->steps[i], i);
		test->fake->whole[i] = true;
	}
	test->fake->huge_blocks[1] = 2;
	RUN(test, batch);
	assert_int_equal(batch->steps[1].fate, NM_PAGE_FATE_MOVED);
	assert_int_equal(batch->steps[2].fate, NM_PAGE_FATE_REFUSED);
	assert_int_equal(test->fake->node[2 * FAKE_PER_HUGE - 1], 1);
	assert_int_equal(test->fake->node[2 * FAKE_PER_HUGE], 0);
}

static void map_pool(struct fake *fake)
{
	snprintf(fake->maps, FAKE_TEXT,
		 "%" PRIx64 "-%" PRIx64 " rw-p 00000000 00:0f 99 /anon_hugepage (deleted)\n",
		 FAKE_BASE, FAKE_BASE + 8 * (uint64_t)FAKE_HUGE);
	snprintf(fake->numa_maps, FAKE_TEXT,
		 "%" PRIx64 " default file=/anon_hugepage\\040(deleted) huge anon=8 dirty=8 N0=8 "
		 "kernelpagesize_kB=2048\n",
		 FAKE_BASE);
}

TEST(test_pool_of_huge_pages)
{
	struct test *test = *state;
	BATCH(4);

	map_pool(test->fake);
	for (size_t i = 0; i < 3; i++) {
		make_huge(&batch_new->steps[i], i);
		test->fake->whole[i] = true;
	}
	batch_new->steps[3].address = FAKE_BASE + 3 * (uint64_t)FAKE_HUGE; /* a part of one */
	test->fake->pool_pages[1] = 2;
	test->fake->huge_blocks[1] = 0; /* none on the source node of the pages of the pool */
	RUN(test, batch);
	assert_int_equal(batch->steps[0].fate, NM_PAGE_FATE_MOVED);
	assert_int_equal(batch->steps[1].fate, NM_PAGE_FATE_MOVED);
	assert_int_equal(batch->steps[2].fate, NM_PAGE_FATE_REFUSED);
	assert_int_equal(batch->steps[3].fate, NM_PAGE_FATE_REFUSED);
	assert_int_equal(nm_mover_counts(test->mover).bytes, 2 * FAKE_HUGE);
}

/* ---- huge pages ---- */

TEST(test_wrong_shapes)
{
	struct test *test = *state;
	BATCH(4);

	batch_new->steps[0].address += 8;
	batch_new->steps[1].bytes = 65536;
	batch_new->steps[2].bytes = 0;
	make_huge(&batch_new->steps[3], 0);
	batch_new->steps[3].address += FAKE_SMALL;
	RUN(test, batch);
	assert_all(batch, NM_PAGE_FATE_REFUSED);
}

TEST(test_splits)
{
	struct test *test = *state;
	BATCH(2);

	test->fake->splits = 100;
	start(test);
	test->fake->splits = 107;
	RUN(test, batch);
	assert_int_equal(batch->error, 0);
	assert_int_equal(nm_mover_counts(test->mover).splits, 7);
}

RUN_TESTS()
