/* SPDX-License-Identifier: MIT */
/* Definitions shared by the files of kMAF's thread placement: kmaf.c finds moves,
 * kmaf_select.c selects those that help. */
#ifndef NM_POLICY_KMAF_PLAN_H
#define NM_POLICY_KMAF_PLAN_H

#include <math.h>

#include "mapping/mapping.h"
#include "policy/policy.h"

#define NONE (-1)
/* Moves that are made together or not at all: one, a swap, or a cycle. */
struct unit {
	size_t first, count; /* of the moves */
	bool swap, dropped, needed;
	int needs; /* the unit that makes its CPU free, or NONE */
	int group; /* group of units whose threads move together; initially its own number */
	int next;  /* next unit of the group, or NONE */
};

struct plan {
	const struct nm_snapshot *snapshot;
	const struct nm_config *config;
	const struct nm_affinity_graph *graph;
	/* Per thread: its node, its wanted node (NONE: the same), its future node, and its unit. */
	int *here, *wanted, *place, *unit_of;
	/* Per node, in CPUs: demand of the current and of the future threads. */
	double *demand_now, *demand;
	double *capacity; /* per node, in cores; see nm_core_capacity() */
	/* Per node: DRAM traffic of its future threads in bytes per second, whose data follow them.
	 */
	double *traffic;
	double traffic_most; /* that a controller is known to serve */
	/* Per CPU: the unit that leaves it free, and whether a thread moves to it. */
	int *freed_by;
	bool *claimed;
	struct nm_move *moves;
	size_t nr_moves;
	struct unit *units;
	size_t nr_units;
	/* Per group: its first and last unit, and the number of units of other groups that need one
	 * of it. */
	int *first_of, *last_of, *needed_by;
	uint64_t comparisons;
};

/* The current and the planned cost, and the variance of the difference: communication is a count of
 * events. */
struct cost {
	double before, after, variance;
};

static inline const struct nm_snap_thread *thread_of(const struct plan *plan, size_t thread)
{
	return &plan->snapshot->threads[thread];
}

static inline double demand_of(const struct plan *plan, size_t thread)
{
	double share = thread_of(plan, thread)->run_share;
	return share >= 0 && share < 1 ? share : 1;
}

/* Bytes per second; 0: not known. */
static inline double traffic_of(const struct plan *plan, size_t thread)
{
	return fmax(thread_of(plan, thread)->traffic, 0);
}

static inline bool is_moving(const struct plan *plan, size_t thread)
{
	return plan->unit_of[thread] != NONE && !plan->units[plan->unit_of[thread]].dropped;
}

/* Drops moves without benefit, and all moves if the remaining benefit is too small. */
void nm_kmaf_select(struct plan *plan);
struct cost nm_kmaf_plan_cost(const struct plan *plan);

#endif
