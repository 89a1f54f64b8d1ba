/* SPDX-License-Identifier: MIT */
/* numa-migrctl simulate: what its files share. */
#ifndef NM_CTL_SIMULATE_H
#define NM_CTL_SIMULATE_H

#include "ctl.h"
#include "numa-migrd/simulate.h"

/* Who places threads and memory in a simulation. */
struct nm_sim_policy {
	const char *name, *words;
	bool placed; /* by numactl or the oracle: `placement` */
	enum nm_sim_placement placement;
	bool numa_balancing, cache_aware;
	const char *config; /* of the daemon; NULL: there is none */
};

/* One after another; NULL: no more. */
const struct nm_sim_policy *nm_sim_policy_at(size_t index);
const struct nm_sim_policy *nm_sim_policy_by_name(const char *name);

/* How the model runs; runs differ by the seed. */
struct nm_sim_how {
	unsigned runs;
	struct nm_sim_options options; /* the first run's */
};

struct nm_sim_options nm_sim_options_of(const struct nm_sim_how *how, unsigned run);

/* What is simulated. */
struct nm_sim_case {
	const struct nm_sim_machine *machine;
	struct nm_sim_workload
		*workload; /* its placements are the policy's for as long as it runs */
	struct nm_sim_how how;
	bool recorded; /* the first run, into record_fd, where there is a daemon */
	int record_fd;
	FILE *decisions; /* a line for each of all runs; NULL: none; the caller's */
};

/* Means over the runs. */
struct nm_sim_outcome {
	double time_s, computing_s, slowest_user_s;
	double local_share;
	double moves, pages_moved, decisions, improved, neutral, rolled_back, programs_ended;
	uint64_t decisions_digest; /* of all runs */
	bool all_ended; /* in every run, all users who do not repeat, and there are any */
	struct nm_simulated last; /* the last run */
};

/* Whether the daemon would take its configuration; where not, -EINVAL, told on stderr. */
int nm_sim_policy_check(const struct nm_sim_policy *policy);

/* -EINVAL: the configuration, told on stderr; else as nm_simulate(). */
int nm_sim_case_run(const struct nm_sim_case *what, const struct nm_sim_policy *policy,
		    struct nm_sim_outcome *ret);

#endif
