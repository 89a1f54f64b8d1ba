/* SPDX-License-Identifier: MIT */
/* The policies that can be simulated, and runs with them. */
#ifndef NM_TEST_MODEL_POLICIES_H
#define NM_TEST_MODEL_POLICIES_H

#include <stdio.h>

#include "numa-migrd/config.h"
#include "sim.h"

/* A policy for the placement of threads and memory in a simulation. */
struct nm_sim_policy {
	const char *name, *words;
	bool placed; /* `placement` is set: by numactl or the oracle */
	enum nm_sim_placement placement;
	bool numa_balancing, cache_aware;
	enum nm_sim_choice choice; /* of the scheduler */
	double dense;		   /* as in struct nm_sim_options */
	const char *config; /* of the daemon; NULL: no daemon */
	bool paper_rules;   /* the published rules, with a policy that no paper contains */
	bool dtas;	    /* also with another selection than "dtas" */
};

/* Returns the policy with this index, or NULL after the last. */
const struct nm_sim_policy *nm_sim_policy_at(size_t index);
const struct nm_sim_policy *nm_sim_policy_by_name(const char *name);

/* Options of the runs, which differ by the seed. */
struct nm_sim_how {
	unsigned runs;
	struct nm_sim_options options; /* for the first run */
};

/* The subject of a simulation. */
struct nm_sim_case {
	const struct nm_sim_machine *machine;
	struct nm_sim_workload
		/* The policy replaces its placements while it runs. */
		*workload;
	struct nm_sim_how how;
	FILE *decisions;  /* lines of decisions for all runs; NULL: none; owned by the caller */
	bool log_entries; /* the journal gets all entries; otherwise errors only */
};

/* Means over the runs. */
struct nm_sim_outcome {
	double time_s, computing_s, slowest_user_s;
	double local_share;
	double moves, choices, chosen, samples, pages_moved, decisions, improved, neutral, rolled_back, programs_ended;
	uint64_t decisions_digest; /* of all runs */
	bool all_ended; /* in every run, all users without `repeat` have finished, and there are
			 * any */
	struct nm_simulated last; /* of the last run */
};

/* Checks the configuration of the daemon. Returns 0, or -EINVAL with a message on stderr. */
int nm_sim_policy_check(const struct nm_sim_policy *policy);

/* Runs the simulations. Returns -EINVAL for an invalid configuration, with a message on stderr;
 * otherwise as nm_simulate(). */
int nm_sim_case_run(const struct nm_sim_case *what, const struct nm_sim_policy *policy,
		    struct nm_sim_outcome *ret);

#endif
