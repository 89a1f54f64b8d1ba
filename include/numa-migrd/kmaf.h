/* SPDX-License-Identifier: MIT */
/*
 * Threads that share memory meet on a node (kMAF, section 3.4; algorithms.md section 4): what they
 * share and where they run → proposals. Pure: the same input and seed give the same proposals.
 */
#ifndef NUMA_MIGRD_KMAF_H
#define NUMA_MIGRD_KMAF_H

#include "numa-migrd/affinity.h"
#include "numa-migrd/mapping.h"
#include "numa-migrd/policy.h"

/* Threads and CPUs looked at for one mapping, beyond which the moves are those found: some 10 ms.
 * What has begun for one thread is done: see nm_proposals.looks. */
#define NM_KMAF_MAX_LOOKS (4ULL << 20)

/*
 * Maps the snapshot's threads, of which `graph` has one vertex each in the same order, and makes
 * moves of the mapping if it saves enough. Threads that may not be moved now stand where they
 * are, and the others are mapped around them. Returns 0 (also with nothing to propose) or -ENOMEM.
 * Once per mapping period, policy stage.
 */
int nm_kmaf_propose(const struct nm_snapshot *snapshot, const struct nm_config *config,
		    const struct nm_affinity_graph *graph, uint32_t seed, struct nm_proposals *ret);

/*
 * The second half of it: a mapping's nodes → moves, in an order in which no node has to hold more
 * threads than it can:
 * - two threads that change places, or one that goes to a free CPU, also to one that a proposal
 *   before it makes free;
 * - where nodes are full, rings of moves, each to the CPU that the next one leaves: single
 *   proposals one after another, the whole ring or none.
 * What does not bring sharing threads nearer is left out, and with threads.gate = "benefit" all of
 * it, unless the distance saved exceeds chance by threads.gate_sigmas. At most
 * threads.moves_per_interval moves. A mapping that saves too little gives none. -ENOMEM.
 */
int nm_kmaf_moves(const struct nm_snapshot *snapshot, const struct nm_config *config,
		  const struct nm_affinity_graph *graph, const struct nm_mapping *mapping,
		  struct nm_proposals *ret);

#endif
