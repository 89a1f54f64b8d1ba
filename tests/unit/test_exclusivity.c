/* SPDX-License-Identifier: MIT */
#include "../support/test.h"

#include <math.h>
#include <stdint.h>

#include "observe/memory.h"

/* Equation 4: (1·10 + 0.5·30) / 40. */
TEST(test_average_weighs_accesses)
{
	struct nm_exclusivity sums = {0};

	assert_true(isnan(nm_exclusivity_average(&sums)));
	nm_exclusivity_add(&sums, 10, 10);
	nm_exclusivity_add(&sums, 15, 30);
	nm_exclusivity_add(&sums, 0, 0);
	assert_true(nm_exclusivity_average(&sums) == 0.625);
	assert_int_equal(sums.pages, 2);
}

TEST(test_nearest_tenth)
{
	struct nm_exclusivity sums = {0};

	nm_exclusivity_add(&sums, 1, 1);   /* 1.0 */
	nm_exclusivity_add(&sums, 19, 20); /* 0.95 */
	nm_exclusivity_add(&sums, 94, 100);
	nm_exclusivity_add(&sums, 1, 4); /* 0.25 */
	nm_exclusivity_add(&sums, 1, 2);
	assert_int_equal(sums.histogram[10], 2);
	assert_int_equal(sums.histogram[9], 1);
	assert_int_equal(sums.histogram[3], 1);
	assert_int_equal(sums.histogram[5], 1);
}

RUN_TESTS()
