/* SPDX-License-Identifier: MIT */
/*
 * Computes verdicts from receipts and later snapshots: whether a moved thread ran on its new node,
 * and whether its performance, or its locality if the performance is not known, improved. Pure; the
 * list of pending evaluations is a value.
 */
#ifndef NUMA_MIGRD_VERIFY_H
#define NUMA_MIGRD_VERIFY_H

#include "numa-migrd/affinity.h"
#include "numa-migrd/feedback.h"
#include "numa-migrd/judge.h"
#include "numa-migrd/plan.h"
#include "numa-migrd/snapshot.h"

struct nm_verdict_thread {
	uint32_t tid, pid;
	uint64_t start_ticks, adopted_ns;
	char comm[NM_COMM_BYTES];
	bool alive;	  /* and still managed, running the same program */
	bool ran_on_node; /* most of its run samples in one interval since then were on node_to */
	int cpu_from, node_from, node_to;
	double local_before,
		/* NaN: not known. local_after is the share on node_to since the move. */
		local_after;
	double samples_before; /* number of access samples before the decision */
	uint64_t accesses_after, samples_after;
	/* NaN: not known. The values after the move are from the first interval in which it was
	 * measured. */
	double latency_before, latency_after, performance_before, performance_after;
	/* Number of samples of the latencies. For kMAF, the latency after the move is the latest
	 * one. */
	double latency_samples_before, latency_samples_after;
	/* nm_selection_access_cost(); the value after covers the accesses since the move, from
	 * where it ran. */
	double access_cost_before, access_cost_after;
};

struct nm_verdict {
	uint64_t decision;
	enum nm_decision_kind of;
	enum nm_verdict_kind kind;
	unsigned intervals;  /* number of intervals until the verdict */
	bool superseded;     /* one of its threads was moved again before the verdict */
	enum nm_thread_policy policy; /* policy that made the decision */
	/* If true, the following values are those of the feedback, NaN until it has judged. */
	bool by_performance;
	double figure, noise, losses, global_before, global_after, interval_s;
	/* Weighted by distance, see nm_verdict_measure_locality() (policy/judge/locality.h). A rise
	 * within locality_noise does not count. NaN: not known. */
	double locality_before, locality_after, locality_noise;
	/*
	 * kMAF only. cost_before and cost_after are the cost of the current communication of its
	 * threads at their old and new places. slowdown is the ratio of the latency of the threads
	 * placed in this process to the one before; cost_noise and slowdown_noise are the parts
	 * that may be chance. NaN: not known.
	 */
	bool by_sharing;
	double cost_before, cost_after, cost_noise, slowdown, slowdown_noise;
	/* The reason of a move for balance, and its result: the amount by which the access cost of
	 * the thread fell, per page of the process. NaN: not known. */
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

/* An evaluation without a result after this number of intervals ends as inconclusive. */
#define NM_VERDICT_INTERVALS 10U
/* After this number of intervals, with one aging each, most of the communication matrix dates from
 * after the move. */
#define NM_VERDICT_AGED_INTERVALS 4U

struct nm_verifier;

int nm_verifier_new(struct nm_verifier **ret);
void nm_verifier_free(struct nm_verifier *verifier);
NM_DEFINE_CLEANUP(struct nm_verifier, nm_verifier_free);

/*
 * Begins the evaluation of a decision that was applied in the snapshot's interval. If an earlier
 * decision on one of its threads is still pending, the next nm_verifier_judge() closes it as
 * INCONCLUSIVE. Returns 0 or -ENOMEM.
 */
int nm_verifier_add(struct nm_verifier *verifier, const struct nm_decision *decision);

/* Sets the results of the feedback, which decide about decisions judged by performance. Called
 * before nm_verifier_judge(). */
void nm_verifier_apply(struct nm_verifier *verifier, const struct nm_feedback_result *result);

/*
 * Computes the current communication cost, weight times distance, of threads moved for
 * communication (kMAF). Places are those of the snapshot. Partners that did not run are not
 * counted, and the cost at the old place of a thread without one is NaN. Returns 0 or -ENOMEM.
 * Called each time before nm_verifier_judge().
 */
int nm_verifier_apply_sharing(struct nm_verifier *verifier, const struct nm_affinity *affinity,
			      const struct nm_snapshot *snapshot, const struct nm_config *config);

/*
 * Judges the decisions for which a verdict is possible now, at the earliest one interval after the
 * move. A decision waits, for at most NM_VERDICT_INTERVALS intervals, while one of its living
 * threads has fewer than threads.min_samples new samples or has not been seen on its new node. It
 * is cancelled if a thread ran elsewhere in two intervals and never on its new node.
 *
 * A decision judged by performance follows the feedback. If the feedback has no result, and for all
 * other decisions (those of LBMA if P is not known), the locality is compared: improved if it rose
 * by more than both threads.gate_margin and its noise, rolled back (with threads.rollback) if it
 * fell by more than that margin, otherwise neutral. LBMA moves threads only for locality, so a fall
 * of the locality rolls a move back regardless of the performance, which other moves of the
 * interval also affect. Moves for balance reduce locality on purpose and are not judged by it.
 *
 * A decision for communication (kMAF) is judged by the mean access latency of the threads that one
 * thread placement moved in one process. The location of the data matters for it, not the local
 * access ratio, which falls on purpose until pages follow. The decision is judged as soon as
 * accesses are no slower than before (by threads.delta_g, and beyond chance by threads.gate_sigmas;
 * improved if they are faster by as much). If they are still slower at the end of the time limit,
 * all its threads are rolled back together. P is less suitable: it combines the latency with
 * metrics that placement does not change, and is unknown if they are not sampled. If latencies are
 * not sampled, the communication after NM_VERDICT_AGED_INTERVALS intervals decides: rolled back if
 * the threads are farther from their partners than at their old places, improved if they are nearer
 * by the same two settings.
 *
 * A ROLLBACK decision is only checked for arrival: it is neutral, never improved or rolled back.
 * The caller clears *ret. Returns 0, or -ENOMEM (nothing judged). Called by the tick once per
 * interval, as the first stage after the snapshot.
 */
int nm_verifier_judge(struct nm_verifier *verifier, const struct nm_snapshot *snapshot,
		      const struct nm_config *config, struct nm_verdicts *ret);

/* Returns the number of decisions without a verdict. */
size_t nm_verifier_open(const struct nm_verifier *verifier);

/* Returns the rollback of a ROLLED_BACK verdict, for nm_plan_add_rollback(). */
struct nm_rollback nm_verdict_rollback(const struct nm_verdict *verdict);

#endif
