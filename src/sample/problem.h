/* SPDX-License-Identifier: MIT */
/*
 * Problems of sampling and their reasons, one entry per cause, with remedies for the administrator.
 */
#ifndef NUMA_MIGRD_SAMPLE_PROBLEM_H
#define NUMA_MIGRD_SAMPLE_PROBLEM_H

#include "sample/sample.h"

#define NM_PROBLEMS_MAX 24

/* The step that failed: the same errno has different meanings. */
enum nm_problem_step {
	NM_STEP_OPEN,	 /* perf_event_open(2) */
	NM_STEP_MAP,	 /* no ring at all */
	NM_STEP_SMALL,	 /* a smaller ring than configured */
	NM_STEP_JOIN,	 /* ioctls that put an event onto its CPU's ring */
	NM_STEP_TRIAL,	 /* opened, but does not count: cycles */
	NM_STEP_SOURCE,	 /* opened but does not count, or refused: a source of memory accesses */
	NM_STEP_COUNTER, /* opened but does not count, or refused: one of the amounts */
	NM_STEP_STARVED, /* counted before, and no longer does */
	NM_STEP_EVENT,	 /* as NM_STEP_SOURCE, for the source named by sampling.event */
};

struct nm_problem_cause {
	enum nm_problem_step step;
	enum nm_event_kind kind;
	int error;
};

struct nm_problems {
	struct nm_source_problem items[NM_PROBLEMS_MAX];
	enum nm_problem_step steps[NM_PROBLEMS_MAX];
	size_t count;
	struct nm_problem_cause reported[NM_PROBLEMS_MAX];
	size_t nr_reported;
	struct nm_source_problem news[2 * NM_PROBLEMS_MAX];
};

/* Records a failure on one CPU: adds an entry, or adds the CPU to the entry of the same cause. */
void nm_problems_add(struct nm_problems *problems, enum nm_problem_step step,
		     enum nm_event_kind kind, int cpu, int error);

/* Sets the number of CPUs of the entry of that cause, and the first CPU; 0 removes the entry. */
void nm_problems_set(struct nm_problems *problems, enum nm_problem_step step,
		     enum nm_event_kind kind, int error, int cpu, unsigned count);

/* Removes the problems of single rings, before they are opened again. */
void nm_problems_drop_rings(struct nm_problems *problems);

/* Returns the remedy for an event that could not be opened, as a phrase; NULL: not known. */
const char *nm_problem_remedy(int error);

/* nm_source_news(). */
const struct nm_source_problem *nm_problems_news(struct nm_problems *problems, size_t *ret_count);

#endif
