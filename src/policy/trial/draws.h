/* SPDX-License-Identifier: MIT */
/* Definitions shared by the files of the control group. */
#ifndef NM_POLICY_TRIAL_H
#define NM_POLICY_TRIAL_H

#include "policy/trial.h"

/* The unit of a draw: a process with its relatives. */
struct nm_trial_unit {
	enum nm_trial_arm arm;
	uint64_t drawn_ns;
	unsigned period; /* with a raised share, in which it was drawn; 0: none */
	unsigned living; /* number of processes within the window */
	struct nm_trial_part *parts;
	unsigned nr_parts;
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
	unsigned period; /* number of the current or last one */
	struct nm_trial_program **programs;
	size_t nr_programs, programs_capacity;
	bool has_news; /* a program is not announced */
	unsigned nr_bars; /* number of programs with bar_applies */
	/* Of programs that have made room; see nm_trial_sums(). */
	struct nm_trial_sum sums[NM_TRIAL_MEASURES][NM_TRIAL_ARMS];
	struct nm_trial_conditions conditions[NM_TRIAL_SPANS][NM_TRIAL_ARMS];
	struct nm_trial_process *processes;
	size_t nr_processes, processes_capacity;
	struct nm_tidmap *process_of; /* index by PID */
};

/* Returns the program of a process that is drawn. A new one is added if its domain has fewer than
 * are left free, where those that were not drawn for a day count as free; otherwise it replaces the
 * one of its domain that was drawn longest ago. NULL: there is no room. */
struct nm_trial_program *
nm_trial_program_for(struct nm_trial *trial, const struct nm_trial_candidate *one, uint64_t now_ns);
bool nm_trial_is_barred(const struct nm_trial_program *program, uint64_t now_ns);

/* Adds the values of a finished unit, and frees it. */
void nm_trial_keep(struct nm_trial *trial, struct nm_trial_unit *unit, uint64_t now_ns);
void nm_trial_unit_free(struct nm_trial_unit *unit);

#endif
