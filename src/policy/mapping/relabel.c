/* SPDX-License-Identifier: MIT */
/*
 * Scotch assigns equivalent places arbitrarily. Siblings are swapped if that lets more load stay in
 * place; nodes are swapped if it also does not increase the distance of partners. For nodes,
 * affinities have priority over staying, and the location of memory has less weight.
 */
#include "hierarchy.h"

#define SIBLINGS_MOST 256U
#define EPSILON 1e-9
#define MEMORY_PULL 0.5	 /* weight relative to staying */
#define MASK_PUSH 1000.0 /* weight that exceeds any number of staying threads */

/* A range of leaves whose groups at one level are siblings. */
struct family {
	struct nm_task *task;
	unsigned level, begin, end;
	unsigned count;	 /* number of siblings */
	unsigned *start; /* first leaf of each sibling; count + 1 entries */
	double *stay;	 /* count × count: load mapped to one sibling that now runs on the other */
	double *share; /* count × count: communication of the threads mapped to the two; NULL:
			* ignored */
	unsigned *name_of; /* new sibling of the threads mapped to each one */
};

static void free_family(struct family *family)
{
	free(family->start);
	free(family->stay);
	free(family->share);
	free(family->name_of);
}

static unsigned sibling_of(const struct family *family, int leaf)
{
	const unsigned *group = family->task->hierarchy->group[family->level];

	return group[leaf] - group[family->begin];
}

static bool holds(const struct family *family, int leaf)
{
	return leaf >= (int)family->begin && leaf < (int)family->end;
}

/* Returns the sibling that is this node, or the number of siblings. */
static unsigned sibling_of_node(const struct family *family, int node)
{
	const struct nm_hierarchy *tree = family->task->hierarchy;
	unsigned i = 0;

	while (i < family->count && tree->topology->cpus[tree->cpu[family->start[i]]].node != node)
		i++;
	return i;
}

/* If partners can be placed together on either's node, the node of their memory is preferred. */
static void sum_memory(struct family *family)
{
	const struct nm_task *task = family->task;

	for (size_t i = 0; i < task->graph->nr_threads; i++) {
		if (!task->threads[i].memory || !holds(family, task->leaf[i]))
			continue;
		unsigned at = sibling_of_node(family, (int)task->threads[i].memory - 1);
		if (at < family->count)
			family->stay[sibling_of(family, task->leaf[i]) * family->count + at] +=
				MEMORY_PULL * nm_task_load(task, i);
	}
}

/* A group moves to a node to which its bound threads may follow. */
static void sum_masks(struct family *family)
{
	const struct nm_task *task = family->task;
	const struct nm_hierarchy *tree = task->hierarchy;

	for (unsigned at = 0; at < family->count; at++) {
		int node = tree->topology->cpus[tree->cpu[family->start[at]]].node;
		hwloc_const_bitmap_t cpus = tree->topology->nodes[node].cpus;
		for (size_t i = 0; i < task->graph->nr_threads; i++)
			if (holds(family, task->leaf[i]) &&
			    !hwloc_bitmap_intersects(task->threads[i].allowed, cpus))
				family->stay[sibling_of(family, task->leaf[i]) * family->count +
					     at] -= MASK_PUSH * nm_task_load(task, i);
	}
}

static void sum_staying(struct family *family)
{
	const struct nm_task *task = family->task;

	for (size_t i = 0; i < task->graph->nr_threads; i++)
		if (holds(family, task->leaf[i]) && holds(family, task->now[i]))
			family->stay[sibling_of(family, task->leaf[i]) * family->count +
				     sibling_of(family, task->now[i])] += nm_task_load(task, i);
}

static void sum_sharing(struct family *family)
{
	const struct nm_affinity_graph *graph = family->task->graph;

	for (size_t i = 0; i < graph->nr_threads; i++)
		for (uint32_t at = graph->first[i]; at < graph->first[i + 1]; at++) {
			unsigned a = sibling_of(family, family->task->leaf[i]);
			unsigned b = sibling_of(family, family->task->leaf[graph->partner[at]]);
			family->share[a * family->count + b] += graph->weight[at];
		}
}

