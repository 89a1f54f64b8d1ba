/* SPDX-License-Identifier: MIT */
/* The verdicts of all policies. */
#ifndef NUMA_MIGRD_JUDGE_H
#define NUMA_MIGRD_JUDGE_H

#include <math.h>

#include "observe/memory.h"
#include "policy/plan.h"
#include "numa-migrd/snapshot.h"

enum nm_verdict_kind {
	NM_VERDICT_IMPROVED,	 /* the value it is judged by rose by more than the noise */
	NM_VERDICT_NEUTRAL,	 /* no clear change, or a fall without rules.rollback; of a
				  * rollback: the thread arrived */
	NM_VERDICT_ROLLED_BACK,	 /* fell by more than the margin: the move is rolled back */
	NM_VERDICT_WORSE,	 /* the same of a home, which is only reported */
	NM_VERDICT_CANCELLED,	 /* the thread never ran on its new node: its CPU affinity is
				  * restored; only of moves of single threads */
	NM_VERDICT_INCONCLUSIVE, /* too few samples, or the threads exited or were moved again
				  * meanwhile */
	NM_VERDICT_UNVERIFIED,	 /* of a home: the program was too young to be measured before */
};
#define NM_VERDICT_KINDS (NM_VERDICT_UNVERIFIED + 1)

/* ---- the judge ---- */

/* The change of a measure since a decision: more is better. It counts above `rise` and below
 * -`fall`, which include the threshold and the noise of the measure. All zero: not known. */
struct nm_change {
	bool known;
	double value, rise, fall;
	double needed; /* if the noise hides it: intervals of each measurement that would show it */
};

/* Returns a change that is known unless its value is NaN. */
static inline struct nm_change nm_change_of(double value, double rise, double fall)
{
	return (struct nm_change){
		.known = !isnan(value), .value = value, .rise = rise, .fall = fall};
}

static inline enum nm_verdict_kind nm_change_kind(const struct nm_change *change)
{
	if (!change->known)
		return NM_VERDICT_INCONCLUSIVE;
	if (change->value > change->rise)
		return NM_VERDICT_IMPROVED;
	return change->value < -change->fall ? NM_VERDICT_ROLLED_BACK : NM_VERDICT_NEUTRAL;
}

struct nm_judgement {
	enum nm_verdict_kind kind; /* never CANCELLED */
	enum nm_measure by;
	double change; /* of that measure; NaN: of none */
	double needed; /* if inconclusive, as in struct nm_change; 0: another reason */
};

/*
 * Judges threads, pages and homes by the first of the criteria that is known and is not a veto
 * without a fall. Pure. Whether a decision may be rolled back, and when it is judged, is decided by
 * the callers.
 */
struct nm_judgement nm_judge_by(const struct nm_criterion *criteria,
				const struct nm_change changes[NM_MEASURES]);

/* ---- feedback by performance ---- */

/*
 * The feedback of IMAR²: evaluates the moves of the last tick, decides whether they are rolled
 * back, and sets the length of the next interval (IMAR² paper, section 4.3, equation 4). A state
 * machine over snapshots. Pure.
 */

enum nm_feedback_outcome {
	NM_FEEDBACK_NONE,      /* nothing was moved: T stays */
	NM_FEEDBACK_POSTPONED, /* the set of active threads changed: no verdict and no proposals
				* yet */
	NM_FEEDBACK_GAIN,      /* T halves */
	NM_FEEDBACK_KEEP,      /* T stays */
	NM_FEEDBACK_ROLL_BACK, /* T doubles; the tick rolls back the moves judged so and proposes
				* nothing */
};

/* The judgement of one decision of the last tick. */
struct nm_feedback_judgement {
	uint64_t decision;
	/* Of ln P. It rises by more than the noise and 1 %; it falls below delta_g, or together
	 * with the losses accepted before. */
	struct nm_change change;
	/* Remaining performance: P_g(τ+1)/P_g(τ), or its geometric mean over the processes that own
	 * a thread moved by the decision. NaN if no thread was measured in both intervals. */
	double figure;
	double noise;  /* |ln figure| up to this value is noise; 0: no noise limit */
	double losses; /* product of the values of `figure` accepted since the last gain, including
			* this one */
};

