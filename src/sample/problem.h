/* SPDX-License-Identifier: MIT */
/* What could not be sampled and why, one entry per cause, in words an administrator can act on. */
#ifndef NUMA_MIGRD_SAMPLE_PROBLEM_H
#define NUMA_MIGRD_SAMPLE_PROBLEM_H

#include "numa-migrd/sample.h"

#define NM_PROBLEMS_MAX 24

/* At which step something failed: the same errno means different things. */
enum nm_problem_step {
	NM_STEP_OPEN,	 /* perf_event_open(2) */
	NM_STEP_MAP,	 /* no ring at all */
	NM_STEP_SMALL,	 /* a smaller ring than configured */
	NM_STEP_JOIN,	 /* ioctls that put an event onto its CPU's ring */
	NM_STEP_TRIAL,	 /* opened, yet does not count: cycles */
	NM_STEP_SOURCE,	 /* the same, or refused: a source of memory accesses */
	NM_STEP_COUNTER, /* the same: one of the amounts */
	NM_STEP_STARVED, /* it counted, and does no more */
	NM_STEP_EVENT,	 /* as NM_STEP_SOURCE: the source that sampling.event names */
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
	struct nm_problem_cause told[NM_PROBLEMS_MAX];
	size_t nr_reported;
	struct nm_source_problem news[2 * NM_PROBLEMS_MAX];
};

/* Notes a failure on one CPU: a new entry, or one CPU more on the entry of the same cause. */
void nm_problems_add(struct nm_problems *problems, enum nm_problem_step step,
		     enum nm_event_kind kind, int cpu, int error);

/* The entry of that cause is about `count` CPUs now, `cpu` the first; 0: it goes. */
void nm_problems_set(struct nm_problems *problems, enum nm_problem_step step,
		     enum nm_event_kind kind, int error, int cpu, unsigned count);

/* Forgets what single rings complained of, before they are opened anew. */
void nm_problems_forget_rings(struct nm_problems *problems);

/* What can be done about an event that could not be opened, as half a sentence; NULL: not known. */
const char *nm_problem_remedy(int error);

/* nm_source_news(). */
const struct nm_source_problem *nm_problems_news(struct nm_problems *problems, size_t *ret_count);

#endif
