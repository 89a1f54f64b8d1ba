/* SPDX-License-Identifier: MIT */
/* Computes proposals from a snapshot, each with its tickets and draw. A policy is a function of the
 * snapshot, the rules (the threads group of the configuration) and the random number generator. */
#ifndef NUMA_MIGRD_POLICY_H
#define NUMA_MIGRD_POLICY_H

#include "numa-migrd/base.h"
#include "numa-migrd/config.h"
#include "observe/memory.h"
#include "observe/regions.h"
#include "numa-migrd/snapshot.h"
#include "numa-migrd/topology.h"

struct nm_decision;
struct nm_mapping;

/* ---- IMAR²'s record ---- */

/* The performance of each thread on each node when it last ran there (IMAR² paper, section 4.3).
 * The state of policy IMAR², which nm_imar2_policy opens, follows and closes. */
struct nm_record;

/*
 * Returns P of the thread when it last ran on the node, at most record_age intervals before
 * the snapshot's (0: no limit); NaN if there is none. `thread` is an index into the snapshot
 * that the record last followed.
 */
double nm_record_get(const struct nm_record *record, const struct nm_snapshot *snapshot,
		     const struct nm_config *config, uint32_t thread, int node);

/* Compares the record with the current P: 1 better, -1 worse, 0 within record_band or not
 * known. */
int nm_record_compare(double record, double now, double band);

/* ---- selection of threads to balance ---- */

/*
 * Selects which of the threads that wait for a CPU should move to another node: the rules of kMLB
 * (section 3.2.3) and of the paper on thread-aware exclusivity (sections 2.3 and 3), as functions
 * of values. Pages and threads of a group (a process) are counted per node; only the values that a
 * rule needs are used. Pure.
 */

/* Properties of one group; nr_nodes values each. */
struct nm_selection_group {
	const double *resident;	 /* R(i): number of its pages on node i; NULL: not known */
	const uint32_t *members; /* n_i: number of its threads on node i, running or not */
	int leader_node; /* node of its leader; -1: the leader has exited, or is idle */
};

struct nm_selection_candidate {
	uint32_t group; /* index */
	bool leader;	/* the first thread of its group */
};

struct nm_selection_input {
	enum nm_selection rule;
	unsigned nr_nodes;
	int from, to;	 /* node indices; must differ */
	double min_gain; /* minimum R(to) − R(from), in pages; −∞ as in the papers */
	/* A leader without a node counts as on that of nm_selection_leader_node(); not in the
	 * papers. */
	bool pages_lead;
	const struct nm_selection_group *groups;
	/* The threads that may move, in the order of (start time, tid). */
	const struct nm_selection_candidate *candidates;
	size_t nr_candidates;
	bool *judged; /* scratch space: one per group, all false before and after the call */
};

enum nm_selection_reason {
	NM_SELECTED_NONE,
	NM_SELECTED_BY_RULE,
	NM_SELECTED_BY_LEADER, /* its leader is on that node: selected without examining the
				* others */
	NM_SELECTED_BY_TYPE,   /* DTAS: back to the CPUs of its type; not returned by
				* nm_selection_choose() */
};

struct nm_selection_result {
	enum nm_selection_reason reason;
	size_t chosen;	    /* index into the candidates; 0 for NM_SELECTED_NONE */
	double metric;	    /* value of the rule's metric, as in the papers; NaN: none was needed */
	double gain;	    /* R(to) − R(from); NaN: R is not known */
	unsigned evaluated; /* number of times that the metric was computed */
	/* Candidates rejected because of their gain, because their pages are not known, and by the
	 * rules for leaders. */
	unsigned stopped_by_gain, unknown, stopped_by_leader;
};

/*
 * Selects a thread by the rule; the first of equal ones. A thread with a gain below min_gain is
 * never selected. A thread whose pages are not known is selected only by a rule that does not use
 * them, and with a min_gain of −∞. "exclusivity" and "most_benefit_plus" combine the enhanced
 * procedure (exclusivity, section 3.2) with the metrics of "exclusivity_base" and "most_benefit":
 * leaders stay, no thread leaves the node of its leader, a thread that can join its leader is
 * selected at once, and only the first candidate of each group is evaluated.
 */
struct nm_selection_result nm_selection_choose(const struct nm_selection_input *input);

/* Returns the node that counts as that of the group's leader: its own node or, if not known, the
 * node with most of the group's pages (tie: the lowest node); -1 if neither is known. */
