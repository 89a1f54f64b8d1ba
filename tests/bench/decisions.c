/* SPDX-License-Identifier: MIT */
/*
 * nm_decisions: what the daemon decides, does and logs in the model, as text for
 * tests/check-decisions: each decision, home and verdict of all policies, the digest of their
 * effects, and of some runs each journal entry with its fields. Policy "auto" runs the scenarios of
 * nm_judge too. Prints on standard output. Not installed.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "../model/judge/judge.h"

/* The rate for each seed, from 1 on. */
static const double wanders[] = {0, NM_SIM_WANDER_USUAL, 0.1};

/* ---- policies ---- */

#define POLICY(name, more)                                                                         \
	"threads: { policy = \"" name "\"; }; parameters: { threads: { " more " }; };"
#define IMAR2(more) POLICY("imar2", more)
#define BALANCE(more) POLICY("balance-paper", more)
#define SELECTION(rule)                                                                            \
	{                                                                                          \
		.name = "balance-" rule, .config = BALANCE("selection = \"" rule "\";")            \
	}

static const char *const usual_policies[] = {
	"auto", "lbma",	       "imar2",	       "kmaf",	     "balance",
	"best", "kernel+auto", "kernel+imar2", "lbma-paper", "imar2-paper"};

static const struct nm_sim_policy more_policies[] = {
	{.name = "auto+pages",
	 .config = "threads: { policy = \"auto\"; }; pages: { policy = \"exclusivity\"; };"},
	{.name = "imar2", .config = IMAR2("")},
	{.name = "imar2-latency", .config = POLICY("imar2-paper", "performance = \"latency\";")},
};

/* For overloaded nodes. The scheduler of the model evens out the nodes, so that the shipped rules
 * move few threads. */
static const struct nm_sim_policy balance_policies[] = {
	{.name = "balance", .config = "threads: { policy = \"balance\"; };"},
	SELECTION("first_fit"),
	SELECTION("total_min"),
	SELECTION("remote_min"),
	SELECTION("local_max"),
	SELECTION("most_benefit"),
	SELECTION("cost_effective"),
	SELECTION("exclusivity_base"),
	SELECTION("exclusivity"),
	SELECTION("most_benefit_plus"),
	{.name = "balance-dtas", .config = BALANCE("selection = \"dtas\";")},
};

/* ---- machines and workloads ---- */

#define MIXED_USERS                                                                                \
	"users = ("                                                                                \
	"{ programs = ({ like = \"stencil\"; threads = 14; }, { like = \"sp\"; threads = 10; });"  \
	"  repeat = true; },"                                                                      \
	"{ programs = ({ like = \"table\"; threads = 9; }); repeat = true; },"                     \
	"{ start_s = 5; programs = ({ like = \"lu\"; threads = 24; }); repeat = true; });"
/* More threads than CPUs, which sleep and wake up again, so that queues differ. */
#define SLEEPY(program, count)                                                                     \
	"{ programs = ({ like = \"" program "\"; threads = " count ";"                             \
	"    phases = ({ giga = 0.3; idle_s = 0.3; }, { giga = 0.2; idle_s = 0.2; }); });"         \
	"  repeat = true; }"
#define QUEUES                                                                                     \
	"users = (" SLEEPY("stream", "13") "," SLEEPY("table", "11") "," SLEEPY(                   \
		"ep", "9") ","                                                                     \
			   "{ programs = ({ like = \"sp\"; threads = 17; }); repeat = true; });"

struct place {
	const char *machine, *workload;
	bool full_page_cache;
};
static const struct place mixed[] = {
	{"ring-4x10", "limit_s = 40; " MIXED_USERS, false},
	{"mesh-4x20", "limit_s = 40; " MIXED_USERS, false},
	{"x7550-4x8", "limit_s = 40; " MIXED_USERS, false},
};
static const struct place brief = {"ring-4x10", "limit_s = 4; " MIXED_USERS, false};
static const struct place logged = {"ring-4x10", "limit_s = 12; " MIXED_USERS, false};
static const struct place full_cache = {"ring-4x10", "limit_s = 40; " MIXED_USERS, true};
static const struct place queues = {"e5620-2x4", "limit_s = 20; " QUEUES, false};

