/* SPDX-License-Identifier: MIT */
/* A round of pages in a worker: attempts, queries and reports. */
#include "../support/test.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "numa-migrd/maps.h"
#include "numa-migrd/worker.h"

#define PAGES 6U
#define TO 1
#define SLOW_NS 100U
#define LAST UINT64_C(0x1000)
#define NONE INT32_MIN

/* The fake kernel with the results of its calls. Addresses are the numbers of pages. */
struct kernel {
	int on[PAGES]; /* as reported by queries */
	int last_on[PAGES];
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
		size_t page = addresses[i] % LAST;
		queried[i] = (char)('0' + page);
		if (kernel->where_result == 0)
			ret[i] = addresses[i] < LAST ? kernel->on[page] : kernel->last_on[page];
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
		kernel.on[i] = kernel.last_on[i] = kernel.status[0][i] = kernel.status[1][i] = TO;
	return &kernel;
}

static int perform(struct kernel *kernel, uint64_t last_offset, struct nm_worker_moved *ret)
{
	static const uint64_t addresses[PAGES] = {0, 1, 2, 3, 4, 5};
	static const int nodes[PAGES] = {TO, TO, TO, TO, TO, TO};
	const struct nm_page_round round = {.count = PAGES,
					    .addresses = addresses,
					    .nodes = nodes,
					    .last_offset = last_offset,
					    .slow_ns = SLOW_NS};
	const struct nm_round_calls calls = {where, move, kernel};

	memset(ret, 0x55, sizeof(*ret));
	return nm_round_perform(&round, &calls, ret);
}

static void expect(const struct nm_worker_moved *moved, const int *nodes)
{
	for (unsigned i = 0; i < PAGES; i++) {
		assert_int_equal(moved->pages[i].node, nodes[i]);
		assert_int_equal(moved->pages[i].last, nodes[i]);
	}
}

TEST(pages_that_move_are_not_queried)
{
	struct kernel *kernel = new_kernel();
	struct nm_worker_moved moved;

	assert_int_equal(perform(kernel, 0, &moved), 0);
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
	struct nm_worker_moved moved;

	for (unsigned i = 1; i < PAGES; i++)
		kernel->status[0][i] = NONE;
	kernel->on[2] = kernel->on[4] = kernel->on[5] = 0; /* 1 and 3 have moved */
	kernel->status[1][2] = NONE;
	kernel->status[1][4] = -EBUSY;
	assert_int_equal(perform(kernel, 0, &moved), 0);
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
	struct nm_worker_moved moved;

	for (unsigned i = 0; i < PAGES; i++) {
		kernel->status[0][i] = errors[i];
		kernel->on[i] = 0;
	}
	assert_int_equal(perform(kernel, 0, &moved), 0);
	assert_string_equal(kernel->queried[0], "34");
	assert_string_equal(kernel->order[1], "43");
	expect(&moved, (int[]){-ENOENT, -EACCES, -EFAULT, TO, TO, -ENOMEM});
}

TEST(a_page_that_vanished_before_its_query_is_reported)
{
	struct kernel *kernel = new_kernel();
	struct nm_worker_moved moved;

	kernel->status[0][3] = NONE;
	kernel->on[3] = -ENOENT;
	assert_int_equal(perform(kernel, 0, &moved), 0);
	expect(&moved, (int[]){TO, TO, TO, -ENOENT, TO, TO});
	assert_int_equal(kernel->moves, 1);
}

TEST(a_slow_attempt_is_not_retried)
{
	struct kernel *kernel = new_kernel();
	struct nm_worker_moved moved;

	for (uint64_t held_ns = SLOW_NS; held_ns <= SLOW_NS + 1; held_ns++) {
		kernel = new_kernel();
		kernel->held_ns = held_ns;
		kernel->status[0][0] = NONE;
		kernel->on[0] = 0;
		assert_int_equal(perform(kernel, 0, &moved), 0);
		assert_int_equal(kernel->moves, held_ns > SLOW_NS ? 1 : 2);
		expect(&moved, (int[]){held_ns > SLOW_NS ? -EBUSY : TO, TO, TO, TO, TO, TO});
	}
}

TEST(an_error_about_pages_applies_to_the_remaining_pages)
{
	struct kernel *kernel = new_kernel();
	struct nm_worker_moved moved;

	for (unsigned i = 0; i < PAGES; i++)
		kernel->status[0][i] = NONE;
	kernel->on[4] = 0;
	kernel->result[0] = -ENOMEM;
	assert_int_equal(perform(kernel, 0, &moved), 0);
	expect(&moved, (int[]){TO, TO, TO, TO, -ENOMEM, TO});
	assert_int_equal(kernel->moves, 1);
}

