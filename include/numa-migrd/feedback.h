/* SPDX-License-Identifier: MIT */
/*
 * The feedback of IMAR²: evaluates the moves of the last tick, decides whether they are rolled
 * back, and sets the length of the next interval (lbma-imar2 section 4.3, equation 4; algorithms.md
 * section 3). A state machine over snapshots. Pure.
 */
#ifndef NUMA_MIGRD_FEEDBACK_H
#define NUMA_MIGRD_FEEDBACK_H

#include "numa-migrd/snapshot.h"

enum nm_feedback_outcome {
	NM_FEEDBACK_NONE,      /* nothing was moved: T stays */
	NM_FEEDBACK_POSTPONED, /* the set of active threads changed: no verdict and no proposals
				* yet */
	NM_FEEDBACK_GAIN,      /* T halves */
	NM_FEEDBACK_KEEP,      /* T stays */
	NM_FEEDBACK_UNDO,      /* T doubles; the tick rolls back the moves judged so and proposes
				* nothing */
};

/* The judgement of one decision of the last tick. */
struct nm_feedback_judgement {
	uint64_t decision;
	bool undo;
	bool gain; /* the performance rose by more than the noise, and by at least 1 % */
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
 * Judges the moves noted since the last call, and updates the spread of the performance. With
 * threads.feedback = "moved" each decision is judged alone: changes in processes whose threads it
 * did not move do not affect its judgement. Called once in every interval, as the first stage after
 * the snapshot. Returns 0, or -ENOMEM (nothing judged; the moves get no judgement).
 */
int nm_imar2_feedback(struct nm_feedback *feedback, const struct nm_snapshot *snapshot,
		      const struct nm_config *config, struct nm_feedback_result *ret);

/*
 * Notes that a decision of this tick moved a thread of process `pid`, so that the next call judges
 * it. The snapshot is that of the last nm_imar2_feedback(). A rollback is not judged, because the
 * recovery from the move would count as a gain. Returns 0, or -ENOMEM (the move is not judged).
 * Called by the tick after the moves.
 */
int nm_feedback_moved(struct nm_feedback *feedback, const struct nm_snapshot *snapshot,
		      uint64_t decision, uint32_t pid, bool rollback);

/* ---- operations that take longer than a tick and affect a whole process ---- */

/* The values of P of the threads of a process in one interval. */
struct nm_baseline;
void nm_baseline_free(struct nm_baseline *baseline);
NM_DEFINE_CLEANUP(struct nm_baseline, nm_baseline_free);

/* Returns P of process `pid` as of the last nm_imar2_feedback(). Returns 0 or -ENOMEM. Called when
 * its pages begin to move. */
int nm_feedback_baseline(const struct nm_feedback *feedback, uint32_t pid,
			 struct nm_baseline **ret);

/* Excludes the change of P of the process in this interval from the statistics, because the daemon
 * disturbs it. Returns 0 or -ENOMEM. */
int nm_feedback_disturb(struct nm_feedback *feedback, uint32_t pid);

/* A comparison of a process with its baseline: sums of P over the threads measured in both, NaN
 * without any. */
struct nm_feedback_change {
	double before, after;
	double figure, noise; /* figure is after/before; |ln figure| up to `noise` is noise */
	bool loss;	      /* figure is below threads.delta_g, beyond noise */
	bool gain;	      /* as in struct nm_feedback_judgement */
};

/* Compares the process as of the last nm_imar2_feedback() with the baseline. Returns 0 or -ENOMEM.
 * Called some time after its pages have been moved. */
int nm_feedback_compare(const struct nm_feedback *feedback, const struct nm_baseline *baseline,
			const struct nm_config *config, struct nm_feedback_change *ret);

/* Returns T, which is general.interval_s, limited to threads.t_min_s and t_max_s, until something
 * is judged, and again after that setting has changed. */
double nm_feedback_interval_s(const struct nm_feedback *feedback, const struct nm_config *config);

#endif
