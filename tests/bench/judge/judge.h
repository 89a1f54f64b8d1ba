/* SPDX-License-Identifier: MIT */
/* Scenarios in which policy "auto" is judged: what the files of nm_judge share. */
#ifndef NM_JUDGE_H
#define NM_JUDGE_H

#include "../../../src/ctl/simulate.h"
#include "numa-migrd/base.h"

struct judge_scenario {
	const char *name, *words, *machine;
	bool full_page_cache, cache_aware;
	/* What the oracle may do; the better one counts. Neither: there is no oracle. */
	bool a_node_each, in_order;
	/* Adds users; programs and times are drawn from the generator. -ENOMEM. */
	int (*fill)(const struct nm_sim_machine *machine, struct nm_rng *rng,
		    struct nm_sim_workload *ret);
};

extern const struct judge_scenario judge_scenarios[];
extern const size_t judge_scenario_count;

#endif
