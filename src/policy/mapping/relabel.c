/* SPDX-License-Identifier: MIT */
/*
 * Scotch assigns equivalent places arbitrarily. Siblings are swapped if that lets more load stay in
 * place; nodes are swapped if it also does not increase the distance of partners. For nodes,
 * affinities have priority over staying, and the location of memory has less weight.
 */
#include "hierarchy.h"

#define SIBLINGS_MAX 256U
#define EPSILON 1e-9
#define MEMORY_WEIGHT 0.5  /* weight relative to staying */
#define MASK_WEIGHT 1000.0 /* weight that exceeds any number of staying threads */

/* A range of leaves whose groups at one level are siblings. */
struct sibling_group {
	struct nm_task *task;
	unsigned level, begin, end;
	unsigned count;	 /* number of siblings */
	unsigned *start; /* first leaf of each sibling; count + 1 entries */
	double *stay;	 /* count × count: load mapped to one sibling that now runs on the other */
	double *share; /* count × count: communication of the threads mapped to the two; NULL:
			* ignored */
	unsigned *label_of; /* new sibling of the threads mapped to each one */
};

static void free_sibling_group(struct sibling_group *sibling_group)
{
	free(sibling_group->start);
	free(sibling_group->stay);
	free(sibling_group->share);
	free(sibling_group->label_of);
}

static unsigned index_of_leaf(const struct sibling_group *sibling_group, int leaf)
{
	const unsigned *group = sibling_group->task->hierarchy->group[sibling_group->level];

	return group[leaf] - group[sibling_group->begin];
}

static bool contains(const struct sibling_group *sibling_group, int leaf)
{
	return leaf >= (int)sibling_group->begin && leaf < (int)sibling_group->end;
}

/* If partners can be placed together on either's node, the node of their memory is preferred. */
static void sum_memory(struct sibling_group *sibling_group)
{
	const struct nm_task *task = sibling_group->task;
	const struct nm_hierarchy *tree = task->hierarchy;

	for (size_t i = 0; i < task->graph->nr_threads; i++) {
		if (!task->threads[i].memory || !contains(sibling_group, task->leaf[i]))
			continue;
		int node = (int)task->threads[i].memory - 1;
		unsigned at = 0;
		while (at < sibling_group->count &&
		       tree->topology->cpus[tree->cpu[sibling_group->start[at]]].node != node)
			at++;
		if (at < sibling_group->count)
			sibling_group->stay[index_of_leaf(sibling_group, task->leaf[i]) *
						    sibling_group->count +
					    at] += MEMORY_WEIGHT * nm_task_load(task, i);
	}
}

/* A group moves to a node to which its bound threads may follow. */
static void sum_masks(struct sibling_group *sibling_group)
{
	const struct nm_task *task = sibling_group->task;
	const struct nm_hierarchy *tree = task->hierarchy;

	for (unsigned at = 0; at < sibling_group->count; at++) {
		int node = tree->topology->cpus[tree->cpu[sibling_group->start[at]]].node;
		hwloc_const_bitmap_t cpus = tree->topology->nodes[node].cpus;
		for (size_t i = 0; i < task->graph->nr_threads; i++)
			if (contains(sibling_group, task->leaf[i]) &&
			    !hwloc_bitmap_intersects(task->threads[i].allowed, cpus))
				sibling_group->stay[index_of_leaf(sibling_group, task->leaf[i]) *
							    sibling_group->count +
						    at] -= MASK_WEIGHT * nm_task_load(task, i);
	}
}

static void init_sibling_group(struct sibling_group *sibling_group)
{
	const struct nm_task *task = sibling_group->task;
	const struct nm_affinity_graph *graph = task->graph;
	const unsigned *group = task->hierarchy->group[sibling_group->level];
	unsigned count = group[sibling_group->end - 1] - group[sibling_group->begin] + 1;

	sibling_group->count = count;
	sibling_group->start = nm_must(calloc(count + 1, sizeof(*sibling_group->start)));
	sibling_group->label_of = nm_must(calloc(count, sizeof(*sibling_group->label_of)));
	sibling_group->stay = nm_must(calloc((size_t)count * count, sizeof(*sibling_group->stay)));
	sibling_group->share = sibling_group->level == 0
				       ? nm_must(calloc((size_t)count * count, sizeof(double)))
				       : NULL;
	for (unsigned leaf = sibling_group->end; leaf-- > sibling_group->begin;)
		sibling_group->start[group[leaf] - group[sibling_group->begin]] = leaf;
	sibling_group->start[count] = sibling_group->end;
	for (unsigned i = 0; i < count; i++)
		sibling_group->label_of[i] = i;
	for (size_t i = 0; i < task->graph->nr_threads; i++)
		if (contains(sibling_group, task->leaf[i]) && contains(sibling_group, task->now[i]))
			sibling_group->stay[index_of_leaf(sibling_group, task->leaf[i]) *
						    sibling_group->count +
					    index_of_leaf(sibling_group, task->now[i])] +=
				nm_task_load(task, i);
	if (sibling_group->level == 0) {
		sum_memory(sibling_group);
		sum_masks(sibling_group);
		for (size_t i = 0; i < graph->nr_threads; i++)
			for (uint32_t at = graph->first[i]; at < graph->first[i + 1]; at++) {
				unsigned a = index_of_leaf(sibling_group, task->leaf[i]);
				unsigned b = index_of_leaf(sibling_group,
							   task->leaf[graph->partner[at]]);
				sibling_group->share[a * sibling_group->count + b] +=
					graph->weight[at];
			}
	}
}

