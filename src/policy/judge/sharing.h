/* SPDX-License-Identifier: MIT */
/* The communication cost of a thread on each of two nodes. */
#ifndef NM_VERIFY_SHARING_H
#define NM_VERIFY_SHARING_H

#include "policy/judge.h"

struct nm_sharing_place {
	uint32_t tid;
	int node_from, node_to; /* -1: not known */
	/* Σ over its partners of weight times distance, if the thread were on that node; NaN if the
	 * node is not known. */
	double before, after;
	double variance; /* of the difference: communication is a random count */
	uint32_t next; /* next entry of the same thread; set by the function */
};

/* Sets before, after and variance of each entry. The time is proportional to the number of pairs
 * plus `count`. */
void nm_sharing_costs(const struct nm_affinity *affinity, const struct nm_snapshot *snapshot,
		      struct nm_sharing_place *places, size_t count);

/*
 * Sets slowdown and its noise if latencies were sampled, with one value for all moves of a
 * placement and process (those with the same number of intervals). Each entry is used once; the
 * array is reordered.
 */
void nm_sharing_compare_latencies(struct nm_verdict **verdicts, size_t count,
				  const struct nm_config *config);

#endif
