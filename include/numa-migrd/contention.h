/* SPDX-License-Identifier: MIT */
/*
 * When spreading beats locality: one memory controller serves most of what the machine accesses
 * while others idle (Carrefour's observation; algorithms.md, section 6). Pure.
 */
#ifndef NUMA_MIGRD_CONTENTION_H
#define NUMA_MIGRD_CONTENTION_H

#include "numa-migrd/config.h"
#include "numa-migrd/regions.h"

/* Accesses seen in an interval, below which nothing is said of who is busy. */
#define NM_CONTENTION_LEAST 100.0

struct nm_contention {
	double imbalance; /* of the nodes' traffic; NaN: not known */
	int busiest;	  /* the node that serves too much of it; -1: none does */
};

/* traffic: accesses served by each node. pages.imbalance. Tick. */
struct nm_contention nm_contention_of(const double *traffic, unsigned nr_nodes,
				      const struct nm_config *config);

/*
 * Where a region should be, as nm_region_target() has it; and one that several nodes use, foremost
 * the node that is too busy, goes to the node that uses it second most, once it is too small to be
 * split. What one node alone uses stays with that node: for it nothing is nearer.
 */
int nm_contention_target(const struct nm_region *region, unsigned nr_nodes,
			 const struct nm_contention *contention, const struct nm_config *config);

#endif
