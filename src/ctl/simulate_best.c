/* SPDX-License-Identifier: MIT */
/* IMAR² for threads, exclusivity and regions for pages, in each paper's own scenario: against that
 * paper's own policy, and how far from the oracle. */
#include <math.h>
#include <stdio.h>

#include "simulate_paper.h"

#define PAPER(threads) "profile = \"paper\"; threads: { " threads " };"

struct scenario {
	const char *label, *machine, *own; /* own: the paper's policy */
	int (*fill)(const struct scenario *scenario, struct nm_sim_workload *ret);
	unsigned first, second; /* what `fill` wants to know */
};

static int fill_users(const struct scenario *scenario, struct nm_sim_workload *ret)
{
	return nm_paper_four_users(scenario->first, scenario->second, ret);
}

/* The eight programs one after another. */
static int fill_alone(const struct scenario *scenario, struct nm_sim_workload *ret)
{
	static const char *const programs[] = {"bt", "cg", "dc", "ep", "is", "lu", "sp", "ua"};
	struct nm_sim_user *user = nm_sim_workload_add(ret, "user");
	for (size_t i = 0; i < NM_ARRAY_SIZE(programs); i++)
		if (!user || !nm_sim_user_add(user, programs[i], scenario->first))
			return -ENOMEM;
	return 0;
}

static int fill_mix(const struct scenario *scenario, struct nm_sim_workload *ret)
{
	return nm_paper_fill_kmlb(scenario->first, scenario->second, ret);
}

static int fill_many(const struct scenario *scenario, struct nm_sim_workload *ret)
{
	(void)scenario;
	return nm_paper_fill_exclusivity(ret);
}

static const struct scenario scenarios[] = {
	{"ct1, idle 0 s", "ring-4x10", PAPER("policy = \"imar2\";"), fill_users, 10, 0},
	{"ct1, idle 50 s", "ring-4x10", PAPER("policy = \"imar2\";"), fill_users, 10, 50},
	{"ct1, idle 100 s", "ring-4x10", PAPER("policy = \"imar2\";"), fill_users, 10, 100},
	{"ct1, idle 200 s", "ring-4x10", PAPER("policy = \"imar2\";"), fill_users, 10, 200},
	{"ct2, idle 0 s", "mesh-4x20", PAPER("policy = \"imar2\";"), fill_users, 20, 0},
	{"ct2, idle 48 s", "mesh-4x20", PAPER("policy = \"imar2\";"), fill_users, 20, 48},
	{"kMAF, each program alone", "x7550-4x8",
	 PAPER("policy = \"kmaf\";") " pages: { policy = \"exclusivity\"; };", fill_alone, 64, 0},
	{"kMLB, case 1", "e5620-2x4", PAPER("policy = \"balance\"; selection = \"remote_min\";"),
	 fill_mix, 35, 21},
	{"kMLB, case 2", "e5620-2x4", PAPER("policy = \"balance\"; selection = \"remote_min\";"),
	 fill_mix, 28, 28},
	{"kMLB, case 3", "e5620-2x4", PAPER("policy = \"balance\"; selection = \"remote_min\";"),
	 fill_mix, 21, 35},
	{"exclusivity, 29 programs", "o6320-4x8",
	 PAPER("policy = \"balance\"; selection = \"exclusivity\";"), fill_many, 0, 0},
};

static const struct nm_sim_policy others[] = {
	{.config = "threads: { policy = \"imar2\"; }; pages: { policy = \"exclusivity\"; };"},
	{.numa_balancing = true},
	{.placed = true, .placement = NM_SIM_PLACE_ORACLE},
};
enum { OTHERS = NM_ARRAY_SIZE(others), SHOWN = OTHERS + 1 };

/* The sum of the programs' times, against that of the system alone. */
static int change_of(const struct nm_sim_case *what, const struct nm_sim_policy *policy,
		     double base_s, double *ret)
{
	struct nm_sim_outcome outcome;
	int r = nm_sim_case_run(what, policy, &outcome);
	if (r == 0)
		*ret = base_s > 0 ? nm_paper_change(outcome.computing_s, base_s)
				  : outcome.computing_s;
	return r;
}

static int run_all(const struct nm_sim_case *what, const char *own, double changes[SHOWN])
{
	const struct nm_sim_policy none = {0}, published = {.config = own};
	double base_s = 0;
	int r = change_of(what, &none, 0, &base_s);
	if (r == 0)
		r = change_of(what, &published, base_s, &changes[0]);
	for (size_t i = 0; i < OTHERS && r == 0; i++)
		r = change_of(what, &others[i], base_s, &changes[i + 1]);
	return r;
}

static int run_scenario(const struct scenario *scenario, uint64_t seed, unsigned runs)
{
	nm_auto(nm_sim_machine_freep) struct nm_sim_machine *machine = NULL;
	nm_auto(nm_sim_workload_clear) struct nm_sim_workload workload = {0};
	double changes[SHOWN] = {0};
	int r = nm_sim_machine_by_name(scenario->machine, &machine);
	if (r == 0)
		r = scenario->fill(scenario, &workload);
	const struct nm_sim_case what = {
		.machine = machine, .workload = &workload, .seed = seed, .runs = runs};
	if (r == 0)
		r = run_all(&what, scenario->own, changes);
	if (r < 0)
		return r;
	printf("%-26s %+8.1f %+8.1f %+8.1f %+8.1f %+10.1f\n", scenario->label, changes[0],
	       changes[1], changes[2], changes[3], changes[1] - changes[3]);
	(void)fflush(stdout);
	return 0;
}

int nm_paper_best(uint64_t seed, unsigned runs)
{
	int r = 0;
	printf("Change of the time of all programs against the system alone, in percent\n"
	       "%-26s %8s %8s %8s %8s %10s\n",
	       "", "PAPER'S", "BEST", "KERNEL", "ORACLE", "TO ORACLE");
	for (size_t i = 0; i < NM_ARRAY_SIZE(scenarios) && r == 0; i++)
		r = run_scenario(&scenarios[i], seed, runs);
	return r;
}
