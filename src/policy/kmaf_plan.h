/* SPDX-License-Identifier: MIT */
/* What the files of kMAF's placement share: kmaf_moves.c finds moves, kmaf_worth.c keeps what
 * helps. */
#ifndef NM_POLICY_KMAF_PLAN_H
#define NM_POLICY_KMAF_PLAN_H

#include "numa-migrd/kmaf.h"

#define NONE (-1)
/* Moves that are made together or not at all: one, two that change places, or a ring. */
struct unit {
	size_t first, count; /* of the moves */
	bool swap, dropped, needed;
	int needs; /* the unit that makes its CPU free; NONE */
	int group; /* of units whose threads travel together; its own number */
	int next;  /* of the group, in order; NONE */
};

struct plan {
	const struct nm_snapshot *snapshot;
	const struct nm_config *config;
	const struct nm_affinity_graph *graph;
	/* Per thread: its node, where it wants to be (NONE: nowhere else), where it will be, and
	 * its unit. */
	int *here, *wanted, *place, *unit_of;
	/* Per node, in CPUs: of those who are there, and of those who will be. */
	double *demand_now, *demand;
	double *capacity; /* per node, in cores, see nm_core_capacity() */
	/* Per CPU: the unit that leaves it free, and whether somebody goes there. */
	int *left_by;
	bool *claimed;
	struct nm_move *moves;
	size_t nr_moves;
	struct unit *units;
	size_t nr_units;
	/* Per group: its first and last unit, and how many of other groups need one of it. */
	int *first_of, *last_of, *needed_by;
	uint64_t looks;
};

/* The cost now and as planned, and the variance of the difference: sharings are counted events. */
struct worth {
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

static inline bool is_moving(const struct plan *plan, size_t thread)
{
	return plan->unit_of[thread] != NONE && !plan->units[plan->unit_of[thread]].dropped;
}

/* Drops what is of no use, and all where the rest is too little. */
void nm_kmaf_select(struct plan *plan);
struct worth nm_kmaf_weigh(const struct plan *plan);

#endif
