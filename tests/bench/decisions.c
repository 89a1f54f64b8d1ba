/* SPDX-License-Identifier: MIT */
/*
 * nm_decisions: each decision, home and verdict of all policies in the model, as text for
 * tests/check-decisions. Policy "auto" runs the scenarios of nm_judge too. Prints on standard
 * output. Not installed.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "judge/judge.h"

static const char *const machines[] = {"ring-4x10", "mesh-4x20", "x7550-4x8"};
/* The rate for each seed, from 1 on. */
static const double wanders[] = {0, NM_SIM_WANDER_USUAL, 0.1};

static const char workload_text[] =
	"limit_s = 40; users = ("
	"{ programs = ({ like = \"stencil\"; threads = 14; }, { like = \"sp\"; threads = 10; });"
	"  repeat = true; },"
	"{ programs = ({ like = \"table\"; threads = 9; }); repeat = true; },"
	"{ start_s = 5; programs = ({ like = \"lu\"; threads = 24; }); repeat = true; });";

static const char *const policies[] = {"auto",	      "lbma",	     "imar2",	   "kmaf",
				       "balance",     "best",	     "kernel+auto", "kernel+imar2",
				       "lbma-paper",  "imar2-paper", "kmaf-paper"};
/* The scheduler of the model evens out the nodes, so that "balance" moves no thread. With published
 * rules it moves threads between CPUs. */
static const struct nm_sim_policy balance_paper = {
	.name = "balance-paper",
	.config = "profile = \"paper\"; threads: { policy = \"balance\"; };"};

/* Runs once for each seed. */
static int run(struct nm_sim_case *what, const struct nm_sim_policy *policy, uint64_t seed)
{
	struct nm_sim_outcome outcome;
	what->how.runs = 1;
	what->how.options.seed = seed;
	what->how.options.wander_per_s = wanders[seed - 1];
	what->record_fd = -1;
	what->decisions = stdout;
	int r = nm_sim_case_run(what, policy, &outcome);
	if (r == 0)
		printf("digest %016" PRIx64 "\n", outcome.decisions_digest);
	return r;
}

static int run_policy(const struct nm_sim_machine *machine, const char *machine_name,
		      const struct nm_sim_policy *policy)
{
	int r = 0;
	for (uint64_t seed = 1; seed <= NM_ARRAY_SIZE(wanders) && r == 0; seed++) {
		nm_auto(nm_sim_workload_clear) struct nm_sim_workload workload = {0};
		struct nm_sim_case what = {.machine = machine, .workload = &workload};
		char error[256];
		printf("run %s %s seed %" PRIu64 "\n", machine_name, policy->name, seed);
		r = nm_sim_workload_parse("decisions", workload_text, strlen(workload_text), error,
					  sizeof(error), &workload);
		if (r == 0)
			r = run(&what, policy, seed);
	}
	return r;
}

static int run_machine(const char *name)
{
	nm_auto(nm_sim_machine_freep) struct nm_sim_machine *machine = NULL;
	int r = nm_sim_machine_by_name(name, &machine);
	for (size_t i = 0; i < NM_ARRAY_SIZE(policies) && r == 0; i++)
		r = run_policy(machine, name, nm_sim_policy_by_name(policies[i]));
	return r == 0 ? run_policy(machine, name, &balance_paper) : r;
}

/* Every other run has counters. */
static int run_scenario(const struct judge_scenario *scenario, uint64_t seed)
{
	nm_auto(nm_sim_machine_freep) struct nm_sim_machine *machine = NULL;
	nm_auto(nm_sim_workload_clear) struct nm_sim_workload workload = {
		.full_page_cache = scenario->full_page_cache};
	struct nm_sim_case what = {.workload = &workload};
	struct nm_rng rng;
	bool no_pmu = (seed + (uint64_t)(scenario - judge_scenarios)) % 2 != 0;
	nm_rng_seed(&rng, seed);
	printf("run %s auto%s seed %" PRIu64 "\n", scenario->name, no_pmu ? "-no-pmu" : "", seed);
	int r = nm_sim_machine_by_name(scenario->machine, &machine);
	if (r == 0)
		r = scenario->fill(machine, &rng, &workload);
	if (r < 0)
		return r;
	what.machine = machine;
	what.how.options.no_pmu = no_pmu;
	what.how.options.cache_aware = scenario->cache_aware;
	return run(&what, nm_sim_policy_by_name("auto"), seed);
}

int main(void)
{
	int r = 0;
	for (size_t i = 0; i < NM_ARRAY_SIZE(machines) && r == 0; i++)
		r = run_machine(machines[i]);
	for (size_t i = 0; i < judge_scenario_count; i++)
		for (uint64_t seed = 1; seed <= NM_ARRAY_SIZE(wanders) && r == 0; seed++)
			r = run_scenario(&judge_scenarios[i], seed);
	if (r < 0)
		(void)fprintf(stderr, "nm_decisions: %s\n", strerror(-r));
	return r < 0;
}
