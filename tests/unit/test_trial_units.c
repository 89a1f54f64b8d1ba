/* SPDX-License-Identifier: MIT */
#define SET_UP setup
#define TEAR_DOWN teardown
#include "../support/test.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "policy/trial.h"

#define assert_near(value, expected, most) assert_true(fabs((value) - (expected)) <= (most))

#define SECOND NM_NSEC_PER_SEC
#define DAY (24 * 3600 * SECOND)

static uint32_t released_pids[16];
static unsigned nr_released;

static void on_released(void *context, uint32_t pid)
{
	(void)context;
	released_pids[nr_released++] = pid;
}

/* Half of the units are control, unless the test changes that. */
static int setup(void **state)
{
	struct nm_trial *trial;
	nr_released = 0;
	nm_trial_new(1, &trial);
	nm_trial_configure(trial, 0.5, 0.05);
	*state = trial;
	return 0;
}

static int teardown(void **state)
{
	nm_trial_free(*state);
	return 0;
}

static enum nm_trial_answer draw(struct nm_trial *trial, uint32_t pid, uint32_t parent,
				 const char *comm, uint64_t now_ns)
{
	const struct nm_trial_candidate one = {.pid = pid,
					       .parent = parent,
					       .start_ticks = pid,
					       .domain = 7,
					       .comm = comm,
					       .takes_part = true};
	return nm_trial_draw(trial, &one, now_ns);
}

static const struct nm_trial_sum *sum(struct nm_trial *trial, const char *comm,
				      enum nm_trial_measure measure, enum nm_trial_arm arm)
{
	return &nm_trial_program(trial, 7, 0, comm)->sums[NM_TRIAL_TODAY][measure][arm];
}

static double units_of(struct nm_trial *trial, const char *comm)
{
	return sum(trial, comm, NM_TRIAL_CPU, NM_TRIAL_CONTROL)->n +
	       sum(trial, comm, NM_TRIAL_CPU, NM_TRIAL_TREATED)->n;
}

/* Runs a unit of one process. Returns its arm. */
static enum nm_trial_answer run_unit(struct nm_trial *trial, uint32_t pid, uint64_t from_ns,
				     uint64_t treated_ns, uint64_t control_ns)
{
	enum nm_trial_answer answer = draw(trial, pid, 100000 + pid, "job", from_ns);
	uint64_t ran_ns = answer == NM_TRIAL_LEAVE ? control_ns : treated_ns;
	nm_trial_thread_ended(trial, pid, ran_ns, from_ns + ran_ns);
	nm_trial_process_ended(trial, pid, from_ns + ran_ns);
	return answer;
}

TEST(the_share_is_that_of_the_setting)
{
	struct nm_trial *trial = *state;
	unsigned control = 0;
	nm_trial_configure(trial, 0.05, 0.05);
	for (uint32_t i = 1; i <= 4000; i++)
		control += draw(trial, i, 100000 + i, "job", 0) == NM_TRIAL_LEAVE;
	assert_in_range(control, 140, 260);
	nm_trial_configure(trial, 0, 0.05);
	assert_false(nm_trial_is_on(trial, 0));
	for (uint32_t i = 5000; i <= 5100; i++)
		assert_int_equal(draw(trial, i, 100000 + i, "job", 0), NM_TRIAL_DECIDE);
}

TEST(a_process_is_drawn_once)
{
	struct nm_trial *trial = *state;
	for (uint32_t i = 1; i <= 50; i++) {
		assert_int_equal(nm_trial_answer(trial, i, i, 0), NM_TRIAL_UNKNOWN);
		enum nm_trial_answer answer = draw(trial, i, 100000 + i, "job", 0);
		assert_int_equal(nm_trial_answer(trial, i, i, 0), answer);
		assert_int_equal(nm_trial_answer(trial, i, i + 1, 0), NM_TRIAL_UNKNOWN);
	}
}

