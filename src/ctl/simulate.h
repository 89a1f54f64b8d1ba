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
	bool numa_balancing;
	const char *config; /* of the daemon; NULL: there is none */
	bool searched;	    /* the placement is: nm_sim_search() */
};

/* One after another; NULL: no more. */
const struct nm_sim_policy *nm_sim_policy_at(size_t index);
const struct nm_sim_policy *nm_sim_policy_by_name(const char *name);

/* How the model runs; runs differ by the seed. */
struct nm_sim_how {
	uint64_t seed;
	unsigned runs;
	double wander_per_s, snoop_bytes; /* sim.h */
	bool shared_caches;
};

struct nm_sim_options nm_sim_options_of(const struct nm_sim_how *how, unsigned run);
struct nm_sim_how nm_sim_how_of(const struct nm_ctl_simulate *asked);

/* What is simulated. */
struct nm_sim_case {
	const struct nm_sim_machine *machine;
	struct nm_sim_workload
		*workload; /* its placements are the policy's for as long as it runs */
	struct nm_sim_how how;
	bool recorded; /* the first run, into record_fd, where there is a daemon */
	int record_fd;
};

/* Means over the runs, and standard errors of the times computed. */
struct nm_sim_outcome {
	double time_s, computing_s, computing_error_s, slowest_user_s, slowest_error_s;
	double local_share;
	double moves, pages_moved, decisions, improved, neutral, rolled_back, programs_ended;
	bool all_ended;	 /* in every run, all users who do not repeat, and there are any */
	uint64_t digest; /* of the first run */
};

/* Whether the daemon would take its configuration; where not, -EINVAL, told on stderr. */
int nm_sim_policy_check(const struct nm_sim_policy *policy);

/* -EINVAL: the configuration, told on stderr; else as nm_simulate(). */
int nm_sim_case_run(const struct nm_sim_case *what, const struct nm_sim_policy *policy,
		    struct nm_sim_outcome *ret);

/*
 * Gives the users of the workload the best placement that trying finds, from two beginnings and
 * user after user, by the first run's time. -E2BIG: more than so many users; else as nm_simulate().
 */
#define NM_SIM_SEARCH_USERS 4U
int nm_sim_search(const struct nm_sim_case *what);

/* The tables; exit status. */
int nm_ctl_simulate_paper(const struct nm_ctl *ctl, const char *name);
int nm_ctl_simulate_scale(const struct nm_ctl *ctl);
int nm_ctl_simulate_failed(int r);

#endif
