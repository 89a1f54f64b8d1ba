/* SPDX-License-Identifier: MIT */
#include "../support/test.h"

#include <stdint.h>

#include "../model/trial_experiments.h"

#define assert_near(value, expected, most) assert_true(fabs((value) - (expected)) <= (most))

/* Alternates around the mean at a distance of the deviation. */
static struct nm_trial_sum sum_of(unsigned n, double mean, double deviation)
{
	struct nm_trial_sum sum = {0};
	for (unsigned i = 0; i < n; i++)
		nm_trial_sum_add(&sum, mean + (i % 2 ? deviation : -deviation));
	return sum;
}

static struct nm_trial_row row_of(uint64_t domain, unsigned units, double mean)
{
	const struct nm_trial_sum sums[NM_TRIAL_ARMS] = {[NM_TRIAL_CONTROL] = sum_of(units, 0, 0.1),
							 [NM_TRIAL_TREATED] =
								 sum_of(units, mean, 0.1)};
	struct nm_trial_row row = {.domain = domain};
	assert_true(nm_trial_compare(sums, &row.difference));
	return row;
}

TEST(interval_is_that_of_the_formula)
{
	const struct nm_trial_sum sums[NM_TRIAL_ARMS] = {[NM_TRIAL_CONTROL] = sum_of(100, 1, 0.1),
							 [NM_TRIAL_TREATED] =
								 sum_of(100, 0.8, 0.1)};
	struct nm_trial_difference found;
	assert_true(nm_trial_compare(sums, &found));
	assert_near(found.mean, -0.2, 1e-12);
	assert_near(found.deviation, sqrt(200 * 0.01 / 198), 1e-12);
	/* V = 2.0202e-4, t² = 0.0025: sqrt(V (1 + V/t²) ln((1 + t²/V) / 0.0025)) */
	assert_near(found.half, 0.0432950349, 1e-9);
}

TEST(no_interval_below_twenty_units)
{
	struct nm_trial_sum sums[NM_TRIAL_ARMS] = {sum_of(19, 0, 0.1), sum_of(1000, 0, 0.1)};
	struct nm_trial_difference found;
	assert_true(nm_trial_compare(sums, &found));
	assert_true(isnan(found.half));
	nm_trial_sum_add(&sums[NM_TRIAL_CONTROL], 0);
	assert_true(nm_trial_compare(sums, &found));
	assert_true(found.half > 0);
	sums[NM_TRIAL_CONTROL] = sum_of(1, 0, 0);
	assert_false(nm_trial_compare(sums, &found));
}

/* Large sums of nearly equal squares. */
TEST(equal_values_have_no_spread)
{
	const struct nm_trial_sum sums[NM_TRIAL_ARMS] = {sum_of(30, 13.7, 0), sum_of(30, 13.7, 0)};
	struct nm_trial_difference found;
	assert_true(nm_trial_compare(sums, &found));
	assert_true(found.half < 1e-6);
}

TEST(total_weighs_programs_by_their_units)
{
	struct nm_trial_row rows[] = {row_of(1, 40, 0.1), row_of(1, 120, 0.3)};
	struct nm_trial_difference found;
	assert_true(nm_trial_total(rows, 2, &found));
	assert_near(found.mean, 0.25, 1e-9);
	assert_near(found.units[NM_TRIAL_CONTROL], 160, 0);
	assert_false(nm_trial_total(rows, 0, &found));
}

/* A user with many processes does not decide the total. */
TEST(no_domain_counts_for_more_than_a_third)
{
	struct nm_trial_difference found;
	struct nm_trial_row one[] = {row_of(1, 1000, 0.3), row_of(1, 1000, 0.3), row_of(2, 40, 0),
				     row_of(3, 40, 0), row_of(4, 40, 0)};
	assert_true(nm_trial_total(one, NM_ARRAY_SIZE(one), &found));
	assert_near(found.mean, 0.1, 1e-9);
	struct nm_trial_row two[] = {row_of(2, 900, 0.3), row_of(1, 1000, 0.3), row_of(3, 40, 0)};
	assert_true(nm_trial_total(two, NM_ARRAY_SIZE(two), &found));
	assert_near(found.mean, 0.2, 1e-9);
	/* With two domains that is impossible. */
	struct nm_trial_row both[] = {row_of(1, 300, 0.4), row_of(2, 100, 0)};
	assert_true(nm_trial_total(both, NM_ARRAY_SIZE(both), &found));
	assert_near(found.mean, 0.3, 1e-9);
}

TEST(units_needed)
{
	assert_near(nm_trial_units_needed(0.1, 0.5), 257, 1e-9);
	assert_near(nm_trial_units_needed(0.2, 0.5), 4 * 257, 1e-9);
	assert_near(nm_trial_units_needed(0.1, 0.05), 1350, 5);
	assert_near(nm_trial_units_needed(0.01, 0.05), 400, 1e-9);
}

/* ---- simulated; nm_trials runs more of each ---- */

#define RUNS 300U
#define ERRORS_PERMILLE 65U

TEST(intervals_hold_at_every_look)
{
	const struct experiment all[] = {
		{.deviation = 0.2, .processes = 1, .control_share = 0.5, .units = 1000},
		{.deviation = 0.05, .processes = 1, .control_share = 0.05, .units = 1000},
		{.deviation = 1.5, .processes = 3, .control_share = 0.5, .units = 500},
		{.shape = SHAPE_HEAVY,
		 .deviation = 0.2,
		 .processes = 1,
		 .control_share = 0.5,
		 .units = 500},
		{.shape = SHAPE_BIMODAL,
		 .deviation = 0.2,
		 .processes = 1,
		 .control_share = 0.05,
		 .units = 1000},
		{.shape = SHAPE_BIMODAL,
		 .deviation = 0.5,
		 .processes = 50,
		 .control_share = 0.5,
		 .units = 300},
		{.deviation = 0.1,
		 .processes = 1,
		 .control_share = 0.5,
		 .effect = -0.2,
		 .units = 500},
	};
	for (size_t i = 0; i < NM_ARRAY_SIZE(all); i++) {
		struct experiment one = all[i];
		one.runs = RUNS;
		assert_true(count_errors(&one, 1) * 1000 <= RUNS * ERRORS_PERMILLE);
	}
}

TEST(slower_programs_are_left_alone)
{
	const struct {
		double share;
		unsigned most;
	} cases[] = {{0.5, 100}, {0.05, 1000}};
	for (size_t i = 0; i < NM_ARRAY_SIZE(cases); i++)
		for (unsigned run = 0; run < 50; run++) {
			const struct experiment one = {.deviation = 0.1,
						       .processes = 1,
						       .control_share = cases[i].share,
						       .effect = 0.2,
						       .units = cases[i].most};
			assert_true(units_until_barred(&one, run) > 0);
		}
}

TEST(others_are_not)
{
	unsigned barred = 0;
	for (unsigned run = 0; run < 200; run++) {
		const struct experiment one = {
			.deviation = 0.1, .processes = 1, .control_share = 0.5, .units = 500};
		barred += units_until_barred(&one, run) > 0;
	}
	assert_true(barred <= 2);
}

RUN_TESTS()
