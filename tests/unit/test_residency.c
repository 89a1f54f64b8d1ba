/* SPDX-License-Identifier: MIT */
/* Pages of a process per node: estimates with age and error, and what the kernel writes of them. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "../support/machine.h"
#include "numa-migrd/base.h"
#include "numa-migrd/regions.h"

enum { NODES = 3 };

static double pages[NODES];

static struct nm_residency estimate(enum nm_residency_source source, double a, double b, double c,
				    double resident)
{
	const double seen[NODES] = {a, b, c};
	const struct nm_residency_reading reading = {.source = source,
						     .time_ns = NM_NSEC_PER_SEC,
						     .seen = seen,
						     .samples = a + b + c,
						     .resident = resident};
	struct nm_residency residency;
	assert_int_equal(nm_residency_estimate(&reading, NODES, pages, &residency), 0);
	return residency;
}

static bool is_near(double a, double b)
{
	return fabs(a - b) <= 1e-9 * fabs(b);
}

/* ---- estimates ---- */

static void test_what_was_seen_is_scaled(void **state)
{
	(void)state;
	struct nm_residency residency = estimate(NM_RESIDENCY_QUERY, 10, 30, 0, 4000);
	assert_true(pages[0] == 1000 && pages[1] == 3000 && pages[2] == 0);
	assert_ptr_equal(residency.pages, pages);
	assert_int_equal(nm_residency_age_ns(&residency, 3 * NM_NSEC_PER_SEC), 2 * NM_NSEC_PER_SEC);
	assert_int_equal(nm_residency_age_ns(&residency, 0), 0);
}

static void test_nothing_seen_is_nothing_known(void **state)
{
	(void)state;
	const double none[NODES] = {0}, some[NODES] = {5};
	struct nm_residency residency = {0};
	struct nm_residency_reading reading = {
		.source = NM_RESIDENCY_QUERY, .seen = none, .samples = 3, .resident = 100};
	assert_int_equal(nm_residency_estimate(&reading, NODES, pages, &residency), -ENODATA);
	reading.seen = some;
	reading.samples = 0;
	assert_int_equal(nm_residency_estimate(&reading, NODES, pages, &residency), -ENODATA);
	assert_int_equal(residency.source, NM_RESIDENCY_NONE);
	assert_true(isnan(nm_residency_error(&residency, 0)));
	assert_true(isnan(nm_residency_gain_error(&residency, 0, 1)));
	reading.source = NM_RESIDENCY_MAPS;
	assert_int_equal(nm_residency_estimate(&reading, NODES, pages, &residency), 0);
}

/* ---- error ---- */

static void test_counts_of_every_page_have_none(void **state)
{
	(void)state;
	struct nm_residency maps = estimate(NM_RESIDENCY_MAPS, 1, 2, 3, 6);
	assert_true(nm_residency_error(&maps, 1) == 0);
	assert_true(nm_residency_gain_error(&maps, 0, 1) == 0);
}

static void test_more_samples_less_error(void **state)
{
	(void)state;
	struct nm_residency few = estimate(NM_RESIDENCY_ACCESSES, 50, 50, 0, 1e6);
	double error = nm_residency_error(&few, 0);
	assert_true(is_near(error, 1e6 * 0.05)); /* √(¼/100) */
	struct nm_residency many = estimate(NM_RESIDENCY_ACCESSES, 5000, 5000, 0, 1e6);
	assert_true(is_near(nm_residency_error(&many, 0), error / 10));
}

static void test_unseen_is_not_certain(void **state)
{
	(void)state;
	struct nm_residency residency = estimate(NM_RESIDENCY_ACCESSES, 10, 0, 0, 1000);
	assert_true(nm_residency_error(&residency, 1) > 50);
	assert_true(nm_residency_error(&residency, 0) > 50);
}

static void test_pages_all_looked_at_are_certain(void **state)
{
	(void)state;
	struct nm_residency half = estimate(NM_RESIDENCY_QUERY, 250, 250, 0, 1000);
	struct nm_residency accesses = estimate(NM_RESIDENCY_ACCESSES, 250, 250, 0, 1000);
	double error = nm_residency_error(&half, 0);
	assert_true(is_near(error, nm_residency_error(&accesses, 0) * sqrt(0.5)));
	struct nm_residency all = estimate(NM_RESIDENCY_QUERY, 500, 500, 0, 1000);
	assert_true(nm_residency_error(&all, 0) == 0);
	struct nm_residency beyond = estimate(NM_RESIDENCY_QUERY, 600, 600, 0, 1000);
	assert_true(nm_residency_error(&beyond, 0) == 0);
}

/* What the formulas say is what a thousand draws from a known process scatter. */
static void test_errors_are_those_of_draws(void **state)
{
	(void)state;
	enum { DRAWS = 4000, SAMPLES = 100 };
	const double truth[NODES] = {0.8, 0.15, 0.05};
	double sum = 0, squares = 0, gain_sum = 0, gain_squares = 0;
	struct nm_rng dice;
	nm_rng_seed(&dice, 11);
	for (unsigned i = 0; i < DRAWS; i++) {
		double seen[NODES] = {0};
		for (unsigned k = 0; k < SAMPLES; k++) {
			double u = nm_rng_unit(&dice);
			seen[u < truth[0] ? 0 : u < truth[0] + truth[1] ? 1 : 2]++;
		}
		double share = seen[1] / SAMPLES, gain = (seen[1] - seen[0]) / SAMPLES;
		sum += share;
		squares += share * share;
		gain_sum += gain;
		gain_squares += gain * gain;
	}
	double deviation = sqrt(squares / DRAWS - sum / DRAWS * (sum / DRAWS));
	double of_gain = sqrt(gain_squares / DRAWS - gain_sum / DRAWS * (gain_sum / DRAWS));
	struct nm_residency residency = estimate(NM_RESIDENCY_ACCESSES, 80, 15, 5, 1000);
	assert_true(fabs(nm_residency_error(&residency, 1) / (1000 * deviation) - 1) < 0.05);
	assert_true(fabs(nm_residency_gain_error(&residency, 0, 1) / (1000 * of_gain) - 1) < 0.05);
	assert_true(nm_residency_gain_error(&residency, 1, 1) == 0);
}

