/* SPDX-License-Identifier: MIT */
/*
 * Places threads that share memory on the same node (kMAF, section 3.4; algorithms.md section 4):
 * computes proposals from the communication and current places of threads. Pure: the same input and
 * seed give the same proposals.
 */
#ifndef NUMA_MIGRD_KMAF_H
#define NUMA_MIGRD_KMAF_H

#include "numa-migrd/affinity.h"
#include "numa-migrd/mapping.h"
#include "numa-migrd/memory.h"
#include "numa-migrd/policy.h"

/*
 * Limit of comparisons of threads and CPUs for one thread placement, about 10 ms. At the limit the
 * moves found so far are used; the comparisons begun for a thread are completed: see
 * nm_proposals.looks.
 */
#define NM_KMAF_MAX_LOOKS (4ULL << 20)

/*
 * Computes a placement of the snapshot's threads, for each of which `graph` has one vertex in the
 * same order, and proposes moves if it saves enough. Threads that may not be moved now keep their
 * place, and the others are placed around them. Returns 0, also if there is nothing to propose, or
 * -ENOMEM. Called by the policy stage once per placement period.
 */
int nm_kmaf_propose(const struct nm_snapshot *snapshot, const struct nm_config *config,
		    const struct nm_affinity_graph *graph, uint32_t seed, struct nm_proposals *ret);

/*
 * The second half of nm_kmaf_propose(): turns the nodes of a placement into moves, in an order in
 * which no node has to hold more threads than it can:
 *
 *   - two threads that swap places, or one that moves to a CPU that is free or that an
 *     earlier proposal frees;
 *   - if nodes are full, cycles of moves, each to the CPU that the next one leaves: single
 *     proposals one after another, the whole cycle or none.
 *
 * Moves that do not bring communicating threads nearer are omitted. With threads.gate = "benefit"
 * all moves are omitted unless the distance saved exceeds chance by threads.gate_sigmas. There are
 * at most threads.moves_per_interval moves, and none if the placement saves too little. Returns 0
 * or -ENOMEM.
 */
int nm_kmaf_moves(const struct nm_snapshot *snapshot, const struct nm_config *config,
		  const struct nm_affinity_graph *graph, const struct nm_mapping *mapping,
		  struct nm_proposals *ret);

/* The placement periods; initially zero. */
struct nm_kmaf_clock {
	uint64_t ended_ns; /* end of the last one */
};

/* Returns whether a placement period ends now, which begins the next one. interval_s is the time
 * between two calls, each in a tick. */
bool nm_kmaf_ends_period(struct nm_kmaf_clock *clock, const struct nm_config *config,
			 double interval_s, uint64_t now_ns);

/*
 * Proposes moves at the end of a placement period, releases pages that were held back, and ages the
 * matrix of communication. The seed must be the same each time: otherwise threads would move back
 * and forth between equivalent placements. Returns 0 or -ENOMEM; the caller clears *ret.
 */
int nm_kmaf_place(const struct nm_snapshot *snapshot, const struct nm_config *config,
		  struct nm_memory *memory, uint32_t seed, struct nm_proposals *ret);

#endif