TEST(children_and_siblings_share_an_arm)
{
	struct nm_trial *trial = *state;
	for (uint32_t i = 100; i <= 5000; i += 100) {
		enum nm_trial_answer arm = draw(trial, i, 9, i % 200 ? "a" : "b", i * 700 * SECOND);
		assert_int_equal(draw(trial, i + 1, i, "child", i * 700 * SECOND), arm);
		assert_int_equal(
			draw(trial, i + 2, 9, i % 200 ? "a" : "b", (i * 700 + 599) * SECOND), arm);
		for (uint32_t k = 0; k < 3; k++)
			nm_trial_process_ended(trial, i + k, (i * 700 + 599) * SECOND);
	}
	/* Each is one unit: two processes of "a" are one value. */
	assert_near(units_of(trial, "a"), 25, 0);
	assert_near(units_of(trial, "child"), 50, 0);
	assert_near(sum(trial, "a", NM_TRIAL_ELAPSED, NM_TRIAL_CONTROL)->sum +
			    sum(trial, "a", NM_TRIAL_ELAPSED, NM_TRIAL_TREATED)->sum,
		    25 * (log(599) + log(0.01)) / 2, 1e-6);
}

TEST(siblings_with_other_commands_do_not)
{
	struct nm_trial *trial = *state;
	unsigned different = 0;
	for (uint32_t i = 100; i <= 5000; i += 100) {
		enum nm_trial_answer arm = draw(trial, i, i + 9, "a", 0);
		different += draw(trial, i + 1, i + 9, "b", 0) != arm;
	}
	assert_in_range(different, 10, 40);
}

TEST(control_ends_after_ten_minutes)
{
	struct nm_trial *trial = *state;
	uint32_t pid = 1;
	while (draw(trial, pid, 100000 + pid, "service", 0) != NM_TRIAL_LEAVE)
		pid++;
	nm_trial_end_windows(trial, NM_TRIAL_WINDOW_NS - 1, on_released, NULL);
	assert_int_equal(nr_released, 0);
	assert_int_equal(nm_trial_answer(trial, pid, pid, 0), NM_TRIAL_LEAVE);
	nm_trial_end_windows(trial, NM_TRIAL_WINDOW_NS, on_released, NULL);
	assert_int_equal(nr_released, 1);
	assert_int_equal(released_pids[0], pid);
	assert_int_equal(nm_trial_answer(trial, pid, pid, NM_TRIAL_WINDOW_NS), NM_TRIAL_DECIDE);
	/* Its children take no part, and neither does it again. */
	for (uint32_t i = 0; i < 50; i++)
		assert_int_equal(draw(trial, 1000 + i, pid, "child", NM_TRIAL_WINDOW_NS),
				 NM_TRIAL_DECIDE);
	nm_trial_process_ended(trial, pid, 2 * NM_TRIAL_WINDOW_NS);
	assert_near(units_of(trial, "service"), 0, 0);
}

TEST(cpu_time_is_read_and_credited)
{
	struct nm_trial *trial = *state;
	const struct nm_trial_candidate one = {.pid = 5,
					       .parent = 1,
					       .start_ticks = 5,
					       .domain = 7,
					       .comm = "job",
					       .cpu_ns = 3 * SECOND,
					       .takes_part = true};
	(void)nm_trial_draw(trial, &one, 100 * SECOND);
	nm_trial_thread_ended(trial, 5, 2 * SECOND, 101 * SECOND);
	/* The reading includes the thread that ended before. */
	nm_trial_read(trial, 5, 9 * SECOND);
	nm_trial_thread_ended(trial, 5, SECOND, 104 * SECOND);
	nm_trial_process_ended(trial, 5, 110 * SECOND);
	for (unsigned arm = 0; arm < NM_TRIAL_ARMS; arm++) {
		if (sum(trial, "job", NM_TRIAL_CPU, arm)->n == 0)
			continue;
		assert_near(sum(trial, "job", NM_TRIAL_CPU, arm)->sum, log(7), 1e-9);
		assert_near(sum(trial, "job", NM_TRIAL_ELAPSED, arm)->sum, log(4), 1e-9);
	}
	assert_near(units_of(trial, "job"), 1, 0);
}

TEST(a_process_that_outlives_the_window_does_not_count)
{
	struct nm_trial *trial = *state;
	(void)draw(trial, 5, 1, "job", 0);
	nm_trial_read(trial, 5, 500 * SECOND);
	nm_trial_end_windows(trial, NM_TRIAL_WINDOW_NS, on_released, NULL);
	nm_trial_process_ended(trial, 5, NM_TRIAL_WINDOW_NS + SECOND);
	assert_near(units_of(trial, "job"), 0, 0);
}

