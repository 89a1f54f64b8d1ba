/* SPDX-License-Identifier: MIT */
/*
 * IMAR²'s look back: did the moves of the last tick pay, are they undone, and how long is the next
 * interval (lbma-imar2 section 4.3, equation 4; algorithms.md section 3). A state machine over
 * snapshots; pure.
 */
#ifndef NUMA_MIGRD_FEEDBACK_H
#define NUMA_MIGRD_FEEDBACK_H

#include "numa-migrd/snapshot.h"

enum nm_feedback_outcome {
	NM_FEEDBACK_NONE,      /* nothing was moved: T stays */
	NM_FEEDBACK_POSTPONED, /* the crowd changed: no verdict and no proposals yet */
	NM_FEEDBACK_GAIN,      /* T halves */
	NM_FEEDBACK_KEEP,      /* T stays */
	NM_FEEDBACK_UNDO,      /* T doubles; the tick undoes what is judged so, proposes nothing */
};

/* One decision of the last tick. */
struct nm_feedback_judgement {
	uint64_t decision;
	bool undo;
	bool gain; /* the performance rose beyond noise, and by a hundredth at least */
	/*
	 * What is left of the performance: P_g(τ+1)/P_g(τ), or its geometric mean over the
	 * processes that own a thread moved by the decision; NaN where no thread was measured in
	 * both intervals.
	 */
	double figure;
	double noise;  /* |ln figure| up to this is noise; 0: not gated */
	double losses; /* product of the figures kept since the last gain, this one included */
};

struct nm_feedback_result {
	enum nm_feedback_outcome outcome;
	bool may_propose;
	double figure, noise, losses; /* as above, over all decisions judged; they rule T */
	double before, after;	      /* P_g, over the threads measured in both; NaN without */
	double interval_s;	      /* T from now on */
	/* Valid until the next nm_feedback_* call. */
	const struct nm_feedback_judgement *judgements;
	size_t nr_judgements;
};

struct nm_feedback;

int nm_feedback_new(struct nm_feedback **ret);
void nm_feedback_free(struct nm_feedback *feedback);
NM_DEFINE_CLEANUP(struct nm_feedback, nm_feedback_free);

/*
 * Judges the moves noted since the last call, and follows the spread of the performance in between.
 * With threads.feedback = "moved" each decision stands for itself: what befell processes whose
 * threads it did not move neither undoes nor excuses it.
 * Once in every interval, first stage after the snapshot. Returns 0 or -ENOMEM (nothing judged; the
 * moves stay without a judgement).
 */
int nm_imar2_feedback(struct nm_feedback *feedback, const struct nm_snapshot *snapshot,
		      const struct nm_config *config, struct nm_feedback_result *ret);

/*
 * Notes that a thread of process `pid` was moved by a decision of this tick, so that the next call
 * judges it; the snapshot is the one of the last nm_imar2_feedback(). A rollback is not judged: its
 * recovery would be a gain. Returns 0 or -ENOMEM (the move is not judged). Tick, after the act.
 */
int nm_feedback_moved(struct nm_feedback *feedback, const struct nm_snapshot *snapshot,
		      uint64_t decision, uint32_t pid, bool rollback);

/* ---- acts that take more than a tick to be done, of which only the process is known ---- */

/* What P of a process's threads was in an interval. */
struct nm_baseline;
void nm_baseline_free(struct nm_baseline *baseline);
NM_DEFINE_CLEANUP(struct nm_baseline, nm_baseline_free);

/* P of process `pid` as of the last nm_imar2_feedback(). -ENOMEM. When its pages begin to move. */
int nm_feedback_baseline(const struct nm_feedback *feedback, uint32_t pid,
			 struct nm_baseline **ret);

/* Something of ours disturbs the process: this interval's change is not of its own. -ENOMEM. */
int nm_feedback_disturb(struct nm_feedback *feedback, uint32_t pid);

/* A process then and now: sums of P over its threads measured in both, NaN without any. */
struct nm_feedback_change {
	double before, after;
	double figure, noise; /* after/before; |ln figure| up to `noise` is noise */
	bool loss;	      /* less than threads.delta_g is left, beyond noise */
	bool gain;	      /* as a judgement's */
};

/* As of the last nm_imar2_feedback(). -ENOMEM. When its pages have been moved for a while. */
int nm_feedback_compare(const struct nm_feedback *feedback, const struct nm_baseline *baseline,
			const struct nm_config *config, struct nm_feedback_change *ret);

/* T; general.interval_s within threads.t_min_s and t_max_s until something was judged, and again
 * when that setting has changed. */
double nm_feedback_interval_s(const struct nm_feedback *feedback, const struct nm_config *config);

#endif
