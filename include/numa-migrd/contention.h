/* SPDX-License-Identifier: MIT */
/* Detects when spreading is better than locality: one memory controller serves most accesses of the
 * machine while others are idle (as observed for Carrefour; algorithms.md, section 6). Pure. */
#ifndef NUMA_MIGRD_CONTENTION_H
#define NUMA_MIGRD_CONTENTION_H

#include "numa-migrd/config.h"
#include "numa-migrd/regions.h"

/* Minimum number of accesses in an interval for an assessment. */
#define NM_CONTENTION_LEAST 100.0

struct nm_contention {
	double imbalance; /* of the nodes' traffic; NaN: not known */
	int busiest;	  /* the node that serves too much of it; -1: none */
};

/* Evaluates the accesses served by each node with pages.imbalance. Called by the tick. */
struct nm_contention nm_contention_of(const double *traffic, unsigned nr_nodes,
				      const struct nm_config *config);

/*
 * Returns the node on which a region should be, as nm_region_target() does. In addition, a region
 * that several nodes use, with the overloaded node as its main user, moves to its second most
 * frequent user, once it is too small to be split. A region that only one node uses stays on that
 * node, because no other place is nearer for it.
 */
int nm_contention_target(const struct nm_region *region, unsigned nr_nodes,
			 const struct nm_contention *contention, const struct nm_config *config);

#endif