int nm_selection_leader_node(const struct nm_selection_group *group, unsigned nr_nodes);

/* Excl (equation 7): returns the largest n_i divided by their sum, from 1/nr_nodes to 1; NaN
 * without threads. */
double nm_selection_exclusivity(const uint32_t *members, unsigned nr_nodes);

/* Computes f(i,j) into `ret` (nr_nodes × nr_nodes): an access from a CPU of node i to memory of
 * node j costs as much as f local ones, by the firmware's distances; f(i,i) = 1. */
void nm_selection_factors(const struct nm_topology *topology, double *ret);

/*
 * Returns the mean cost of an access from a CPU of `node`, relative to a local one, if each node's
 * memory is accessed this often; NaN without accesses. It equals the mean cost of a group's pages
 * if all are accessed equally.
 */
double nm_selection_access_cost(const struct nm_topology *topology, const double *accesses,
				int node);

/*
 * Returns by how much the total memory access cost of the group changes when one of its threads
 * moves: Σ_j R_j·(f(to,j) − f(from,j)), in local accesses to a page each; negative is better. If f
 * is the same between all nodes, this is equation 6, (R_to − R_from)·(1 − f). NaN if R is not
 * known.
 */
double nm_selection_cost_change(const double *resident, const double *factors, unsigned nr_nodes,
				int from, int to);

/* ---- lotteries ---- */

#define NM_GATE_MARGIN 0.05 /* minimum share of the accesses that must become local */

enum nm_proposal_kind { NM_PROPOSAL_MIGRATE, NM_PROPOSAL_SWAP };

struct nm_move {
	uint32_t thread; /* index into the snapshot's threads */
	int cpu_from, cpu_to;
	int node_from, node_to;
	double record; /* P of the thread's record on node_to; NaN: none, or not looked up */
	/* The CPUs of the node to use; NULL: all. Must outlive the plan and its execution. */
	hwloc_const_bitmap_t within;
	bool below_cache; /* only the CPUs with the last-level cache of cpu_to */
};

/* The reason for which a thread leaves an overloaded node. Pages are those of its process
 * (regions.h). */
struct nm_balance_reason {
	bool given; /* false: the move has another reason, and no other field is set */
	enum nm_selection selection;
	enum nm_selection_reason by;
	double metric;			 /* as in struct nm_selection_result */
	double cost_change;		 /* predicted, nm_selection_cost_change() */
	double load, load_from, load_to; /* of the thread, and of the two CPUs before the move */
	double gap;	 /* difference between the nodes before the moves of the round */
	double gain;	 /* additional local pages on the destination; NaN: not known */
	double resident; /* pages of the process; NaN: not known */
	double age_s;	 /* of their count; 0: they follow the accesses of the interval */
};

/* The reason for which a group was assigned its home or has none; reported to users. */
enum nm_place_reason {
	NM_PLACE_REMOTE,      /* a home: its threads wait for memory on other nodes */
	NM_PLACE_WAITING,     /* a home: its threads wait for CPUs elsewhere */
	NM_PLACE_HAS_HOME,    /* has a home */
	NM_PLACE_BARRED,      /* its home was given up in this interval */
	NM_PLACE_YOUNG,	      /* may still be creating threads */
	NM_PLACE_OBSERVED,    /* not observed without a home for long enough */
	NM_PLACE_IDLE,	      /* uses too little CPU time */
	NM_PLACE_YIELDS,      /* leaves the CPUs to others: idle priority */
	NM_PLACE_NO_ROOM,     /* no eligible node has the CPUs or the free memory for it */
	NM_PLACE_NO_GAIN,     /* it is near its memory, or makes few accesses to it */
	NM_PLACE_TOO_COSTLY,  /* migrating its memory costs more than the remote accesses it would
			       * save */
	NM_PLACE_SPREAD,      /* runs faster spread over the machine */
	NM_PLACE_FIXED,	      /* its memory is on another node, and cannot be moved */
	NM_PLACE_OFTEN_WOKEN, /* one thread that others wake all the time, and that runs near them
			       */
	NM_PLACE_LARGER,      /* it needs more CPUs or memory than any eligible node has */
	NM_PLACE_BANDWIDTH,   /* its traffic would exceed what the memory of a node serves */
	NM_PLACE_PINNED,      /* threads that are pinned to other nodes use its memory there */
	NM_PLACE_LEFT_ALONE,  /* by the control group (trial.h) */
	NM_PLACE_REASON_MAX,
};

/* Returns a short description such as "remote memory"; a static string. */
const char *nm_place_reason_text(enum nm_place_reason reason);

