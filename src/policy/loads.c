/* SPDX-License-Identifier: MIT */
#include <math.h>

#include "loads.h"

double nm_balance_load(uint64_t run_ns, uint64_t delay_ns, uint64_t length_ns)
{
	double load = ((double)run_ns + (double)delay_ns) / (double)length_ns;
	if (length_ns == 0)
		return NAN;
	return load < 1 ? load : 1;
}

bool nm_balance_waits(uint64_t delay_ns, uint64_t length_ns)
{
	return delay_ns > 0 && (double)delay_ns >= NM_WAIT_SHARE * (double)length_ns;
}

double nm_loads_of_node(const struct nm_loads *loads, int node)
{
	return loads->node[node] / loads->cpus[node];
}

double nm_loads_gap(const struct nm_loads *loads)
{
	double least = INFINITY, most = -INFINITY;
	for (unsigned node = 0; node < loads->topology->nr_nodes; node++) {
		if (loads->cpus[node] == 0)
			continue;
		least = fmin(least, nm_loads_of_node(loads, (int)node));
		most = fmax(most, nm_loads_of_node(loads, (int)node));
	}
	return most > least ? most - least : 0;
}

static int node_of_cpu(const struct nm_loads *loads, uint32_t cpu)
{
	return loads->topology->cpus[cpu].node;
}

static bool is_busier(const struct nm_loads *loads, uint32_t a, uint32_t b)
{
	if (loads->cpu[a] != loads->cpu[b])
		return loads->cpu[a] > loads->cpu[b];
	if (node_of_cpu(loads, a) != node_of_cpu(loads, b)) {
		double node_a = nm_loads_of_node(loads, node_of_cpu(loads, a));
		double node_b = nm_loads_of_node(loads, node_of_cpu(loads, b));
		if (node_a != node_b)
			return node_a > node_b;
	}
	return a > b;
}

static int compare_load(const void *a, const void *b, void *loads)
{
	return is_busier(loads, *(const uint32_t *)a, *(const uint32_t *)b) ? -1 : 1;
}

/* Few CPUs change their position after a move, so insertion suffices. */
static void sort_again(struct nm_loads *loads)
{
	for (size_t i = 1; i < loads->count; i++) {
		uint32_t cpu = loads->order[i];
		size_t at = i;
		for (; at > 0 && is_busier(loads, cpu, loads->order[at - 1]); at--)
			loads->order[at] = loads->order[at - 1];
		loads->order[at] = cpu;
	}
}

void nm_loads_move(struct nm_loads *loads, int from, int to, double load)
{
	loads->cpu[from] -= load;
	loads->node[node_of_cpu(loads, (uint32_t)from)] -= load;
	loads->cpu[to] += load;
	loads->node[node_of_cpu(loads, (uint32_t)to)] += load;
	sort_again(loads);
}

void nm_loads_clear(struct nm_loads *loads)
{
	free(loads->cpu);
	free(loads->node);
	free(loads->cpus);
	free(loads->order);
	*loads = (struct nm_loads){0};
}

static void sum_cpus(struct nm_loads *loads, const struct nm_balance_input *input)
{
	for (unsigned cpu = 0; input->other_load && cpu < loads->topology->nr_cpus; cpu++)
		loads->cpu[cpu] = isnan(input->other_load[cpu]) ? 1 : input->other_load[cpu];
	for (size_t i = 0; i < input->nr_threads; i++) {
		const struct nm_balance_thread *thread = &input->threads[i];
		if (thread->cpu >= 0) /* unknown counts as a whole CPU */
			loads->cpu[thread->cpu] += isnan(thread->load) ? 1 : thread->load;
	}
}

static void sum_nodes(struct nm_loads *loads)
{
	for (unsigned cpu = 0; cpu < loads->topology->nr_cpus; cpu++) {
		int node = node_of_cpu(loads, cpu);
		if (node < 0 || !hwloc_bitmap_isset(loads->topology->usable, cpu))
			continue;
		loads->node[node] += loads->cpu[cpu];
		loads->cpus[node]++;
		loads->order[loads->count++] = cpu;
	}
}

void nm_loads_init(struct nm_loads *loads, const struct nm_balance_input *input)
{
	const struct nm_topology *topology = input->topology;
	*loads = (struct nm_loads){
		.topology = topology,
		.cpu = nm_must(calloc(topology->nr_cpus + 1U, sizeof(*loads->cpu))),
		.node = nm_must(calloc(topology->nr_nodes + 1U, sizeof(*loads->node))),
		.cpus = nm_must(calloc(topology->nr_nodes + 1U, sizeof(*loads->cpus))),
		.order = nm_must(calloc(topology->nr_cpus + 1U, sizeof(*loads->order))),
	};
	sum_cpus(loads, input);
	sum_nodes(loads);
	qsort_r(loads->order, loads->count, sizeof(*loads->order), compare_load, loads);
}
