/* SPDX-License-Identifier: MIT */
/* Counts what the moves of each policy achieve. */
#include <stdio.h>

#include "judge.h"

#define THREADS(policy) "threads: { policy = \"" policy "\"; };"
#define PAGES " pages: { policy = \"exclusivity\"; };"

static const struct nm_sim_policy policies[] = {
	{.name = "kernel", .numa_balancing = true},
	{.name = "auto", .config = THREADS("auto")},
	{.name = "auto+kernel", .config = THREADS("auto"), .numa_balancing = true},
	{.name = "lbma", .config = THREADS("lbma")},
	{.name = "imar2+pages", .config = THREADS("imar2") PAGES},
	{.name = "kmaf+pages", .config = THREADS("kmaf") PAGES},
};

const struct nm_sim_policy *judge_moves_policy(size_t index)
{
	return index < NM_ARRAY_SIZE(policies) ? &policies[index] : NULL;
}

static int run(const struct judge_scenario *scenario, const struct nm_sim_machine *machine,
	       uint64_t seed, const struct nm_sim_policy *policy, struct nm_sim_outcome *ret)
{
	nm_auto(nm_sim_workload_clear) struct nm_sim_workload workload = {0};
	int r = judge_fill(scenario, machine, seed, &workload);
	const struct nm_sim_case what = {
		.machine = machine,
		.workload = &workload,
		.how = {.runs = 1,
			.options = {.seed = seed,
				    .wander_per_s = NM_SIM_WANDER_USUAL,
				    .cache_aware = scenario->cache_aware}}};
	return r < 0 ? r : nm_sim_case_run(&what, policy, ret);
}

int judge_moves(const struct judge_scenario *scenario, const struct nm_sim_policy *policy,
		unsigned seeds, uint64_t first_seed, struct judge_moved *sum)
{
	nm_auto(nm_sim_machine_freep) struct nm_sim_machine *machine = NULL;
	int r = nm_sim_machine_by_name(scenario->machine, &machine);
	for (unsigned i = 0; r == 0 && i < seeds; i++) {
		struct nm_sim_outcome outcome;
		r = run(scenario, machine, first_seed + i, policy, &outcome);
		if (r < 0)
			break;
		const struct nm_sim_figures *figures = &outcome.last.figures;
		sum->asked += outcome.last.asked;
		sum->arrived += outcome.last.arrived;
		for (unsigned s = 0; s < NM_SIM_STAYS; s++) {
			sum->stays[s].of += figures->stays[s].of;
			sum->stays[s].all += figures->stays[s].all;
		}
		sum->pages += figures->pages_moved + figures->pages_balanced;
		sum->returned += figures->pages_returned;
	}
	return r;
}
