/* SPDX-License-Identifier: MIT */
/* What sharing costs a thread on each of two nodes. */
#ifndef NM_VERIFY_SHARING_H
#define NM_VERIFY_SHARING_H

#include "numa-migrd/verify.h"

struct nm_sharing_place {
	uint32_t tid;
	int node_from, node_to; /* -1: not known */
	/* Σ over its partners of what they share times the distance, were it there; NaN where the
	 * node is not known. */
	double before, after;
	double variance; /* of the difference: sharings come by chance */
	uint32_t next; /* of the same thread; used by the function */
};

/*
 * Sets before, after and variance of each. Time goes with the pairs that share and with `count`, not with
 * their product. -ENOMEM.
 */
int nm_sharing_costs(const struct nm_affinity *affinity, const struct nm_snapshot *snapshot,
		     struct nm_sharing_place *places, size_t count);

/*
 * Sets slowdown and its noise where latencies were sampled: one for all moves of a mapping and
 * process (those of as many intervals). Each is looked at once; they come back in another order.
 */
void nm_sharing_weigh_latencies(struct nm_verdict **verdicts, size_t count,
				const struct nm_config *config);

#endif
