/* SPDX-License-Identifier: MIT */
/*
 * Proposals → a bounded plan: what will be done to which thread, in which order, and how to undo
 * it. Pure; everything the actuator needs is allocated here, so that acting and undoing allocate
 * nothing.
 */
#ifndef NUMA_MIGRD_PLAN_H
#define NUMA_MIGRD_PLAN_H

#include "numa-migrd/policy.h"
#include "numa-migrd/snapshot.h"

enum nm_step_pin {
	NM_STEP_LEASE, /* the mask stays narrowed while evidence renews it */
	NM_STEP_NUDGE, /* narrowed until the thread is seen there, then widened at once */
};

struct nm_step {
	uint32_t tid, pid;
	uint64_t start_ticks, adopted_ns;
	enum nm_step_pin pin;
	enum nm_runtime runtime; /* its program's: why it is nudged, with threads.pin = "auto" */
	int cpu_from, cpu_to, node_from, node_to;
	hwloc_bitmap_t target; /* mask to set: inside the original; owned by the plan */
	hwloc_const_bitmap_t
		original; /* the outer bound, what restoring means; owned by the roster */
	bool unrestricted;
	double local_before;   /* local share when decided; NaN where unknown */
	double samples_before; /* access samples behind it */
	/* IMAR²: what it was like when decided, NaN where unknown. */
	double latency_before, performance_before, relative_before;
	double record; /* P of the record on node_to */
	/* kMAF: latency samples behind latency_before, and sharings with threads on node_to. */
	double latency_samples_before, shared;
	double access_cost_before; /* nm_selection_access_cost() where it was */
	char comm[NM_COMM_BYTES];
};

enum nm_decision_kind { NM_DECISION_MIGRATE, NM_DECISION_SWAP, NM_DECISION_ROLLBACK };

struct nm_decision {
	uint64_t id;
	enum nm_decision_kind kind;
	enum nm_thread_policy policy; /* whose it is */
	uint64_t interval;
	uint64_t undoes;     /* ROLLBACK: the decision it undoes; else 0 */
	bool by_performance; /* judged by the feedback, see nm_judged_by_performance() */
	bool by_locality;    /* P was locality */
	bool by_sharing;     /* kMAF's: what follows, NaN for a rollback */
	double cost_before, cost_after; /* of sharing, over all decisions of the interval */
	struct nm_balance_reason balance; /* not of a rollback */
	struct nm_tickets tickets;
	double draw, gain;
	struct nm_alternative
		alternatives[NM_ALTERNATIVES_MOST]; /* as struct nm_proposal has them */
	size_t nr_alternatives, nr_candidates;

	unsigned nr_steps; /* 1, or 2 for a swap: both or neither */
	struct nm_step steps[2];
};

struct nm_plan {
	struct nm_decision *decisions;
	size_t count;
	uint64_t stopped_by_budget; /* proposals beyond moves_per_interval */
	uint64_t stopped_by_mask; /* proposals whose destination holds no CPU the thread may use */
};
void nm_plan_clear(struct nm_plan *plan);

/*
 * Turns proposals into decisions, in their order, within threads.moves_per_interval (a swap counts
 * two). Pin per threads.pin: "auto" leases, but nudges threads of young or spawning processes, and
 * of those whose runtime may count its CPUs again; a thread that is to be held where it is and may
 * only be nudged is left out. Decision ids count up from *next_id, which is advanced. Returns 0 or
 * -ENOMEM (nothing planned). Tick, plan stage.
 */
int nm_plan_build(const struct nm_snapshot *snapshot, const struct nm_config *config,
		  const struct nm_proposals *proposals, uint64_t *next_id, struct nm_plan *ret);

/* What a verdict sends back: the threads and where they came from. */
struct nm_rollback {
	uint64_t decision;
	unsigned nr_threads;
	struct {
		uint32_t tid;
		uint64_t start_ticks, adopted_ns;
		int cpu_from, node_from; /* where it came from: where it goes */
	} threads[2];
};

/*
 * Adds a rollback to the plan: each thread that still lives is sent back to its source node (its
 * source CPU under pin = "core", unless another managed thread has its home there by now), pinned
 * by the same rule as a move: restoring a wide mask would leave it where it is. The two of a swap
 * go back by a decision each, so that one which is dead, or whose mask somebody has changed since,
 * does not hold the other. Nodes without an allowed CPU are skipped. Outside the budget: undoing is
 * never put off. Tickets are 0, draw and gain NaN. Returns 0 or -ENOMEM (not all was added).
 */
int nm_plan_add_rollback(const struct nm_snapshot *snapshot, const struct nm_config *config,
			 const struct nm_rollback *rollback, uint64_t *next_id,
			 struct nm_plan *plan);

/*
 * Adds a decision of one step, with this id, that sends a thread to a node whose CPUs it may use; of
 * policy "auto", whose decision is about a group and has as many such parts as threads. -ENOENT: there
 * is no CPU for it; -ENOMEM. Nothing is added then. Tick, plan stage.
 */
int nm_plan_add_home(const struct nm_snapshot *snapshot, const struct nm_config *config,
		     uint32_t thread, int node, enum nm_step_pin pin, uint64_t id,
		     struct nm_plan *plan);

#endif
