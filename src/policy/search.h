/* SPDX-License-Identifier: MIT */
/*
 * The search for candidates, for one θ at a time, for the lotteries of LBMA and IMAR²: all
 * destinations on other nodes, either a CPU that is free or a swap, with their tickets, if they
 * pass the gate.
 */
#ifndef NM_POLICY_SEARCH_H
#define NM_POLICY_SEARCH_H

#include "lottery.h"
#include "numa-migrd/policy.h"

/* The configuration in the terms of the algorithms. */
struct nm_search_rules {
	bool gated;	 /* gate = "benefit" */
	bool merged;	 /* all CPUs of one node that are free form one candidate */
	bool zero_wins;	 /* a candidate with Q = 0 can win */
	bool any_thread; /* Θ̂ may include threads without a candidate */
	bool cross_owner_swap;
	bool fill_nodes;  /* overcommit = "pages" */
	bool no_exchange; /* threads that prefer the same node do not swap because of it */
	double q1, q1_sibling_busy, margin, sigmas;
};

struct nm_search_rules nm_search_rules_of(const struct nm_config *config,
					  const struct nm_snapshot *snapshot);

/* The tickets granted by a policy, which owns them; they must outlive the search. */
struct nm_search_tickets {
	const double *going;   /* nr_threads × nr_nodes: for moving the thread to the node */
	const double *partner; /* per thread: additional tickets as a partner; NULL: none */
	const bool *known; /* per thread: has enough samples to be a partner, if the gate is used */
};

/* A thread as the partner of a swap, in the order of snapshot->home_threads. */
struct nm_search_partner {
	hwloc_const_bitmap_t allowed;
	uint32_t thread, uid;
	bool everywhere; /* as in struct nm_snap_thread */
};

struct nm_search {
	const struct nm_snapshot *snapshot;
	struct nm_search_rules rules;
	struct nm_search_tickets tickets;
	bool *refused; /* per thread: there is no room for it on its preferred node */
	struct nm_search_partner *partners;
	size_t nr_partners;
	/* Rows of nr_partners, one per destination node, which the inner loop reads in order. */
	double *surplus; /* nm_surplus_of() of the partner for moving there; -∞: not allowed */
	double *grant;	 /* tickets of the partner for moving there; -1: not allowed */
	/* Highest surplus over the partners of a node and of a CPU, at from × nr_nodes + to. */
	double *best_of_node, *best_of_cpu;
	uint64_t looks; /* number of pairs of threads examined */
	uint64_t stopped_by_gate, stopped_by_owner;
};

/* Returns 0 or -ENOMEM. */
int nm_search_init(struct nm_search *search, const struct nm_snapshot *snapshot,
		   const struct nm_search_rules *rules, const struct nm_search_tickets *tickets);
void nm_search_clear(struct nm_search *search);

/* Adds the candidates of the thread, which has a main node, to the pool. Returns 0 or -ENOMEM. */
int nm_search_thread(struct nm_search *search, struct nm_ticket_pool *pool, uint32_t thread);

/* Returns the next thread of Θ̂ in the order of the list, or NM_NO_PARTNER at its end. Threads
 * without a candidate do not count. */
typedef uint32_t (*nm_search_next_fn)(void *list);

/*
 * Takes threads from the list until n of them count, and draws the winners. Returns 0 or -ENOMEM.
 */
int nm_search_lottery(struct nm_search *search, const struct nm_config *config, struct nm_rng *rng,
		      nm_search_next_fn next, void *list, struct nm_proposals *ret);

#endif
