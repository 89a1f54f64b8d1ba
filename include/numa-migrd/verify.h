/* SPDX-License-Identifier: MIT */
/*
 * Receipts + later snapshots → verdicts: did the thread run where it was sent, and did its
 * performance or, where that is not known, its locality rise. Pure; the list of open questions is a
 * value.
 */
#ifndef NUMA_MIGRD_VERIFY_H
#define NUMA_MIGRD_VERIFY_H

#include "numa-migrd/affinity.h"
#include "numa-migrd/feedback.h"
#include "numa-migrd/plan.h"
#include "numa-migrd/snapshot.h"

enum nm_verdict_kind {
	NM_VERDICT_IMPROVED,	 /* what it is judged by rose beyond noise */
	NM_VERDICT_NEUTRAL,	 /* it neither rose nor fell, or fell and threads.rollback
				    is false; of a rollback: it arrived */
	NM_VERDICT_ROLLED_BACK,	 /* it fell beyond the margin: the move is rolled back */
	NM_VERDICT_CANCELLED,	 /* a thread was never seen on the node it was sent to: its CPU
				    affinity is restored */
	NM_VERDICT_INCONCLUSIVE, /* too few samples, threads gone, or moved again meanwhile */
};

struct nm_verdict_thread {
	uint32_t tid, pid;
	uint64_t start_ticks, adopted_ns;
	char comm[NM_COMM_BYTES];
	bool alive;	  /* and still managed, as the same program */
	bool ran_on_node; /* most of its run samples of an interval since were on node_to */
	int cpu_from, node_from, node_to;
	double local_before,
		local_after; /* NaN where unknown; after: share on node_to since the act */
	double samples_before; /* access samples behind what is known of before */
	uint64_t accesses_after, samples_after;
	/* NaN where unknown; after: of the first interval since in which it was measured. */
	double latency_before, latency_after, performance_before, performance_after;
	/* Behind the latencies; a decision by sharing asks for the latest interval after. */
	double latency_samples_before, latency_samples_after;
	/* nm_selection_access_cost(), after: of the accesses since, from where it ran. */
	double access_cost_before, access_cost_after;
};

struct nm_verdict {
	uint64_t decision;
	enum nm_decision_kind of;
	enum nm_verdict_kind kind;
	unsigned intervals;  /* waited */
	bool superseded;     /* one of its threads was moved again meanwhile */
	enum nm_thread_policy policy; /* whose decision it was */
	bool by_performance;	      /* then the feedback's figures, NaN until it judged */
	double figure, noise, losses, global_before, global_after, interval_s;
	/* Distance-weighted, see nm_verdict_measure_locality() (verify/locality.h); a rise within
	 * the noise is none. NaN where unknown. */
	double locality_before, locality_after, locality_noise;
	/*
	 * kMAF's: what its threads share now costs so much where they were and where they are, and
	 * the latency of the mapping's threads in this process is so many times the one before, of
	 * which so much may be chance; NaN where unknown.
	 */
	bool by_sharing;
	double cost_before, cost_after, cost_noise, slowdown, slowdown_noise;
	/* Why it was moved for balance, and what came of it: the cost of an access to each page of
	 * the process by which the accesses of its thread fell; NaN where unknown. */
	struct nm_balance_reason balance;
	double measured_benefit;
	unsigned nr_threads;
	struct nm_verdict_thread threads[2];
};

struct nm_verdicts {
	struct nm_verdict *items;
	size_t count;
};
void nm_verdicts_clear(struct nm_verdicts *verdicts);

/* A question that could not be answered after so many intervals is closed as inconclusive. */
#define NM_VERDICT_INTERVALS 10U
/* Then most of what the affinity matrix holds was shared since the act, with one aging for each. */
#define NM_VERDICT_AGED_INTERVALS 4U

struct nm_verifier;

int nm_verifier_new(struct nm_verifier **ret);
void nm_verifier_free(struct nm_verifier *verifier);
NM_DEFINE_CLEANUP(struct nm_verifier, nm_verifier_free);

/* Opens the question of an applied decision (of the snapshot's interval). A thread that is still
 * under question from an earlier one closes that as INCONCLUSIVE at the next judgement. -ENOMEM. */
int nm_verifier_add(struct nm_verifier *verifier, const struct nm_decision *decision);

/*
 * Takes what the feedback found: decisions by performance are judged by that and wait for it.
 * Before nm_verifier_judge().
 */
void nm_verifier_apply(struct nm_verifier *verifier, const struct nm_feedback_result *result);

/*
 * What threads of decisions by sharing share now, in sharings times distance. Places are the
 * snapshot's; of partners that ran nowhere nothing is counted, and what a thread cost
 * that came from nowhere is NaN. -ENOMEM. Before it, each time.
 */
int nm_verifier_apply_sharing(struct nm_verifier *verifier, const struct nm_affinity *affinity,
			      const struct nm_snapshot *snapshot, const struct nm_config *config);

/*
 * Judges what can be judged now: at the earliest one interval after the act; while a living thread
 * has fewer than threads.min_samples fresh samples, or was not seen on its node yet, it waits, at
 * most 10 intervals. A thread that ran elsewhere in two intervals and never there cancels its
 * decision.
 *
 * A decision by performance is judged by what the feedback found. Where that is nothing, and with
 * any other decision (LBMA's where P is not known), the locality is compared: improved where it
 * rose by more than threads.gate_margin and than its noise, rolled back (with threads.rollback)
 * where it fell by more than that margin, else neutral. LBMA moves for locality alone: such
 * a fall rolls back whatever the performance, which other moves of the interval share in. Of a move
 * for balance, which gives up locality by intent, that is not asked.
 *
 * Of a decision by sharing (kMAF) it is the mean latency of accesses over the threads that one
 * mapping moved in one process: where data is matters there, not which share of it is local, and
 * the local share falls by intent, until pages follow. For that they are given time: judged as soon
 * as accesses take no longer than before (by threads.delta_g, and beyond chance by
 * threads.gate_sigmas; improved where they take less by as much), rolled back, all together, if
 * they still do at the end. P holds the latency and figures that placement does not change, so it
 * would tell less, and nothing where these are not sampled. Where latencies are not, what the
 * threads share after some intervals tells whether they are nearer to each other than they would be
 * where they came from, by the same two settings. A ROLLBACK decision is only asked whether it
 * arrived: neutral, never improved, never rolled back. Called once per interval; the caller
 * clears *ret. -ENOMEM (nothing judged). Tick, first stage after the snapshot.
 */
int nm_verifier_judge(struct nm_verifier *verifier, const struct nm_snapshot *snapshot,
		      const struct nm_config *config, struct nm_verdicts *ret);

/* Decisions still open. */
size_t nm_verifier_open(const struct nm_verifier *verifier);

/* The rollback of a ROLLED_BACK verdict, for nm_plan_add_rollback(). */
struct nm_rollback nm_verdict_rollback(const struct nm_verdict *verdict);

#endif
