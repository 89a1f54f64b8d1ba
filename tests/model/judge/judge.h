/* SPDX-License-Identifier: MIT */
/* Scenarios in which policy "auto" is judged: declarations shared by the files of nm_judge. */
#ifndef NM_JUDGE_H
#define NM_JUDGE_H

#include "../policies.h"
#include "numa-migrd/base.h"

struct judge_scenario {
	const char *name, *words, *machine;
	bool full_page_cache, cache_aware;
	/* Permissions of the oracle; the better of both counts. If both are false, there is no
	 * oracle. */
	bool a_node_each, in_order;
	/* A situation in which a home did harm: it is not typical, and does not count in totals. */
	bool is_situation;
	/* Adds users with programs and times drawn from the generator. Returns -ENOMEM without
	 * memory. */
	int (*fill)(const struct nm_sim_machine *machine, struct nm_rng *rng,
		    struct nm_sim_workload *ret);
};

extern const struct judge_scenario judge_scenarios[];
extern const size_t judge_scenario_count;

/* Fills an empty workload for this seed. Returns 0 or a negative errno. */
int judge_fill(const struct judge_scenario *scenario, const struct nm_sim_machine *machine,
	       uint64_t seed, struct nm_sim_workload *ret);

/* The change of a measure by the service, as mean of logarithms over all seeds. */
struct judge_effect {
	double estimate;       /* by the control group, with half of the programs in it */
	double counterfactual; /* of the whole run, compared with the same run without the service
				*/
	double units;
};

/* Counts of the threads and pages that a policy moved, and of those that stayed or returned. */
struct judge_moved {
	uint64_t asked, arrived;
	struct nm_sim_stays stays[NM_SIM_STAYS];
	uint64_t pages, returned;
};

/* Returns the policy of a row of the table of moves, or NULL after the last. */
const struct nm_sim_policy *judge_moves_policy(size_t index);
/* Adds the runs of a scenario. Returns 0 or a negative errno. */
int judge_moves(const struct judge_scenario *scenario, const struct nm_sim_policy *policy,
		unsigned seeds, uint64_t first_seed, struct judge_moved *sum);

/* Determines both for elapsed time and CPU time. Returns 0 or a negative errno. */
int judge_control_group(const struct judge_scenario *scenario, unsigned seeds, uint64_t first_seed,
			struct judge_effect ret[NM_TRIAL_MEASURES]);

#endif
