/* SPDX-License-Identifier: MIT */
#include <math.h>

#include "hierarchy.h"

/* Share of the communication cost that must be saved to let threads share CPUs while others are
 * idle. */
#define CROWD_GAIN 0.25

static bool has_place(const struct nm_task *task, size_t thread)
{
	int cpu = task->threads[thread].cpu;

	return cpu >= 0 && cpu < (int)task->hierarchy->topology->nr_cpus &&
	       task->hierarchy->topology->cpus[cpu].node >= 0 && task->leaf[thread] >= 0;
}

static void sum_costs(const struct nm_task *task, struct nm_mapping *mapping)
{
	const struct nm_affinity_graph *graph = task->graph;
	const struct nm_topology *topology = task->hierarchy->topology;

	for (size_t i = 0; i < graph->nr_threads; i++)
		for (uint32_t at = graph->first[i]; at < graph->first[i + 1]; at++) {
			size_t j = graph->partner[at];
			if (j <= i || !has_place(task, i) || !has_place(task, j))
				continue;
			double weight = graph->weight[at];
			mapping->cost_now +=
				weight * nm_mapping_distance(topology, task->threads[i].cpu,
							     task->threads[j].cpu);
			mapping->cost_new += weight * nm_mapping_distance(topology, mapping->cpu[i],
									  mapping->cpu[j]);
		}
}

/* For pairs on one node, their distance within the node is ignored. */
static double cost_between_nodes(const struct nm_task *task)
{
	const struct nm_affinity_graph *graph = task->graph;
	const struct nm_hierarchy *tree = task->hierarchy;
	double cost = 0;

	for (size_t i = 0; i < graph->nr_threads; i++)
		for (uint32_t at = graph->first[i]; at < graph->first[i + 1]; at++) {
			int a = tree->topology->cpus[tree->cpu[task->leaf[i]]].node;
			int b = tree->topology->cpus[tree->cpu[task->leaf[graph->partner[at]]]]
					.node;
			cost += (double)graph->weight[at] *
				nm_topology_distance(tree->topology, a, b);
		}
	return cost;
}

/*
 * Spread over all CPUs, threads have the most cache and bandwidth, but a few communicating threads
 * are far from each other; placed closely, they are nearer. The loss by close placement is not
 * known, so that it must save more than a new placement otherwise must.
 */
static int map(struct nm_task *task, double gain, uint32_t seed)
{
	/* The number of CPUs that exceed the needs of the threads. */
	double idle_cpus = task->hierarchy->nr_leaves;

	for (size_t i = 0; i < task->graph->nr_threads; i++)
		idle_cpus -= nm_task_load(task, i);
	unsigned idle = idle_cpus >= 1 ? (unsigned)idle_cpus : 0;

	int r = nm_scotch_map(task, seed, 0);
	if (r < 0 || idle == 0 || gain <= 0)
		return r;
	struct nm_task crowded = *task;
	nm_autofree int *leaf = nm_must(calloc(task->graph->nr_threads + 1, sizeof(*leaf)));
	crowded.leaf = leaf;
	r = nm_scotch_map(&crowded, seed, idle);
	if (r < 0 ||
	    cost_between_nodes(&crowded) >= (1 - fmax(gain, CROWD_GAIN)) * cost_between_nodes(task))
		return r;
	for (size_t i = 0; i < task->graph->nr_threads; i++)
		task->leaf[i] = leaf[i];
	return 0;
}

int nm_mapping_compute(const struct nm_topology *topology, const struct nm_affinity_graph *graph,
		       const struct nm_mapping_thread *threads, double gain, uint32_t seed,
		       struct nm_mapping **ret)
{
	nm_auto(nm_mapping_freep) struct nm_mapping *mapping = nm_must(calloc(1, sizeof(*mapping)));
	nm_auto(nm_hierarchy_freep) struct nm_hierarchy *tree = NULL;

	/* The tree of the CPUs that any of the threads may use. */
	nm_autobitmap cpus = nm_must(hwloc_bitmap_alloc());

	for (size_t i = 0; i < graph->nr_threads; i++)
		nm_must_do(hwloc_bitmap_or(cpus, cpus, threads[i].allowed));
	/* CPU sets may be infinite; the usable CPUs are not. */
	nm_must_do(hwloc_bitmap_and(cpus, cpus, topology->usable));
	int r = nm_hierarchy_new(topology, cpus, &tree);
	if (r < 0)
		return r;
	mapping->nr_threads = graph->nr_threads;
	mapping->cpu = nm_must(calloc(graph->nr_threads + 1, sizeof(*mapping->cpu)));
	nm_autofree int *leaf = nm_must(calloc(graph->nr_threads + 1, sizeof(*leaf)));
	nm_autofree int *now = nm_must(calloc(graph->nr_threads + 1, sizeof(*now)));
	struct nm_task task = {
		.hierarchy = tree, .graph = graph, .threads = threads, .leaf = leaf, .now = now};
	for (size_t i = 0; i < graph->nr_threads; i++) {
		int cpu = threads[i].cpu;
		bool known = cpu >= 0 && cpu < (int)topology->nr_cpus;
		now[i] = known ? tree->leaf_of[cpu] : -1;
	}
	r = map(&task, gain, seed);
	if (r == 0)
		r = nm_relabel(&task);
	if (r < 0)
		return r;
	nm_repair(&task, &mapping->repaired);
	for (size_t i = 0; i < mapping->nr_threads; i++)
		mapping->cpu[i] = task.leaf[i] < 0 ? -1 : tree->cpu[task.leaf[i]];
	sum_costs(&task, mapping);
	mapping->worthwhile = gain <= 0 || mapping->cost_new < (1 - gain) * mapping->cost_now;
	*ret = NM_TAKE(mapping);
	return 0;
}

void nm_mapping_free(struct nm_mapping *mapping)
{
	if (!mapping)
		return;
	free(mapping->cpu);
	free(mapping);
}
