/* SPDX-License-Identifier: MIT */
/* The clock of the emulated machine of the lab, and how it limits CPUs; independent of QEMU. */
#define SET_UP set_up
#include "../support/test.h"

#include "../lab/plugin/clock.c"
#include "../lab/plugin/pace.c"

enum { S = 1000000000 };

void lab_interpose_due(void)
{
}

static struct lab_clock wall;

static int set_up(void **state)
{
	(void)state;
	lab_clock_begin(&wall, 5ULL * S);
	return 0;
}

TEST(test_the_clock_follows_the_host_until_paced)
{
	lab_clock_wake(&wall, 0);
	assert_int_equal(lab_clock_read(&wall, 5ULL * S), 5ULL * S);
	assert_int_equal(lab_clock_read(&wall, 7ULL * S), 7ULL * S);
}

TEST(test_the_clock_is_held_by_the_slowest_cpu)
{
	lab_clock_wake(&wall, 0);
	lab_clock_wake(&wall, 3);
	lab_clock_pace(&wall);
	assert_int_equal(lab_clock_work(&wall, 0, 900), 5ULL * S + 900);
	lab_clock_work(&wall, 3, 300);
	assert_int_equal(lab_clock_read(&wall, 6ULL * S), 5ULL * S + 300);
	lab_clock_work(&wall, 3, 1000);
	assert_int_equal(lab_clock_read(&wall, 7ULL * S), 5ULL * S + 900);
}

/* Time that the host loses does not count. */
TEST(test_host_load_does_not_affect_the_clock)
{
	lab_clock_wake(&wall, 0);
	lab_clock_pace(&wall);
	for (uint64_t i = 1; i <= 100; i++) {
		lab_clock_work(&wall, 0, 1000);
		assert_int_equal(lab_clock_read(&wall, (5 + i * i) * S), 5ULL * S + 1000 * i);
	}
}

/* It is not faster than the clock of the host, so that devices keep up. */
TEST(test_the_clock_is_not_faster_than_the_host)
{
	lab_clock_wake(&wall, 0);
	lab_clock_pace(&wall);
	lab_clock_work(&wall, 0, 9ULL * S);
	assert_int_equal(lab_clock_read(&wall, 5ULL * S + 70), 5ULL * S + 70);
	assert_int_equal(lab_clock_read(&wall, 5ULL * S + 60), 5ULL * S + 70);
	assert_int_equal(lab_clock_read(&wall, 5ULL * S + 80), 5ULL * S + 80);
}

TEST(test_an_idle_cpu_holds_no_other)
{
	lab_clock_wake(&wall, 0);
	lab_clock_wake(&wall, 1);
	lab_clock_pace(&wall);
	lab_clock_work(&wall, 0, 500);
	assert_int_equal(lab_clock_read(&wall, 6ULL * S), 5ULL * S);
	lab_clock_rest(&wall, 1);
	assert_int_equal(lab_clock_read(&wall, 7ULL * S), 5ULL * S + 500);
	lab_clock_wake(&wall, 1);
	lab_clock_wake(&wall, 1);
	lab_clock_work(&wall, 0, 500);
	assert_int_equal(lab_clock_read(&wall, 8ULL * S), 5ULL * S + 500);
	assert_int_equal(lab_clock_work(&wall, 1, 200), 5ULL * S + 700);
}

/* Time by which it was ahead is charged. */
TEST(test_a_cpu_ahead_continues_from_its_time)
{
	lab_clock_wake(&wall, 0);
	lab_clock_wake(&wall, 1);
	lab_clock_pace(&wall);
	lab_clock_work(&wall, 0, 800);
	lab_clock_rest(&wall, 0);
	lab_clock_wake(&wall, 0);
	assert_int_equal(lab_clock_work(&wall, 0, 10), 5ULL * S + 810);
}

TEST(test_waits_for_the_next_timer_to_be_served)
{
	lab_clock_pace(&wall);
	lab_clock_expect(&wall, 5ULL * S + 400);
	assert_int_equal(lab_clock_read(&wall, 9ULL * S), 5ULL * S + 400);
	assert_int_equal(lab_clock_read(&wall, 10ULL * S), 5ULL * S + 400);
	lab_clock_expect(&wall, LAB_CLOCK_NEVER);
	assert_int_equal(lab_clock_read(&wall, 11ULL * S), 6ULL * S + 400);
}

TEST(test_time_never_goes_back)
{
	uint64_t before;

	before = lab_clock_read(&wall, 8ULL * S);
	lab_clock_wake(&wall, 2);
	lab_clock_pace(&wall);
	lab_clock_expect(&wall, 1);
	assert_int_equal(lab_clock_read(&wall, 9ULL * S), before);
}

/* ---- the CPUs ---- */

TEST_BETWEEN(NULL, NULL, test_cycles_are_instructions_and_charges)
{
	uint64_t before;

	lab_pace_begin(250);
	before = lab_pace_cycles(4);
	lab_pace_charge(4, 620);
	assert_int_equal(lab_pace_block(4, 5), 0);
	assert_int_equal(lab_pace_cycles(4) - before, 625);
}

TEST_BETWEEN(NULL, NULL, test_counter_runs_at_the_machines_rate)
{
	uint64_t ns, ticks;

	lab_pace_begin(250);
	ns = lab_pace_now_ns();
	ticks = lab_pace_tsc();
	assert_true(ticks >= ns / 4);
	assert_true(ticks <= lab_pace_now_ns() / 4 + 1);
}

/* Alone it is limited only by the clock of the host; beside a halted CPU it soon waits. */
TEST_BETWEEN(NULL, NULL, test_a_cpu_ahead_is_held_and_reported)
{
	uint64_t begin, late = 0;

	lab_pace_begin(1000);
	begin = pace.clock.now_ns;
	lab_clock_wake(&pace.clock, 0);
	lab_clock_wake(&pace.clock, 1);
	lab_clock_pace(&pace.clock);
	late += lab_pace_block(0, TELL_CYCLES);
	assert_false(pace.cpus[0].held);
	late += lab_pace_block(0, SLACK_CYCLES);
	assert_true(pace.cpus[0].held);
	assert_int_equal(late, 0);
	assert_true(pace.clock.now_ns == begin);
	late += lab_pace_block(0, 3 * SLACK_CYCLES);
	assert_int_equal(late, TELL_CYCLES + 2 * SLACK_CYCLES);
	late += lab_pace_block(0, 100);
	assert_int_equal(late, TELL_CYCLES + 2 * SLACK_CYCLES + 100);
	lab_pace_block(1, 9 * SLACK_CYCLES);
	usleep(1000); /* the clock may advance to that of the host */
	lab_pace_block(0, 1);
	assert_true(pace.clock.now_ns > begin);
}

RUN_TESTS()
