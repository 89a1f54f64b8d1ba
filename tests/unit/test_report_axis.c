/* SPDX-License-Identifier: MIT */
/* Axes: ticks are round, on the axis, in order, and few enough to be read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "../../src/ctl/page/axis.h"
#include "numa-migrd/base.h"

static void assert_ticks(const struct nm_axis *axis, size_t most, const double *expected,
			 size_t count)
{
	double ticks[NM_AXIS_TICKS_MOST];
	assert_int_equal(nm_axis_ticks(axis, most, ticks), count);
	for (size_t i = 0; i < count; i++)
		assert_true(fabs(ticks[i] - expected[i]) <= fabs(expected[i]) * 1e-9);
}

static void test_linear(void **state)
{
	(void)state;
	const struct nm_axis per_cent = {.low = 0, .high = 100};
	assert_ticks(&per_cent, 6, (const double[]){0, 20, 40, 60, 80, 100}, 6);
	assert_false(signbit(nm_axis_at(&per_cent, 0)));
	assert_true(nm_axis_at(&per_cent, 25) == 0.25);
	assert_true(nm_axis_at(&per_cent, -5) == 0 && nm_axis_at(&per_cent, 500) == 1);
	struct nm_axis pages = {.low = 0, .high = 24682};
	nm_axis_fit(&pages);
	assert_true(pages.high == 30000);
	struct nm_axis none = {0};
	nm_axis_fit(&none);
	assert_true(none.high > none.low);
}

static void test_logarithmic(void **state)
{
	(void)state;
	const struct nm_axis decades = {.low = 0.1, .high = 1e4, .log = true};
	assert_ticks(&decades, 6, (const double[]){0.1, 1, 10, 100, 1000, 10000}, 6);
	assert_ticks(&decades, 3, (const double[]){0.1 * 10, 100, 10000}, 3);
	const struct nm_axis one = {.low = 0.9, .high = 11, .log = true};
	assert_ticks(&one, 6, (const double[]){1, 2, 5, 10}, 4);
	const struct nm_axis two = {.low = 0.9, .high = 110, .log = true};
	assert_ticks(&two, 6, (const double[]){1, 3, 10, 30, 100}, 5);
	assert_true(fabs(nm_axis_at(&decades, 10) - 0.4) < 1e-9);
	assert_true(nm_axis_at(&decades, 0) == 0);
	assert_true(nm_axis_at(&decades, (double)NAN) == 0);
}

static void test_times(void **state)
{
	(void)state;
	double ticks[NM_AXIS_TICKS_MOST];
	assert_int_equal(nm_axis_times(90, 5, ticks), 4);
	assert_true(ticks[1] == 30 && ticks[3] == 90);
	assert_int_equal(nm_axis_times(0, 5, ticks), 1);
	assert_true(ticks[0] == 0);
	assert_int_equal(nm_axis_times(7200, 5, ticks), 5);
	assert_true(ticks[1] == 1800);
}

static void test_shades(void **state)
{
	(void)state;
	const struct nm_axis axis = {.low = 100, .high = 800};
	assert_int_equal(nm_axis_shade(&axis, 100), 0);
	assert_int_equal(nm_axis_shade(&axis, 210), 1);
	assert_int_equal(nm_axis_shade(&axis, 800), NM_SHADES - 1);
	assert_int_equal(nm_axis_shade(&axis, 1e9), NM_SHADES - 1);
	const struct nm_axis point = {.low = 5, .high = 5};
	assert_true(nm_axis_shade(&point, 5) < NM_SHADES);
}

static void assert_sound(const struct nm_axis *axis, size_t most)
{
	double ticks[NM_AXIS_TICKS_MOST];
	size_t count = nm_axis_ticks(axis, most, ticks);
	assert_true(count <= most + 1 && count <= NM_AXIS_TICKS_MOST);
	for (size_t i = 0; i < count; i++) {
		assert_true(isfinite(ticks[i]));
		assert_true(i == 0 || ticks[i] > ticks[i - 1]);
		assert_true(ticks[i] >= axis->low * (1 - 1e-6) - 1e-6);
		assert_true(ticks[i] <= axis->high * (1 + 1e-6) + 1e-6);
	}
}

static void test_any_axis(void **state)
{
	(void)state;
	struct nm_rng rng;
	nm_rng_seed(&rng, 3);
	for (unsigned i = 0; i < 20000; i++) {
		double low = pow(10, 36 * nm_rng_unit(&rng) - 18);
		struct nm_axis axis = {
			.low = low, .high = low * pow(10, 12 * nm_rng_unit(&rng)), .log = true};
		nm_axis_fit(&axis);
		assert_sound(&axis, 6);
		assert_true(nm_axis_at(&axis, low) > 0 && nm_axis_at(&axis, low) < 1);
		axis = (struct nm_axis){.low = 0, .high = low};
		nm_axis_fit(&axis);
		assert_sound(&axis, 6);
		assert_true(axis.high >= low * (1 - 1e-9));
		double ticks[NM_AXIS_TICKS_MOST];
		assert_true(nm_axis_times(low, 5, ticks) <= 6);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_linear),	 cmocka_unit_test(test_logarithmic),
		cmocka_unit_test(test_times),	 cmocka_unit_test(test_shades),
		cmocka_unit_test(test_any_axis),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