/* ---- runs ---- */

static int run(struct nm_sim_case *what, const struct nm_sim_policy *policy, uint64_t seed)
{
	struct nm_sim_outcome outcome;
	what->how.runs = 1;
	what->how.options.seed = seed;
	what->how.options.wander_per_s = wanders[seed - 1];
	what->decisions = stdout;
	int r = nm_sim_case_run(what, policy, &outcome);
	if (r == 0)
		printf("digest %016" PRIx64 " effects %016" PRIx64 " masks %" PRIu64
		       " pages %" PRIu64 "\n",
		       outcome.decisions_digest, outcome.last.digest,
		       outcome.last.figures.masks_set, outcome.last.figures.pages_moved);
	return r;
}

static int run_once(const struct place *place, const struct nm_sim_policy *policy, uint64_t seed,
		    bool log_entries)
{
	nm_auto(nm_sim_machine_freep) struct nm_sim_machine *machine = NULL;
	nm_auto(nm_sim_workload_clear) struct nm_sim_workload workload = {0};
	struct nm_sim_case what = {.workload = &workload, .log_entries = log_entries};
	char error[256];
	printf("run %s%s %s seed %" PRIu64 "\n", place->machine,
	       place->full_page_cache ? " full" : "", policy->name, seed);
	int r = nm_sim_machine_by_name(place->machine, &machine);
	if (r == 0)
		r = nm_sim_workload_parse("decisions", place->workload, strlen(place->workload),
					  error, sizeof(error), &workload);
	if (r < 0)
		return r;
	what.machine = machine;
	workload.full_page_cache = place->full_page_cache;
	return run(&what, policy, seed);
}

/* Runs once for each seed. */
static int run_seeds(const struct place *place, const struct nm_sim_policy *policy)
{
	int r = 0;
	for (uint64_t seed = 1; seed <= NM_ARRAY_SIZE(wanders) && r == 0; seed++)
		r = run_once(place, policy, seed, false);
	return r;
}

static int run_policies(void)
{
	int r = 0;
	for (size_t m = 0; m < NM_ARRAY_SIZE(mixed); m++) {
		for (size_t i = 0; i < NM_ARRAY_SIZE(usual_policies) && r == 0; i++)
			r = run_seeds(&mixed[m], nm_sim_policy_by_name(usual_policies[i]));
		for (size_t i = 0; i < NM_ARRAY_SIZE(more_policies) && r == 0; i++)
			r = run_seeds(&mixed[m], &more_policies[i]);
	}
	for (size_t i = 0; i < NM_ARRAY_SIZE(balance_policies) && r == 0; i++)
		r = run_seeds(&queues, &balance_policies[i]);
	if (r == 0)
		r = run_seeds(&full_cache, nm_sim_policy_by_name("kernel+auto"));
	/* It decides about each page, ten times a second. */
	return r < 0 ? r : run_seeds(&brief, nm_sim_policy_by_name("kmaf-paper"));
}

static int run_logged(void)
{
	static const char *const names[] = {"auto", "lbma", "imar2-paper", "kmaf", "best"};
	int r = 0;
	for (size_t i = 0; i < NM_ARRAY_SIZE(names) && r == 0; i++)
		r = run_once(&logged, nm_sim_policy_by_name(names[i]), 2, true);
	return r < 0 ? r : run_once(&queues, &balance_policies[1], 2, true);
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
	int r = run_policies();
	if (r == 0)
		r = run_logged();
	for (size_t i = 0; i < judge_scenario_count; i++)
		for (uint64_t seed = 1; seed <= NM_ARRAY_SIZE(wanders) && r == 0; seed++)
			r = run_scenario(&judge_scenarios[i], seed);
	if (r < 0)
		(void)fprintf(stderr, "nm_decisions: %s\n", strerror(-r));
	return r < 0;
}