TEST(conditions_are_those_of_the_arm)
{
	struct nm_trial *trial = *state;
	const struct nm_trial_conditions seen = {
		.accesses = 10, .near = 4, .distance = 16, .ran_s = 2, .waited_s = 0.5};
	enum nm_trial_arm arm =
		draw(trial, 5, 1, "job", 0) == NM_TRIAL_LEAVE ? NM_TRIAL_CONTROL : NM_TRIAL_TREATED;
	const struct nm_trial_conditions *sums[] = {
		nm_trial_conditions(trial, NM_TRIAL_TODAY, arm),
		nm_trial_conditions(trial, NM_TRIAL_TODAY, !arm),
		nm_trial_conditions(trial, NM_TRIAL_RAISED, arm),
	};
	nm_trial_observe(trial, 5, &seen);
	nm_trial_observe(trial, 5, &seen);
	nm_trial_observe(trial, 6, &seen);
	assert_near(sums[0]->near / sums[0]->accesses, 0.4, 1e-9);
	assert_near(sums[0]->distance / sums[0]->accesses, 1.6, 1e-9);
	assert_near(sums[0]->waited_s / sums[0]->ran_s, 0.25, 1e-9);
	assert_near(sums[0]->accesses, 20, 0);
	assert_near(sums[1]->accesses, 0, 0);
	assert_near(sums[2]->accesses, 0, 0);
	/* Afterwards the process is decided about. */
	nm_trial_end_windows(trial, NM_TRIAL_WINDOW_NS, on_released, NULL);
	nm_trial_observe(trial, 5, &seen);
	assert_near(sums[0]->accesses, 20, 0);
	nm_trial_follow_day(trial, 365);
	assert_near(sums[0]->accesses, 20, 0);
	nm_trial_follow_day(trial, 0);
	assert_near(sums[0]->accesses, 0, 0);
}

TEST(accesses_are_near_on_the_node_of_the_thread)
{
	struct nm_trial *trial = *state;
	unsigned distances[] = {10, 30, 30, 20};
	const struct nm_topology topology = {.nr_nodes = 2, .distance = distances};
	const uint32_t fresh[] = {4, 6};
	const struct nm_sampled_thread threads[] = {
		{.pid = 5, .stats.main_node = 0, .stats.fresh = fresh},
		{.pid = 5, .stats.main_node = 1, .stats.fresh = fresh},
		{.pid = 5, .stats.main_node = -1, .stats.fresh = fresh}};
	enum nm_trial_arm arm =
		draw(trial, 5, 1, "job", 0) == NM_TRIAL_LEAVE ? NM_TRIAL_CONTROL : NM_TRIAL_TREATED;
	const struct nm_trial_conditions *sum = nm_trial_conditions(trial, NM_TRIAL_TODAY, arm);
	nm_trial_observe_threads(trial, threads, 3, &topology);
	assert_near(sum->accesses, 20, 0);
	assert_near(sum->near, 4 + 6, 0);
	assert_near(sum->distance, 4 + 6 * 30 / 20. + 4 * 30 / 10. + 6, 1e-9);
}

TEST(virtual_machines_take_no_part)
{
	struct nm_trial *trial = *state;
	for (uint32_t pid = 1; pid <= 20; pid++)
		assert_int_equal(draw(trial, pid, 1000 + pid, "qemu-system-x86", 0),
				 NM_TRIAL_DECIDE);
}

/* A period that was interrupted does not count in the next one. */
TEST(conditions_of_a_trial_are_its_own)
{
	struct nm_trial *trial = *state;
	const struct nm_trial_conditions seen = {.accesses = 10};
	nm_trial_raise(trial, 0.5, 0, 3600 * SECOND);
	enum nm_trial_arm arm =
		draw(trial, 5, 1, "job", 0) == NM_TRIAL_LEAVE ? NM_TRIAL_CONTROL : NM_TRIAL_TREATED;
	const struct nm_trial_conditions *sum = nm_trial_conditions(trial, NM_TRIAL_RAISED, arm);
	nm_trial_observe(trial, 5, &seen);
	assert_near(sum->accesses, 10, 0);
	nm_trial_raise(trial, 0.5, SECOND, 3600 * SECOND);
	nm_trial_observe(trial, 5, &seen);
	assert_near(sum->accesses, 0, 0);
}