/* Returns whether a process without a home for this reason runs best on several nodes, so that its
 * threads and pages are placed one by one (numa-migrd-policies(7), "auto"). */
static inline bool nm_place_is_spread(enum nm_place_reason reason)
{
	return reason == NM_PLACE_LARGER || reason == NM_PLACE_SPREAD ||
	       reason == NM_PLACE_BANDWIDTH || reason == NM_PLACE_NO_GAIN;
}

/* The predicted cost of a placement (numa-migrd-policies(7), "auto"). */
struct nm_prediction {
	double distance;   /* mean SLIT distance of the accesses; 10 is local */
	double contention; /* time that an access waits for full controllers, in latencies */
	double waiting;	   /* for a CPU, in seconds per second of CPU time */
	double stalled;	   /* share of its time that the process waits for near memory */
	double time;	   /* for the same work; 1: near memory and idle CPUs */
};

#define NM_HOME_CANDIDATES_MAX 8U
struct nm_home_candidate {
	int node; /* -1: it stays where it is */
	struct nm_prediction at;
	double gain; /* part of the time that it saves there */
};

/* The reason for a home. */
struct nm_home_reason {
	enum nm_place_reason reason;
	unsigned threads; /* number that ran in the interval */
	double demand_cpus;
	double age_s;				  /* of its program */
	double distance_now, distance_home, load; /* as in struct nm_place_proposal */
	uint64_t bytes_away;
	double move_s;	   /* expected time to move that memory; NaN: it stays */
	double gain;	   /* predicted part of the time that the home saves */
	bool keeps_memory; /* because of pages.max_gb_of_process */
	/* Staying where it is, then the best nodes. */
	struct nm_home_candidate candidates[NM_HOME_CANDIDATES_MAX];
	unsigned nr_candidates;
};

enum nm_page_reason {
	NM_PAGE_REASON_PAGES, /* page by page: one node makes most accesses to each (kMAF, eq. 6) */
	NM_PAGE_REASON_REGION,	   /* a range to which one node makes most accesses */
	NM_PAGE_REASON_CONTENTION, /* a range spread over nodes, because one node serves too much
				    * traffic */
	NM_PAGE_REASON_ROLLBACK	   /* back to their original nodes */
};

/* The reason for which pages of a process are moved in an interval, and their number. */
struct nm_pages_reason {
	enum nm_page_reason reason;
	uint64_t pages, bytes;
	double exclusivity; /* share of the accesses that come from the node; NaN: not for one
			     * node */
};

struct nm_tickets {
	double total;
	double free_cpu;  /* q1 */
	double preferred; /* q2 of the thread */
	double partner;	  /* q2 of the swap partner */
	double record;	  /* q3 of the thread; this and the following fields are for IMAR² only */
	double partner_record; /* q3 of the partner */
	double partner_slow;   /* q4 */
};

#define NM_ALTERNATIVES_MAX 8U

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
	double draw; /* see struct nm_win (lottery.h) */
	double gain; /* nm_gate_gain(); NaN without accesses */
	/* kMAF only; tickets and draw are then unused. */
	double cost_before, cost_after; /* communication cost of all proposals of the interval
					 * together, see nm_mapping */
	double shared[2]; /* communication with threads that will be on its new node */
	struct nm_balance_reason balance; /* if set, tickets and draw are unused */
	/* Lottery only: the winner, then the other candidates of its thread, in descending order of
	 * tickets. */
	struct nm_alternative alternatives[NM_ALTERNATIVES_MAX];
	size_t nr_alternatives, nr_candidates; /* number kept, and number of all candidates */
};

struct nm_proposals {
	struct nm_proposal *items; /* winners in the order of the lottery; at most n, free of
				    * conflicts */
	size_t count;
	uint64_t comparisons; /* of threads and CPUs, or of pairs of threads; bounded */
	size_t stuck; /* lottery only: threads that were looked at and have no destination */
	enum nm_thread_policy policy; /* that made them, and judges them */
};

void nm_proposals_clear(struct nm_proposals *proposals);

