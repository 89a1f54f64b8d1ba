/* SPDX-License-Identifier: MIT */
/* Policy "auto" in scenarios of nm_judge in the model: results with every seed. */
#include "../support/test.h"

#include <stdint.h>

#include <string.h>

#include "sim_fixture.h"

#include "../model/judge/scenarios.c"

#define SEEDS 4U
#define WANDER 0.02

static const struct nm_sim_policy without = {.name = "none"};
static const struct nm_sim_policy with = {.name = "auto",
					  .config = "threads: { policy = \"auto\"; };"};

static const struct judge_scenario *scenario_named(const char *name)
{
	for (size_t i = 0; i < judge_scenario_count; i++)
		if (strcmp(judge_scenarios[i].name, name) == 0)
			return &judge_scenarios[i];
	fail_msg("%s", name);
	return NULL;
}

static struct nm_sim_outcome outcome_of(const char *name, const struct nm_sim_policy *policy,
					uint64_t seed, bool pmu)
{
	const struct judge_scenario *scenario = scenario_named(name);
	struct nm_sim_machine *machine = machine_named(scenario->machine);
	struct nm_sim_workload workload = {.full_page_cache = scenario->full_page_cache};
	const struct nm_sim_case what = {
		.machine = machine,
		.workload = &workload,
		.how = {.runs = 1,
			.options = {.seed = seed,
				    .wander_per_s = WANDER,
				    .no_pmu = !pmu,
				    .cache_aware = scenario->cache_aware}},
	};
	struct nm_sim_outcome outcome = {0};
	struct nm_rng rng;
	nm_rng_seed(&rng, seed);
	assert_int_equal(scenario->fill(machine, &rng, &workload), 0);
	assert_int_equal(nm_sim_case_run(&what, policy, &outcome), 0);
	assert_true(outcome.all_ended);
	nm_sim_workload_clear(&workload);
	nm_sim_machine_free(machine);
	return outcome;
}

/* Relative to the time without a daemon. */
static double ratio(const char *name, uint64_t seed, bool pmu)
{
	return outcome_of(name, &with, seed, pmu).computing_s /
	       outcome_of(name, &without, seed, pmu).computing_s;
}

/* Memory that first touch placed remotely is migrated: migration reclaims page cache. */
TEST(test_migration_gains_with_a_full_page_cache)
{
	for (uint64_t seed = 1; seed <= SEEDS; seed++)
		assert_true(ratio("cache", seed, true) < 0.98);
}

/* The kernel gathers threads by cache; homes do not counteract this. */
TEST(test_homes_agree_with_a_cache_aware_kernel)
{
	for (uint64_t seed = 1; seed <= SEEDS; seed++)
		assert_true(ratio("gathered", seed, true) < 1.01);
}

TEST(test_programs_larger_than_a_node_lose_nothing)
{
	for (uint64_t seed = 1; seed <= SEEDS; seed++)
		for (int pmu = 0; pmu < 2; pmu++)
			assert_true(ratio("large", seed, pmu) < 1.01);
}

/* Two programs that each saturate a memory controller are not placed on one node. On average: with
 * a single seed a program may lose by chance. */
TEST(test_bandwidth_is_left_spread)
{
	for (int pmu = 0; pmu < 2; pmu++) {
		double sum = 0;
		for (uint64_t seed = 1; seed <= 2 * SEEDS; seed++)
			sum += ratio("bandwidth", seed, pmu) / (2 * SEEDS);
		assert_true(sum < 1.01);
	}
}

/* On average: with a single seed a program may lose by chance. */
TEST(test_serial_starts_cost_little)
{
	double sum = 0;
	for (uint64_t seed = 1; seed <= 2 * SEEDS; seed++)
		sum += ratio("serial", seed, true) / (2 * SEEDS);
	assert_true(sum < 1.01);
}

RUN_TESTS()
