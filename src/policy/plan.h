/* SPDX-License-Identifier: MIT */
/*
 * Turns proposals into a bounded plan: the operations on each thread, their order, and how to roll
 * them back. Pure.
 */
#ifndef NUMA_MIGRD_PLAN_H
#define NUMA_MIGRD_PLAN_H

#include "policy/policy.h"
#include "numa-migrd/snapshot.h"

struct nm_step {
	uint32_t tid, pid;
	uint64_t start_ticks, adopted_ns;
	int cpu_from, cpu_to, node_from, node_to;
	hwloc_bitmap_t target; /* CPUs to move it to, a subset of `original`; owned by the plan */
	hwloc_const_bitmap_t
		/* The affinity to which it is restored, and the limit of `target`; owned by the
		 * task table. */
		original;
	bool unrestricted;
	double local_before;   /* local access ratio when decided; NaN: not known */
	double samples_before; /* number of access samples behind local_before */
	/* IMAR²: metrics of the thread when decided; NaN: not known. */
	double latency_before, performance_before, relative_before;
	double record; /* P of the record on node_to */
	/* kMAF: number of samples of latency_before, and communication with threads on node_to. */
	double latency_samples_before, shared;
	double access_cost_before; /* nm_selection_access_cost() on node_from */
	char comm[NM_COMM_BYTES];
};

/* The result of a step of a decision about pages. */
enum nm_page_fate {
	NM_PAGE_FATE_UNTRIED, /* the batch ended before: stopped, dropped, or the process is gone */
	NM_PAGE_FATE_MOVED,   /* on `to` now; of base pages requested as one huge page, some are */
	NM_PAGE_FATE_ELSEWHERE, /* left alone: not where it had been seen, or on `to` already */
	NM_PAGE_FATE_REFUSED,	/* by our rules: memory policy, sharing, cpuset, no free memory */
	NM_PAGE_FATE_FAILED	/* by the kernel: see `error` */
};

/*
 * One page or one huge page, never a part of one. Only the kernel knows whether a range is a huge
 * page; if it is not, its base pages are moved instead.
 */
struct nm_page_step {
	uint64_t address; /* of its first byte */
	uint64_t bytes;	  /* 4 KiB, 2 MiB or 1 GiB */
	int16_t from, to; /* node indices; from -1: wherever it is */
	/* Set by the mover: */
	uint8_t fate;	  /* enum nm_page_fate */
	bool base_pages;  /* it was base pages; those that moved are in `base_pages` of the batch,
			     like all others that moved */
	int16_t found_on; /* index of the node where it was, or where one of its base pages was; -1:
			     unknown */
	bool done;	  /* used internally by the mover, as is `next`: base pages that are done */
	uint16_t next;
	int error;	  /* negative errno if FAILED; -ENOSPC if REFUSED for lack of memory */
};

enum nm_decision_kind {
	NM_DECISION_MIGRATE,
	NM_DECISION_SWAP,
	NM_DECISION_ROLLBACK,
	/* A process is assigned a home (policy "auto"). Its only step has no thread (tid 0); the
	 * threads follow one by one, by decisions to MIGRATE with the same id. */
	NM_DECISION_HOME,
	/* Pages of a process are moved or, with the reason ROLLBACK, moved back. Its only step has
	 * no thread, and node -1 for several nodes. */
	NM_DECISION_PAGES,
};

struct nm_decision {
	uint64_t id;
	enum nm_decision_kind kind;
	enum nm_thread_policy policy; /* policy that made the decision; NONE: that for pages */
	uint64_t interval;
	uint64_t undoes;     /* the decision that is rolled back; otherwise 0 */
	bool by_performance; /* judged by the feedback, see nm_judged_by_performance() */
	bool by_locality;    /* P was derived from locality */
	/* kMAF: communication cost over all decisions of the interval; NaN for a rollback. */
	double cost_before, cost_after;
	struct nm_balance_reason balance; /* not set for a rollback */
	struct nm_home_reason home;	  /* HOME only */
	struct nm_pages_reason pages;	  /* PAGES only */
	struct nm_tickets tickets;
	double draw, gain;
	struct nm_alternative
		/* As in struct nm_proposal. */
		alternatives[NM_ALTERNATIVES_MAX];
	size_t nr_alternatives, nr_candidates;

	unsigned nr_steps; /* 1, or 2 for a swap, which is done completely or not at all */
	struct nm_step steps[2];
};

/* Returns a decision about a process as a whole, which names no nodes yet. Called for homes and for
 * pages. */
struct nm_decision nm_decision_of_process(enum nm_decision_kind kind, uint64_t id, uint32_t pid,
					  uint64_t start_ticks, const char *comm);

/* Returns true for the move of a thread to its home. That is reported, counted and judged as one.
 */
static inline bool nm_decision_is_to_home(const struct nm_decision *decision)
{
	return decision->policy == NM_POLICY_AUTO && decision->kind != NM_DECISION_HOME;
}

struct nm_plan {
	struct nm_decision *decisions;
	size_t count;
};
void nm_plan_clear(struct nm_plan *plan);
/* Removes the decisions about processes that allows() refuses. It is called for each process of a
 * decision. */
void nm_plan_filter(struct nm_plan *plan, bool (*allows)(void *context, uint32_t pid),
		    void *context);

/*
 * Turns proposals into decisions, in their order, within moves_per_interval (a swap counts as two).
 * A thread that is to stay on the node to which it is assigned is omitted. Decision ids are taken
 * from *next_id, which is incremented.
 */
void nm_plan_build(const struct nm_snapshot *snapshot, const struct nm_config *config,
		   const struct nm_proposals *proposals, uint64_t *next_id, struct nm_plan *ret);

/*
 * Adds a decision of one step, with this id, that sends a thread to a node whose CPUs it may use.
 * Returns 0, or -ENOENT if the thread may use no CPU of the node; on failure nothing is added.
 */
int nm_plan_add_home(const struct nm_snapshot *snapshot, const struct nm_config *config,
		     uint32_t thread, int node, uint64_t id, struct nm_plan *plan);

#endif
