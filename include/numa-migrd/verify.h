/* SPDX-License-Identifier: MIT */
/*
 * Receipts + later snapshots → verdicts: did the thread run where it was sent, and did its local share
 * rise. Pure; the list of open questions is a value.
 */
#ifndef NUMA_MIGRD_VERIFY_H
#define NUMA_MIGRD_VERIFY_H

#include "numa-migrd/actuate.h"
#include "numa-migrd/plan.h"
#include "numa-migrd/snapshot.h"

enum nm_verdict_kind {
	NM_VERDICT_KEPT,        /* ran there, local share rose or held */
	NM_VERDICT_ROLLED_BACK, /* local share fell by more than the margin: to be undone */
	NM_VERDICT_WITHDRAWN,   /* never seen on the node it was sent to: the mask is returned */
	NM_VERDICT_UNPROVEN,    /* too few accesses to tell, thread gone, or moved again meanwhile */
};

struct nm_verdict_thread {
	uint32_t tid, pid;
	bool alive;
	bool ran_on_node;
	int cpu_from, node_from, node_to;
	double local_before, local_after; /* NaN where unknown */
	uint64_t accesses_after;
};

struct nm_verdict {
	uint64_t decision;
	enum nm_decision_kind of;
	enum nm_verdict_kind kind;
	unsigned intervals; /* waited */
	unsigned nr_threads;
	struct nm_verdict_thread threads[2];
};

struct nm_verdicts {
	struct nm_verdict *items;
	size_t count;
};
void nm_verdicts_clear(struct nm_verdicts *verdicts);

struct nm_verifier;

int nm_verifier_new(struct nm_verifier **ret);
void nm_verifier_free(struct nm_verifier *verifier);
NM_DEFINE_CLEANUP(struct nm_verifier, nm_verifier_free);

/* Opens the question of an applied decision (of the snapshot's interval). A thread that is still under
 * question from an earlier one closes that as UNPROVEN at the next judgement. -ENOMEM. */
int nm_verifier_add(struct nm_verifier *verifier, const struct nm_decision *decision);

/*
 * Judges what can be judged now: at the earliest one interval after the act; with fewer than
 * threads.min_samples fresh accesses it waits, at most 10 intervals. The loss that rolls back is the
 * access-weighted fall of the local share over the decision's threads beyond threads.gate_margin, and only
 * with threads.rollback. A ROLLBACK decision is judged too, but never undone again. The caller clears
 * *ret. -ENOMEM. Tick, first stage after the snapshot.
 */
int nm_verifier_judge(struct nm_verifier *verifier, const struct nm_snapshot *snapshot,
		      const struct nm_config *config, struct nm_verdicts *ret);

/* Decisions still open. */
size_t nm_verifier_open(const struct nm_verifier *verifier);

/* The rollback of a ROLLED_BACK verdict, for nm_plan_add_rollback(). */
struct nm_rollback nm_verdict_rollback(const struct nm_verdict *verdict);

#endif