struct nm_feedback_result {
	enum nm_feedback_outcome outcome;
	bool may_propose;
	double figure, noise, losses; /* as above, over all decisions judged; they determine T */
	double before, after; /* P_g over the threads measured in both intervals; NaN without any */
	double interval_s;    /* T from now on */
	/* Valid until the next nm_feedback_* call. */
	const struct nm_feedback_judgement *judgements;
	size_t nr_judgements;
};

struct nm_feedback;

struct nm_feedback *nm_feedback_new(void);
void nm_feedback_free(struct nm_feedback *feedback);
NM_DEFINE_CLEANUP(struct nm_feedback, nm_feedback_free);

/*
 * Judges the moves noted since the last call, and updates the spread of the performance. With
 * NM_FEEDBACK_MOVED each decision is judged alone: changes in processes whose threads it did not
 * move do not affect its judgement.
 */
void nm_imar2_feedback(struct nm_feedback *feedback, const struct nm_snapshot *snapshot,
		       const struct nm_config *config, struct nm_feedback_result *ret);

/*
 * Notes that a decision of this tick moved a thread of process `pid`, so that the next call judges
 * it. The snapshot is that of the last nm_imar2_feedback(). A rollback is not judged, because the
 * recovery from the move would count as a gain.
 */
void nm_feedback_moved(struct nm_feedback *feedback, const struct nm_snapshot *snapshot,
		       uint64_t decision, uint32_t pid, bool rollback);

/* ---- operations that take longer than a tick and affect a whole process ---- */

/* The values of P of the threads of a process in one interval. */
struct nm_baseline;
void nm_baseline_free(struct nm_baseline *baseline);
NM_DEFINE_CLEANUP(struct nm_baseline, nm_baseline_free);

/* Returns P as of the last nm_imar2_feedback(), to compare process `pid` with it. Called when its
 * pages begin to move. */
void nm_feedback_baseline(const struct nm_feedback *feedback, uint32_t pid,
			  struct nm_baseline **ret);

/* Excludes the change of P of the process in this interval from the statistics, and the process
 * from those with which others are compared, because the daemon disturbs it. */
void nm_feedback_disturb(struct nm_feedback *feedback, uint32_t pid);

/* A comparison of a process with its baseline: sums of P over the threads measured in both, NaN
 * without any. */
struct nm_feedback_change {
	double before, after;
	/* figure is after/before, relative to the median of processes that were left alone
	 * meanwhile; |ln figure| up to `noise` is noise. */
	double figure, noise;
	struct nm_change change; /* of ln P; it falls below delta_g, beyond noise */
};

/* Compares the process as of the last nm_imar2_feedback() with the baseline.
 * Called some time after its pages have been moved. */
void nm_feedback_compare(const struct nm_feedback *feedback, const struct nm_baseline *baseline,
			 const struct nm_config *config, struct nm_feedback_change *ret);

/* Returns T, which is general.interval_s, limited to t_min_s and t_max_s, until something
 * is judged, and again after that setting has changed. */
double nm_feedback_interval_s(const struct nm_feedback *feedback, const struct nm_config *config);

/* ---- verdicts ---- */