static unsigned size_of_group(const struct sibling_group *sibling_group, unsigned sibling)
{
	return sibling_group->start[sibling + 1] - sibling_group->start[sibling];
}

static double distance(const struct sibling_group *sibling_group, unsigned name_a, unsigned name_b)
{
	const struct nm_hierarchy *tree = sibling_group->task->hierarchy;

	return nm_mapping_distance(tree->topology, tree->cpu[sibling_group->start[name_a]],
				   tree->cpu[sibling_group->start[name_b]]);
}

/* Returns the increase of the cost if the siblings a and b are swapped. */
static double cost_increase(const struct sibling_group *sibling_group, unsigned a, unsigned b)
{
	double rise = 0;

	for (unsigned c = 0; sibling_group->share && c < sibling_group->count; c++) {
		if (c == a || c == b)
			continue;
		double change = distance(sibling_group, sibling_group->label_of[b],
					 sibling_group->label_of[c]) -
				distance(sibling_group, sibling_group->label_of[a],
					 sibling_group->label_of[c]);
		rise += change * (sibling_group->share[a * sibling_group->count + c] -
				  sibling_group->share[b * sibling_group->count + c]);
	}
	return rise;
}

static double staying_increase(const struct sibling_group *sibling_group, unsigned a, unsigned b)
{
	const double *of_a = sibling_group->stay + (size_t)a * sibling_group->count;
	const double *of_b = sibling_group->stay + (size_t)b * sibling_group->count;
	unsigned at_a = sibling_group->label_of[a], at_b = sibling_group->label_of[b];

	return of_a[at_b] + of_b[at_a] - of_a[at_a] - of_b[at_b];
}

static bool should_swap(const struct sibling_group *sibling_group, unsigned a, unsigned b)
{
	if (size_of_group(sibling_group, sibling_group->label_of[a]) !=
	    size_of_group(sibling_group, sibling_group->label_of[b]))
		return false;
	double cost = cost_increase(sibling_group, a, b);
	if (cost < -EPSILON)
		return true;
	return cost <= EPSILON && staying_increase(sibling_group, a, b) > EPSILON;
}

static bool swap_once(struct sibling_group *sibling_group)
{
	bool swapped = false;

	for (unsigned a = 0; a < sibling_group->count; a++)
		for (unsigned b = a + 1; b < sibling_group->count; b++)
			if (should_swap(sibling_group, a, b)) {
				unsigned name = sibling_group->label_of[a];
				sibling_group->label_of[a] = sibling_group->label_of[b];
				sibling_group->label_of[b] = name;
				swapped = true;
			}
	return swapped;
}

static void relabel_siblings(struct nm_task *task, unsigned level, unsigned begin, unsigned end)
{
	nm_auto(free_sibling_group) struct sibling_group sibling_group = {
		.task = task, .level = level, .begin = begin, .end = end};
	const unsigned *group = task->hierarchy->group[level];
	unsigned count = group[end - 1] - group[begin] + 1;

	if (count < 2 || count > SIBLINGS_MAX)
		return;
	init_sibling_group(&sibling_group);
	/* Each swap lowers the cost, or keeps it and raises the load that stays, so that the loop
	 * ends; the bound guards against rounding. */
	for (unsigned pass = 0; pass < count && swap_once(&sibling_group); pass++)
		;
	for (size_t i = 0; i < task->graph->nr_threads; i++) {
		if (!contains(&sibling_group, task->leaf[i]))
			continue;
		unsigned sibling = index_of_leaf(&sibling_group, task->leaf[i]);
		unsigned offset = (unsigned)task->leaf[i] - sibling_group.start[sibling];
		task->leaf[i] =
			(int)(sibling_group.start[sibling_group.label_of[sibling]] + offset);
	}
}

int nm_relabel(struct nm_task *task)
{
	const struct nm_hierarchy *tree = task->hierarchy;
	relabel_siblings(task, 0, 0, tree->nr_leaves);
	int r = 0;

	for (unsigned level = 1; level < NM_LEVELS && r == 0; level++) {
		const unsigned *parent = tree->group[level - 1];
		for (unsigned begin = 0, end; begin < tree->nr_leaves && r == 0; begin = end) {
			end = begin + 1;
			while (end < tree->nr_leaves && parent[end] == parent[begin])
				end++;
			relabel_siblings(task, level, begin, end);
		}
	}
	return r;
}
