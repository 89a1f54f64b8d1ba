/* SPDX-License-Identifier: MIT */
/* The order of periods, and the interval by permutation. */
#include "../support/test.h"

#include <math.h>
#include <string.h>

#include "../../src/ctl/periods.h"

#define PERIODS 24U

static struct nm_rng seeded(uint64_t seed)
{
	struct nm_rng rng;
	nm_rng_seed(&rng, seed);
	return rng;
}

TEST(half_of_the_periods_is_with_it)
{
	struct nm_rng rng = seeded(1);
	struct nm_period periods[PERIODS];
	unsigned first = 0;
	for (unsigned turn = 0; turn < 400; turn++) {
		unsigned with = 0;
		nm_periods_draw(&rng, periods, PERIODS);
		for (size_t i = 0; i < PERIODS; i++)
			with += periods[i].with;
		assert_int_equal(with, PERIODS / 2);
		first += periods[0].with;
	}
	assert_in_range(first, 140, 260);
}

/* Sums of four numbers from 0 to 1 are nearly normal; their standard deviation is 0.58. */
static double noise(struct nm_rng *rng)
{
	double sum = -2;
	for (unsigned i = 0; i < 4; i++)
		sum += nm_rng_unit(rng);
	return sum / 0.58;
}

/* Returns how many of 100 trials have an interval that contains the truth; *ret_found: how many
 * exclude 0. */
static unsigned count_covered(double truth, double deviation, size_t count, unsigned *ret_found)
{
	unsigned covered = 0;
	*ret_found = 0;
	for (uint64_t seed = 0; seed < 100; seed++) {
		struct nm_rng rng = seeded(seed);
		struct nm_period periods[PERIODS];
		struct nm_periods_result result;
		nm_periods_draw(&rng, periods, count);
		for (size_t i = 0; i < count; i++)
			periods[i].value =
				exp(deviation * noise(&rng) + (periods[i].with ? truth : 0));
		nm_periods_compare(&rng, periods, count, &result);
		covered += result.low <= expm1(truth) && expm1(truth) <= result.high;
		*ret_found += result.low > 0 || result.high < 0;
		assert_true(result.low <= result.change && result.change <= result.high);
	}
	return covered;
}

TEST(the_interval_contains_the_truth)
{
	unsigned found;
	assert_true(count_covered(0, 0.1, 12, &found) >= 88);
	assert_true(found <= 12);
	assert_true(count_covered(0.2, 0.1, PERIODS, &found) >= 88);
	assert_true(found >= 88);
}

TEST(equal_values_have_no_difference)
{
	struct nm_rng rng = seeded(1);
	struct nm_period periods[PERIODS];
	struct nm_periods_result result;
	char text[NM_PERIODS_TEXT_BYTES];
	nm_periods_draw(&rng, periods, PERIODS);
	for (size_t i = 0; i < PERIODS; i++)
		periods[i].value = 7;
	nm_periods_compare(&rng, periods, PERIODS, &result);
	nm_periods_describe(&result, text, sizeof(text));
	assert_non_null(strstr(text, "no difference found: "));
}

TEST(five_periods_of_a_kind_are_too_few)
{
	struct nm_rng rng = seeded(1);
	struct nm_period periods[12];
	struct nm_periods_result result;
	char text[NM_PERIODS_TEXT_BYTES];
	for (size_t i = 0; i < 12; i++)
		periods[i] = (struct nm_period){.with = i < 5, .value = i < 5 ? 1 : 2};
	nm_periods_compare(&rng, periods, 12, &result);
	nm_periods_describe(&result, text, sizeof(text));
	assert_string_equal(text, "too few periods: 5 with numa-migrd and 7 without, at least 6 of "
				  "each are needed");
	assert_true(isnan(result.change));
	periods[5].with = true;
	nm_periods_compare(&rng, periods, 12, &result);
	assert_true(result.high < 0);
}

RUN_TESTS()
