/* SPDX-License-Identifier: MIT */
/* A round of pages in a worker: attempts, queries and reports. */
#include "../support/test.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "platform/page_jobs.h"

#define PAGES 6U
#define TO 1
#define SLOW_NS 100U
#define NONE INT32_MIN

/* The fake kernel with the results of its calls. Addresses are the numbers of pages. */
struct kernel {
	int on[PAGES];	      /* as reported by queries */
	int status[2][PAGES]; /* of each attempt; NONE: not reported */
	int result[2], where_result;
	uint64_t held_ns;
	unsigned moves, queries;
	char order[2][PAGES + 1], queried[3][PAGES + 1];
};

static int where(void *context, unsigned count, const uint64_t *addresses, int *ret)
{
	struct kernel *kernel = context;
	char *queried = kernel->queried[kernel->queries++];

	for (unsigned i = 0; i < count; i++) {
		queried[i] = (char)('0' + addresses[i]);
		if (kernel->where_result == 0)
			ret[i] = kernel->on[addresses[i]];
	}
	return kernel->where_result;
}

static int move(void *context, unsigned count, const uint64_t *addresses, const int *nodes,
		int *statuses, uint64_t *ret_held_ns)
{
	struct kernel *kernel = context;
	unsigned number = kernel->moves++;

	assert_true(number < 2);
	for (unsigned i = 0; i < count; i++) {
		kernel->order[number][i] = (char)('0' + addresses[i]);
		assert_int_equal(nodes[i], TO);
		assert_int_equal(statuses[i], NONE); /* unset, as the kernel leaves some */
		if (kernel->status[number][addresses[i]] != NONE)
			statuses[i] = kernel->status[number][addresses[i]];
	}
	*ret_held_ns = kernel->held_ns + number;
	return kernel->result[number];
}

/* By default, each page moves. */
static struct kernel *new_kernel(void)
{
	static struct kernel kernel;

	kernel = (struct kernel){.held_ns = 7};
	for (unsigned i = 0; i < PAGES; i++)
		kernel.on[i] = kernel.status[0][i] = kernel.status[1][i] = TO;
	return &kernel;
}

struct moved {
	struct nm_page_try tries[2];
	int pages[PAGES];
};

static int perform(struct kernel *kernel, struct moved *ret)
{
	static const uint64_t addresses[PAGES] = {0, 1, 2, 3, 4, 5};
	static const int nodes[PAGES] = {TO, TO, TO, TO, TO, TO};
	const struct nm_page_round round = {
		.count = PAGES, .addresses = addresses, .nodes = nodes, .slow_ns = SLOW_NS};
	const struct nm_page_calls calls = {where, move, NULL, kernel};

	memset(ret, 0x55, sizeof(*ret));
	return nm_page_round(&round, &calls, ret->tries, ret->pages);
}

static void expect(const struct moved *moved, const int *nodes)
{
	for (unsigned i = 0; i < PAGES; i++)
		assert_int_equal(moved->pages[i], nodes[i]);
}

TEST(pages_that_move_are_not_queried)
{
	struct kernel *kernel = new_kernel();
	struct moved moved;

	assert_int_equal(perform(kernel, &moved), 0);
	expect(&moved, (int[]){TO, TO, TO, TO, TO, TO});
	assert_string_equal(kernel->order[0], "012345");
	assert_int_equal(kernel->moves, 1);
	assert_int_equal(kernel->queries, 0);
	assert_int_equal(moved.tries[0].pages, PAGES);
	assert_int_equal(moved.tries[0].held_ns, 7);
	assert_int_equal(moved.tries[1].pages, 0);
}

TEST(pages_without_a_status_are_queried_and_tried_again_backwards)
{
	struct kernel *kernel = new_kernel();
	struct moved moved;

	for (unsigned i = 1; i < PAGES; i++)
		kernel->status[0][i] = NONE;
	kernel->on[2] = kernel->on[4] = kernel->on[5] = 0; /* 1 and 3 have moved */
	kernel->status[1][2] = NONE;
	kernel->status[1][4] = -EBUSY;
	assert_int_equal(perform(kernel, &moved), 0);
	assert_string_equal(kernel->queried[0], "12345");
	assert_string_equal(kernel->order[1], "542");
	assert_string_equal(kernel->queried[1], "24");
	expect(&moved, (int[]){TO, TO, -EBUSY, TO, -EBUSY, TO});
	assert_int_equal(moved.tries[1].pages, 3);
	assert_int_equal(moved.tries[1].held_ns, 8);
}