static void test_a_process_without_pages(void **state)
{
	(void)state;
	struct nm_residency residency = estimate(NM_RESIDENCY_QUERY, 1, 2, 3, 0);
	assert_true(pages[0] == 0 && nm_residency_error(&residency, 0) == 0);
	assert_true(nm_residency_gain_error(&residency, 0, 1) == 0);
}

/* ---- which to go by ---- */

static void test_exact_until_it_is_old(void **state)
{
	(void)state;
	double mapped[NODES];
	const uint64_t now = 100 * NM_NSEC_PER_SEC;
	struct nm_residency maps = estimate(NM_RESIDENCY_MAPS, 1, 2, 3, 1000);
	memcpy(mapped, pages, sizeof(mapped));
	maps.pages = mapped;
	struct nm_residency fresh = estimate(NM_RESIDENCY_ACCESSES, 50, 50, 0, 1000);
	fresh.time_ns = now; /* error 50: as much as five seconds' drift */
	maps.time_ns = now - 4 * NM_NSEC_PER_SEC;
	assert_true(nm_residency_better(&maps, &fresh, now, 0.01));
	assert_false(nm_residency_better(&fresh, &maps, now, 0.01));
	maps.time_ns = now - 6 * NM_NSEC_PER_SEC;
	assert_false(nm_residency_better(&maps, &fresh, now, 0.01));
	assert_true(nm_residency_better(&fresh, &maps, now, 0.01));
	assert_true(nm_residency_better(&maps, &fresh, now, 0));
}

static void test_something_is_better_than_nothing(void **state)
{
	(void)state;
	const struct nm_residency nothing = {0};
	struct nm_residency residency = estimate(NM_RESIDENCY_ACCESSES, 1, 0, 0, 1000);
	assert_true(nm_residency_better(&residency, &nothing, 1ULL << 60, 1));
	assert_false(nm_residency_better(&nothing, &residency, 1ULL << 60, 1));
	assert_false(nm_residency_better(&nothing, &nothing, 0, 1));
}

/* ---- text ---- */

static struct nm_topology *topology;

/* Nodes 0, 1 and 8, as the kernel numbers them. */
static int begin(void **state)
{
	(void)state;
	memset(pages, 0, sizeof(pages));
	topology = machine_topology(NODES, NODES);
	if (topology)
		topology->nodes[2].os_id = 8;
	return topology ? 0 : -1;
}

static int end(void **state)
{
	(void)state;
	nm_topology_free(topology);
	return 0;
}

static int read_line(const char *line)
{
	return nm_residency_read_numa_maps_line(line, topology, 4096, pages);
}

static void test_numa_maps(void **state)
{
	(void)state;
	assert_int_equal(read_line("7f2c4a000000 default anon=7 dirty=7 active=0 N0=3 N8=4 "
				   "kernelpagesize_kB=4\n"),
			 0);
	assert_true(pages[0] == 3 && pages[1] == 0 && pages[2] == 4);
	assert_int_equal(read_line("7f2c40000000 bind:1 file=/dev/hugepages/N1=5 huge dirty=2 "
				   "N1=2 kernelpagesize_kB=2048"),
			 0);
	assert_true(pages[0] == 3 && pages[1] == 1024 && pages[2] == 4);
	assert_int_equal(read_line("7ffd1000 default stack\n"), 0);
	assert_true(pages[0] == 3 && pages[1] == 1024 && pages[2] == 4);
}

static void test_damaged_numa_maps(void **state)
{
	(void)state;
	assert_int_equal(read_line("q default N0=3 kernelpagesize_kB=4\n"), -EINVAL);
	assert_int_equal(read_line("7f2c default N0=3 kernelpagesize_kB=four\n"), 0);
	assert_int_equal(read_line("7f2c default N0=3 kernelpagesize_kB=\n"), 0);
	assert_int_equal(read_line("7f2c default N1=q kernelpagesize_kB=4\n"), 0);
	assert_true(pages[0] == 0 && pages[1] == 0 && pages[2] == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_was_seen_is_scaled),
		cmocka_unit_test(test_nothing_seen_is_nothing_known),
		cmocka_unit_test(test_counts_of_every_page_have_none),
		cmocka_unit_test(test_more_samples_less_error),
		cmocka_unit_test(test_unseen_is_not_certain),
		cmocka_unit_test(test_pages_all_looked_at_are_certain),
		cmocka_unit_test(test_errors_are_those_of_draws),
		cmocka_unit_test(test_a_process_without_pages),
		cmocka_unit_test(test_exact_until_it_is_old),
		cmocka_unit_test(test_something_is_better_than_nothing),
		cmocka_unit_test_setup_teardown(test_numa_maps, begin, end),
		cmocka_unit_test_setup_teardown(test_damaged_numa_maps, begin, end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
