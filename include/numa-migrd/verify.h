/* SPDX-License-Identifier: MIT */
/*
 * Receipts + later snapshots → verdicts: did the thread run where it was sent, and did its local
 * share rise. Pure; the list of open questions is a value.
 */
#ifndef NUMA_MIGRD_VERIFY_H
#define NUMA_MIGRD_VERIFY_H

#include "numa-migrd/affinity.h"
#include "numa-migrd/feedback.h"
#include "numa-migrd/plan.h"
#include "numa-migrd/snapshot.h"

enum nm_verdict_kind {
	NM_VERDICT_KEPT, /* ran there, and nothing is undone: the shares say whether it helped */
	NM_VERDICT_ROLLED_BACK, /* local share fell by more than the margin, or the feedback says
				   so: to be undone */
	NM_VERDICT_WITHDRAWN,	/* a thread was never seen on the node it was sent to: the masks are
				   returned */
	NM_VERDICT_UNPROVEN, /* too few accesses to tell, threads gone, or moved again meanwhile */
};

struct nm_verdict_thread {
	uint32_t tid, pid;
	uint64_t start_ticks, adopted_ns;
	bool alive;	  /* and still managed, as the same program */
	bool ran_on_node; /* most of its run samples of an interval since were on node_to */
	int cpu_from, node_from, node_to;
	double local_before,
		local_after; /* NaN where unknown; after: share on node_to since the act */
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
	enum nm_thread_policy policy; /* whose decision it was */
	bool by_performance; /* IMAR²'s decision; then the feedback's figures, NaN until it judged
			      */
	double figure, noise, losses, global_before, global_after, interval_s;
	/*
	 * kMAF's: what its threads share now costs so much where they were and where they are, and
	 * the latency of the mapping's threads in this process is so many times the one before, of
	 * which so much may be chance; NaN where unknown.
	 */
	bool by_sharing;
	double cost_before, cost_after, slowdown, slowdown_noise;
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

/* A question that could not be answered after so many intervals is closed as unproven. */
#define NM_VERDICT_INTERVALS 10U
/* Then most of what the affinity matrix holds was shared since the act, with one aging for each. */
#define NM_VERDICT_AGED_INTERVALS 4U

struct nm_verifier;

int nm_verifier_new(struct nm_verifier **ret);
void nm_verifier_free(struct nm_verifier *verifier);
NM_DEFINE_CLEANUP(struct nm_verifier, nm_verifier_free);

/* Opens the question of an applied decision (of the snapshot's interval). A thread that is still
 * under question from an earlier one closes that as UNPROVEN at the next judgement. -ENOMEM. */
int nm_verifier_add(struct nm_verifier *verifier, const struct nm_decision *decision);

/*
 * Takes what IMAR²'s feedback decided: its decisions are kept or rolled back by that, not by their
 * local shares, and wait for it. Before nm_verifier_judge().
 */
void nm_verifier_heed(struct nm_verifier *verifier, const struct nm_feedback_result *result);

/*
 * What threads of decisions by sharing share now, in sharings times distance. Places are the
 * snapshot's; of partners that ran nowhere nothing is counted, and what a thread cost
 * that came from nowhere is NaN. -ENOMEM. Before it, each time.
 */
int nm_verifier_heed_sharing(struct nm_verifier *verifier, const struct nm_affinity *affinity,
			     const struct nm_snapshot *snapshot, const struct nm_config *config);

/*
 * Judges what can be judged now: at the earliest one interval after the act; while a living thread
 * has fewer than threads.min_samples fresh samples, or was not seen on its node yet, it waits, at
 * most 10 intervals. A thread that ran elsewhere in two intervals and never there withdraws its
 * decision (without threads.withdraw: leaves it unproven). The loss that rolls back is the fall of
 * the local share, weighted by the accesses since, over the decision's threads beyond
 * threads.gate_margin, and only with threads.rollback; of a decision by performance, what the
 * feedback said (P known in place of fresh samples).
 *
 * Of a decision by sharing (kMAF) it is the mean latency of accesses over the threads that one
 * mapping moved in one process: where data is matters there, not which share of it is local, and
 * the local share falls by intent, until pages follow. For that they are given time: kept as soon
 * as accesses take no longer than before (by threads.delta_g, and beyond chance by
 * threads.gate_sigmas), undone, all together, if they still do at the end. P holds the latency and
 * figures that placement does not change, so it would tell less, and nothing where these are not
 * sampled. Where latencies are not, what the threads share after some intervals tells whether they
 * are nearer to each other than they would be where they came from. A
 * ROLLBACK decision is judged too, but never undone again. Called once per interval; the caller
 * clears *ret. -ENOMEM (nothing judged). Tick, first stage after the snapshot.
 */
int nm_verifier_judge(struct nm_verifier *verifier, const struct nm_snapshot *snapshot,
		      const struct nm_config *config, struct nm_verdicts *ret);

/* Decisions still open. */
size_t nm_verifier_open(const struct nm_verifier *verifier);

/* The rollback of a ROLLED_BACK verdict, for nm_plan_add_rollback(). */
struct nm_rollback nm_verdict_rollback(const struct nm_verdict *verdict);

#endif