TEST(pages_with_an_error_of_their_own_are_not_tried_again)
{
	static const int errors[] = {-ENOENT, -EACCES, -EFAULT, -EBUSY, -EAGAIN, -ENOMEM};
	struct kernel *kernel = new_kernel();
	struct moved moved;

	for (unsigned i = 0; i < PAGES; i++) {
		kernel->status[0][i] = errors[i];
		kernel->on[i] = 0;
	}
	assert_int_equal(perform(kernel, &moved), 0);
	assert_string_equal(kernel->queried[0], "34");
	assert_string_equal(kernel->order[1], "43");
	expect(&moved, (int[]){-ENOENT, -EACCES, -EFAULT, TO, TO, -ENOMEM});
}

TEST(a_page_that_vanished_before_its_query_is_reported)
{
	struct kernel *kernel = new_kernel();
	struct moved moved;

	kernel->status[0][3] = NONE;
	kernel->on[3] = -ENOENT;
	assert_int_equal(perform(kernel, &moved), 0);
	expect(&moved, (int[]){TO, TO, TO, -ENOENT, TO, TO});
	assert_int_equal(kernel->moves, 1);
}

TEST(a_slow_attempt_is_not_retried)
{
	struct kernel *kernel = new_kernel();
	struct moved moved;

	for (uint64_t held_ns = SLOW_NS; held_ns <= SLOW_NS + 1; held_ns++) {
		kernel = new_kernel();
		kernel->held_ns = held_ns;
		kernel->status[0][0] = NONE;
		kernel->on[0] = 0;
		assert_int_equal(perform(kernel, &moved), 0);
		assert_int_equal(kernel->moves, held_ns > SLOW_NS ? 1 : 2);
		expect(&moved, (int[]){held_ns > SLOW_NS ? -EBUSY : TO, TO, TO, TO, TO, TO});
	}
}

TEST(an_error_about_pages_applies_to_the_remaining_pages)
{
	struct kernel *kernel = new_kernel();
	struct moved moved;

	for (unsigned i = 0; i < PAGES; i++)
		kernel->status[0][i] = NONE;
	kernel->on[4] = 0;
	kernel->result[0] = -ENOMEM;
	assert_int_equal(perform(kernel, &moved), 0);
	expect(&moved, (int[]){TO, TO, TO, TO, -ENOMEM, TO});
	assert_int_equal(kernel->moves, 1);
}

TEST(an_error_about_the_process_ends_the_round)
{
	static const int errors[] = {-ESRCH, -EPERM, -EINVAL, -ENOSYS};
	struct moved moved;

	for (size_t i = 0; i < NM_ARRAY_SIZE(errors); i++) {
		struct kernel *kernel = new_kernel();
		kernel->result[0] = errors[i];
		assert_int_equal(perform(kernel, &moved), errors[i]);
		assert_int_equal(kernel->moves, 1);
		assert_int_equal(kernel->queries, 0);
		assert_int_equal(moved.tries[0].pages, PAGES);
		assert_int_equal(moved.tries[0].held_ns, 7);
	}
}

TEST(the_same_error_in_the_second_try_keeps_the_first)
{
	struct kernel *kernel = new_kernel();
	struct moved moved;

	kernel->status[0][2] = NONE;
	kernel->on[2] = 0;
	kernel->result[1] = -ESRCH;
	assert_int_equal(perform(kernel, &moved), 0);
	assert_int_equal(kernel->moves, 2);
	expect(&moved, (int[]){TO, TO, -EBUSY, TO, TO, TO});
}

TEST(without_an_answer_pages_are_tried_again)
{
	struct kernel *kernel = new_kernel();
	struct moved moved;

	kernel->status[0][1] = kernel->status[0][2] = NONE;
	kernel->where_result = -EAGAIN;
	kernel->status[1][2] = NONE;
	assert_int_equal(perform(kernel, &moved), 0);
	assert_string_equal(kernel->order[1], "21");
	expect(&moved, (int[]){TO, TO, -EBUSY, TO, TO, TO});
}

RUN_TESTS()
