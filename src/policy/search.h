/* SPDX-License-Identifier: MIT */
/*
 * The search for candidates, one θ at a time, for the lotteries of LBMA and IMAR²: every
 * destination on another node, free or by an interchange, with its tickets, through the gate.
 */
#ifndef NM_POLICY_SEARCH_H
#define NM_POLICY_SEARCH_H

#include "numa-migrd/lottery.h"
#include "numa-migrd/policy.h"

/* What the configuration says, in the algorithms' words. */
struct nm_search_rules {
	bool gated;	 /* gate = "benefit" */
	bool merged;	 /* free CPUs of one node are one candidate */
	bool zero_wins;	 /* a candidate with Q = 0 stands */
	bool any_thread; /* Θ̂ is chosen without a look at who has a candidate */
	bool cross_owner_swap;
	bool fill_nodes;  /* overcommit = "pages" */
	bool no_exchange; /* threads that prefer one node do not change places over it */
	double q1, q1_sibling_busy, margin, sigmas;
};

struct nm_search_rules nm_search_rules_of(const struct nm_config *config,
					  const struct nm_snapshot *snapshot);

/* What a policy grants; owned by it, must outlive the search. */
struct nm_search_tickets {
	const double *going;   /* nr_threads × nr_nodes: to the thread for the node */
	const double *partner; /* per thread: once more where it is the partner; NULL: none */
	const bool *known; /* per thread: enough was seen of it to be a partner, with the gate */
};

/* A thread as the other half of a swap; in the order of snapshot->home_threads. */
struct nm_search_partner {
	hwloc_const_bitmap_t allowed;
	uint32_t thread, uid;
	bool everywhere; /* nm_snap_thread */
};

struct nm_search {
	const struct nm_snapshot *snapshot;
	struct nm_search_rules rules;
	struct nm_search_tickets tickets;
	bool *refused; /* per thread: its preferred node has no room for it */
	struct nm_search_partner *partners;
	size_t nr_partners;
	/* Rows of nr_partners, one per destination node: read in order by the inner loop. */
	double *surplus; /* nm_surplus_of() of the partner going there; -∞: it may not */
	double *grant;	 /* tickets for the partner going there; -1: it may not */
	/* Highest surplus over the partners of a node and of a CPU: from × nr_nodes + to. */
	double *best_of_node, *best_of_cpu;
	uint64_t looks; /* at pairs of threads */
	uint64_t stopped_by_gate, stopped_by_owner;
};

/* Returns 0 or -ENOMEM. */
int nm_search_init(struct nm_search *search, const struct nm_snapshot *snapshot,
		   const struct nm_search_rules *rules, const struct nm_search_tickets *tickets);
void nm_search_clear(struct nm_search *search);

/* Puts the thread's candidates into the urn. The thread has a home node. Returns 0 or -ENOMEM. */
int nm_search_thread(struct nm_search *search, struct nm_ticket_pool *pool, uint32_t thread);

/*
 * The next thread of Θ̂ in the order of the list, or NM_NO_PARTNER at its end: threads without a
 * candidate do not count.
 */
typedef uint32_t (*nm_search_next_fn)(void *list);

/* Takes threads from the list until n of them count, and draws the winners. Returns 0 or -ENOMEM.
 */
int nm_search_lottery(struct nm_search *search, const struct nm_config *config, struct nm_rng *rng,
		      nm_search_next_fn next, void *list, struct nm_proposals *ret);

#endif