/* Why a thread that ran takes part in the lottery of LBMA or IMAR², or does not. */
enum nm_candidacy {
	NM_CANDIDACY_YES,	 /* LBMA: any thread; IMAR²: it is slow, or far from its memory */
	NM_CANDIDACY_UNMEASURED, /* too few samples */
	NM_CANDIDACY_HELD,	 /* too young, awaits a verdict, or a move did not help */
	NM_CANDIDACY_WANDERING,	 /* it ran on several nodes */
	NM_CANDIDACY_SETTLED,	 /* neither slow nor far from its memory */
	NM_CANDIDACY_WHOLE, /* "auto" moves its process as a whole; not returned by the function */
	NM_CANDIDACY_MAX
};
enum nm_candidacy nm_lottery_candidacy(enum nm_thread_policy policy, const struct nm_config *config,
				       const struct nm_snap_thread *thread);

/* Computes the gain of moves: the predicted increase of local accesses of the moved threads, as a
 * share of all their accesses; NaN without accesses. Pure. */
double nm_gate_gain(const struct nm_snapshot *snapshot, const struct nm_move *moves, size_t count);

/*
 * Finds overcommitted nodes. A node is overcommitted if the CPU demand of the threads that prefer
 * it exceeds its usable cores (a further SMT sibling adds 0.25 cores, more if the demand on the
 * machine exceeds its cores), or if the demand of threads bound to some of these cores exceeds
 * those. Such a node is filled process by process in descending order of accesses to it, and thread
 * by thread within a process. Sets refused[i] for each thread that does not fit on its preferred
 * node, and clears the others; `refused` has room for nr_threads. An unknown CPU share counts as a
 * whole CPU.
 */
void nm_overcommit_refuse(const struct nm_snapshot *snapshot, bool *refused);

/* ---- kMAF ---- */

/*
 * Places threads that share memory on the same node (kMAF, section 3.4): computes proposals from
 * the communication and current places of threads. Pure: the same input and seed give the same
 * proposals.
 */

/*
 * Limit of comparisons of threads and CPUs for one thread placement, about 10 ms. At the limit the
 * moves found so far are used; the comparisons begun for a thread are completed: see
 * nm_proposals.comparisons.
 */
#define NM_KMAF_COMPARISONS_MAX (4ULL << 20) /* shared: first */

/*
 * Computes a placement of the snapshot's threads, for each of which `graph` has one vertex in the
 * same order, and proposes moves if it saves enough. Threads that may not be moved now keep their
 * place, and the others are placed around them. Returns 0, also if there is nothing to propose, or
 * a negative errno.
 */
int nm_kmaf_propose(const struct nm_snapshot *snapshot, const struct nm_config *config,
		    const struct nm_affinity_graph *graph, uint32_t seed, struct nm_proposals *ret);

/*
 * The second half of nm_kmaf_propose(): turns the nodes of a placement into moves, in an order in
 * which no node has to hold more threads than it can: two threads that swap places, or one that
 * moves to a CPU that is free or that an earlier proposal frees. If nodes are full, cycles of
 * moves, each to the CPU that the next one leaves: single proposals one after another, the whole
 * cycle or none.
 *
 * Moves that do not bring communicating threads nearer are omitted. With NM_GATE_BENEFIT all
 * moves are omitted unless the distance saved exceeds chance by gate_sigmas. There are at most
 * moves_per_interval moves, and none if the placement saves too little.
 */
void nm_kmaf_moves(const struct nm_snapshot *snapshot, const struct nm_config *config,
		   const struct nm_affinity_graph *graph, const struct nm_mapping *mapping,
		   struct nm_proposals *ret);

/* Returns whether policy kmaf can be used: 0, or -ELIBACC with the reason if Scotch cannot be loaded.
 * NULL is the library that it was built for. */
int nm_kmaf_check(const char *library, char *error, size_t size);

/* ---- table of policies ---- */

/* The policies that move threads: a file and a row of NM_POLICIES (config.h) each. Pure. */

/* The input of every policy in an interval. */
struct nm_policy_input {
	const struct nm_snapshot *snapshot;
	const struct nm_config *config;
	double interval_s;
	struct nm_rng *rng;
	uint64_t seed;		  /* the same in all intervals */
	struct nm_memory *memory; /* NULL: sampled pages and communication are not kept */
};

/* The measures by which decisions are judged. */
enum nm_measure {
	NM_BY_NOTHING,
	NM_BY_PERFORMANCE,
	NM_BY_DISTANCE,
	NM_BY_DELAY, /* waiting for CPUs */
	NM_BY_LATENCY,
	NM_BY_COMMUNICATION,
	NM_BY_LOCALITY,
};
#define NM_MEASURES (NM_BY_LOCALITY + 1)

