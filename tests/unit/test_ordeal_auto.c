/* SPDX-License-Identifier: MIT */
/* Policy "auto": what its examinations are charged for. */
#define SET_UP set_up
#define TEAR_DOWN tear_down
#include "../support/test.h"

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
TEST(examinations_are_not_charged_for_the_mover)
{
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
	umask(022);
	return RUN_REGISTERED(NULL, NULL);
}