/* Those that end are not typical then. */
TEST(programs_that_often_outlive_the_window_are_not_compared)
{
	struct nm_trial *trial = *state;
	struct nm_trial_difference found;
	for (uint32_t i = 1; i <= 100; i++)
		(void)run_unit(trial, i, 0, SECOND, SECOND);
	const struct nm_trial_program *job = nm_trial_program(trial, 7, 0, "job");
	assert_true(nm_trial_program_result(job, NM_TRIAL_TODAY, NM_TRIAL_CPU, &found));
	for (uint32_t i = 201; i <= 220; i++)
		(void)draw(trial, i, 100000 + i, "job", 0);
	nm_trial_end_windows(trial, NM_TRIAL_WINDOW_NS, on_released, NULL);
	assert_false(nm_trial_program_result(job, NM_TRIAL_TODAY, NM_TRIAL_CPU, &found));
}

TEST(a_slower_program_is_tried_again_after_longer_times)
{
	struct nm_trial *trial = *state;
	const unsigned days[] = {1, 2, 4, 8, 16, 30, 30};
	uint64_t now_ns = SECOND;
	uint32_t pid = 1;
	for (size_t i = 0; i < NM_ARRAY_SIZE(days); i++) {
		const struct nm_trial_program *lost = NULL;
		while (!lost) {
			assert_int_not_equal(run_unit(trial, pid++, now_ns, 3 * SECOND, 2 * SECOND),
					     NM_TRIAL_BARRED);
			lost = nm_trial_next_loss(trial);
		}
		assert_string_equal(lost->comm, "job");
		assert_null(nm_trial_next_loss(trial));
		uint64_t until_ns = lost->barred_until_ns;
		assert_in_range(until_ns - now_ns, days[i] * DAY, days[i] * DAY + 3 * SECOND);
		assert_int_equal(draw(trial, pid++, 9, "job", until_ns - 1), NM_TRIAL_BARRED);
		assert_int_not_equal(draw(trial, pid++, 9, "other", until_ns - 1), NM_TRIAL_BARRED);
		now_ns = until_ns;
	}
}

/* Also those that were decided about until then. */
TEST(processes_of_a_slower_program_are_left_alone)
{
	struct nm_trial *trial = *state;
	uint32_t pid = 100;
	while (draw(trial, pid, 100000 + pid, "job", 0) != NM_TRIAL_DECIDE)
		pid++;
	for (uint32_t i = 1000; !nm_trial_next_loss(trial); i++)
		(void)run_unit(trial, i, 0, 3 * SECOND, 2 * SECOND);
	assert_int_equal(nm_trial_answer(trial, pid, pid, 3 * SECOND), NM_TRIAL_BARRED);
}

/* A unit of overlapping jobs ends, too. */
TEST(siblings_join_a_unit_for_ten_minutes)
{
	struct nm_trial *trial = *state;
	for (uint32_t i = 1; i <= 40; i++) {
		(void)draw(trial, i, 9, "job", i * 300 * SECOND);
		if (i > 1)
			nm_trial_process_ended(trial, i - 1, (i * 300 + 1) * SECOND);
	}
	assert_in_range(units_of(trial, "job"), 18, 20);
}

TEST(half_of_a_program_that_was_slower_is_control)
{
	struct nm_trial *trial = *state;
	unsigned control = 0;
	uint32_t pid = 1;
	while (!nm_trial_next_loss(trial))
		(void)run_unit(trial, pid++, 0, 3 * SECOND, 2 * SECOND);
	nm_trial_configure(trial, 0.05, 0.05);
	for (unsigned i = 0; i < 100; i++) /* no longer slower, too few to exclude a loss */
		control += run_unit(trial, pid++, 2 * DAY, (2 + i % 3) * SECOND,
				    (2 + i % 3) * SECOND) == NM_TRIAL_LEAVE;
	assert_in_range(control, 30, 70);
	/* Once a loss is excluded, the usual share applies. */
	for (unsigned i = 0; i < 2000; i++)
		(void)run_unit(trial, pid++, 2 * DAY, 2 * SECOND, 2 * SECOND);
	control = 0;
	for (unsigned i = 0; i < 400; i++)
		control +=
			run_unit(trial, pid++, 2 * DAY, 2 * SECOND, 2 * SECOND) == NM_TRIAL_LEAVE;
	assert_in_range(control, 1, 60);
}

