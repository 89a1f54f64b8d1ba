/* SPDX-License-Identifier: MIT */
#include <math.h>

#include "hierarchy.h"

/* The properties that distinguish CPUs at each level, the outermost first. */
static int key_of(const struct nm_topology *topology, int cpu, unsigned level)
{
	const struct nm_cpu *info = &topology->cpus[cpu];
	const int keys[NM_LEVELS] = {info->node, info->cache, info->core, cpu};

	return keys[level];
}

static int compare_cpus(const void *a, const void *b, void *topology)
{
	int order = 0;

	for (unsigned level = 0; level < NM_LEVELS && order == 0; level++) {
		int left = key_of(topology, *(const int *)a, level);
		int right = key_of(topology, *(const int *)b, level);
		order = NM_COMPARE(left, right);
	}
	return order;
}

static int take_cpus(struct nm_hierarchy *tree, hwloc_const_bitmap_t cpus)
{
	const struct nm_topology *topology = tree->topology;
	int cpu;

	tree->cpu = nm_must(calloc(topology->nr_cpus + 1, sizeof(*tree->cpu)));
	tree->leaf_of = nm_must(calloc(topology->nr_cpus + 1, sizeof(*tree->leaf_of)));
	for (cpu = hwloc_bitmap_first(cpus); cpu >= 0 && cpu < (int)topology->nr_cpus;
	     cpu = hwloc_bitmap_next(cpus, cpu))
		if (topology->cpus[cpu].node >= 0)
			tree->cpu[tree->nr_leaves++] = cpu;
	if (tree->nr_leaves == 0)
		return -ENODATA;
	qsort_r(tree->cpu, tree->nr_leaves, sizeof(*tree->cpu), compare_cpus, (void *)topology);
	for (unsigned i = 0; i < topology->nr_cpus; i++)
		tree->leaf_of[i] = -1;
	for (unsigned i = 0; i < tree->nr_leaves; i++)
		tree->leaf_of[tree->cpu[i]] = (int)i;
	return 0;
}

/* Returns the number of the leaf's group among its siblings. */
static unsigned digit_of(const struct nm_hierarchy *tree, unsigned leaf, unsigned level)
{
	unsigned first = leaf;

	while (first > 0 &&
	       (level == 0 || tree->group[level - 1][first - 1] == tree->group[level - 1][leaf]))
		first--;
	return tree->group[level][leaf] - tree->group[level][first];
}

int nm_hierarchy_new(const struct nm_topology *topology, hwloc_const_bitmap_t cpus,
		     struct nm_hierarchy **ret)
{
	nm_auto(nm_hierarchy_freep) struct nm_hierarchy *tree = nm_must(calloc(1, sizeof(*tree)));

	tree->topology = topology;
	int r = take_cpus(tree, cpus);
	if (r < 0)
		return r;
	for (unsigned level = 0; level < NM_LEVELS; level++) {
		/* Leaves differ at a level if they differ there or at an outer level. */
		unsigned *group = nm_must(calloc(tree->nr_leaves, sizeof(*group)));

		tree->group[level] = group;
		for (unsigned i = 1; i < tree->nr_leaves; i++) {
			bool same = true;
			for (unsigned l = 0; l <= level; l++)
				same = same && key_of(tree->topology, tree->cpu[i - 1], l) ==
						       key_of(tree->topology, tree->cpu[i], l);
			group[i] = group[i - 1] + !same;
		}
	}
	tree->place = nm_must(calloc(tree->nr_leaves, sizeof(*tree->place)));
	for (unsigned level = 0; level < NM_LEVELS; level++)
		for (unsigned i = 0; i < tree->nr_leaves; i++)
			if (digit_of(tree, i, level) >= tree->arity[level])
				tree->arity[level] = digit_of(tree, i, level) + 1;
	unsigned width = 1;
	for (unsigned level = NM_LEVELS; level-- > 0; width *= tree->arity[level]) {
		tree->width[level] = width;
		for (unsigned i = 0; i < tree->nr_leaves; i++)
			tree->place[i] += digit_of(tree, i, level) * width;
	}
	*ret = NM_TAKE(tree);
	return 0;
}

void nm_hierarchy_free(struct nm_hierarchy *tree)
{
	if (!tree)
		return;
	free(tree->cpu);
	free(tree->leaf_of);
	free(tree->place);
	for (unsigned level = 0; level < NM_LEVELS; level++)
		free(tree->group[level]);
	free(tree);
}

unsigned nm_mapping_distance(const struct nm_topology *topology, int a, int b)
{
	const struct nm_cpu *cpu_a = &topology->cpus[a], *cpu_b = &topology->cpus[b];

	if (a == b)
		return 1;
	if (cpu_a->node != cpu_b->node)
		return nm_topology_distance(topology, cpu_a->node, cpu_b->node);
	if (cpu_a->core >= 0 && cpu_a->core == cpu_b->core)
		return NM_MAPPING_CORE;
	return cpu_a->cache >= 0 && cpu_a->cache == cpu_b->cache ? NM_MAPPING_CACHE
								 : NM_MAPPING_LOCAL;
}

double nm_task_load(const struct nm_task *task, size_t thread)
{
	double load = task->threads[thread].load;

	return isnan(load) ? 1 : load;
}
