/* SPDX-License-Identifier: MIT */
/* Types of threads and CPUs: hysteresis, ratio, and distribution over caches and siblings. */
#define SET_UP begin
#define TEAR_DOWN end
#include "../support/test.h"

#include <math.h>

#include "../support/machine.h"
#include "policy/balance.h"

/* ---- threads ---- */

TEST_BETWEEN(NULL, NULL, test_misses_per_kilo_instruction)
{
	assert_true(nm_dtas_mpki(5e6, 1e9) == 5);
	assert_true(nm_dtas_mpki(0, 1e9) == 0);
	assert_true(isnan(nm_dtas_mpki(5, 0)));
	assert_true(isnan(nm_dtas_mpki(NAN, 1e9)));
	assert_true(isnan(nm_dtas_mpki(5, NAN)));
}

struct step {
	double mpki;
	enum nm_dtas_type type; /* expected type */
};

static void follow(const struct step *steps, size_t count)
{
	struct nm_dtas_behaviour behaviour = {0};
	for (size_t i = 0; i < count; i++) {
		nm_dtas_classify(&behaviour, steps[i].mpki);
		assert_int_equal(behaviour.type, steps[i].type);
	}
}

TEST_BETWEEN(NULL, NULL, test_a_type_takes_two_running_intervals)
{
	const struct step steps[] = {{7, NM_DTAS_EITHER},   {NAN, NM_DTAS_EITHER},
				     {5, NM_DTAS_MEMORY},   {1, NM_DTAS_MEMORY},
				     {NAN, NM_DTAS_MEMORY}, {2.9, NM_DTAS_COMPUTE},
				     {50, NM_DTAS_COMPUTE}};
	follow(steps, NM_ARRAY_SIZE(steps));
}

TEST_BETWEEN(NULL, NULL, test_a_type_is_kept_between_the_thresholds)
{
	const struct step steps[] = {
		{4, NM_DTAS_EITHER},	{4, NM_DTAS_EITHER},  {9, NM_DTAS_EITHER},
		{9, NM_DTAS_MEMORY},	{3, NM_DTAS_MEMORY},  {4.9, NM_DTAS_MEMORY},
		{2, NM_DTAS_MEMORY},	{3, NM_DTAS_MEMORY}, /* not two in a row */
		{2, NM_DTAS_MEMORY},	{2, NM_DTAS_COMPUTE}, {5, NM_DTAS_COMPUTE},
		{4.9, NM_DTAS_COMPUTE}, {5, NM_DTAS_COMPUTE}, {5, NM_DTAS_MEMORY}};
	follow(steps, NM_ARRAY_SIZE(steps));
}

/* ---- ratio ---- */

/* kMLB, table 3, on its machine of 16 logical CPUs: 35M:21C, 28M:28C, 21M:35C. */
TEST_BETWEEN(NULL, NULL, test_ratio_of_table_3)
{
	assert_int_equal(nm_dtas_memory_cpus(16, 35, 21), 10);
	assert_int_equal(nm_dtas_memory_cpus(16, 28, 28), 8);
	assert_int_equal(nm_dtas_memory_cpus(16, 21, 35), 6);
}

TEST_BETWEEN(NULL, NULL, test_each_present_type_has_a_cpu)
{
	assert_int_equal(nm_dtas_memory_cpus(8, 1, 1000), 1);
	assert_int_equal(nm_dtas_memory_cpus(8, 1000, 1), 7);
	assert_int_equal(nm_dtas_memory_cpus(8, 5, 0), 8);
	assert_int_equal(nm_dtas_memory_cpus(8, 0, 5), 0);
	assert_int_equal(nm_dtas_memory_cpus(8, 0, 0), 0);
	assert_int_equal(nm_dtas_memory_cpus(2, 9, 1), 1);
	assert_int_equal(nm_dtas_memory_cpus(0, 9, 1), 0);
	assert_int_equal(nm_dtas_memory_cpus(4, 1, 7), 1); /* half a CPU is rounded up */
	assert_int_equal(nm_dtas_memory_cpus(4, 3, 5), 2);
}

/* ---- CPUs ---- */

enum { CPUS = 16 };
static struct nm_topology *topology;
static enum nm_dtas_type types[CPUS];

/* Two nodes with a cache each, four cores of two siblings; sibling i + 4 is on the core of i. */
static int begin(void **state)
{
	(void)state;
	topology = machine_topology(2, CPUS);
	for (int cpu = 0; topology && cpu < CPUS; cpu++)
		topology->cpus[cpu].core = cpu / 8 * 4 + cpu % 4;
	return topology ? 0 : -1;
}

static int end(void **state)
{
	(void)state;
	nm_topology_free(topology);
	return 0;
}

static unsigned split(uint64_t memory, uint64_t compute)
{
	unsigned count = 0;
	nm_dtas_split(topology, memory, compute, types);
	for (unsigned cpu = 0; cpu < CPUS; cpu++)
		count += types[cpu] == NM_DTAS_MEMORY;
	return count;
}

static unsigned count_in_cache(int cache)
{
	unsigned count = 0;
	for (unsigned cpu = 0; cpu < CPUS; cpu++)
		count += topology->cpus[cpu].cache == cache && types[cpu] == NM_DTAS_MEMORY;
	return count;
}

