/* SPDX-License-Identifier: MIT */
/* Overloaded machines for tests and benches of balancing: threads, groups, pages, masks. */
#ifndef NUMA_MIGRD_TESTS_BALANCE_FIXTURE_H
#define NUMA_MIGRD_TESTS_BALANCE_FIXTURE_H

#include <math.h>

#include "machine.h"
#include "numa-migrd/balance.h"

struct crowd {
	struct nm_topology *topology;
	struct nm_balance_thread *threads;
	struct nm_selection_group *groups;
	double *resident;      /* nr_nodes per group */
	uint32_t *members;     /* as above */
	hwloc_bitmap_t *masks; /* per thread */
	double *other, *factors;
	enum nm_dtas_type *types;
	size_t most_threads, most_groups;
	struct nm_balance_input input;
	struct nm_balance_rules rules;
	struct nm_balance_state state;
};

static inline struct nm_balance_rules crowd_rules(enum nm_selection selection)
{
	return (struct nm_balance_rules){.selection = selection,
					 .begin = 0.5,
					 .end = 0.25,
					 .persist = 1,
					 .overload = 1,
					 .min_gain = 0,
					 .max_moves = 64,
					 .idle_max = 0.05};
}

/* The rules of the papers: any gap and any gain suffices, and a CPU takes only its own type. */
static inline struct nm_balance_rules crowd_paper(enum nm_selection selection)
{
	return (struct nm_balance_rules){.selection = selection,
					 .begin = -INFINITY,
					 .end = -INFINITY,
					 .persist = 1,
					 .min_gain = -INFINITY,
					 .max_moves = 1};
}

static inline void *crowd_array(size_t count, size_t size)
{
	void *array = calloc(count + 1, size);
	if (!array)
		abort();
	return array;
}

static inline struct crowd *crowd_new(unsigned nodes, unsigned cpus, size_t most_threads)
{
	struct crowd *crowd = crowd_array(1, sizeof(*crowd));
	crowd->topology = machine_topology(nodes, cpus);
	if (!crowd->topology)
		abort();
	crowd->most_threads = crowd->most_groups = most_threads;
	crowd->threads = crowd_array(most_threads, sizeof(*crowd->threads));
	crowd->masks = crowd_array(most_threads, sizeof(hwloc_bitmap_t));
	crowd->groups = crowd_array(most_threads, sizeof(*crowd->groups));
	crowd->resident = crowd_array(most_threads * nodes, sizeof(double));
	crowd->members = crowd_array(most_threads * nodes, sizeof(uint32_t));
	crowd->other = crowd_array(cpus, sizeof(double));
	crowd->types = crowd_array(cpus, sizeof(enum nm_dtas_type));
	crowd->factors = crowd_array((size_t)nodes * nodes, sizeof(double));
	nm_selection_factors(crowd->topology, crowd->factors);
	crowd->input = (struct nm_balance_input){.topology = crowd->topology,
						 .threads = crowd->threads,
						 .groups = crowd->groups,
						 .other_load = crowd->other,
						 .factors = crowd->factors};
	crowd->rules = crowd_rules(NM_SELECTION_MOST_BENEFIT);
	return crowd;
}

static inline void crowd_free(struct crowd *crowd)
{
	for (size_t i = 0; i < crowd->input.nr_threads; i++)
		hwloc_bitmap_free(crowd->masks[i]);
	nm_topology_free(crowd->topology);
	free(crowd->threads);
	free(crowd->masks);
	free(crowd->groups);
	free(crowd->resident);
	free(crowd->members);
	free(crowd->other);
	free(crowd->types);
	free(crowd->factors);
	free(crowd);
}

/* A process without threads and pages. */
static inline uint32_t crowd_group(struct crowd *crowd, int leader_node)
{
	size_t i = crowd->input.nr_groups++, nodes = crowd->topology->nr_nodes;
	if (i >= crowd->most_groups)
		abort();
	crowd->groups[i] = (struct nm_selection_group){.resident = crowd->resident + i * nodes,
						       .members = crowd->members + i * nodes,
						       .leader_node = leader_node};
	return (uint32_t)i;
}

static inline void crowd_pages(struct crowd *crowd, uint32_t group, unsigned node, double pages)
{
	crowd->resident[group * (size_t)crowd->topology->nr_nodes + node] = pages;
}

/* Adds a thread that ran or waited all the time, beside the others of its CPU; ids ascend. */
static inline size_t crowd_thread(struct crowd *crowd, uint32_t group, int cpu, bool leader)
{
	size_t i = crowd->input.nr_threads++;
	if (i >= crowd->most_threads)
		abort();
	int node = nm_topology_node_of_cpu(crowd->topology, cpu);
	if (node >= 0)
		crowd->members[group * (size_t)crowd->topology->nr_nodes + (size_t)node]++;
	crowd->masks[i] = hwloc_bitmap_dup(crowd->topology->usable);
	crowd->threads[i] = (struct nm_balance_thread){.start_ticks = 1000 + i,
						       .tid = 100 + (uint32_t)i,
						       .group = group,
						       .cpu = cpu,
						       .load = 1,
						       .waiting = cpu >= 0,
						       .leader = leader,
						       .movable = true,
						       .allowed = crowd->masks[i]};
	return i;
}

/* Adds N programs of one thread each on a CPU, with their pages on a node. */
static inline void crowd_programs(struct crowd *crowd, int cpu, unsigned count, unsigned memory)
{
	for (unsigned i = 0; i < count; i++) {
		uint32_t group = crowd_group(crowd, nm_topology_node_of_cpu(crowd->topology, cpu));
		crowd_pages(crowd, group, memory, 10);
		crowd_thread(crowd, group, cpu, true);
	}
}

/* Applies the moves. */
static inline void crowd_apply(struct crowd *crowd, const struct nm_balance_result *result)
{
	for (size_t i = 0; i < result->count; i++) {
		const struct nm_balance_move *move = &result->moves[i];
		struct nm_balance_thread *thread = &crowd->threads[move->thread];
		uint32_t *members =
			crowd->members + thread->group * (size_t)crowd->topology->nr_nodes;
		thread->cpu = move->cpu_to;
		members[move->node_from]--;
		members[move->node_to]++;
		if (thread->leader)
			crowd->groups[thread->group].leader_node = move->node_to;
	}
}

#endif
