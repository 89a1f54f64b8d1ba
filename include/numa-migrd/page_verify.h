/* SPDX-License-Identifier: MIT */
/*
 * Verdicts on page migrations. Batches of one process that are requested while others are in
 * progress form one evaluation, which compares the performance and the local access ratio of the
 * process before the first and after the last batch. Pure; the list of pending evaluations is a
 * value.
 */
#ifndef NUMA_MIGRD_PAGE_VERIFY_H
#define NUMA_MIGRD_PAGE_VERIFY_H

#include "numa-migrd/feedback.h"
#include "numa-migrd/snapshot.h"
#include "numa-migrd/verify.h"

enum nm_page_reason {
	NM_PAGE_REASON_PAGES, /* page by page: one node makes most accesses to each (kMAF, eq. 6) */
	NM_PAGE_REASON_REGION,	   /* a range to which one node makes most accesses */
	NM_PAGE_REASON_CONTENTION, /* a range spread over nodes, because one node serves too much
				    * traffic */
	NM_PAGE_REASON_ROLLBACK	   /* back to their original nodes */
};

/* Pages of one process that are moved for one reason in one interval. */
struct nm_page_decision {
	uint64_t id, interval;
	uint64_t undoes; /* ROLLBACK: the decision that is rolled back */
	uint32_t pid;
	uint64_t start_ticks;
	char comm[NM_COMM_BYTES]; /* escaped */
	enum nm_page_reason reason;
	int node_from, node_to; /* -1: several, or not known */
	uint64_t pages, bytes;
	double exclusivity; /* share of the accesses that come from the node; NaN: not for one
			     * node */
};

/* The results for its pages. */
struct nm_page_results {
	uint64_t moved, elsewhere, refused, failed, untried;
	uint64_t busy, gone, denied, no_memory, fault; /* parts of `failed`, by errno */
	/* Moved pages whose original node was not or was recorded, in pages of the actual size
	 * rather than of the requested one. */
	uint64_t forgotten, remembered;
	int error; /* negative errno of the whole operation; 0: none */
};

struct nm_page_verdict {
	struct nm_page_decision decision;
	struct nm_page_results results;
	enum nm_verdict_kind kind;	  /* never CANCELLED */
	unsigned intervals;		  /* since the decision */
	unsigned together;		  /* number of decisions that share the following metrics */
	double local_before, local_after; /* of the accesses of the process; NaN: not known */
	uint64_t accesses_after;	  /* number of samples */
	struct nm_feedback_change performance;
};

struct nm_page_verdicts {
	struct nm_page_verdict *items;
	size_t count;
};
void nm_page_verdicts_clear(struct nm_page_verdicts *verdicts);

/* An evaluation includes decisions made up to this number of intervals after the first. */
#define NM_PAGE_JOIN_INTERVALS 4U
/* It ends by the second interval after its last batch: caches fill during the first. */
#define NM_PAGE_SETTLE_INTERVALS 2U

struct nm_page_verifier;

int nm_page_verifier_new(struct nm_page_verifier **ret);
void nm_page_verifier_free(struct nm_page_verifier *verifier);
NM_DEFINE_CLEANUP(struct nm_page_verifier, nm_page_verifier_free);

/*
 * Begins the evaluation of a decision whose pages were handed to the mover. The snapshot and the
 * feedback are those of its interval; the process will be compared with its state in them. Returns
 * 0, or -ENOMEM (no verdict).
 */
int nm_page_verifier_add(struct nm_page_verifier *verifier, const struct nm_snapshot *snapshot,
			 const struct nm_feedback *feedback, const struct nm_config *config,
			 const struct nm_page_decision *decision);

/* Notes that threads of the process were moved. Their effect cannot be separated from that of
 * pending evaluations, which become inconclusive. Called by the tick when threads are moved. */
void nm_page_verifier_disturb(struct nm_page_verifier *verifier, uint32_t pid);

/* Records the results of a decision that the mover has completed in this interval. Unknown
 * decisions are ignored. */
void nm_page_verifier_done(struct nm_page_verifier *verifier, uint64_t decision,
			   const struct nm_page_results *results, uint64_t interval);

/*
 * Judges the evaluations that are complete. Rolled back if the feedback reports a loss or, if P is
 * not known, the local access ratio fell by more than threads.gate_margin (with threads.rollback).
 * Rollbacks are never rolled back, spread ranges not because of their locality, and nothing without
 * pages.rollback_pages. Improved if the feedback reports a gain, or that ratio rose by more than
 * the margin and its noise; otherwise neutral. Inconclusive if nothing was moved, the process has
 * exited, or too few samples were taken in NM_VERDICT_INTERVALS intervals. The caller clears *ret.
 * Returns 0, or -ENOMEM (nothing judged). Called by the tick after nm_imar2_feedback().
 */
int nm_page_verifier_judge(struct nm_page_verifier *verifier, const struct nm_snapshot *snapshot,
			   const struct nm_feedback *feedback, const struct nm_config *config,
			   struct nm_page_verdicts *ret);

/* Returns whether the process has a pending evaluation that accepts no further decisions. The
 * effect of pages moved now could not be separated from it. */
bool nm_page_verifier_awaits(const struct nm_page_verifier *verifier, uint32_t pid,
			     uint64_t start_ticks, uint64_t interval);

/* Returns the number of decisions without a verdict. */
size_t nm_page_verifier_open(const struct nm_page_verifier *verifier);

#endif
