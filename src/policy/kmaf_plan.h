/* SPDX-License-Identifier: MIT */
/* Definitions shared by the files of kMAF's thread placement: kmaf_caches.c finds the places,
 * kmaf.c finds moves, and kmaf_select.c selects those that help. */
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

/* A place of threads: the CPUs of a node below one last-level cache. If the caches are not known,
 * that is the node. */
struct cache {
	int node, number; /* number: as in struct nm_cpu */
	hwloc_bitmap_t cpus;
};

struct plan {
	const struct nm_snapshot *snapshot;
	const struct nm_config *config;
	const struct nm_affinity_graph *graph;
	struct cache *caches;
	size_t nr_caches;
	bool split;    /* there are nodes with several */
	int *cache_of; /* per CPU; NONE: not known */
	/* Per thread: whether its communication differs between partners by more than chance. */
	bool *differs;
	/* Per thread: its cache, its wanted cache (NONE: the same), its future cache, and its unit.
	 */
	int *here, *wanted, *place, *unit_of;
	/* Per cache, in CPUs: demand of the current and of the future threads. */
	double *demand_now, *demand;
	double *capacity; /* per cache, in cores; see nm_core_capacity() */
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
	double share = thread_of(plan, thread)->stats.run_share;
	return share >= 0 && share < 1 ? share : 1;
}

/* Bytes per second; 0: not known. */
static inline double traffic_of(const struct plan *plan, size_t thread)
{
	return fmax(thread_of(plan, thread)->stats.traffic, 0);
}

static inline int node_of(const struct plan *plan, int cache)
{
	return cache < 0 ? NONE : plan->caches[cache].node;
}

static inline bool is_moving(const struct plan *plan, size_t thread)
{
	return plan->unit_of[thread] != NONE && !plan->units[plan->unit_of[thread]].dropped;
}

void nm_kmaf_find_caches(struct plan *plan);
void nm_kmaf_find_differing(struct plan *plan);
/* The distance of the thread's accesses from a CPU of one cache to lines in another: the nodes', or
 * half of the local one below one of several caches of a node, if the thread's partners differ. */
unsigned nm_kmaf_distance(const struct plan *plan, size_t thread, int from, int to);

/* Drops moves without benefit, and all moves if the remaining benefit is too small. */
void nm_kmaf_select(struct plan *plan);
struct cost nm_kmaf_plan_cost(const struct plan *plan);

#endif
