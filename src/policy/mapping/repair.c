/* SPDX-License-Identifier: MIT */
/* Scotch does not support affinities: threads on CPUs that they may not use are moved one after
 * another. */
#include <math.h>

#include "hierarchy.h"

#define CROWDED 1.05 /* factor of the mean load of a CPU, or of one thread's load */

static bool may_run(const struct nm_task *task, size_t thread, int leaf)
{
	return hwloc_bitmap_isset(task->threads[thread].allowed,
				  (unsigned)task->hierarchy->cpu[leaf]);
}

static double cost_at(const struct nm_task *task, size_t thread, int leaf)
{
	const struct nm_hierarchy *tree = task->hierarchy;
	const struct nm_affinity_graph *graph = task->graph;
	double cost = 0;

	for (uint32_t at = graph->first[thread]; at < graph->first[thread + 1]; at++) {
		int other = task->leaf[graph->partner[at]];
		if (other >= 0)
			cost += (double)graph->weight[at] * nm_mapping_distance(tree->topology,
										tree->cpu[leaf],
										tree->cpu[other]);
	}
	return cost;
}

/* Criteria in order: not crowded, near its partners, on its current CPU, least load. */
struct fitness {
	bool overloaded, elsewhere;
	double cost, load;
};

static bool is_better(struct fitness a, struct fitness b)
{
	if (a.overloaded != b.overloaded)
		return b.overloaded;
	if (a.overloaded && a.load != b.load)
		return a.load < b.load;
	if (a.cost != b.cost)
		return a.cost < b.cost;
	if (a.elsewhere != b.elsewhere)
		return b.elsewhere;
	return a.load < b.load;
}

static int best_leaf(const struct nm_task *task, size_t thread, const double *load, double most)
{
	struct fitness best = {0};
	int found = -1;

	for (int leaf = 0; leaf < (int)task->hierarchy->nr_leaves; leaf++) {
		if (!may_run(task, thread, leaf))
			continue;
		struct fitness fitness = {
			.overloaded =
				load[leaf] > 0 && load[leaf] + nm_task_load(task, thread) > most,
			.elsewhere = leaf != task->now[thread],
			.cost = cost_at(task, thread, leaf),
			.load = load[leaf],
		};
		if (found < 0 || is_better(fitness, best)) {
			best = fitness;
			found = leaf;
		}
	}
	return found;
}

void nm_repair(struct nm_task *task, size_t *repaired)
{
	size_t threads = task->graph->nr_threads;
	unsigned leaves = task->hierarchy->nr_leaves;
	nm_autofree double *load = nm_must(calloc(leaves, sizeof(*load)));
	double total = 0;

	for (size_t i = 0; i < threads; i++) {
		total += nm_task_load(task, i);
		if (may_run(task, i, task->leaf[i]))
			load[task->leaf[i]] += nm_task_load(task, i);
		else
			task->leaf[i] = -1;
	}
	for (size_t i = 0; i < threads; i++) {
		if (task->leaf[i] >= 0)
			continue;
		task->leaf[i] = best_leaf(task, i, load, fmax(total / leaves, 1) * CROWDED);
		if (task->leaf[i] >= 0)
			load[task->leaf[i]] += nm_task_load(task, i);
		++*repaired;
	}
}