static int begin_family(struct family *family)
{
	const unsigned *group = family->task->hierarchy->group[family->level];
	unsigned count = group[family->end - 1] - group[family->begin] + 1;

	family->count = count;
	family->start = calloc(count + 1, sizeof(*family->start));
	family->name_of = calloc(count, sizeof(*family->name_of));
	family->stay = calloc((size_t)count * count, sizeof(*family->stay));
	family->share = family->level == 0 ? calloc((size_t)count * count, sizeof(double)) : NULL;
	if (!family->start || !family->name_of || !family->stay ||
	    (family->level == 0 && !family->share))
		return -ENOMEM;
	for (unsigned leaf = family->end; leaf-- > family->begin;)
		family->start[group[leaf] - group[family->begin]] = leaf;
	family->start[count] = family->end;
	for (unsigned i = 0; i < count; i++)
		family->name_of[i] = i;
	sum_staying(family);
	if (family->level == 0) {
		sum_memory(family);
		sum_masks(family);
		sum_sharing(family);
	}
	return 0;
}

static unsigned size_of_group(const struct family *family, unsigned sibling)
{
	return family->start[sibling + 1] - family->start[sibling];
}

static double distance(const struct family *family, unsigned name_a, unsigned name_b)
{
	const struct nm_hierarchy *tree = family->task->hierarchy;

	return nm_mapping_distance(tree->topology, tree->cpu[family->start[name_a]],
				   tree->cpu[family->start[name_b]]);
}

/* Returns the increase of the cost if the siblings a and b are swapped. */
static double rise_of_cost(const struct family *family, unsigned a, unsigned b)
{
	double rise = 0;

	for (unsigned c = 0; family->share && c < family->count; c++) {
		if (c == a || c == b)
			continue;
		double change = distance(family, family->name_of[b], family->name_of[c]) -
				distance(family, family->name_of[a], family->name_of[c]);
		rise += change * (family->share[a * family->count + c] -
				  family->share[b * family->count + c]);
	}
	return rise;
}

static double rise_of_staying(const struct family *family, unsigned a, unsigned b)
{
	const double *of_a = family->stay + (size_t)a * family->count;
	const double *of_b = family->stay + (size_t)b * family->count;
	unsigned at_a = family->name_of[a], at_b = family->name_of[b];

	return of_a[at_b] + of_b[at_a] - of_a[at_a] - of_b[at_b];
}

static bool should_swap(const struct family *family, unsigned a, unsigned b)
{
	if (size_of_group(family, family->name_of[a]) != size_of_group(family, family->name_of[b]))
		return false;
	double cost = rise_of_cost(family, a, b);
	if (cost < -EPSILON)
		return true;
	return cost <= EPSILON && rise_of_staying(family, a, b) > EPSILON;
}

static bool swap_once(struct family *family)
{
	bool swapped = false;

	for (unsigned a = 0; a < family->count; a++)
		for (unsigned b = a + 1; b < family->count; b++)
			if (should_swap(family, a, b)) {
				unsigned name = family->name_of[a];
				family->name_of[a] = family->name_of[b];
				family->name_of[b] = name;
				swapped = true;
			}
	return swapped;
}

static void apply(struct family *family)
{
	struct nm_task *task = family->task;

	for (size_t i = 0; i < task->graph->nr_threads; i++) {
		if (!holds(family, task->leaf[i]))
			continue;
		unsigned sibling = sibling_of(family, task->leaf[i]);
		unsigned offset = (unsigned)task->leaf[i] - family->start[sibling];
		task->leaf[i] = (int)(family->start[family->name_of[sibling]] + offset);
	}
}

static int relabel_family(struct nm_task *task, unsigned level, unsigned begin, unsigned end)
{
	nm_auto(free_family) struct family family = {
		.task = task, .level = level, .begin = begin, .end = end};
	const unsigned *group = task->hierarchy->group[level];
	unsigned count = group[end - 1] - group[begin] + 1;

	if (count < 2 || count > SIBLINGS_MOST)
		return 0;
	int r = begin_family(&family);
	if (r < 0)
		return r;
	/* Each swap lowers the cost, or keeps it and raises the load that stays, so that the loop
	 * ends; the bound guards against rounding. */
	for (unsigned pass = 0; pass < count && swap_once(&family); pass++)
		;
	apply(&family);
	return 0;
}

int nm_relabel(struct nm_task *task)
{
	const struct nm_hierarchy *tree = task->hierarchy;
	int r = relabel_family(task, 0, 0, tree->nr_leaves);

	for (unsigned level = 1; level < NM_LEVELS && r == 0; level++) {
		const unsigned *parent = tree->group[level - 1];
		for (unsigned begin = 0, end; begin < tree->nr_leaves && r == 0; begin = end) {
			end = begin + 1;
			while (end < tree->nr_leaves && parent[end] == parent[begin])
				end++;
			r = relabel_family(task, level, begin, end);
		}
	}
	return r;
}