/* A thread, or a process (tid 0) for a home and for pages. */
struct nm_verdict_thread {
	uint32_t tid, pid;
	uint64_t start_ticks, adopted_ns;
	char comm[NM_COMM_BYTES];
	bool alive; /* and still managed, running the same program */
	/* In one interval since then, most of its run samples were on node_to; of imar2, 90 %. */
	bool ran_on_node;
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

/* The results for the pages of a decision. */
struct nm_page_results {
	uint64_t moved, elsewhere, refused, failed, untried;
	uint64_t busy, gone, denied, no_memory, fault; /* parts of `failed`, by errno */
	/* Moved pages whose original node was not or was recorded, in pages of the actual size
	 * rather than of the requested one. */
	uint64_t forgotten, remembered;
	int error; /* negative errno of the whole operation; 0: none */
};

struct nm_verdict {
	uint64_t decision;
	enum nm_decision_kind of;
	enum nm_verdict_kind kind;
	uint64_t interval;	      /* of the decision */
	unsigned intervals;	      /* number of intervals until the verdict */
	bool superseded;	      /* one of its threads was moved again before the verdict */
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
	double cost_before, cost_after, cost_noise, slowdown, slowdown_noise;
	/* The reason of a move for balance, and its result: the amount by which the access cost of
	 * the thread fell, per page of the process. NaN: not known. */
	struct nm_balance_reason balance;
	double measured_benefit;
	/* Of a home only: its change, relative, or for DELAY in seconds of waiting per second of
	 * CPU time; positive if it is an improvement; NaN: not known. */
	enum nm_measure judged_by;
	double change;
	/* Of a home only: the part of its time that it saves, as predicted and as measured; NaN:
	 * not known. */
	double expected_gain, measured_gain;
	double needed; /* of a home only, as in struct nm_judgement */
	/* Of pages only: the reason, the number of decisions that share the metrics, and, if
	 * neutral, whether enough accesses show that locality did not change. */
	struct nm_pages_reason pages;
	bool no_gain;
	unsigned together;
	struct nm_page_results results; /* of pages; of a home only the moved pages */
	unsigned nr_threads;
	struct nm_verdict_thread threads[2];
};

struct nm_verdicts {
	struct nm_verdict *items;
	size_t count;
};
void nm_verdicts_clear(struct nm_verdicts *verdicts);

/* Returns what is known of a verdict at the decision. */
struct nm_verdict nm_verdict_of(const struct nm_decision *decision);

/* ---- pending verdicts ---- */

/*
 * Computes verdicts from receipts and later snapshots: whether a moved thread ran on its new node,
 * and whether its performance, or its locality if the performance is not known, improved. Pure; the
 * list of pending evaluations is a value.
 */

/* An evaluation without a result after this number of intervals ends as inconclusive. */
#define NM_VERDICT_INTERVALS 10U
/* After this number of intervals, with one aging each, most of the communication matrix dates from
 * after the move. */
#define NM_VERDICT_AGED_INTERVALS 4U

struct nm_verifier;

struct nm_verifier *nm_verifier_new(void);
void nm_verifier_free(struct nm_verifier *verifier);
NM_DEFINE_CLEANUP(struct nm_verifier, nm_verifier_free);

/* The values of an interval. */
struct nm_verifier_input {
	const struct nm_snapshot *snapshot;
	const struct nm_feedback *feedback; /* for pages only */
	const struct nm_config *config;
	/* NULL: none. The communication cost of threads moved for communication (kMAF) is weight
	 * times distance at the places of the snapshot. Partners that did not run are not counted,
	 * and the cost at the old place of a thread without one is NaN. */
	const struct nm_affinity *affinity;
};

/*
 * Begins the evaluation of a decision that was applied in the snapshot's interval, or whose pages
 * were handed to the mover in it. If an earlier decision on one of its threads is still pending,
 * the next nm_verifier_judge() closes it as INCONCLUSIVE.
 */
void nm_verifier_add(struct nm_verifier *verifier, const struct nm_verifier_input *input,
		     const struct nm_decision *decision);

/* Sets the results of the feedback, which decide about decisions judged by performance. Called
 * before nm_verifier_judge(). */
void nm_verifier_apply(struct nm_verifier *verifier, const struct nm_feedback_result *result);

/*
 * Judges the decisions for which a verdict is possible now, at the earliest one interval after the
 * move. A decision waits, for at most NM_VERDICT_INTERVALS intervals, while one of its living
 * threads has fewer than min_samples new samples or has not been seen on its new node. It
 * is cancelled if a thread ran elsewhere in two intervals and never on its new node.
 *
 * The criteria are those of the policy's row. Performance is that of the feedback. LBMA moves
 * threads only for locality, so a fall of the locality rolls a move back regardless of the
 * performance, which other moves of the interval also affect. Moves for balance reduce locality on
 * purpose.
 *
 * A decision for communication (kMAF) is judged by the mean access latency of the threads that one
 * placement moved in one process: the location of the data matters for it, not the local access
 * ratio, which falls on purpose until pages follow, and P combines the latency with metrics that
 * placement does not change. The verdict comes as soon as accesses are no slower than before; if
 * they still are at the end of the time limit, all its threads are rolled back together. If
 * latencies are not sampled, the communication after NM_VERDICT_AGED_INTERVALS intervals decides.
 *
 * A ROLLBACK decision is only checked for arrival: it is neutral, never improved or rolled back.
 *
 * Decisions about pages of one process that are made while others are in progress form one
 * evaluation, which compares the process before the first and after the last batch, by performance
 * and then by the local access ratio. Rollbacks are never rolled back, spread ranges not because of
 * their locality, and nothing without rollback_pages.
 * Inconclusive if the process has exited, or too few samples were taken in NM_VERDICT_INTERVALS
 * intervals. A decision that moved nothing has no verdict.
 *
 * The caller clears *ret.
 */
void nm_verifier_judge(struct nm_verifier *verifier, const struct nm_verifier_input *input,
		       struct nm_verdicts *ret);

/* Returns the number of decisions without a verdict. */
size_t nm_verifier_open(const struct nm_verifier *verifier);

/* Returns whether the affinities of the threads are restored: the decision was cancelled, or it was
 * rolled back and its thread was only bound to its node, because its partners came there (kMAF). */
bool nm_verdict_restores(const struct nm_verdict *verdict);
/*
 * Returns whether the thread is left alone for some time: its move was not kept; or it is
 * not assigned, and the kernel was free to move it back, so that it would be moved again and again;
 * or it is itself no faster (IMAR²).
 */
bool nm_verdict_bars(const struct nm_verdict *verdict, const struct nm_verdict_thread *thread,
		     bool stays);

/*
 * Adds the rollback of a ROLLED_BACK verdict to the plan. Each thread that still exists is sent
 * back to its source node (with pin = "core", to its source CPU, unless another managed thread runs
 * there now) and pinned by the same rules as a move, because restoring a wide affinity would not
 * make it move back. The two threads of a swap get a decision each, so that one that has exited, or
 * whose affinity was changed externally, does not block the other. Nodes without an allowed CPU are
 * skipped. Rollbacks are not limited by the budget. Their tickets are 0; draw and gain are NaN.
 */
void nm_plan_add_rollback(const struct nm_snapshot *snapshot, const struct nm_config *config,
			  const struct nm_verdict *verdict, uint64_t *next_id,
			  struct nm_plan *plan);

/* ---- pages ---- */

/* An evaluation includes decisions made up to this number of intervals after the first. */
#define NM_PAGE_JOIN_INTERVALS 4U
/* It ends by the second interval after its last batch: caches fill during the first. */
#define NM_PAGE_SETTLE_INTERVALS 2U

/* Notes that threads of the process were moved. Their effect cannot be separated from that of
 * pending evaluations, which become inconclusive. */
void nm_verifier_disturb(struct nm_verifier *verifier, uint32_t pid);

/* Records the results of a decision that the mover has completed in this interval, or drops the
 * decision if no page was moved. Unknown decisions are ignored. */
void nm_verifier_done(struct nm_verifier *verifier, uint64_t decision,
		      const struct nm_page_results *results, uint64_t interval);

/* Drops the decisions about pages, because the mover drops their batches. */
void nm_verifier_drop_pages(struct nm_verifier *verifier);
/* Removes the pending verdicts on decisions about a process, without a result. Called when a policy
 * stops deciding about it. */
void nm_verifier_drop_process(struct nm_verifier *verifier, uint32_t pid);

/* Drops the decisions that concern nodes with other CPUs than before, or all if the indices of
 * nodes have changed. Called when the topology was read again. */
void nm_verifier_retarget(struct nm_verifier *verifier, const struct nm_topology *before,
			  const struct nm_topology *now);

/* Returns whether the process has a pending evaluation that accepts no further decisions. The
 * effect of pages moved now could not be separated from it. */
bool nm_verifier_awaits(const struct nm_verifier *verifier, uint32_t pid, uint64_t start_ticks,
			uint64_t interval);

#endif
