/* SPDX-License-Identifier: MIT */
/* The life of ordeal_fixture.h itself: its events, and that it is deterministic. */
#define SET_UP set_up
#define TEAR_DOWN tear_down
#include "../support/test.h"

#include "ordeal_fixture.h"

static int set_up(void **state)
{
	(void)state;
	ordeal_set_out();
	ordeal_anew();
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	ordeal_end();
	return 0;
}

TEST(the_life_covers_every_event)
{
	assert_int_equal(ordeal_live(), EXIT_SUCCESS);
	assert_true(ordeal.started && ordeal.stopped);
	assert_true(ordeal.moved >= 3);
	assert_true(ordeal.homes >= 1);
	assert_null(fake_trace(ordeal.world->fake));
	assert_false(ordeal_there_is("moves"));
	assert_int_equal(gate.nr_live, 0);
	for (unsigned op = 0; op < GATE_OPS; op++)
		if (gate.calls[op] == 0)
			fail_msg("operation %u is never called", op);
}

/* Homes are assigned and judged, memory follows them, and everything is restored at the end. */
TEST(policy_auto_covers_the_life)
{
	ordeal.only = "auto";
	ordeal_anew();
	assert_int_equal(ordeal_live(), EXIT_SUCCESS);
	ordeal.only = NULL;
	assert_true(ordeal.started && ordeal.stopped);
	assert_true(ordeal.homes >= 3);
	assert_true(fake_mover.submitted >= 3);
	assert_null(fake_trace(ordeal.world->fake));
	assert_false(ordeal_there_is("moves"));
	assert_int_equal(gate.nr_live, 0);
}

TEST(the_life_is_deterministic)
{
	unsigned calls[GATE_OPS];
	assert_int_equal(ordeal_live(), EXIT_SUCCESS);
	memcpy(calls, gate.calls, sizeof(calls));
	ordeal_anew();
	assert_int_equal(ordeal_live(), EXIT_SUCCESS);
	assert_memory_equal(gate.calls, calls, sizeof(calls));
}

int main(void)
{
	umask(022);
	return RUN_REGISTERED(NULL, NULL);
}
