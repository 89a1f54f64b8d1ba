/* SPDX-License-Identifier: MIT */
/* Runs the ticks of the daemon on a model of a machine (sim.h), in simulated time. */
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
	double time_s; /* simulated time */
	enum nm_verdict_kind kind;
};
#define NM_SIMULATED_VERDICTS_MOST 64U

/* The operations of the daemon and their cost. */
struct nm_simulated {
	struct nm_sim_figures figures;
	uint64_t intervals, decisions, applied, improved, neutral, rolled_back, cancelled,
		inconclusive;
	double decide_s;       /* CPU time of all ticks; differs between runs */
	double drain_s; /* CPU time of processing samples between ticks; differs between runs */
	double longest_tick_s; /* differs between runs */
	uint64_t daemon_bytes; /* memory that it used at the end */
	/* In the order of their decisions; verdicts beyond the limit are omitted. */
	struct nm_simulated_verdict verdicts[NM_SIMULATED_VERDICTS_MOST];
	size_t nr_verdicts;
	uint64_t digest; /* of all affinities and pages set, in order; equal for equal operations */
	uint64_t decisions_digest; /* of the lines for decisions, homes and verdicts; see hash.h */
};

/* Optional outputs. The caller keeps ownership of both files. */
struct nm_simulate_output {
	/* An empty file, open for writing, for a recording that can be replayed and explained like
	 * one of a real machine; -1: none. */
	int record_fd;
	const char *config; /* text of the daemon's configuration, for the recording */
	/* Gets a line for each decision, home and verdict (tests/check-decisions). NULL: none. */
	FILE *decisions;
};

/*
 * Runs the workload on the machine from start to end. `config` is the configuration of the daemon,
 * which is not modified; NULL: no daemon. Random choices use config.general.seed (0: the seed of
 * the model). The simulation leaves no files, even if it is killed. `output` may be NULL. Returns
 * 0, -ENOMEM, or the negative errno of the recording or of a tick. Called by the simulation
 * command, tests and benchmarks.
 */
int nm_simulate(const struct nm_sim_machine *machine, const struct nm_sim_workload *workload,
		const struct nm_sim_options *options, const struct nm_config *config,
		const struct nm_simulate_output *output, struct nm_simulated *ret);

#endif
