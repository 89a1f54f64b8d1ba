/* SPDX-License-Identifier: MIT */
/*
 * Where threads that share memory should run (kMAF, section 3.4.1): Scotch's dual recursive
 * bipartitioning of the affinity graph onto the hierarchy of nodes, caches, cores and CPUs. Pure:
 * the same input and seed give the same mapping.
 */
#ifndef NUMA_MIGRD_MAPPING_H
#define NUMA_MIGRD_MAPPING_H

#include "numa-migrd/affinity.h"
#include "numa-migrd/base.h"
#include "numa-migrd/topology.h"

struct nm_mapping_thread {
	int cpu;		      /* where it runs now; -1: not known */
	double load;		      /* share of one CPU; NaN: not known, a whole one */
	hwloc_const_bitmap_t allowed; /* CPUs it may run on */
	/* Of otherwise equal nodes it goes to that of its memory: index + 1; 0: not known. */
	unsigned memory;
};

struct nm_mapping {
	size_t nr_threads;
	int *cpu; /* of each thread; -1: none of its CPUs is usable */
	/* Σ_{i<j} M_ij·distance over the pairs both of whose places are known, now and mapped. */
	double cost_now, cost_new;
	bool worth;	 /* cost_new < (1 − gain)·cost_now, or gain is 0 */
	size_t repaired; /* threads put on another CPU than mapped, because of their masks */
	size_t staying;	 /* threads that stay on the node that they are on */
};

/*
 * Maps the graph's threads. Equivalent places are named so that most threads stay; threads mapped
 * to CPUs outside their masks are put where they are nearest to their partners without a crowd.
 * gain: threads.mapping_gain. -ENODATA: no usable CPU for anyone; -ENOMEM (Scotch may fail
 * otherwise too, and does not say why). Once per mapping period.
 */
int nm_mapping_compute(const struct nm_topology *topology, const struct nm_affinity_graph *graph,
		       const struct nm_mapping_thread *threads, double gain, uint32_t seed,
		       struct nm_mapping **ret);
void nm_mapping_free(struct nm_mapping *mapping);
NM_DEFINE_CLEANUP(struct nm_mapping, nm_mapping_free);

/*
 * How far apart two CPUs are on SLIT's scale, continued downwards: between nodes what the firmware
 * says, and within the local 10: 5 under one last-level cache, 2 on one core, 1 for the same CPU.
 */
unsigned nm_mapping_distance(const struct nm_topology *topology, int a, int b);

#endif
