/* SPDX-License-Identifier: MIT */
/*
 * The weighted lottery of the IMAR² paper (sections 4.2 and 4.3) over candidate migrations, and the
 * rule that winners share no thread and no destination CPU. Pure; for policies.
 *
 * paper each candidate draws u uniform in [0, Q]; the highest draws win. proportional each
 * candidate wins with chance Q/ΣQ, drawn without replacement.
 *
 * The caller merges candidates that are equal in (θ, k', θ').
 *
 * A winner that conflicts with an earlier one is skipped and replaced by the next draw.
 * Proportional draws are made one after the other, each a point in the range of the tickets that
 * remain in the pool, instead of by keys -ln(u)/Q. The distribution is the same, and no logarithm
 * is used whose last bit could depend on the C library or the CPU.
 */
#ifndef NM_POLICY_LOTTERY_H
#define NM_POLICY_LOTTERY_H

#include "numa-migrd/base.h"
#include "numa-migrd/config.h"
#include "numa-migrd/snapshot.h"

#define NM_NO_PARTNER UINT32_MAX

struct nm_candidate {
	double tickets;	     /* Q, not negative */
	double draw;	     /* set by the lottery */
	uint32_t partner;    /* θ': index into the snapshot's threads; NM_NO_PARTNER for a single
			      * migration */
	int32_t destination; /* γ', or nm_any_cpu_of(k') for merged single migrations */
};

/* The destination of a candidate that uses the best CPU of the node that is free when the candidate
 * wins. */
static inline int32_t nm_any_cpu_of(unsigned node)
{
	return -1 - (int32_t)node;
}

struct nm_win {
	uint32_t thread, partner; /* partner is NM_NO_PARTNER for a single migration */
	int cpu_to;
	double tickets;
	/* paper: u in [0, Q]; proportional: the point drawn, in [0, tickets in the pool). */
	double draw;
	/* The candidates of θ that could still win at that time, including the winner; valid until
	 * the next draw. */
	const struct nm_candidate *candidates;
	size_t nr_candidates, winner;
};

struct nm_ticket_pool;

/* Creates a pool. The snapshot and the generator must outlive it. */
void nm_ticket_pool_new(const struct nm_snapshot *snapshot, enum nm_lottery rule,
			struct nm_rng *rng, struct nm_ticket_pool **ret);
void nm_ticket_pool_free(struct nm_ticket_pool *pool);
NM_DEFINE_CLEANUP(struct nm_ticket_pool, nm_ticket_pool_free);

/*
 * Adds a candidate of θ = `thread` (index into the snapshot's threads) to the pool. All candidates
 * of one thread must be added consecutively. A destination CPU must be free, and a partner must
 * differ from θ.
 */
void nm_ticket_pool_add(struct nm_ticket_pool *pool, uint32_t thread, int32_t destination,
			uint32_t partner, double tickets);
size_t nm_ticket_pool_count(const struct nm_ticket_pool *pool);

/*
 * Draws the next winner without conflict with an earlier one, and removes it and all candidates
 * that it excludes. Returns false if none is left. In a proportional lottery a candidate without
 * tickets never wins.
 */
bool nm_ticket_pool_draw(struct nm_ticket_pool *pool, struct nm_win *ret);

/*
 * Returns the best CPU of `node` that is free for a thread with this affinity: the first idle CPU
 * whose SMT siblings are idle, otherwise the first idle CPU, otherwise the best by siblings and
 * busy share of those that are free by the node's idle time. `claimed` excludes CPUs, `crowded`
 * counts them as having busy siblings; both are indexed by CPU and may be NULL. Returns -1 if there
 * is none.
 */
int nm_pick_free_cpu(const struct nm_snapshot *snapshot, unsigned node,
		     hwloc_const_bitmap_t allowed, const bool *claimed, const bool *crowded);

#endif