enum nm_criterion_use {
	NM_CRITERION_DECIDES,  /* if it is known */
	NM_CRITERION_VETOES,   /* if it fell; otherwise the next one is asked */
	NM_CRITERION_CONFIRMS, /* decides if no earlier one is known; otherwise it may only turn a
				* rise within its noise into an improvement */
};

struct nm_criterion {
	enum nm_measure by;
	enum nm_criterion_use use;
};
#define NM_CRITERIA_MOST 4 /* including the end, NM_BY_NOTHING */

struct nm_policy_ops {
	/* How its decisions are judged, in this order (judge.h). If performance comes first,
	 * threads are also selected by it, so that it must be measured. */
	struct nm_criterion judged_by[NM_CRITERIA_MOST];
	bool rolls_back; /* for performance also without rules.rollback */
	/* Any of these may be NULL. `state` belongs to the policy and lasts from interval to
	 * interval; close() gets no NULL. */
	void *(*open)(const struct nm_topology *topology, double page_bytes);
	void (*close)(void *state);
	/* Brings the state up to date with the snapshot, also in intervals without proposals. */
	void (*follow)(void *state, const struct nm_snapshot *snapshot,
		       const struct nm_config *config);
	/* Proposes moves of threads. Returns 0 or a negative errno; the caller clears *ret. NULL:
	 * the policy moves no threads, or processes as a whole (homes.h). */
	int (*propose)(void *state, const struct nm_policy_input *input, struct nm_proposals *ret);
	/* Notes that a decision of this interval was applied. */
	void (*applied)(void *state, const struct nm_decision *decision);
};

/*
 * The row of each policy, defined in the file of the policy.
 *
 * nm_lbma_policy (IMAR² paper, section 4.2, algorithm 1) selects n random threads, assigns tickets
 * to their candidates, applies the gate and holds the lottery. Winners share no thread and no CPU.
 *
 * nm_imar2_policy (same paper, section 4.3, algorithm 2) selects the n threads that are slowest
 * relative to their process, or farthest from their memory, and have a candidate. Tickets also
 * depend on the record, which must be up to date with the snapshot; gate and lottery are those of
 * LBMA.
 */
#define NM_POLICY_ROW(constant, name) extern const struct nm_policy_ops nm_##name##_policy;
NM_POLICIES(NM_POLICY_ROW)

/* The states of the policies; initially zero, then opened as they are needed. */
struct nm_policies {
	void *states[NM_POLICY_MAX];
};

/* Opens the state of a policy if it keeps one and this was not done. page_bytes is the size of a
 * base page. */
void nm_policies_open(struct nm_policies *policies, enum nm_thread_policy policy,
		      const struct nm_topology *topology, double page_bytes);
/* Discard one state or all, because the policy or the machine has changed. */
void nm_policy_close(struct nm_policies *policies, enum nm_thread_policy policy);
void nm_policies_close(struct nm_policies *policies);

/*
 * Returns the policy that draws threads: the configured one or, for processes that "auto" leaves
 * spread, IMAR² or, if the performance is not measured, LBMA.
 */
static inline enum nm_thread_policy nm_drawing_policy(const struct nm_config *config,
						      const struct nm_snapshot *snapshot)
{
	if (config->threads.policy != NM_POLICY_AUTO)
		return config->threads.policy;
	return snapshot->by_locality ? NM_POLICY_LBMA : NM_POLICY_IMAR2;
}

/* Returns the row of a policy; static. */
const struct nm_policy_ops *nm_policy_ops(enum nm_thread_policy policy);

/* Returns whether this measure is the first by which the decisions of a policy are judged. */
static inline bool nm_policy_is_by(enum nm_thread_policy policy, enum nm_measure measure)
{
	return nm_policy_ops(policy)->judged_by[0].by == measure;
}

/* Returns whether the policy moves threads for their communication: judged by latency, because the
 * local access ratio falls on purpose until pages follow. */
static inline bool nm_policy_is_by_sharing(enum nm_thread_policy policy)
{
	return nm_policy_is_by(policy, NM_BY_LATENCY);
}

/*
 * Returns whether the moves decided on this snapshot are judged by performance (judge.h). Moves
 * of LBMA are judged by locality if P is derived from locality, because the verifier measures
 * locality for the moved threads alone.
 */
static inline bool nm_judged_by_performance(enum nm_thread_policy policy,
					    const struct nm_snapshot *snapshot)
{
	return nm_policy_is_by(policy, NM_BY_PERFORMANCE) ||
	       (nm_policy_is_by(policy, NM_BY_LOCALITY) && !snapshot->by_locality);
}

#endif