TEST(an_error_about_the_process_ends_the_round)
{
	static const int errors[] = {-ESRCH, -EPERM, -EINVAL, -ENOSYS};
	struct nm_worker_moved moved;

	for (size_t i = 0; i < NM_ARRAY_SIZE(errors); i++) {
		struct kernel *kernel = new_kernel();
		kernel->result[0] = errors[i];
		assert_int_equal(perform(kernel, 0, &moved), errors[i]);
		assert_int_equal(kernel->moves, 1);
		assert_int_equal(kernel->queries, 0);
		assert_int_equal(moved.tries[0].pages, PAGES);
		assert_int_equal(moved.tries[0].held_ns, 7);
	}
}

TEST(the_same_error_in_the_second_try_keeps_the_first)
{
	struct kernel *kernel = new_kernel();
	struct nm_worker_moved moved;

	kernel->status[0][2] = NONE;
	kernel->on[2] = 0;
	kernel->result[1] = -ESRCH;
	assert_int_equal(perform(kernel, 0, &moved), 0);
	assert_int_equal(kernel->moves, 2);
	expect(&moved, (int[]){TO, TO, -EBUSY, TO, TO, TO});
}

TEST(without_an_answer_pages_are_tried_again)
{
	struct kernel *kernel = new_kernel();
	struct nm_worker_moved moved;

	kernel->status[0][1] = kernel->status[0][2] = NONE;
	kernel->where_result = -EAGAIN;
	kernel->status[1][2] = NONE;
	assert_int_equal(perform(kernel, 0, &moved), 0);
	assert_string_equal(kernel->order[1], "21");
	expect(&moved, (int[]){TO, TO, -EBUSY, TO, TO, TO});
}

TEST(the_final_location_of_each_page_is_queried)
{
	struct kernel *kernel = new_kernel();
	struct nm_worker_moved moved;

	kernel->last_on[3] = 0;
	kernel->status[0][5] = -ENOENT;
	assert_int_equal(perform(kernel, LAST, &moved), 0);
	assert_int_equal(kernel->queries, 1);
	assert_string_equal(kernel->queried[0], "012345");
	for (unsigned i = 0; i < PAGES; i++) {
		assert_int_equal(moved.pages[i].node, i == 5 ? -ENOENT : TO);
		assert_int_equal(moved.pages[i].last, i == 3 ? 0 : TO);
	}
	kernel = new_kernel();
	kernel->where_result = -EAGAIN;
	kernel->last_on[3] = 0;
	assert_int_equal(perform(kernel, LAST, &moved), 0);
	expect(&moved, (int[]){TO, TO, TO, TO, TO, TO}); /* unknown, so assumed */
}

/* ---- the request ---- */

/* SECURITY: worker-socket */
TEST(nodes_and_offsets_out_of_range_are_refused)
{
	struct {
		struct nm_worker_request request;
		uint64_t addresses[2];
		int32_t nodes[2];
	} message = {.request = {.version = NM_WORKER_VERSION,
				 .act = NM_WORKER_ROUND,
				 .pid = 1,
				 .count = 2,
				 .start_ticks = 1,
				 .last_offset = LAST},
		     .nodes = {0, NM_NODE_NUMBERS - 1}};
	struct nm_worker_order order;

	assert_int_equal(nm_worker_parse(&message, sizeof(message), false, &order), 0);
	assert_ptr_equal(order.nodes, message.nodes);
	message.nodes[1] = NM_NODE_NUMBERS;
	assert_int_equal(nm_worker_parse(&message, sizeof(message), false, &order), -EINVAL);
	message.nodes[1] = -1;
	assert_int_equal(nm_worker_parse(&message, sizeof(message), false, &order), -EINVAL);
	message.nodes[1] = 0;
	message.request.last_offset = NM_WORKER_PAGE_BYTES_MOST + 1;
	assert_int_equal(nm_worker_parse(&message, sizeof(message), false, &order), -EINVAL);
	message.request.last_offset = 0;
	assert_int_equal(nm_worker_parse(&message, sizeof(message) - 4, false, &order), -EINVAL);
	message.request.count = 3;
	assert_int_equal(nm_worker_parse(&message, sizeof(message), false, &order), -EINVAL);
}

RUN_TESTS()
