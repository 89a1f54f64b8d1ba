// SPDX-License-Identifier: MIT
/* Policy "auto": what its examinations are charged for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "ordeal_fixture.h"

static int set_up(void **state)
{
	(void)state;
	ordeal_set_out();
	ordeal.only = "auto";
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

/* SECURITY: quota */
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
		cmocka_unit_test_setup_teardown(examinations_are_not_charged_for_the_mover, set_up,
						tear_down),
	};
	umask(022);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
