// SPDX-License-Identifier: MIT
/*
 * Policy "auto" without memory: a process begins to run beside others that have homes, and each
 * allocation in these intervals fails, one in each life. The others keep their homes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "ordeal_fixture.h"

#define BEGINS 36U /* the interval in which the process begins to run */
#define LISTED 38U /* and by which it is listed */

static unsigned before_calls, after_calls; /* allocations before these intervals, and with them */
static uint64_t homes_before, homes_after; /* of processes 101 to 164, a bit each */

static bool is_meant(const struct nm_home_state *home_state)
{
	return home_state->home >= 0 && home_state->pid > 100 && home_state->pid <= 164;
}

static uint64_t homes(void)
{
	const struct nm_placement *placement = ordeal.daemon->pipeline.placement;
	uint64_t found = 0;
	for (size_t i = 0; placement && i < placement->processes.count; i++)
		if (is_meant(nm_home_state_at(placement, i)))
			found |= UINT64_C(1) << (nm_home_state_at(placement, i)->pid - 101);
	return found;
}

static void look(void)
{
	if (ordeal.interval == BEGINS) {
		before_calls = gate.calls[GATE_MEMORY];
		homes_before = homes();
	} else if (ordeal.interval == LISTED + 1) {
		after_calls = gate.calls[GATE_MEMORY];
		homes_after = homes();
	}
	ordeal_happens(ordeal.interval);
}

static int set_up(void **state)
{
	(void)state;
	ordeal_set_out();
	ordeal.only = "auto";
	ordeal.in_each = look;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	ordeal.only = NULL;
	ordeal.in_each = NULL;
	ordeal_end();
	return 0;
}

static void live_without(unsigned call)
{
	ordeal_anew();
	gate.fail_op = GATE_MEMORY;
	gate.fail_at = call;
	gate.error = ENOMEM;
	assert_int_equal(ordeal_live(), EXIT_SUCCESS);
	assert_true(call == 0 || gate.failed == 1);
	assert_true(homes_before != 0);
	assert_int_equal(homes_after, homes_before);
	assert_null(fake_trace(ordeal.world->fake));
	assert_false(ordeal_there_is("ledger"));
	assert_int_equal(gate.nr_live, 0);
}

static void others_keep_their_homes(void **state)
{
	(void)state;
	live_without(0);
	unsigned first = before_calls + 1, last = after_calls;
	assert_true(last > first);
	for (unsigned call = first; call <= last; call++)
		live_without(call);
}

/* ---- the cost of the mover ---- */

static uint64_t charged_ns;
static unsigned worked;

static void burn(void)
{
	gate.cpu_ns += NM_NSEC_PER_SEC;
	worked++;
}

/* Between two intervals; the first part concerns the work before the last one. */
static void work_and_compare(void)
{
	uint64_t before_ns = charged_ns;

	charged_ns = nm_own_loop_ns(ordeal.daemon);
	if (ordeal.interval > 1)
		assert_true(charged_ns - before_ns < NM_NSEC_PER_SEC);
	(void)ordeal.on_mover(NULL, 0, ordeal.daemon);
}

/* SECURITY: shares */
static void examinations_are_not_charged_for_the_mover(void **state)
{
	(void)state;
	ordeal_anew();
	ordeal.in_each = work_and_compare;
	ordeal.short_life = 10;
	fake_mover.work = burn;
	assert_int_equal(ordeal_live(), EXIT_SUCCESS);
	fake_mover.work = NULL;
	assert_int_equal(worked, 9); /* the policy begins in the first interval */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(others_keep_their_homes, set_up, tear_down),
		cmocka_unit_test_setup_teardown(examinations_are_not_charged_for_the_mover, set_up,
						tear_down),
	};
	umask(022);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
