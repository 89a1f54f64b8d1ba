/* SPDX-License-Identifier: MIT */
/* The machine as a tree whose leaves are the CPUs that threads may be mapped to. */
#ifndef NUMA_MIGRD_MAPPING_HIERARCHY_H
#define NUMA_MIGRD_MAPPING_HIERARCHY_H

#include "numa-migrd/mapping.h"

#define NM_LEVELS 4U /* node, last-level cache, core, CPU */

struct nm_hierarchy {
	const struct nm_topology *topology;
	unsigned nr_leaves;
	int *cpu;	 /* of each leaf; siblings lie together */
	int *leaf_of;	 /* by CPU; -1: none */
	uint32_t *place; /* of each leaf in the regular tree that has every level's widest arity */
	unsigned *group[NM_LEVELS]; /* of each leaf: number of its group, ascending with the leaf */
	unsigned arity[NM_LEVELS];  /* the widest */
	unsigned width[NM_LEVELS];  /* leaves of the regular tree below one group */
};

/* The tree over the CPUs of `cpus`; -ENODATA where there are none; -ENOMEM. */
int nm_hierarchy_new(const struct nm_topology *topology, hwloc_const_bitmap_t cpus,
		     struct nm_hierarchy **ret);
void nm_hierarchy_free(struct nm_hierarchy *tree);
NM_DEFINE_CLEANUP(struct nm_hierarchy, nm_hierarchy_free);

/* One mapping in the making: everything that its steps look at. */
struct nm_task {
	const struct nm_hierarchy *hierarchy;
	const struct nm_affinity_graph *graph;
	const struct nm_mapping_thread *threads;
	int *leaf; /* of each thread: where it is mapped to; -1: nowhere */
	int *now;  /* where it runs; -1: not known, or not a leaf */
};

/*
 * Scotch's mapping of the graph into task->leaf. It gives every CPU its share of the load, also
 * where that takes partners apart; with `idle` vertices, each a CPU's worth of load that shares
 * with nobody, the threads may crowd together as far as there are CPUs. -ENOMEM.
 */
int nm_scotch_map(struct nm_task *task, uint32_t seed, unsigned idle);

/* Swaps equivalent groups so that most of the threads' load stays where it is. -ENOMEM. */
int nm_relabel(struct nm_task *task);

/* Puts threads whose mask forbids their leaf elsewhere; adds their number. -ENOMEM. */
int nm_repair(struct nm_task *task, size_t *repaired);

/* A thread's load, with what is not known counted as a whole CPU. */
double nm_task_load(const struct nm_task *task, size_t thread);

#endif
