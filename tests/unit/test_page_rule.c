/* SPDX-License-Identifier: MIT */
/* When a page belongs to another node: equation 6, and conditions that delay the move. */
#define SET_UP set_up_pages
#define TEAR_DOWN tear_down_pages
#include "../support/test.h"

#include "pages_fixture.h"

/* Does a page on node 0 with `most` accesses of node 1 and `second` of node 2 move to node 1? */
static bool moves(unsigned most, unsigned second)
{
	static uint64_t number;
	uint64_t address = PAGE(++number);
	int last;

	if (times_from_node(second, address, 2) >= 0)
		settle(address, NM_PAGE_DROPPED, 0);
	last = times_from_node(most, address, 1);
	return last == 1;
}

TEST(test_equation_6)
{
	assert_false(moves(1, 0));
	assert_true(moves(2, 0));
	assert_false(moves(3, 1));
	assert_true(moves(4, 1));
}

TEST(test_factor)
{
	config->rules.page_factor = 1.5;
	nm_pages_configure(pages, config);
	assert_false(moves(4, 2)); /* more than 4 are needed */
	assert_true(moves(5, 2));
	assert_false(moves(2, 1)); /* more than 2.5 */
	assert_true(moves(3, 1));
}

TEST(test_home_must_be_known)
{
	struct nm_page_touch access = {
		.page = {.address = PAGE(1), .owner = owner}, .node = 1, .page_node = -1};

	for (unsigned i = 0; i < 10; i++)
		assert_int_equal(touch(&access).target, -1);
	assert_int_equal(look(PAGE(1)).page_node, -1);
	access.page_node = 3;
	assert_int_equal(touch(&access).target, 1);
	assert_int_equal(look(PAGE(1)).page_node, 3);
}

/* Node 3 has no CPUs and is represented by node 1, so the page is already local. */
TEST(test_memory_beside_the_thread_stays)
{
	struct nm_page_touch access = {
		.page = {.address = PAGE(1), .owner = owner}, .node = 1, .page_node = 3};
	int target = -1;

	nm_pages_stand_in(pages, 3, 1);
	for (unsigned i = 0; i < 10; i++)
		assert_int_equal(touch(&access).target, -1);
	access.node = 2;
	for (unsigned i = 0; i < 30 && target < 0; i++)
		target = touch(&access).target;
	assert_int_equal(target, 2);
}

TEST(test_found_once)
{
	assert_int_equal(times_from_node(2, PAGE(1), 1), 1);
	assert_true(look(PAGE(1)).pending);
	assert_int_equal(times_from_node(9, PAGE(1), 1), -1);
	settle(PAGE(1), NM_PAGE_DROPPED, 0);
	assert_int_equal(from_node(PAGE(1), 1), 1);
}

TEST(test_pages_wait_until_first_mapping)
{
	nm_pages_hold(pages, owner, true);
	assert_int_equal(times_from_node(50, PAGE(1), 1), -1);
	nm_pages_hold(pages, owner, false);
	assert_int_equal(from_node(PAGE(1), 1), 1);
	assert_int_equal(nm_pages_open(pages, &owner), 0);
	assert_int_equal(times_from_node(50, PAGE(1), 1), -1); /* a new one is held */
}

/* A few accesses more are chance: (9, 3) differ by 6 = 1.73 times the root of their sum. */
TEST(test_evidence)
{
	config->rules.page_min_accesses = 1;
	nm_pages_configure(pages, config);
	assert_false(moves(3, 0));
	assert_true(moves(4, 0));
	assert_false(moves(5, 1));
	assert_true(moves(6, 1));
	assert_false(moves(9, 3));
	assert_true(moves(10, 3));
}

TEST(test_min_accesses)
{
	config->rules.page_min_accesses = 6;
	nm_pages_configure(pages, config);
	assert_int_equal(times_from_node(5, PAGE(1), 1), -1);
	assert_int_equal(from_node(PAGE(1), 1), 1);
}

TEST(test_move_halves_failure_does_not)
{
	times_from_node(1, PAGE(1), 2);
	assert_int_equal(times_from_node(4, PAGE(1), 1), 1);
	settle(PAGE(1), NM_PAGE_FAILED, 0);
	assert_int_equal(look(PAGE(1)).accesses[1], 4);
	assert_int_equal(look(PAGE(1)).page_node, 0);
	assert_int_equal(from_node(PAGE(1), 1), 1);
	settle(PAGE(1), NM_PAGE_MOVED, 1);
	assert_int_equal(look(PAGE(1)).accesses[1], 2);
	assert_int_equal(look(PAGE(1)).accesses[2], 0);
	assert_int_equal(look(PAGE(1)).page_node, 1);
}

static void check_cooldown(enum nm_page_outcome outcome)
{
	config->rules.page_cooldown_s = 10;
	renew_pages(4);
	assert_int_equal(times_from_node(2, PAGE(1), 1), 1);
	settle(PAGE(1), outcome, 1);
	assert_true(look(PAGE(1)).barred);
	now_s += 9;
	assert_int_equal(times_from_node(50, PAGE(1), 2), -1);
	now_s += 1;
	assert_false(look(PAGE(1)).barred);
	assert_int_equal(from_node(PAGE(1), 2), 2);
}

TEST(test_cooldown)
{
	check_cooldown(NM_PAGE_MOVED);
	check_cooldown(NM_PAGE_FAILED);
}

/* Seconds are kept in 16 bits. */
TEST(test_cooldown_over_the_turn)
{
	now_s = 65530;
	check_cooldown(NM_PAGE_MOVED);
	now_s = 131071;
	check_cooldown(NM_PAGE_FAILED);
}

TEST(test_ping_pong)
{
	uint64_t address = PAGE(1);

	from_node(address, 0);
	for (unsigned move = 0; move < 4; move++) {
		assert_false(look(address).left_alone);
		settle(address, NM_PAGE_MOVED, move % 2 == 0);
	}
	assert_true(look(address).left_alone);
	assert_int_equal(times_from_node(100, address, 1), -1);
	assert_int_equal(nm_pages_counts(pages).ping_pong, 1);
	settle(address, NM_PAGE_MOVED, 1);
	assert_int_equal(nm_pages_counts(pages).ping_pong, 1);
}

TEST(test_gradual_drift_is_not_ping_pong)
{
	from_node(PAGE(1), 0);
	for (unsigned move = 1; move < 30; move++)
		settle(PAGE(1), NM_PAGE_MOVED, move % 4);
	assert_false(look(PAGE(1)).left_alone);
}

RUN_TESTS()
