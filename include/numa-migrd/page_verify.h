/* SPDX-License-Identifier: MIT */
/*
 * Did it help to move pages? Batches of one process that were asked for while others of it were
 * under way are one question: its performance and the share of its local accesses before the first
 * and after the last of them. Pure; the list of open questions is a value.
 */
#ifndef NUMA_MIGRD_PAGE_VERIFY_H
#define NUMA_MIGRD_PAGE_VERIFY_H

#include "numa-migrd/feedback.h"
#include "numa-migrd/snapshot.h"
#include "numa-migrd/verify.h"

enum nm_page_reason {
	NM_PAGE_REASON_PAGES,	   /* page by page: one node accesses each most (kMAF, eq. 6) */
	NM_PAGE_REASON_REGION,	   /* a range that one node accesses most */
	NM_PAGE_REASON_CONTENTION, /* a range spread, since one node's memory serves too much */
	NM_PAGE_REASON_ROLLBACK	   /* back to where they were */
};

/* Some pages of one process, moved for one reason in one interval. */
struct nm_page_decision {
	uint64_t id, interval;
	uint64_t undoes; /* ROLLBACK: that decision */
	uint32_t pid;
	uint64_t start_ticks;
	char comm[NM_COMM_BYTES]; /* escaped */
	enum nm_page_reason reason;
	int node_from, node_to; /* -1: several, or not known */
	uint64_t pages, bytes;
	double exclusivity; /* share of the accesses that come from the node; NaN: not one node */
};

/* What became of its pages. */
struct nm_page_results {
	uint64_t moved, elsewhere, refused, failed, untried;
	uint64_t busy, gone, denied, no_memory, fault; /* of failed, by errno */
	/* Where they were, of what was moved, in pages as they are rather than as they were asked
	 * for. */
	uint64_t forgotten, remembered;
	int error; /* of the whole; negative errno, 0: none */
};

struct nm_page_verdict {
	struct nm_page_decision decision;
	struct nm_page_results results;
	enum nm_verdict_kind kind;	  /* never CANCELLED */
	unsigned intervals;		  /* since the decision */
	unsigned together;		  /* decisions that share the figures below */
	double local_before, local_after; /* of the process's accesses; NaN where unknown */
	uint64_t accesses_after;	  /* samples */
	struct nm_feedback_change performance;
};

struct nm_page_verdicts {
	struct nm_page_verdict *items;
	size_t count;
};
void nm_page_verdicts_clear(struct nm_page_verdicts *verdicts);

/* A question takes in what follows for so many intervals. */
#define NM_PAGE_JOIN_INTERVALS 4U
/* And is answered by the second interval after its last batch is done: the first is for caches. */
#define NM_PAGE_SETTLE_INTERVALS 2U

struct nm_page_verifier;

int nm_page_verifier_new(struct nm_page_verifier **ret);
void nm_page_verifier_free(struct nm_page_verifier *verifier);
NM_DEFINE_CLEANUP(struct nm_page_verifier, nm_page_verifier_free);

/*
 * A decision whose pages were handed to the mover. The snapshot and the feedback are those of its
 * interval: what they say of the process is what it will be compared with. -ENOMEM (no verdict).
 */
int nm_page_verifier_add(struct nm_page_verifier *verifier, const struct nm_snapshot *snapshot,
			 const struct nm_feedback *feedback, const struct nm_config *config,
			 const struct nm_page_decision *decision);

/*
 * Threads of the process were moved: what is asked of it can no longer be told from what that did,
 * and is inconclusive. Tick, act.
 */
void nm_page_verifier_disturb(struct nm_page_verifier *verifier, uint32_t pid);

/* The mover is done with it, by this interval. Unknown decisions are fine. */
void nm_page_verifier_done(struct nm_page_verifier *verifier, uint64_t decision,
			   const struct nm_page_results *results, uint64_t interval);

/*
 * Answers what can be answered: rolled back where the feedback tells of a loss, or, where P is not
 * known, the local share fell by more than threads.gate_margin (with threads.rollback). A rollback
 * is never undone, a range that was spread not for its locality, and nothing without
 * pages.rollback_pages. Improved where the feedback tells of a gain, or that share rose by more
 * than the margin and its noise; neutral otherwise. Inconclusive: nothing was moved, the process is
 * gone, or too little was seen of it for NM_VERDICT_INTERVALS. The caller clears *ret. -ENOMEM
 * (nothing answered). Tick, after nm_imar2_feedback().
 */
int nm_page_verifier_judge(struct nm_page_verifier *verifier, const struct nm_snapshot *snapshot,
			   const struct nm_feedback *feedback, const struct nm_config *config,
			   struct nm_page_verdicts *ret);

/* Has the process an open question that takes in nothing more? What is moved now could not be told
 * apart from it. */
bool nm_page_verifier_awaits(const struct nm_page_verifier *verifier, uint32_t pid,
			     uint64_t start_ticks, uint64_t interval);

/* Decisions without a verdict. */
size_t nm_page_verifier_open(const struct nm_page_verifier *verifier);

#endif
