/* SPDX-License-Identifier: MIT */
/* Policy "auto" in each paper's own scenario: against that paper's own policy, the kernel's balancing, and
 * the best by hand. */
#include <stdio.h>

#include "simulate_paper.h"

#define PAPER(threads) "profile = \"paper\"; threads: { " threads " };"

struct scenario {
	const char *label, *machine;
	const char *own, *config; /* the paper's policy */
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
	return nm_paper_fill_kmlb(scenario->first, ret);
}

static int fill_many(const struct scenario *scenario, struct nm_sim_workload *ret)
{
	(void)scenario;
	return nm_paper_fill_exclusivity(ret);
}

static const struct scenario scenarios[] = {
	{"ct1, idle 0 s", "ring-4x10", "IMAR2", PAPER("policy = \"imar2\";"), fill_users, 10, 0},
	{"ct1, idle 50 s", "ring-4x10", "IMAR2", PAPER("policy = \"imar2\";"), fill_users, 10, 50},
	{"ct1, idle 100 s", "ring-4x10", "IMAR2", PAPER("policy = \"imar2\";"), fill_users, 10,
	 100},
	{"ct1, idle 200 s", "ring-4x10", "IMAR2", PAPER("policy = \"imar2\";"), fill_users, 10,
	 200},
	{"ct2, idle 0 s", "mesh-4x20", "IMAR2", PAPER("policy = \"imar2\";"), fill_users, 20, 0},
	{"ct2, idle 48 s", "mesh-4x20", "IMAR2", PAPER("policy = \"imar2\";"), fill_users, 20, 48},
	{"kMAF, programs alone", "x7550-4x8", "kMAF",
	 PAPER("policy = \"kmaf\";") " pages: { policy = \"exclusivity\"; };", fill_alone, 64, 0},
	{"kMLB, case 1", "e5620-2x4", "remote min",
	 PAPER("policy = \"balance\"; selection = \"remote_min\";"), fill_mix, 1, 0},
	{"kMLB, case 2", "e5620-2x4", "remote min",
	 PAPER("policy = \"balance\"; selection = \"remote_min\";"), fill_mix, 2, 0},
	{"kMLB, case 3", "e5620-2x4", "remote min",
	 PAPER("policy = \"balance\"; selection = \"remote_min\";"), fill_mix, 3, 0},
	{"exclusivity, 29 programs", "o6320-4x8", "exclusivity",
	 PAPER("policy = \"balance\"; selection = \"exclusivity\";"), fill_many, 0, 0},
};

/* What is compared with the system alone, beside the paper's own. */
static const struct nm_sim_policy others[] = {
	{.config = "threads: { policy = \"auto\"; };"},
	{.numa_balancing = true, .config = "threads: { policy = \"auto\"; };"},
	{.numa_balancing = true},
	{.placed = true, .placement = NM_SIM_PLACE_ORACLE},
	{.placed = true, .placement = NM_SIM_PLACE_DIRECT},
};
enum { OWN, AUTO, BOTH, KERNEL, IN_ORDER, A_NODE_EACH, SHOWN };

/* Of the time of all programs together, in percent of what the system alone takes. */
struct change {
	double percent, error;
};

static int change_of(const struct nm_sim_case *what, const struct nm_sim_policy *policy,
		     const struct nm_sim_outcome *alone, struct change *ret)
{
	struct nm_sim_outcome outcome;
	int r = nm_sim_case_run(what, policy, &outcome);
	if (r < 0)
		return r;
	ret->percent = nm_paper_change(outcome.computing_s, alone->computing_s);
	ret->error = nm_paper_error(outcome.computing_s, outcome.computing_error_s,
				    alone->computing_s, alone->computing_error_s);
	return 0;
}

static int run_all(const struct nm_sim_case *what, const char *own, struct change changes[SHOWN])
{
	const struct nm_sim_policy none = {0}, published = {.config = own};
	struct nm_sim_outcome alone;
	int r = nm_sim_case_run(what, &none, &alone);
	if (r == 0)
		r = change_of(what, &published, &alone, &changes[OWN]);
	for (size_t i = 0; i < NM_ARRAY_SIZE(others) && r == 0; i++)
		r = change_of(what, &others[i], &alone, &changes[AUTO + i]);
	return r;
}

/* Pinned by hand in one way or another, or the kernel: whatever is best. */
static const struct change *oracle_of(const struct change changes[SHOWN])
{
	const struct change *best = &changes[KERNEL];
	for (size_t i = KERNEL; i < SHOWN; i++)
		if (changes[i].percent < best->percent)
			best = &changes[i];
	return best;
}

static void print_head(void)
{
	printf("Change of the time of all programs against the system alone, in percent; +/-: "
	       "standard error.\n"
	       "BOTH: auto beside the kernel's balancing. GAINED: what AUTO gains beyond the paper's own "
	       "policy; TO ORACLE:\nwhat the best of the kernel and two ways to pin by hand gains beyond "
	       "AUTO; both in percent as well.\n"
	       "%-25s %-12s %6s %4s %6s %4s %6s %4s %6s %4s %6s %4s %7s %9s\n",
	       "", "PAPER'S OWN", "OWN", "+/-", "AUTO", "+/-", "BOTH", "+/-", "KERNEL", "+/-",
	       "ORACLE", "+/-", "GAINED", "TO ORACLE");
}

static void print_scenario(const struct scenario *scenario, const struct change changes[SHOWN])
{
	const struct change *oracle = oracle_of(changes);
	printf("%-25s %-12s", scenario->label, scenario->own);
	for (size_t i = OWN; i <= KERNEL; i++)
		printf(" %+6.1f %4.1f", changes[i].percent, changes[i].error);
	printf(" %+6.1f %4.1f %+7.1f %+9.1f\n", oracle->percent, oracle->error,
	       changes[OWN].percent - changes[AUTO].percent,
	       changes[AUTO].percent - oracle->percent);
	(void)fflush(stdout);
}

static int run_scenario(const struct scenario *scenario, const struct nm_sim_how *how)
{
	nm_auto(nm_sim_machine_freep) struct nm_sim_machine *machine = NULL;
	nm_auto(nm_sim_workload_clear) struct nm_sim_workload workload = {0};
	struct change changes[SHOWN];
	int r = nm_sim_machine_by_name(scenario->machine, &machine);
	if (r == 0)
		r = scenario->fill(scenario, &workload);
	const struct nm_sim_case what = {.machine = machine, .workload = &workload, .how = *how};
	if (r == 0)
		r = run_all(&what, scenario->config, changes);
	if (r == 0)
		print_scenario(scenario, changes);
	return r;
}

int nm_paper_auto(const struct nm_sim_how *how)
{
	int r = 0;
	print_head();
	for (size_t i = 0; i < NM_ARRAY_SIZE(scenarios) && r == 0; i++)
		r = run_scenario(&scenarios[i], how);
	return r;
}
