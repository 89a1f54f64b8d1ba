/* SPDX-License-Identifier: MIT */
/* Overloaded machines for tests and benches of balancing: threads, groups, pages, affinities. */
#ifndef NUMA_MIGRD_TESTS_BALANCE_FIXTURE_H
#define NUMA_MIGRD_TESTS_BALANCE_FIXTURE_H

#include <math.h>

#include "machine.h"
#include "numa-migrd/balance.h"

struct workload {
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

static inline struct nm_balance_rules workload_rules(enum nm_selection selection)
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
static inline struct nm_balance_rules workload_paper(enum nm_selection selection)
{
	return (struct nm_balance_rules){.selection = selection,
					 .begin = -INFINITY,
					 .end = -INFINITY,
					 .persist = 1,
					 .min_gain = -INFINITY,
					 .max_moves = 1};
}

static inline void *workload_array(size_t count, size_t size)
{
	void *array = calloc(count + 1, size);
	if (!array)
		abort();
	return array;
}

static inline struct workload *workload_new(unsigned nodes, unsigned cpus, size_t most_threads)
{
	struct workload *workload = workload_array(1, sizeof(*workload));
	workload->topology = machine_topology(nodes, cpus);
	if (!workload->topology)
		abort();
	workload->most_threads = workload->most_groups = most_threads;
	workload->threads = workload_array(most_threads, sizeof(*workload->threads));
	workload->masks = workload_array(most_threads, sizeof(hwloc_bitmap_t));
	workload->groups = workload_array(most_threads, sizeof(*workload->groups));
	workload->resident = workload_array(most_threads * nodes, sizeof(double));
	workload->members = workload_array(most_threads * nodes, sizeof(uint32_t));
	workload->other = workload_array(cpus, sizeof(double));
	workload->types = workload_array(cpus, sizeof(enum nm_dtas_type));
	workload->factors = workload_array((size_t)nodes * nodes, sizeof(double));
	nm_selection_factors(workload->topology, workload->factors);
	workload->input = (struct nm_balance_input){.topology = workload->topology,
						    .threads = workload->threads,
						    .groups = workload->groups,
						    .other_load = workload->other,
						    .factors = workload->factors};
	workload->rules = workload_rules(NM_SELECTION_MOST_BENEFIT);
	return workload;
}

static inline void workload_free(struct workload *workload)
{
	for (size_t i = 0; i < workload->input.nr_threads; i++)
		hwloc_bitmap_free(workload->masks[i]);
	nm_topology_free(workload->topology);
	free(workload->threads);
	free(workload->masks);
	free(workload->groups);
	free(workload->resident);
	free(workload->members);
	free(workload->other);
	free(workload->types);
	free(workload->factors);
	free(workload);
}

/* A process without threads and pages. */
static inline uint32_t workload_group(struct workload *workload, int leader_node)
{
	size_t i = workload->input.nr_groups++, nodes = workload->topology->nr_nodes;
	if (i >= workload->most_groups)
		abort();
	workload->groups[i] =
		(struct nm_selection_group){.resident = workload->resident + i * nodes,
					    .members = workload->members + i * nodes,
					    .leader_node = leader_node};
	return (uint32_t)i;
}

static inline void workload_pages(struct workload *workload, uint32_t group, unsigned node,
				  double pages)
{
	workload->resident[group * (size_t)workload->topology->nr_nodes + node] = pages;
}

/* Adds a thread that ran or waited all the time, beside the others of its CPU; ids ascend. */
static inline size_t workload_thread(struct workload *workload, uint32_t group, int cpu,
				     bool leader)
{
	size_t i = workload->input.nr_threads++;
	if (i >= workload->most_threads)
		abort();
	int node = nm_topology_node_of_cpu(workload->topology, cpu);
	if (node >= 0)
		workload->members[group * (size_t)workload->topology->nr_nodes + (size_t)node]++;
	workload->masks[i] = hwloc_bitmap_dup(workload->topology->usable);
	workload->threads[i] = (struct nm_balance_thread){.start_ticks = 1000 + i,
							  .tid = 100 + (uint32_t)i,
							  .group = group,
							  .cpu = cpu,
							  .load = 1,
							  .waiting = cpu >= 0,
							  .leader = leader,
							  .movable = true,
							  .allowed = workload->masks[i]};
	return i;
}

/* Adds N programs of one thread each on a CPU, with their pages on a node. */
static inline void workload_programs(struct workload *workload, int cpu, unsigned count,
				     unsigned memory)
{
	for (unsigned i = 0; i < count; i++) {
		uint32_t group =
			workload_group(workload, nm_topology_node_of_cpu(workload->topology, cpu));
		workload_pages(workload, group, memory, 10);
		workload_thread(workload, group, cpu, true);
	}
}

/* Applies the moves. */
static inline void workload_apply(struct workload *workload, const struct nm_balance_result *result)
{
	for (size_t i = 0; i < result->count; i++) {
		const struct nm_balance_move *move = &result->moves[i];
		struct nm_balance_thread *thread = &workload->threads[move->thread];
		uint32_t *members =
			workload->members + thread->group * (size_t)workload->topology->nr_nodes;
		thread->cpu = move->cpu_to;
		members[move->node_from]--;
		members[move->node_to]++;
		if (thread->leader)
			workload->groups[thread->group].leader_node = move->node_to;
	}
}

#endif
