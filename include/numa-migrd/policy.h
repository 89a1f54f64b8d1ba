/* SPDX-License-Identifier: MIT */
/* Computes proposals from a snapshot, each with its tickets and draw. A policy is a function of the
 * snapshot, the rules (the threads group of the configuration) and the random number generator. */
#ifndef NUMA_MIGRD_POLICY_H
#define NUMA_MIGRD_POLICY_H

#include "numa-migrd/balance.h"
#include "numa-migrd/config.h"
#include "numa-migrd/record.h"
#include "numa-migrd/residency.h"
#include "numa-migrd/rng.h"
#include "numa-migrd/snapshot.h"

enum nm_proposal_kind { NM_PROPOSAL_MIGRATE, NM_PROPOSAL_SWAP };

struct nm_move {
	uint32_t thread; /* index into the snapshot's threads */
	int cpu_from, cpu_to;
	int node_from, node_to;
	double record; /* P of the thread's record on node_to; NaN: none, or not looked up */
	/* The CPUs of the node to use; NULL: all. Must outlive the plan and its execution. */
	hwloc_const_bitmap_t within;
};

/* The reason for which a thread leaves an overloaded node. Pages are those of its process
 * (residency.h). */
struct nm_balance_reason {
	bool given; /* false: the move has another reason, and no other field is set */
	enum nm_selection selection;
	enum nm_selection_reason by;
	double metric, cost_change;	 /* the following fields are as in struct nm_balance_move */
	double load, load_from, load_to;
	double gap; /* difference between the nodes before the moves of the round */
	double gain, gain_error; /* additional local pages on the destination; NaN: not known */
	double resident;		 /* NaN: not known */
	enum nm_residency_source source; /* source of the page counts; age_s is their age */
	double age_s;
};

struct nm_tickets {
	double total;
	double free_cpu;  /* q1 */
	double preferred; /* q2 of the thread */
	double partner;   /* q2 of the swap partner */
	double record;	  /* q3 of the thread; this and the following fields are for IMAR² only */
	double partner_record; /* q3 of the partner */
	double partner_slow;   /* q4 */
};

#define NM_ALTERNATIVES_MOST 8U

/* One candidate move of a thread in the lottery; for `explain`. */
struct nm_alternative {
	int node_to, cpu_to; /* cpu_to is -1 for any idle CPU of the node */
	uint32_t partner;    /* tid of the swap partner; 0: none */
	double tickets;
};

struct nm_proposal {
	enum nm_proposal_kind kind;
	struct nm_move moves[2]; /* the second is set only for a swap */
	struct nm_tickets tickets;
	double draw;  /* see struct nm_win (lottery.h) */
	double gain;  /* nm_gate_gain(); NaN without accesses */
	/* kMAF only; tickets and draw are then unused. */
	bool by_sharing;
	double cost_before, cost_after; /* communication cost of all proposals of the interval
					 * together, see nm_mapping */
	double shared[2]; /* communication with threads that will be on its new node */
	struct nm_balance_reason balance; /* if set, tickets and draw are unused */
	/* Lottery only: the winner, then the other candidates of its thread, in descending order of
	 * tickets. */
	struct nm_alternative alternatives[NM_ALTERNATIVES_MOST];
	size_t nr_alternatives, nr_candidates; /* number kept, and number of all candidates */
};

struct nm_proposals {
	struct nm_proposal *items; /* winners in the order of the lottery; at most n, free of
				    * conflicts */
	size_t count;
	uint64_t threads_considered; /* |Θ̂| */
	uint64_t candidates;         /* candidates in the lottery */
	uint64_t stopped_by_gate;    /* threads for which the gate refused every destination */
	uint64_t stopped_by_owner;   /* refused swaps between threads of different users */
	uint64_t looks; /* comparisons of threads and CPUs by kMAF, which are bounded */
};

/* Returns whether the policy selects threads by their performance, and therefore waits until that
 * can be measured. */
bool nm_policy_by_performance(enum nm_thread_policy policy);

/*
 * Returns whether the moves decided on this snapshot are judged by performance (feedback.h). Moves
 * of LBMA are judged by locality if P is derived from locality, because the verifier measures
 * locality for the moved threads alone.
 */
static inline bool nm_judged_by_performance(enum nm_thread_policy policy,
					    const struct nm_snapshot *snapshot)
{
	return nm_policy_by_performance(policy) ||
	       (policy == NM_POLICY_LBMA && !snapshot->by_locality);
}

void nm_proposals_clear(struct nm_proposals *proposals);

/*
 * LBMA (lbma-imar2 section 4.2, algorithm 1; algorithms.md section 2): selects n random threads,
 * assigns tickets to their candidates, applies the gate and holds the lottery. Winners share no
 * thread and no CPU. Returns 0, also if there is nothing to propose, or -ENOMEM. Called by the
 * policy stage of the tick.
 */
int nm_lbma_propose(const struct nm_snapshot *snapshot, const struct nm_config *config,
		    struct nm_rng *rng, struct nm_proposals *ret);

/*
 * IMAR² (lbma-imar2 section 4.3, algorithm 2; algorithms.md section 3): selects the n threads that
 * are slowest relative to their process, or farthest from their memory, and have a candidate.
 * Tickets also depend on the record; gate and lottery are those of LBMA. The record must be up to
 * date with the snapshot. Returns 0 or -ENOMEM. Called by the policy stage of the tick.
 */
int nm_imar2_propose(const struct nm_snapshot *snapshot, const struct nm_config *config,
		     const struct nm_record *record, struct nm_rng *rng, struct nm_proposals *ret);

/* Computes the gain of moves (algorithms.md section 2): the predicted increase of local accesses of
 * the moved threads, as a share of all their accesses; NaN without accesses. Pure. */
double nm_gate_gain(const struct nm_snapshot *snapshot, const struct nm_move *moves, size_t count);

/*
 * Finds overcommitted nodes (algorithms.md section 2). A node is overcommitted if the CPU demand of
 * the threads that prefer it exceeds its usable cores (a further SMT sibling adds 0.25 cores, more
 * if the demand on the machine exceeds its cores), or if the demand of threads bound to some of
 * these cores exceeds those. Such a node is filled process by process in descending order of
 * accesses to it, and thread by thread within a process. Sets refused[i] for each thread that does
 * not fit on its preferred node, and clears the others; `refused` has room for nr_threads. An
 * unknown CPU share counts as a whole CPU. Returns 0 or -ENOMEM.
 */
int nm_overcommit_refuse(const struct nm_snapshot *snapshot, bool *refused);

/*
 * Selects leases to end on overcommitted nodes. A node is overcommitted if the threads that cannot
 * leave it (leased threads, and others bound to the node) demand more CPUs than the cores of the
 * node that a leased thread may use, counted as above, these CPUs are busy, and cores on other
 * nodes that the thread may use are idle. The affinity of the leased threads with the fewest
 * accesses to the node is then to be restored, for half of the excess per interval. Their indices
 * are written to ret_threads, which has room for nr_threads. Returns 0 or -ENOMEM. Called by the
 * tick before the policy.
 */
int nm_overcommit_yield(const struct nm_snapshot *snapshot, uint32_t *ret_threads, size_t *ret_count);

#endif
