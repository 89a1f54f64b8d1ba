/* SPDX-License-Identifier: MIT */
/* Definitions shared by the files of the control group. */
#ifndef NM_POLICY_TRIAL_H
#define NM_POLICY_TRIAL_H

#include "numa-migrd/trial.h"

/* The unit of a draw: a process with its relatives. */
struct nm_trial_unit {
	enum nm_trial_arm arm;
	uint64_t drawn_ns;
	unsigned period; /* with a raised share, in which it was drawn; 0: none */
	unsigned living; /* number of processes within the window */
	struct nm_trial_part *parts;
};

/* The processes of one program in a unit, of which it is one value. */
struct nm_trial_part {
	struct nm_trial_unit *unit;
	struct nm_trial_part *next;
	struct nm_trial_program *program;
	bool outlived; /* the window, by one of them */
	double n[NM_TRIAL_MEASURES], sum[NM_TRIAL_MEASURES];
};

struct nm_trial {
	struct nm_rng rng;
	double control_share, tolerance;
	struct nm_trial_period raised;
	int day; /* of the year; -1: not known yet */
	bool has_yesterday;
	struct nm_trial_difference yesterday; /* in CPU time */
	unsigned period; /* number of the current or last one */
	struct nm_trial_program **programs;
	size_t nr_programs, programs_capacity;
	bool has_news; /* a program is not announced */
	struct nm_trial_sum sums[NM_TRIAL_MEASURES][NM_TRIAL_ARMS];
	struct nm_trial_conditions conditions[NM_TRIAL_SPANS][NM_TRIAL_ARMS];
	struct nm_trial_process *processes;
	size_t nr_processes, processes_capacity;
	struct nm_tidmap *process_of; /* index by PID */
};

/* Returns the program, which is added if there is room: a domain gets one more if it has fewer than
 * are left free. NULL: there is none. */
struct nm_trial_program *nm_trial_program_for(struct nm_trial *trial, uint64_t domain,
					      const char *comm);

/* Adds the values of a finished unit, and frees it. */
void nm_trial_keep(struct nm_trial *trial, struct nm_trial_unit *unit, uint64_t now_ns);
void nm_trial_unit_free(struct nm_trial_unit *unit);

#endif
