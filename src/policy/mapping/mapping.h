/* SPDX-License-Identifier: MIT */
/*
 * Places threads that share memory (kMAF, section 3.4.1), by Scotch's dual recursive bipartitioning
 * of the communication matrix onto the hierarchy of nodes, caches, cores and CPUs. Pure: the same
 * input and seed give the same placement.
 */
#ifndef NM_POLICY_MAPPING_MAPPING_H
#define NM_POLICY_MAPPING_MAPPING_H

#include "numa-migrd/base.h"
#include "observe/memory.h"
#include "numa-migrd/topology.h"

struct nm_mapping_thread {
	int cpu;		      /* current CPU; -1: not known */
	double load;		      /* share of one CPU; NaN: not known, counts as 1 */
	hwloc_const_bitmap_t allowed; /* CPUs it may run on */
	/* Index of the node of its memory + 1, which is preferred among otherwise equal nodes; 0:
	 * not known. */
	unsigned memory;
};

struct nm_mapping {
	size_t nr_threads;
	int *cpu; /* of each thread; -1: none of its CPUs is usable */
	/* Σ_{i<j} M_ij·distance over the pairs with known places, for the current and the new
	 * placement. */
	double cost_now, cost_new;
	bool worthwhile; /* cost_new < (1 − gain)·cost_now, or gain is 0 */
	size_t repaired; /* threads moved to another CPU than Scotch chose, because of their CPU
			  * affinities */
};

/*
 * Computes a placement of the graph's threads. Equivalent places are renamed so that most threads
 * stay. Threads placed on CPUs outside their affinities are moved as near to their partners as
 * possible without crowding. `gain` is mapping_gain. Returns 0; -ENODATA: no thread has a usable
 * CPU; -ELIBACC: Scotch cannot be loaded; -ENOMEM for failures of Scotch, which reports no
 * reason.
 */
int nm_mapping_compute(const struct nm_topology *topology, const struct nm_affinity_graph *graph,
		       const struct nm_mapping_thread *threads, double gain, uint32_t seed,
		       struct nm_mapping **ret);
void nm_mapping_free(struct nm_mapping *mapping);
NM_DEFINE_CLEANUP(struct nm_mapping, nm_mapping_free);

/*
 * Returns the distance between two CPUs on an extended SLIT scale: between nodes the firmware's
 * distance, within a node one of these, and 1 for the same CPU.
 */
#define NM_MAPPING_LOCAL 10U
#define NM_MAPPING_CACHE 5U /* below one last-level cache */
#define NM_MAPPING_CORE 2U
unsigned nm_mapping_distance(const struct nm_topology *topology, int a, int b);

#endif
