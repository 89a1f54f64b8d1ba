/* SPDX-License-Identifier: MIT */
/* A process's memory that is brought along as a whole: small pages of many steps in a call. */
#include "mover_fixture.h"

#define BLOCKS (FAKE_PAGES / FAKE_PER_HUGE)

/* What the kernel says of the only mapping. */
static void say_resident(const struct test *test, const char *of_nodes)
{
	snprintf(test->fake->numa_maps, FAKE_TEXT,
		 "%" PRIx64 " default anon=9 dirty=9 %s kernelpagesize_kB=4\n", FAKE_BASE, of_nodes);
}

static struct nm_page_batch *bulk_batch(size_t blocks)
{
	struct nm_page_batch *batch = fake_batch(blocks);

	batch->bulk = true;
	for (size_t i = 0; i < blocks; i++) {
		make_huge(&batch->steps[i], i);
		batch->steps[i].from = -1;
	}
	return batch;
}

static unsigned pages_on(const struct test *test, int node)
{
	unsigned count = 0;

	for (size_t page = 0; page < FAKE_PAGES; page++)
		count += test->fake->node[page] == node;
	return count;
}

/* Two questions and as many calls as its pages need, however few of them each step has. */
static void test_few_calls_for_many_steps(void **state)
{
	struct test *test = *state;
	struct nm_page_batch *batch_new = bulk_batch(BLOCKS);

	say_resident(test, "N0=4096 N2=4096");
	test->config->pages.max_pages_per_interval = 1U << 20;
	for (size_t page = 0; page < FAKE_PAGES; page++)
		test->fake->node[page] = page % 32 == 0 ? 2 : -ENOENT;
	RUN(test, batch);
	assert_int_equal(pages_on(test, 1), FAKE_PAGES / 32);
	assert_int_equal(pages_on(test, 2), 0);
	assert_all(batch, NM_PAGE_FATE_MOVED);
	assert_int_equal(batch->moved, FAKE_PAGES / 32);
	assert_in_range(test->fake->calls, 1, 2);
}

static void test_huge_pages_go_whole(void **state)
{
	struct test *test = *state;
	struct nm_page_batch *batch_new = bulk_batch(2);

	say_resident(test, "N0=4096 N2=4096");
	test->fake->whole[0] = true;
	RUN(test, batch);
	assert_int_equal(pages_on(test, 1), 2 * FAKE_PER_HUGE);
	assert_all(batch, NM_PAGE_FATE_MOVED);
}

static void test_each_step_has_its_fate(void **state)
{
	struct test *test = *state;
	struct nm_page_batch *batch_new = bulk_batch(5);

	say_resident(test, "N0=4096 N2=4096");
	for (size_t page = 0; page < FAKE_PER_HUGE; page++) {
		test->fake->node[page] = 1;				/* there already */
		test->fake->node[FAKE_PER_HUGE + page] = -ENOENT;	/* never touched */
		test->fake->add_error[3 * FAKE_PER_HUGE + page] = -EACCES; /* others map it too */
	}
	test->fake->node[2 * FAKE_PER_HUGE] = 1; /* but for the first */
	batch_new->steps[4].to = 99;		 /* no such node */
	RUN(test, batch);
	assert_int_equal(batch->steps[0].fate, NM_PAGE_FATE_ELSEWHERE);
	assert_int_equal(batch->steps[1].fate, NM_PAGE_FATE_FAILED);
	assert_int_equal(batch->steps[1].error, -ENOENT);
	assert_int_equal(batch->steps[2].fate, NM_PAGE_FATE_MOVED);
	assert_int_equal(batch->steps[3].fate, NM_PAGE_FATE_FAILED);
	assert_int_equal(batch->steps[3].error, -EACCES);
	assert_int_equal(batch->steps[4].fate, NM_PAGE_FATE_REFUSED);
	assert_int_equal(batch->moved, FAKE_PER_HUGE - 1);
}

/* A node that is full takes what it can: the rest is told as refused. */
static void test_a_node_nearly_full(void **state)
{
	struct test *test = *state;
	struct nm_page_batch *batch_new = bulk_batch(2);

	say_resident(test, "N0=4096 N2=4096");
	test->config->pages.keep_free = 0;
	test->fake->free_kib[1] = 4 * 100;
	RUN(test, batch);
	assert_int_equal(pages_on(test, 1), 100);
	assert_int_equal(batch->steps[0].fate, NM_PAGE_FATE_MOVED);
	assert_int_equal(batch->steps[1].fate, NM_PAGE_FATE_REFUSED);
}

/* Small pages of a step go in several calls, and each once. */
static void test_a_step_in_several_calls(void **state)
{
	struct test *test = *state;
	struct nm_page_batch *batch_new = bulk_batch(3);

	say_resident(test, "N0=4096 N2=4096");
	RUN(test, batch);
	assert_int_equal(batch->moved, 3 * FAKE_PER_HUGE);
	assert_int_equal(pages_on(test, 1), 3 * FAKE_PER_HUGE);
	assert_true(test->fake->calls > 1 && test->fake->largest >= 256);
	assert_int_equal(nm_mover_counts(test->mover).moved, 3 * FAKE_PER_HUGE);
	assert_int_equal(nm_mover_counts(test->mover).waiting, 0);
}

/* A mapping all of whose pages are there needs no question. */
static void test_what_is_there_is_not_asked_for(void **state)
{
	struct test *test = *state;
	struct nm_page_batch *batch_new = bulk_batch(BLOCKS);

	test->fake->where_error = -EPERM; /* would end the batch */
	say_resident(test, "N1=8192");
	RUN(test, batch);
	assert_int_equal(batch->error, 0);
	assert_all(batch, NM_PAGE_FATE_ELSEWHERE);
	assert_int_equal(test->fake->calls, 0);
}

/* Of a large mapping that is nearly empty no more is looked at than it takes to find its pages. */
static void test_no_longer_than_there_are_pages(void **state)
{
	struct test *test = *state;
	struct nm_page_batch *batch_new = bulk_batch(BLOCKS);

	for (size_t page = 0; page < FAKE_PAGES; page++)
		test->fake->node[page] = page < 5 ? 2 : -ENOENT;
	say_resident(test, "N0=1 N2=4");
	RUN(test, batch);
	assert_int_equal(batch->moved, 5);
	assert_int_equal(batch->steps[0].fate, NM_PAGE_FATE_MOVED);
	assert_int_equal(batch->steps[7].fate, NM_PAGE_FATE_FAILED); /* of the first question */
	assert_int_equal(batch->steps[8].fate, NM_PAGE_FATE_ELSEWHERE); /* of none */
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_few_calls_for_many_steps), TEST(test_huge_pages_go_whole),
		TEST(test_each_step_has_its_fate),   TEST(test_a_node_nearly_full),
		TEST(test_a_step_in_several_calls),
		TEST(test_what_is_there_is_not_asked_for),
		TEST(test_no_longer_than_there_are_pages),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