TEST(test_few_cpus_use_every_other_core)
{
	assert_int_equal(split(1, 3), 4);
	const bool memory[8] = {true, false, true};
	for (unsigned cpu = 0; cpu < CPUS; cpu++)
		assert_int_equal(types[cpu], memory[cpu % 8] ? NM_DTAS_MEMORY : NM_DTAS_COMPUTE);
}

/* With any ratio, caches differ by at most one, and no core has two siblings of a type while
 * another has none. */
TEST(test_spread_is_even_for_any_ratio)
{
	for (uint64_t memory = 1; memory < CPUS; memory++) {
		unsigned of_core[8] = {0}, least = 2, most = 0;
		assert_int_equal(split(memory, CPUS - memory), memory);
		assert_true(abs((int)count_in_cache(0) - (int)count_in_cache(1)) <= 1);
		for (unsigned cpu = 0; cpu < CPUS; cpu++)
			of_core[topology->cpus[cpu].core] += types[cpu] == NM_DTAS_MEMORY;
		for (unsigned i = 0; i < 8; i++) {
			least = of_core[i] < least ? of_core[i] : least;
			most = of_core[i] > most ? of_core[i] : most;
		}
		assert_true(most - least <= 1);
	}
}

TEST(test_a_new_ratio_changes_few_cpus)
{
	enum nm_dtas_type before[CPUS];
	for (uint64_t memory = 1; memory + 1 < CPUS; memory++) {
		unsigned changed = 0;
		(void)split(memory, CPUS - memory);
		memcpy(before, types, sizeof(before));
		(void)split(memory + 1, CPUS - memory - 1);
		for (unsigned cpu = 0; cpu < CPUS; cpu++)
			changed += before[cpu] != types[cpu];
		assert_int_equal(changed, 1);
	}
}

TEST(test_one_type_has_all)
{
	assert_int_equal(split(3, 0), CPUS);
	assert_int_equal(split(0, 3), 0);
	assert_int_equal(types[5], NM_DTAS_COMPUTE);
	assert_int_equal(split(0, 0), 0);
	assert_int_equal(types[5], NM_DTAS_EITHER);
}

TEST(test_cpus_not_used_have_no_type)
{
	hwloc_bitmap_clr_range(topology->usable, 0, 13);
	assert_int_equal(split(1, 1), 1);
	for (unsigned cpu = 0; cpu < 14; cpu++)
		assert_int_equal(types[cpu], NM_DTAS_EITHER);
	hwloc_bitmap_clr(topology->usable, 14);
	assert_int_equal(split(1, 1), 0); /* a single CPU cannot have both types */
	assert_int_equal(types[15], NM_DTAS_EITHER);
	assert_int_equal(split(1, 0), 1);
	hwloc_bitmap_zero(topology->usable);
	assert_int_equal(split(1, 1), 0);
}

TEST(test_unknown_caches_and_cores)
{
	for (unsigned cpu = 0; cpu < CPUS; cpu++)
		topology->cpus[cpu].cache = topology->cpus[cpu].core = -1;
	assert_int_equal(split(1, 7), 2); /* one on each node */
	assert_true(types[0] == NM_DTAS_MEMORY && types[8] == NM_DTAS_MEMORY);
	assert_int_equal(split(28, 28), 8);
	for (unsigned cpu = 0; cpu < CPUS; cpu++)
		assert_int_equal(types[cpu], cpu % 2 ? NM_DTAS_COMPUTE : NM_DTAS_MEMORY);
}

/* ---- placement ---- */

TEST_BETWEEN(NULL, NULL, test_threads_fit_cpus_of_their_type)
{
	assert_true(nm_dtas_fits(NM_DTAS_MEMORY, NM_DTAS_MEMORY, false));
	assert_false(nm_dtas_fits(NM_DTAS_MEMORY, NM_DTAS_COMPUTE, false));
	assert_false(nm_dtas_fits(NM_DTAS_COMPUTE, NM_DTAS_MEMORY, false));
	assert_true(nm_dtas_fits(NM_DTAS_COMPUTE, NM_DTAS_MEMORY, true));
	assert_true(nm_dtas_fits(NM_DTAS_EITHER, NM_DTAS_MEMORY, false));
	assert_true(nm_dtas_fits(NM_DTAS_COMPUTE, NM_DTAS_EITHER, false));
}

TEST(the_cpus_of_a_type)
{
	nm_autobitmap cpus = hwloc_bitmap_alloc_full();
	(void)split(28, 28);
	nm_dtas_cpus(topology, types, 1, NM_DTAS_MEMORY, cpus);
	assert_int_equal(hwloc_bitmap_weight(cpus), 4);
	assert_int_equal(hwloc_bitmap_first(cpus), 8);
	assert_int_equal(hwloc_bitmap_last(cpus), 11);
	nm_dtas_cpus(topology, types, 1, NM_DTAS_EITHER, cpus);
	assert_true(hwloc_bitmap_isequal(cpus, topology->nodes[1].cpus));
	(void)split(3, 0);
	nm_dtas_cpus(topology, types, 0, NM_DTAS_COMPUTE, cpus);
	assert_true(hwloc_bitmap_iszero(cpus));
}

RUN_TESTS()
