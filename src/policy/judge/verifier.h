/* SPDX-License-Identifier: MIT */
/* Pending verdicts on moves of threads (verify.c) and of pages (pages.c). */
#ifndef NM_VERIFY_VERIFIER_H
#define NM_VERIFY_VERIFIER_H

#include "policy/judge.h"

/* The common measurements of decisions about pages of one process. */
struct nm_evaluation;

/* An applied decision whose verdict is pending. */
struct nm_pending_verdict {
	struct nm_verdict verdict; /* values known so far */
	bool judged;		   /* the verdict is complete */
	/* Of threads. */
	unsigned intervals_away[2]; /* number of intervals in which the thread ran mainly on another
				       node */
	uint64_t local_accesses[2];
	double access_cost[2]; /* sum over the accesses since, relative to local ones */
	bool has_feedback;
	struct nm_change performance; /* by the feedback, if it has judged */
	/* Of pages. */
	struct nm_evaluation *evaluation;
	bool ended; /* the mover has returned its results */
};

struct nm_verifier {
	struct nm_pending_verdict *pending; /* in order of their decisions */
	size_t count, capacity;
};

/* ---- pages.c ---- */

/* Adds a decision about pages to the evaluation of its process, or to a new one, and returns that.
 */
struct nm_evaluation *nm_evaluation_join(const struct nm_verifier *verifier,
					 const struct nm_verifier_input *input,
					 const struct nm_decision *decision);
/* Updates the evaluation, once in an interval. */
void nm_evaluation_observe(const struct nm_pending_verdict *pending,
			   const struct nm_verifier_input *input);
/* Completes the verdict and returns true if its evaluation has ended. */
bool nm_evaluation_judge(struct nm_pending_verdict *pending, const struct nm_verifier_input *input);
/* Removes one decision from an evaluation, and frees it with the last one. NULL is allowed. */
void nm_evaluation_leave(struct nm_evaluation *evaluation);

#endif
