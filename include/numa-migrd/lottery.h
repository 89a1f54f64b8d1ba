/* SPDX-License-Identifier: MIT */
/*
 * The weighted lottery of lbma-imar2 (sections 4.2 and 4.3) over candidate migrations, and the rule
 * that winners share no thread and no free CPU (algorithms.md section 2, "Selection"). Pure; for
 * policies.
 *
 *   paper         each candidate draws u uniform in [0, Q]; the highest draws win.
 *   proportional  each candidate wins with chance Q/ΣQ, drawn without replacement. The caller
 * merges candidates that are equal in (θ, k', θ').
 *
 * A winner that conflicts with an earlier one is skipped and replaced by the next draw.
 * Proportional draws are made one after the other, each a point on the line of the tickets still in
 * the urn, rather than by keys -ln(u)/Q: the distribution is the same, and there is no logarithm
 * whose last bit could depend on the C library or the CPU.
 */
#ifndef NUMA_MIGRD_LOTTERY_H
#define NUMA_MIGRD_LOTTERY_H

#include "numa-migrd/config.h"
#include "numa-migrd/rng.h"
#include "numa-migrd/snapshot.h"

#define NM_NO_PARTNER UINT32_MAX

struct nm_candidate {
	double tickets;	     /* Q, not negative */
	double draw;	     /* the lottery's */
	uint32_t partner;    /* θ': index into the snapshot's threads; NM_NO_PARTNER: a single
				migration */
	int32_t destination; /* γ', or nm_any_cpu_of(k') for a merged single */
};

/* A destination that means: whichever free CPU of the node suits best when the candidate wins. */
static inline int32_t nm_any_cpu_of(unsigned node)
{
	return -1 - (int32_t)node;
}

struct nm_win {
	uint32_t thread, partner; /* partner: NM_NO_PARTNER for a single migration */
	int cpu_to;
	double tickets;
	/* paper: u in [0, Q]; proportional: the point drawn, in [0, tickets that were in the urn).
	 */
	double draw;
	/* θ's candidates that could still win then, this one among them; until the next draw. */
	const struct nm_candidate *stood;
	size_t nr_candidates, won;
};

struct nm_ticket_pool;

/* Both must outlive the urn. Returns 0 or -ENOMEM. */
int nm_ticket_pool_new(const struct nm_snapshot *snapshot, enum nm_lottery rule, struct nm_rng *rng,
		       struct nm_ticket_pool **ret);
void nm_ticket_pool_free(struct nm_ticket_pool *pool);
NM_DEFINE_CLEANUP(struct nm_ticket_pool, nm_ticket_pool_free);

/*
 * Puts a candidate of θ = `thread` (index into the snapshot's threads) into the urn; all candidates
 * of one thread one after the other. Free CPUs named as destination must be free, partners other
 * than θ. Returns 0 or -ENOMEM.
 */
int nm_ticket_pool_add(struct nm_ticket_pool *pool, uint32_t thread, int32_t destination,
		       uint32_t partner, double tickets);
size_t nm_ticket_pool_count(const struct nm_ticket_pool *pool);

/*
 * Draws the next winner that conflicts with none before it and takes it out, with everything that
 * it rules out. False when nothing is left; under "proportional" a candidate without tickets never
 * wins.
 */
bool nm_ticket_pool_draw(struct nm_ticket_pool *pool, struct nm_win *ret);

/*
 * The best free CPU of `node` for a thread with this mask: the first idle one whose SMT siblings are
 * idle, else the first idle one, else by siblings and busy share among those free by the node's idle
 * time; `claimed` and `crowded` (per CPU, may be NULL) take CPUs out, or count them as having
 * busy siblings. -1: none.
 */
int nm_pick_free_cpu(const struct nm_snapshot *snapshot, unsigned node,
		     hwloc_const_bitmap_t allowed, const bool *claimed, const bool *crowded);

#endif
