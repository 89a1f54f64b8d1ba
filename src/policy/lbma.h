/* SPDX-License-Identifier: MIT */
/*
 * The search for candidates, for one θ at a time, for the lotteries of LBMA and IMAR²: all
 * destinations on other nodes, either a CPU that is free or a swap, with their tickets, if they
 * pass the gate.
 */
#ifndef NM_POLICY_LBMA_H
#define NM_POLICY_LBMA_H

#include "lottery.h"
#include "policy/policy.h"

/* Θ̂ and the tickets granted by a policy, which owns them. */
struct nm_search_tickets {
	enum nm_thread_policy policy;
	const double *move_tickets; /* nr_threads × nr_nodes: for moving the thread to the node */
	const double *partner;	    /* per thread: additional tickets as a partner; NULL: none */
	const bool *known; /* per thread: has enough samples to be a partner, if the gate is used */
	/* Returns the next thread of Θ̂ in its order, or NM_NO_PARTNER at its end. Threads without a
	 * candidate do not count, except with the rules of a paper. */
	uint32_t (*next)(void *list);
	void *list;
};

/* Returns whether the thread prefers a node whose controller serves most of the machine's traffic,
 * and pages can leave it: they follow threads that stay, and do not while threads move. */
bool nm_search_waits_for_pages(const struct nm_snapshot *snapshot, const struct nm_config *config,
			       uint32_t thread);
/* Returns the tickets for moving the thread to a node that it prefers: q2 or 0. With the rules of
 * the paper that is each node with the most accesses (equation 1). */
double nm_search_preference(const struct nm_snapshot *snapshot, const struct nm_config *config,
			    uint32_t thread, int node);

/*
 * Returns the distance that a thread's accesses save if it moves between nodes, in accesses at the
 * local distance, minus the margin's share of its accesses and the part that may be chance with
 * this number of samples (`sigmas` standard deviations; 0: none). Each sample stands for as many
 * accesses as the thread's samples do on average, and counts of samples are Poisson distributed.
 * Moves pass the gate if the sum over their threads is positive. The verdict weighs accesses by
 * distance, too (judge/locality.c).
 */
double nm_surplus_of(const struct nm_topology *topology, const struct nm_snap_thread *thread,
		     int node_from, int node_to, double margin, double sigmas);

/* Takes threads from the list until n of them count, and draws the winners. */
void nm_search_lottery(const struct nm_snapshot *snapshot, const struct nm_config *config,
		       const struct nm_search_tickets *tickets, struct nm_rng *rng,
		       struct nm_proposals *ret);

#endif
