/* SPDX-License-Identifier: MIT */
/*
 * Snapshot → proposals, each with its tickets and draw. A policy is a function of values: the snapshot,
 * the rules (the configuration's threads group) and the generator.
 */
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
	double record; /* P of the thread's record on node_to; NaN: none, or not asked */
	/* Of the node's CPUs, those that it is to have; NULL: all. Outlives plan and act. */
	hwloc_const_bitmap_t within;
};

/* Why a thread leaves an overloaded node; pages are those of its process (residency.h). */
struct nm_balance_reason {
	bool given; /* false: it is not for balance, and nothing else is set */
	enum nm_selection selection;
	enum nm_selection_reason by;
	double metric, cost_change;	 /* as struct nm_balance_move has them, as what follows */
	double load, load_from, load_to;
	double gap;			 /* between the nodes, before the round's moves */
	double gain, gain_error;	 /* pages more on the node it goes to; NaN: not known */
	double resident;		 /* NaN: not known */
	enum nm_residency_source source; /* of the pages, and how old they were */
	double age_s;
};

struct nm_tickets {
	double total;
	double free_cpu;  /* q1 */
	double preferred; /* q2 of the thread */
	double partner;   /* q2 of the swap partner */
	double record;	  /* q3 of the thread, IMAR² only, as what follows */
	double partner_record; /* q3 of the partner */
	double partner_slow;   /* q4 */
};

#define NM_ALTERNATIVES_MOST 8U

/* What else could have been done with the thread, for explaining. */
struct nm_alternative {
	int node_to, cpu_to; /* cpu_to -1: a free one of the node */
	uint32_t partner;    /* tid of the thread to change places with; 0: none */
	double tickets;
};

struct nm_proposal {
	enum nm_proposal_kind kind;
	struct nm_move moves[2]; /* the second only for a swap */
	struct nm_tickets tickets;
	double draw;  /* see struct nm_win (lottery.h) */
	double gain;  /* nm_gate_gain(); NaN without accesses */
	/* kMAF only; without tickets and draw then. */
	bool by_sharing;
	double cost_before, cost_after; /* of all proposals of the interval together, see nm_mapping */
	double shared[2]; /* with threads that will be on its new node, in sharings */
	struct nm_balance_reason balance; /* without tickets and draw then */
	/* Of a lottery: the one that won, then the others of its thread, most tickets first. */
	struct nm_alternative alternatives[NM_ALTERNATIVES_MOST];
	size_t nr_alternatives, nr_candidates; /* kept of how many */
};

struct nm_proposals {
	struct nm_proposal *items; /* winners in order of the lottery, at most n, conflict-free */
	size_t count;
	uint64_t threads_considered; /* |Θ̂| */
	uint64_t candidates;         /* that stood in the lottery */
	uint64_t stopped_by_gate;    /* threads looked at whose every destination the gate refused */
	uint64_t stopped_by_owner;   /* swaps between users, of the threads looked at */
	uint64_t looks;		     /* at threads and CPUs for one another, by kMAF: bounded */
};

/* Does it choose by the performance of threads, so that it waits where that cannot be judged yet?
 */
static inline bool nm_policy_by_performance(enum nm_thread_policy policy)
{
	return policy == NM_POLICY_IMAR2 || policy == NM_POLICY_BALANCE;
}

/* Are moves decided on the snapshot judged by the performance (feedback.h)? LBMA's by locality
 * where that is all P could be: the verifier measures it of the moved threads alone. */
static inline bool nm_judged_by_performance(enum nm_thread_policy policy,
					    const struct nm_snapshot *snapshot)
{
	return nm_policy_by_performance(policy) ||
	       (policy == NM_POLICY_LBMA && !snapshot->by_locality);
}

void nm_proposals_clear(struct nm_proposals *proposals);

/*
 * LBMA (lbma-imar2 section 4.2, algorithm 1; algorithms.md section 2): n threads at random, their
 * candidates with tickets, gate, lottery. Winners share no thread and no free CPU. Returns 0 (also with
 * nothing to propose) or -ENOMEM. Tick, policy stage.
 */
int nm_lbma_propose(const struct nm_snapshot *snapshot, const struct nm_config *config,
		    struct nm_rng *rng, struct nm_proposals *ret);

/*
 * IMAR² (lbma-imar2 section 4.3, algorithm 2; algorithms.md section 3): the n slowest threads beside their
 * process, or farthest from their memory, that have a candidate; tickets by the record too; the same gate
 * and lottery. The record is up to date with the snapshot. Returns 0 or -ENOMEM. Tick, policy stage.
 */
int nm_imar2_propose(const struct nm_snapshot *snapshot, const struct nm_config *config,
		     const struct nm_record *record, struct nm_rng *rng, struct nm_proposals *ret);

/*
 * The gain of moves (algorithms.md section 2): the predicted rise of local accesses over the threads moved,
 * as a share of all their accesses; NaN where they have none. Pure.
 */
double nm_gate_gain(const struct nm_snapshot *snapshot, const struct nm_move *moves, size_t count);

/*
 * Nodes in demand (algorithms.md section 2): where the CPU demand of the threads that
 * prefer a node exceeds its usable cores (a further SMT sibling adds a quarter of one, more where
 * the machine's demand exceeds its cores), or that of threads bound to some of these exceeds those,
 * the node is filled by process in descending accesses to it, within a process by thread. Sets
 * refused[i] for each thread that finds no room on its preferred node, and clears the others;
 * `refused` has room for nr_threads. An unknown CPU share counts as a whole CPU. Returns 0 or
 * -ENOMEM.
 */
int nm_overcommit_refuse(const struct nm_snapshot *snapshot, bool *refused);

/*
 * Nodes in demand, for leases that stand: where more threads that cannot leave (leased
 * ones, and others bound to the node) want CPUs than a leased thread's bound has cores on the node,
 * counted likewise, these CPUs are full, and cores elsewhere in the bound are idle, the leased
 * threads with the fewest accesses to the node are to get their masks back: half of those too many
 * per interval. Their indices go to ret_threads (room for nr_threads). Returns 0 or -ENOMEM. Tick,
 * before the policy.
 */
int nm_overcommit_yield(const struct nm_snapshot *snapshot, uint32_t *ret_threads, size_t *ret_count);

#endif
