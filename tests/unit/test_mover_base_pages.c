/* SPDX-License-Identifier: MIT */
/* Steps for a huge page where there is none: the fates of its small pages. */
#define SET_UP set_up
#define TEAR_DOWN tear_down
#include "../support/test.h"

#include "mover_fixture.h"

/* The kernel has split it meanwhile or never created it: all of its small pages move. */
TEST(test_huge_page_that_is_none)
{
	struct test *test = *state;
	struct memory *memory = test->memory;
	BATCH(4);

	for (size_t i = 0; i < 4; i++)
		make_huge(&batch_new->steps[i], i);
	memory->whole[1] = true;
	memory->node[0] = -ENOENT; /* never touched */
	memory->node[7] = 2;	   /* elsewhere, and left there */
	memory->node[2 * FAKE_PER_HUGE + 511] = -ENOENT;
	RUN(test, batch);
	assert_all(batch, NM_PAGE_FATE_MOVED);
	for (size_t i = 0; i < 4 * (size_t)FAKE_PER_HUGE; i++) {
		bool absent = i == 0 || i == 2 * FAKE_PER_HUGE + 511;
		assert_int_equal(memory->node[i], absent ? -ENOENT : i == 7 ? 2 : 1);
	}
	assert_int_equal(batch->moved, 4);
	assert_int_equal(nm_mover_counts(test->mover).bytes, 4 * FAKE_HUGE - 3 * FAKE_SMALL);
}

TEST(test_small_pages_all_stuck_or_away)
{
	struct test *test = *state;
	struct memory *memory = test->memory;
	BATCH(4);

	for (size_t i = 0; i < 4; i++)
		make_huge(&batch_new->steps[i], i);
	for (size_t i = 0; i < FAKE_PER_HUGE; i++) {
		memory->node[i] = i ? -ENOENT : 0;
		memory->add_error[i] = -EACCES;
		memory->node[FAKE_PER_HUGE + i] = i ? 3 : 2;
		memory->node[2 * FAKE_PER_HUGE + i] = -ENOENT;
		memory->node[3 * FAKE_PER_HUGE + i] = i == 300 ? 0 : -ENOENT;
	}
	RUN(test, batch);
	assert_int_equal(batch->steps[0].fate, NM_PAGE_FATE_FAILED);
	assert_int_equal(batch->steps[0].error, -EACCES);
	assert_int_equal(batch->steps[1].fate, NM_PAGE_FATE_ELSEWHERE);
	assert_int_equal(batch->steps[2].fate, NM_PAGE_FATE_FAILED);
	assert_int_equal(batch->steps[2].error, -ENOENT);
	assert_int_equal(batch->steps[3].fate, NM_PAGE_FATE_MOVED);
	assert_int_equal(memory->node[3 * FAKE_PER_HUGE + 300], 1);
}

/* ---- origins ---- */

/* Marks the origin of each page according to the batch; each page is reported once. */
static void unfold(const struct nm_page_batch *batch, int *was)
{
	for (size_t i = 0; i < FAKE_PAGES; i++)
		was[i] = -1;
	for (size_t i = 0; i < batch->nr_base_pages; i++) {
		const struct nm_base_pages *run = &batch->base_pages[i];
		size_t first = fake_index(run->address);
		assert_in_range(run->pages, 1, FAKE_PAGES);
		assert_int_equal(run->now_on, 1);
		for (size_t page = first; page < first + run->pages; page++) {
			assert_int_equal(was[page], -1);
			was[page] = run->was_on;
		}
	}
}

/* Steps that move pages from any node: some are already there, some absent, some stay. */
TEST(test_origins)
{
	int before[FAKE_PAGES], was[FAKE_PAGES];
	struct test *test = *state;
	struct memory *memory = test->memory;
	BATCH(4);

	for (size_t i = 0; i < 4; i++) {
		make_huge(&batch_new->steps[i], i);
		batch_new->steps[i].from = -1;
	}
	memory->whole[3] = true;
	for (size_t i = 0; i < 3 * (size_t)FAKE_PER_HUGE; i++)
		memory->node[i] = i % 7 == 0 ? -ENOENT : (int)(i / 5 % 4);
	for (size_t i = 0; i < 20; i++)
		memory->add_error[FAKE_PER_HUGE + 2 * i] = -EACCES;
	memcpy(before, memory->node, sizeof(before));
	RUN(test, batch);
	unfold(batch, was);
	for (size_t i = 0; i < 3 * (size_t)FAKE_PER_HUGE; i++)
		assert_int_equal(was[i], before[i] == memory->node[i] ? -1 : before[i]);
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(batch->steps[i].base_pages, i < 3);
	for (size_t i = 0; i < FAKE_PER_HUGE; i++)
		assert_int_equal(was[3 * (size_t)FAKE_PER_HUGE + i], 0);
	assert_int_equal(batch->base_pages_lost, 0);
}

/* Only its first page is in the call for huge pages, as the others are not part of one. */
TEST(test_origin_of_the_first)
{
	struct test *test = *state;
	BATCH(2);

	for (size_t i = 0; i < 2; i++)
		make_huge(&batch_new->steps[i], i);
	RUN(test, batch);
	assert_int_equal(batch->nr_base_pages, 1); /* adjacent */
	assert_int_equal(batch->base_pages[0].pages, 2 * FAKE_PER_HUGE);
	assert_int_equal(batch->base_pages[0].was_on, 0);
	assert_int_equal(batch->base_pages[0].address % FAKE_HUGE, 0);
	assert_int_equal(nm_mover_counts(test->mover).bytes, 2 * FAKE_HUGE);
}

/* The batch ends within a step, and another step has only its first page done: moved pages are
 * reported. */
TEST(test_ends_midway)
{
	int was[FAKE_PAGES];
	struct test *test = *state;
	struct memory *memory = test->memory;
	struct nm_page_batch *batch = fake_batch(2);

	for (size_t i = 0; i < 2; i++)
		make_huge(&batch->steps[i], i);
	test->config->pages.max_mb_per_s = 1;
	start(test);
	assert_int_equal(nm_mover_submit(test->mover, batch), 0);
	fake_work(test->memory, test->mover);
	nm_mover_drop(test->mover, FAKE_PID, false);
	assert_ptr_equal(fake_collect(test->memory, test->mover), batch);
	assert_int_equal(batch->error, -ECANCELED);
	unfold(batch, was);
	unsigned marked = 0;
	for (size_t i = 0; i < FAKE_PAGES; i++) {
		assert_int_equal(was[i], memory->node[i] == 1 ? 0 : -1);
		marked += was[i] == 0;
	}
	assert_in_range(marked, 1, FAKE_PAGES - 1);
	nm_page_batch_free(batch);
}

/* A batch that is submitted again reports only the second run. */
TEST(test_again)
{
	struct test *test = *state;
	struct nm_page_batch *batch = fake_batch(1);

	make_huge(&batch->steps[0], 0);
	batch = run(test, batch);
	assert_int_equal(batch->nr_base_pages, 1);
	fake_pass_ms(test->memory, test->mover, 1000);
	batch = run(test, batch);
	assert_int_equal(batch->steps[0].fate, NM_PAGE_FATE_ELSEWHERE);
	assert_int_equal(batch->nr_base_pages, 0);
	assert_false(batch->steps[0].base_pages);
	nm_page_batch_free(batch);
}

RUN_TESTS()
