/* SPDX-License-Identifier: MIT */
/* kMAF, section 3.4.1, places threads below a last-level cache. The scheduler chooses which
 * of its CPUs, because only an affinity would keep a thread on a core. */
#include <math.h>

#include "kmaf_plan.h"

/* Returns the cache of a CPU that may be used, or NONE. */
static int find_cache(const struct plan *plan, const struct nm_cpu *cpu)
{
	for (size_t i = 0; i < plan->nr_caches; i++)
		if (plan->caches[i].node == cpu->node && plan->caches[i].number == cpu->cache)
			return (int)i;
	return NONE;
}

static void add_usable(struct plan *plan, unsigned number)
{
	const struct nm_cpu *cpu = &plan->snapshot->topology->cpus[number];
	int at = find_cache(plan, cpu);
	if (at == NONE) {
		at = (int)plan->nr_caches++;
		plan->caches[at] = (struct cache){.node = cpu->node,
						  .number = cpu->cache,
						  .cpus = nm_must(hwloc_bitmap_alloc())};
	}
	nm_must_do(hwloc_bitmap_set(plan->caches[at].cpus, number));
	plan->cache_of[number] = at;
}

void nm_kmaf_find_caches(struct plan *plan)
{
	const struct nm_topology *topology = plan->snapshot->topology;
	plan->caches = nm_must(calloc(topology->nr_cpus + 1, sizeof(*plan->caches)));
	plan->cache_of = nm_must(calloc(topology->nr_cpus + 1, sizeof(*plan->cache_of)));
	for (unsigned i = 0; i < topology->nr_cpus; i++) {
		int node = topology->cpus[i].node;
		if (node >= 0 && hwloc_bitmap_isset(topology->nodes[node].cpus, i))
			add_usable(plan, i);
	}
	/* Threads may also run on CPUs that are no places. */
	for (unsigned i = 0; i < topology->nr_cpus; i++) {
		int node = topology->cpus[i].node;
		if (node < 0 || !hwloc_bitmap_isset(topology->nodes[node].cpus, i))
			plan->cache_of[i] = find_cache(plan, &topology->cpus[i]);
	}
	plan->split = plan->nr_caches > nm_topology_cpu_nodes(topology);
}

unsigned nm_kmaf_distance(const struct plan *plan, size_t thread, int from, int to)
{
	int node = plan->caches[from].node, other = plan->caches[to].node;
	if (node != other)
		return nm_topology_distance(plan->snapshot->topology, node, other);
	return plan->split && from == to && plan->differs[thread] ? NM_MAPPING_CACHE
								  : NM_MAPPING_LOCAL;
}

/* ---- heterogeneity, section 2.2.1 ---- */

/* Sums over the cells of a group of threads that communicate, in accesses; without the diagonal,
 * since a thread shares nothing with itself. */
struct cells {
	double threads, sum, squares, row_squares; /* of single cells, and of the sums of rows */
};

static uint32_t group_of(uint32_t *group, uint32_t thread)
{
	while (group[thread] != thread)
		thread = group[thread] = group[group[thread]];
	return thread;
}

/* Joins threads that communicate, also through others: the lowest stands for all. */
static void find_groups(const struct nm_affinity_graph *graph, uint32_t *group)
{
	for (uint32_t i = 0; i < graph->nr_threads; i++)
		group[i] = i;
	for (uint32_t i = 0; i < graph->nr_threads; i++)
		for (uint32_t at = graph->first[i]; at < graph->first[i + 1]; at++) {
			uint32_t a = group_of(group, i), b = group_of(group, graph->partner[at]);
			group[a > b ? a : b] = a > b ? b : a;
		}
	for (uint32_t i = 0; i < graph->nr_threads; i++)
		group[i] = group_of(group, i);
}

/*
 * Whether equation 1 gives more than counting does: cells with the same expected value differ by
 * chance, each with a variance of its mean. Two threads have one cell, and nothing to compare it
 * with; the gate judges what they save.
 */
static bool is_heterogeneous(const struct cells *cells, double sigmas)
{
	double others = cells->threads - 1, nr_cells = cells->threads * others;
	if (cells->threads < 3)
		return true;
	double heterogeneity = (cells->squares - cells->row_squares / others) / nr_cells;
	double mean = cells->sum / nr_cells;
	double by_chance = mean * (1 - 1 / others);
	double error = sqrt((mean + 2 * mean * mean) / (nr_cells / 2));
	return heterogeneity > by_chance + sigmas * error;
}

void nm_kmaf_find_differing(struct plan *plan)
{
	const struct nm_affinity_graph *graph = plan->graph;
	size_t threads = graph->nr_threads;
	nm_autofree uint32_t *group = nm_must(calloc(threads + 1, sizeof(*group)));
	nm_autofree struct cells *cells = nm_must(calloc(threads + 1, sizeof(*cells)));
	plan->differs = nm_must(calloc(threads + 1, sizeof(*plan->differs)));
	find_groups(graph, group);
	for (size_t i = 0; i < threads; i++) {
		struct cells *of = &cells[group[i]];
		of->threads++;
		of->sum += graph->rows[i].sum;
		of->squares += graph->rows[i].squares;
		of->row_squares += graph->rows[i].sum * graph->rows[i].sum;
	}
	for (size_t i = 0; i < threads; i++)
		plan->differs[i] =
			is_heterogeneous(&cells[group[i]], plan->config->rules.gate_sigmas);
}
