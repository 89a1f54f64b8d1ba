/* SPDX-License-Identifier: MIT */
/* The daemon's own ticks on a model of a machine (sim.h), in simulated time. */
#ifndef NUMA_MIGRD_SIMULATE_H
#define NUMA_MIGRD_SIMULATE_H

#include <stdio.h>

#include "numa-migrd/config.h"
#include "numa-migrd/placement.h"
#include "numa-migrd/sim.h"

/* The last verdict of policy "auto" on a home. */
struct nm_simulated_verdict {
	uint64_t decision;
	uint32_t pid;
	double time_s; /* of the model */
	enum nm_place_outcome outcome;
};
#define NM_SIMULATED_VERDICTS_MOST 64U

/* What the daemon did, and what it took. */
struct nm_simulated {
	struct nm_sim_figures figures;
	uint64_t intervals, decisions, applied, improved, neutral, rolled_back, cancelled,
		inconclusive;
	double decide_s;       /* CPU time of all ticks; differs from run to run */
	double drain_s;	       /* likewise of taking in samples between them */
	double longest_tick_s; /* likewise */
	uint64_t daemon_bytes; /* of memory that it held at the end */
	/* In the order of their decisions; later ones are left out. */
	struct nm_simulated_verdict verdicts[NM_SIMULATED_VERDICTS_MOST];
	size_t nr_verdicts;
	uint64_t digest; /* of every mask and page set, in order: equal for equal operations */
	uint64_t decisions_digest; /* of decisions, homes and verdicts, as lines; see hash.h */
};

/* Where the caller wants what the daemon does written; both files stay the caller's. */
struct nm_simulate_output {
	/* An empty file, open for writing: a recording as on a machine, to be replayed and
	 * explained. -1: none. */
	int record_fd;
	const char *config; /* the text of the daemon's configuration; for a recording */
	/* A line for each decision, home and verdict (tests/check-decisions). NULL: none. */
	FILE *decisions;
};

/*
 * Runs the workload on the machine from begin to end. config: what the daemon is to do, which is
 * not changed; NULL: there is no daemon. The decisions draw from config.general.seed (0: the
 * model's seed). Nothing is left anywhere, not even by a run that is killed. output: NULL, or where
 * a daemon writes. -ENOMEM, -errno of the recording, or of a tick.
 * Simulation command, tests, benches.
 */
int nm_simulate(const struct nm_sim_machine *machine, const struct nm_sim_workload *workload,
		const struct nm_sim_options *options, const struct nm_config *config,
		const struct nm_simulate_output *output, struct nm_simulated *ret);

#endif
