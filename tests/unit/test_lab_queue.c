/* SPDX-License-Identifier: MIT */
/* What a loaded controller costs in the lab's model; nothing of QEMU. */
#include "../lab/plugin/queue.c"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static struct lab_queue queue;

static int set_up(void **state)
{
	(void)state;
	memset(&queue, 0, sizeof(queue));
	return 0;
}

/* Pollaczek and Khinchine for equal service times, to a cycle. */
static void test_curve_is_its_formula(void **state)
{
	(void)state;
	for (uint32_t load = 0; load <= LAB_LOAD_MAX_PERMILLE; load++) {
		double rho = load / 1000.0, wait = LAB_CONTROLLER_CYCLES * rho / (2 * (1 - rho));

		assert_true(fabs(lab_queue_wait(LAB_CONTROLLER_CYCLES, load) - wait) <= 1);
	}
	assert_int_equal(lab_queue_wait(LAB_CONTROLLER_CYCLES, 0), 0);
	assert_int_equal(lab_queue_wait(LAB_CONTROLLER_CYCLES, 5000),
			 lab_queue_wait(LAB_CONTROLLER_CYCLES, LAB_LOAD_MAX_PERMILLE));
}

/* What the service time was chosen by: twice the unloaded 200 cycles at 90 %. */
static void test_latency_doubles_at_nine_tenths(void **state)
{
	(void)state;
	assert_in_range(lab_queue_wait(LAB_CONTROLLER_CYCLES, 900), 190, 210);
}

/* A line every `gap` cycles, for so many windows; returns what the last one waits. */
static uint32_t load_evenly(uint64_t from, uint32_t gap, uint32_t windows)
{
	uint32_t wait = 0;

	for (uint64_t at = 0; at < (uint64_t)windows * LAB_WINDOW_CYCLES; at += gap)
		wait = lab_queue_serve(&queue, LAB_CONTROLLER_CYCLES, from + at);
	return wait;
}

static void test_load_is_what_is_served(void **state)
{
	uint32_t wait = load_evenly(0, 2 * LAB_CONTROLLER_CYCLES, 20);

	(void)state;
	assert_int_equal(wait, lab_queue_wait(LAB_CONTROLLER_CYCLES, queue.load_permille));
	assert_in_range(queue.load_permille, 490, 510);
}

static void test_more_load_never_waits_less(void **state)
{
	uint32_t before = 0;

	(void)state;
	for (uint32_t gap = 10 * LAB_CONTROLLER_CYCLES; gap >= LAB_CONTROLLER_CYCLES; gap -= 4) {
		uint32_t wait;

		memset(&queue, 0, sizeof(queue));
		wait = load_evenly(0, gap, 20);
		assert_true(wait >= before);
		before = wait;
	}
	assert_true(before > 200);
}

static void test_load_is_forgotten(void **state)
{
	(void)state;
	load_evenly(0, LAB_CONTROLLER_CYCLES, 20);
	assert_true(lab_queue_serve(&queue, LAB_CONTROLLER_CYCLES, 23ULL * LAB_WINDOW_CYCLES) > 0);
	assert_int_equal(lab_queue_serve(&queue, LAB_CONTROLLER_CYCLES, 99ULL * LAB_WINDOW_CYCLES),
			 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_curve_is_its_formula, set_up),
		cmocka_unit_test_setup(test_latency_doubles_at_nine_tenths, set_up),
		cmocka_unit_test_setup(test_load_is_what_is_served, set_up),
		cmocka_unit_test_setup(test_more_load_never_waits_less, set_up),
		cmocka_unit_test_setup(test_load_is_forgotten, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
