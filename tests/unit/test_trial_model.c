/* SPDX-License-Identifier: MIT */
/* The control group of the daemon, on the model. */
#include "../support/test.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../model/sim.h"
#include "fixture.h"
#include "sim_fixture.h"

#define USERS 6U

struct outcome {
	struct nm_simulated done;
	struct nm_trial_sum sums[NM_TRIAL_MEASURES][NM_TRIAL_ARMS];
};

/* Over all programs, also those with a unit in one arm only. */
static void add_sums(const struct nm_trial *group, struct outcome *outcome)
{
	struct nm_trial_program *const *programs;
	size_t count = nm_trial_programs(group, &programs);
	memset(outcome->sums, 0, sizeof(outcome->sums));
	for (size_t i = 0; i < count * NM_TRIAL_MEASURES * NM_TRIAL_ARMS; i++) {
		size_t arm = i % NM_TRIAL_ARMS, measure = i / NM_TRIAL_ARMS % NM_TRIAL_MEASURES;
		const struct nm_trial_sum *sum = &programs[i / NM_TRIAL_ARMS / NM_TRIAL_MEASURES]
							  ->sums[NM_TRIAL_ALWAYS][measure][arm];
		outcome->sums[measure][arm].n += sum->n;
		outcome->sums[measure][arm].sum += sum->sum;
		outcome->sums[measure][arm].squares += sum->squares;
	}
}

/* Six programs of about ten seconds on four nodes, whose memory their first threads touch. */
static struct outcome run(const char *text, bool grouped, double control_share)
{
	nm_auto(nm_config_errors_clear) struct nm_config_errors errors = {0};
	struct nm_sim_machine *machine = machine_named("o6320-4x8");
	struct nm_sim_workload workload = {.limit_s = 60};
	struct nm_sim_options options = {.seed = 3, .control_share = control_share};
	struct nm_config *config = NULL;
	struct outcome outcome;
	for (unsigned i = 0; i < USERS; i++) {
		char name[] = "user0";
		name[4] = (char)('0' + i);
		struct nm_sim_user *user = nm_sim_workload_add(&workload, name);
		struct nm_sim_program *program = nm_sim_user_add(user, "stream", 4);
		program->phases[0].giga = 15;
		program->footprint_mb = 400;
		memcpy(program->name, name, sizeof(name)); /* so that each is a unit */
		program->touch = NM_SIM_TOUCH_MASTER;
	}
	assert_int_equal(nm_config_parse("test", text, strlen(text), &errors, &config), 0);
	config->journal.level = NM_JOURNAL_ERROR;
	if (grouped)
		nm_trial_new(5, &options.group);
	assert_int_equal(nm_simulate(machine, &workload, &options, config, NULL, &outcome.done), 0);
	if (grouped)
		add_sums(options.group, &outcome);
	nm_trial_free(options.group);
	nm_config_free(config);
	nm_sim_workload_clear(&workload);
	nm_sim_machine_free(machine);
	return outcome;
}

#define AUTO "threads: { policy = \"auto\"; };"

TEST(draws_change_no_decision)
{
	const char *const policies[] = {
		AUTO, "threads: { policy = \"imar2\"; }; pages: { policy = \"exclusivity\"; };"};
	for (size_t i = 0; i < NM_ARRAY_SIZE(policies); i++) {
		struct outcome without = run(policies[i], false, 0);
		struct outcome with = run(policies[i], true, 1e-12);
		assert_true(without.done.decisions > 0);
		assert_true(without.done.decisions_digest == with.done.decisions_digest);
		assert_true(without.done.digest == with.done.digest);
		assert_true(with.sums[NM_TRIAL_CPU][NM_TRIAL_TREATED].n > 0);
	}
}

TEST(control_is_left_alone)
{
	const char *const policies[] = {
		AUTO, "threads: { policy = \"imar2\"; };", "threads: { policy = \"kmaf\"; };",
		"threads: { policy = \"none\"; }; pages: { policy = \"exclusivity\"; };"};
	for (size_t i = 0; i < NM_ARRAY_SIZE(policies); i++) {
		struct outcome all = run(policies[i], true, 1);
		assert_int_equal(all.done.decisions, 0);
		assert_int_equal(all.done.figures.masks_set, 0);
		assert_int_equal(all.done.figures.pages_moved, 0);
	}
}

/* The values are those of the programs: they end before the window is over. */
TEST(values_are_those_of_the_programs)
{
	struct outcome all = run(AUTO, true, 1);
	const struct nm_trial_sum *elapsed = &all.sums[NM_TRIAL_ELAPSED][NM_TRIAL_CONTROL];
	const struct nm_trial_sum *cpu = &all.sums[NM_TRIAL_CPU][NM_TRIAL_CONTROL];
	double mean_s = all.done.figures.computing_s / USERS;
	assert_true(elapsed->n == USERS && cpu->n == USERS);
	/* From the draw, which comes some seconds after the start. */
	assert_true(exp(elapsed->sum / USERS) < mean_s);
	assert_true(exp(elapsed->sum / USERS) > 0.5 * mean_s);
	double threads = exp((cpu->sum - elapsed->sum) / USERS);
	double expected = all.done.figures.thread_s / all.done.figures.computing_s;
	assert_true(fabs(threads / expected - 1) < 0.05);
}

TEST(both_arms_are_counted)
{
	struct outcome half = run(AUTO, true, 0.5);
	double control = half.sums[NM_TRIAL_CPU][NM_TRIAL_CONTROL].n;
	double treated = half.sums[NM_TRIAL_CPU][NM_TRIAL_TREATED].n;
	assert_true(control > 0 && treated > 0);
	assert_true(control + treated == USERS);
	assert_int_equal(half.done.decisions, treated);
}

RUN_TESTS()
