/* SPDX-License-Identifier: MIT */
/* The cost of a loaded controller in the model of the lab; independent of QEMU. */
#define SET_UP set_up
#include "../support/test.h"

#include "../lab/plugin/queue.c"

#include <math.h>
#include <string.h>

static struct lab_queue queue;

static int set_up(void **state)
{
	(void)state;
	memset(&queue, 0, sizeof(queue));
	return 0;
}

/* Pollaczek and Khinchine, (1 + 1.2) / 2, within one cycle. */
TEST(test_curve_is_its_formula)
{
	for (uint32_t load = 0; load <= LAB_LOAD_MAX_PERMILLE; load++) {
		double rho = load / 1000.0, wait = 1.1 * LAB_CONTROLLER_CYCLES * rho / (1 - rho);

		assert_true(fabs(lab_queue_wait(LAB_CONTROLLER_CYCLES, load) - wait) <= 1);
	}
	assert_int_equal(lab_queue_wait(LAB_CONTROLLER_CYCLES, 0), 0);
	assert_int_equal(lab_queue_wait(LAB_CONTROLLER_CYCLES, 5000),
			 lab_queue_wait(LAB_CONTROLLER_CYCLES, LAB_LOAD_MAX_PERMILLE));
}

/* At 200 unloaded cycles and the service times of queue.h: a factor of 1.2, 1.66 and 3.3. */
TEST(test_loaded_latency_is_as_measured)
{
	assert_in_range(lab_queue_wait(LAB_CONTROLLER_CYCLES, 450), 0.05 * 200, 0.25 * 200);
	assert_in_range(lab_queue_wait(LAB_CONTROLLER_CYCLES, 870), 0.6 * 200, 0.8 * 200);
	assert_in_range(lab_queue_wait(LAB_CONTROLLER_CYCLES, 1000), 2 * 200, 2.4 * 200);
}

/* A line every `gap` cycles for N windows; returns the waiting time of the last one. */
static uint32_t load_evenly(uint64_t from, uint32_t gap, uint32_t windows)
{
	uint32_t wait = 0;

	for (uint64_t at = 0; at < (uint64_t)windows * LAB_WINDOW_CYCLES; at += gap)
		wait = lab_queue_serve(&queue, LAB_CONTROLLER_CYCLES, from + at);
	return wait;
}

TEST(test_load_is_the_served_rate)
{
	uint32_t wait = load_evenly(0, 2 * LAB_CONTROLLER_CYCLES, 20);

	assert_int_equal(wait, lab_queue_wait(LAB_CONTROLLER_CYCLES, queue.load_permille));
	assert_in_range(queue.load_permille, 490, 510);
}

TEST(test_more_load_never_waits_less)
{
	uint32_t before = 0;

	for (uint32_t gap = 10 * LAB_CONTROLLER_CYCLES; gap >= LAB_CONTROLLER_CYCLES; gap -= 4) {
		uint32_t wait;

		memset(&queue, 0, sizeof(queue));
		wait = load_evenly(0, gap, 20);
		assert_true(wait >= before);
		before = wait;
	}
	assert_true(before > 200);
}

/* CPUs that wait for each line before they request the next settle at the rate at which lines are
 * served: with two CPUs, 24 + w = c and w = 22 * 40 / (c - 40). */
TEST(test_streams_settle)
{
	uint64_t now[2] = {0, 12}, lines = 0, from = 100ULL * LAB_WINDOW_CYCLES;

	while (now[0] < 2 * from || now[1] < 2 * from) {
		uint64_t *next = now[0] <= now[1] ? &now[0] : &now[1];
		uint32_t wait = lab_queue_serve(&queue, LAB_CONTROLLER_CYCLES, *next);

		if (*next >= from) {
			assert_in_range(wait, 33, 43);
			lines++;
		}
		*next += 24 + wait;
	}
	assert_in_range(2 * from / lines, 60, 65);
}

TEST(test_load_decays)
{
	load_evenly(0, LAB_CONTROLLER_CYCLES, 20);
	assert_true(lab_queue_serve(&queue, LAB_CONTROLLER_CYCLES, 23ULL * LAB_WINDOW_CYCLES) > 0);
	assert_int_equal(lab_queue_serve(&queue, LAB_CONTROLLER_CYCLES, 99ULL * LAB_WINDOW_CYCLES),
			 0);
}

RUN_TESTS()