TEST(a_raised_share_has_results_of_its_own)
{
	struct nm_trial *trial = *state;
	struct nm_trial_difference found;
	uint32_t pid = 1;
	nm_trial_configure(trial, 0, 0.05);
	nm_trial_raise(trial, 0.5, 0, 3600 * SECOND);
	assert_true(nm_trial_is_on(trial, 3599 * SECOND));
	for (unsigned i = 0; i < 200; i++)
		(void)run_unit(trial, pid++, 10 * SECOND, SECOND, 2 * SECOND);
	/* Draws end ten minutes before it does. */
	for (unsigned i = 0; i < 50; i++)
		assert_int_equal(draw(trial, pid++, 9, "job", 3001 * SECOND), NM_TRIAL_DECIDE);
	assert_false(nm_trial_is_on(trial, 3600 * SECOND));
	assert_true(nm_trial_result(trial, NM_TRIAL_RAISED, NM_TRIAL_CPU, &found));
	assert_near(found.mean, log(0.5), 1e-9);
	assert_near(found.units[NM_TRIAL_CONTROL] + found.units[NM_TRIAL_TREATED], 200, 0);
	assert_near(units_of(trial, "job"), 0, 0);
	assert_near(nm_trial_sums(trial, NM_TRIAL_CPU, NM_TRIAL_CONTROL).n +
			    nm_trial_sums(trial, NM_TRIAL_CPU, NM_TRIAL_TREATED).n,
		    200, 0);
}

TEST(an_interrupted_unit_does_not_count)
{
	struct nm_trial *trial = *state;
	struct nm_trial_difference found;
	nm_trial_raise(trial, 0.5, 0, 3600 * SECOND);
	(void)draw(trial, 1, 9, "job", SECOND);
	nm_trial_lower(trial, 2 * SECOND);
	nm_trial_process_ended(trial, 1, 3 * SECOND);
	assert_false(nm_trial_result(trial, NM_TRIAL_RAISED, NM_TRIAL_CPU, &found));
	assert_near(found.units[NM_TRIAL_CONTROL] + found.units[NM_TRIAL_TREATED], 0, 0);
	assert_near(units_of(trial, "job"), 0, 0);
}

TEST(units_are_shown_before_they_can_be_compared)
{
	struct nm_trial *trial = *state;
	struct nm_trial_difference found;
	char text[NM_TRIAL_TEXT_BYTES];
	nm_trial_raise(trial, 1, 0, 3600 * SECOND);
	(void)run_unit(trial, 1, SECOND, SECOND, SECOND);
	(void)run_unit(trial, 2, SECOND, SECOND, SECOND);
	assert_false(nm_trial_result(trial, NM_TRIAL_RAISED, NM_TRIAL_CPU, &found));
	nm_trial_describe(&found, text, sizeof(text));
	assert_non_null(strstr(text, "no comparison: 0 managed units and 2 left alone"));
}

TEST(a_day_begins_without_results)
{
	struct nm_trial *trial = *state;
	nm_trial_follow_day(trial, 7);
	for (uint32_t pid = 1; pid < 100; pid++)
		(void)run_unit(trial, pid, 0, SECOND, SECOND);
	nm_trial_follow_day(trial, 7);
	assert_near(units_of(trial, "job"), 99, 0);
	nm_trial_follow_day(trial, 8);
	assert_near(units_of(trial, "job"), 0, 0);
}

/* A domain gets one more program if it has fewer than are left free. */
TEST(one_domain_cannot_use_all_programs)
{
	struct nm_trial *trial = *state;
	char comm[32];
	struct nm_trial_candidate one = {
		.start_ticks = 1, .domain = 7, .comm = comm, .takes_part = true};
	for (uint32_t i = 1; i <= 5000; i++) {
		(void)snprintf(comm, sizeof(comm), "p%u", i);
		one.pid = i;
		(void)nm_trial_draw(trial, &one, 0);
		nm_trial_process_ended(trial, i, 0);
	}
	struct nm_trial_program *const *programs;
	assert_int_equal(nm_trial_programs(trial, &programs), NM_TRIAL_PROGRAMS_MOST / 2);
	one.domain = 8;
	(void)nm_trial_draw(trial, &one, 0);
	assert_non_null(nm_trial_program(trial, 8, 0, comm));
}

TEST(forgotten_processes_have_no_value)
{
	struct nm_trial *trial = *state;
	(void)draw(trial, 1, 9, "job", 0);
	(void)draw(trial, 2, 9, "job", 0);
	nm_trial_forget(trial);
	nm_trial_process_ended(trial, 1, SECOND);
	assert_near(units_of(trial, "job"), 0, 0);
	assert_int_equal(nm_trial_answer(trial, 2, 2, SECOND), NM_TRIAL_UNKNOWN);
}

RUN_TESTS()
