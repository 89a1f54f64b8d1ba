/* SPDX-License-Identifier: MIT */
/* The machine as a tree whose leaves are the CPUs on which threads may be placed. */
#ifndef NUMA_MIGRD_MAPPING_HIERARCHY_H
#define NUMA_MIGRD_MAPPING_HIERARCHY_H

#include "mapping.h"

#define NM_LEVELS 4U /* node, last-level cache, core, CPU */

struct nm_hierarchy {
	const struct nm_topology *topology;
	unsigned nr_leaves;
	int *cpu;	 /* of each leaf; siblings are adjacent */
	int *leaf_of;	 /* by CPU; -1: none */
	uint32_t *place; /* of each leaf, in the regular tree with the widest arity at each level */
	unsigned *group[NM_LEVELS]; /* of each leaf: number of its group, ascending with the leaf */
	unsigned arity[NM_LEVELS];  /* the widest */
	unsigned width[NM_LEVELS];  /* number of leaves of the regular tree in one group */
};

/* Creates the tree of the CPUs in `cpus`. Returns 0, or -ENODATA if there are none. */
int nm_hierarchy_new(const struct nm_topology *topology, hwloc_const_bitmap_t cpus,
		     struct nm_hierarchy **ret);
void nm_hierarchy_free(struct nm_hierarchy *tree);
NM_DEFINE_CLEANUP(struct nm_hierarchy, nm_hierarchy_free);

/* The state of one computation of a placement. */
struct nm_task {
	const struct nm_hierarchy *hierarchy;
	const struct nm_affinity_graph *graph;
	const struct nm_mapping_thread *threads;
	int *leaf; /* of each thread: its new place; -1: none */
	int *now;  /* current place; -1: not known, or not a leaf */
};

/*
 * Computes Scotch's mapping of the graph into task->leaf. It gives each CPU its share of the load,
 * even if that separates partners. With `idle` additional vertices, each with the load of one CPU
 * and without edges, threads may be placed more closely, as far as there are CPUs. Returns 0.
 */
int nm_scotch_map(struct nm_task *task, uint32_t seed, unsigned idle);

/* Swaps equivalent groups so that most of the threads' load stays where it is. Returns 0. */
int nm_relabel(struct nm_task *task);

/* Moves threads whose affinity excludes their leaf, and adds their number to *repaired. */
void nm_repair(struct nm_task *task, size_t *repaired);

/* Returns the load of a thread; unknown counts as a whole CPU. */
double nm_task_load(const struct nm_task *task, size_t thread);

#endif
