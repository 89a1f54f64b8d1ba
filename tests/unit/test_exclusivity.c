/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "numa-migrd/memory.h"

/* Equation 4: (1·10 + 0.5·30) / 40. */
static void test_average_weighs_accesses(void **state)
{
	struct nm_exclusivity sums = {0};

	(void)state;
	assert_true(isnan(nm_exclusivity_average(&sums)));
	nm_exclusivity_add(&sums, 10, 10);
	nm_exclusivity_add(&sums, 15, 30);
	nm_exclusivity_add(&sums, 0, 0);
	assert_true(nm_exclusivity_average(&sums) == 0.625);
	assert_int_equal(sums.pages, 2);
}

static void test_nearest_tenth(void **state)
{
	struct nm_exclusivity sums = {0};

	(void)state;
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_average_weighs_accesses),
		cmocka_unit_test(test_nearest_tenth),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
