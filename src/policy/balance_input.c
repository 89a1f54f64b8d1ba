/* SPDX-License-Identifier: MIT */
#include <math.h>

#include "numa-migrd/balance.h"

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

/* Returns whether the CPU was so busy in the interval that threads may have waited; false if not
 * known. */
static bool is_saturated(const struct nm_snap_cpu *cpu)
{
	return cpu->usable && cpu->busy_share >= 1 - NM_WAIT_SHARE;
}

/* Returns the maximum demand on the CPU: all its threads may have waited all the time. */
static double max_load(const struct nm_snap_cpu *cpu)
{
	if (!is_saturated(cpu))
		return isnan(cpu->busy_share) ? 0 : cpu->busy_share;
	return cpu->nr_main_threads > 1 ? cpu->nr_main_threads : 1;
}

struct span {
	double most, least; /* sums over a node's usable CPUs */
	unsigned cpus;
};

/* Returns the largest difference between the loads of two nodes that is possible. */
static double widest_gap(const struct nm_snapshot *snapshot)
{
	const struct nm_topology *topology = snapshot->topology;
	nm_autofree struct span *spans = nm_must(calloc(topology->nr_nodes + 1U, sizeof(*spans)));
	for (unsigned i = 0; i < topology->nr_cpus; i++) {
		const struct nm_snap_cpu *cpu = &snapshot->cpus[i];
		if (!cpu->usable || cpu->node < 0)
			continue;
		spans[cpu->node].most += max_load(cpu);
		spans[cpu->node].least += isnan(cpu->busy_share) ? 0 : cpu->busy_share;
		spans[cpu->node].cpus++;
	}
	double most = 0, least = INFINITY;
	for (unsigned k = 0; k < topology->nr_nodes; k++) {
		if (spans[k].cpus == 0)
			continue;
		most = fmax(most, spans[k].most / spans[k].cpus);
		least = fmin(least, spans[k].least / spans[k].cpus);
	}
	return most - least;
}

struct queue {
	uint32_t cpu;
	unsigned nr_main_threads;
};

static int by_thread_count(const void *left, const void *right)
{
	const struct queue *a = left, *b = right;
	return NM_COMPARE(b->nr_main_threads, a->nr_main_threads) ?: NM_COMPARE(a->cpu, b->cpu);
}

void nm_balance_select_threads(const struct nm_snapshot *snapshot,
			       const struct nm_balance_rules *rules, size_t most,
			       uint32_t *ret_threads, size_t *ret_count)
{
	unsigned nr_cpus = snapshot->topology->nr_cpus;
	*ret_count = 0;
	if (!(widest_gap(snapshot) > rules->end))
		return;
	/* A thread that is alone on its CPU is listed, too: unmanaged tasks may have made it
	 * wait. */
	nm_autofree struct queue *queues = nm_must(calloc(nr_cpus + 1U, sizeof(*queues)));
	size_t nr_queues = 0, count = 0;
	for (unsigned cpu = 0; cpu < nr_cpus; cpu++)
		if (is_saturated(&snapshot->cpus[cpu]))
			queues[nr_queues++] = (struct queue){
				.cpu = cpu, .nr_main_threads = snapshot->cpus[cpu].nr_main_threads};
	qsort(queues, nr_queues, sizeof(*queues), by_thread_count);
	for (size_t i = 0; i < nr_queues; i++) {
		const struct nm_snap_cpu *cpu = &snapshot->cpus[queues[i].cpu];
		for (unsigned k = 0; k < cpu->nr_main_threads && count < most; k++)
			ret_threads[count++] = snapshot->main_threads[cpu->first_main_thread + k];
	}
	*ret_count = count;
}

void nm_balance_input_clear(struct nm_balance_input_arrays *arrays)
{
	free(arrays->threads);
	free(arrays->groups);
	free(arrays->resident);
	free(arrays->other_load);
	free(arrays->factors);
	free(arrays->members);
	*arrays = (struct nm_balance_input_arrays){0};
}

static double load_of(const struct nm_balance_measurements *measurements, size_t i)
{
	const struct nm_snap_thread *thread = &measurements->snapshot->threads[i];
	const struct nm_balance_times *times = measurements->times ? &measurements->times[i] : NULL;
	if (thread->main_cpu < 0)
		return 0;
	if (times && times->length_ns > 0)
		return nm_balance_load(times->run_ns, times->delay_ns, times->length_ns);
	if (is_saturated(&measurements->snapshot->cpus[thread->main_cpu]))
		return NAN;
	return thread->run_share;
}

static void take_thread(const struct nm_balance_measurements *measurements, size_t i,
			struct nm_balance_input_arrays *arrays)
{
	const struct nm_snap_thread *thread = &measurements->snapshot->threads[i];
	const struct nm_topology *topology = measurements->snapshot->topology;
	const struct nm_balance_times *times = measurements->times ? &measurements->times[i] : NULL;
	int node = nm_topology_node_of_cpu(topology, thread->main_cpu);
	double load = load_of(measurements, i);
	arrays->threads[i] = (struct nm_balance_thread){
		.start_ticks = thread->start_ticks,
		.tid = thread->tid,
		.group = thread->process,
		.cpu = thread->main_cpu,
		.load = load,
		.waiting = times && times->length_ns > 0 &&
			   nm_balance_waits(times->delay_ns, times->length_ns),
		.leader = thread->tid == thread->pid,
		.movable = thread->movable && thread->main_node >= 0,
		.everywhere = thread->everywhere,
		.allowed = thread->allowed,
		.type = measurements->types ? measurements->types[i] : NM_DTAS_EITHER,
	};
	if (node < 0)
		return;
	arrays->members[thread->process * (size_t)topology->nr_nodes + (size_t)node]++;
	if (thread->tid == thread->pid && (thread->active || load >= measurements->min_run))
		arrays->groups[thread->process].leader_node = node;
}

static void take_groups(const struct nm_balance_measurements *measurements,
			struct nm_balance_input_arrays *arrays)
{
	const struct nm_topology *topology = measurements->snapshot->topology;
	size_t nr_nodes = topology->nr_nodes;
	for (size_t i = 0; i < measurements->snapshot->nr_processes; i++) {
		const double *known = measurements->resident ? measurements->resident[i] : NULL;
		double *pages = arrays->resident + i * nr_nodes;
		arrays->groups[i] =
			(struct nm_selection_group){.resident = known ? pages : NULL,
						    .members = arrays->members + i * nr_nodes,
						    .leader_node = -1};
		for (size_t k = 0; known && k < nr_nodes; k++)
			pages[topology->nodes[k].nearest_with_cpus] += known[k];
	}
}

void nm_balance_input_build(const struct nm_balance_measurements *measurements,
			    struct nm_balance_input_arrays *ret)
{
	const struct nm_snapshot *snapshot = measurements->snapshot;
	nm_auto(nm_balance_input_clear) struct nm_balance_input_arrays arrays = {0};
	size_t nr_nodes = snapshot->topology->nr_nodes, nr_cpus = snapshot->topology->nr_cpus;
	size_t cells = snapshot->nr_processes * nr_nodes;
	arrays.threads = nm_must(calloc(snapshot->nr_threads + 1, sizeof(*arrays.threads)));
	arrays.groups = nm_must(calloc(snapshot->nr_processes + 1, sizeof(*arrays.groups)));
	arrays.resident = nm_must(calloc(cells + 1, sizeof(*arrays.resident)));
	arrays.members = nm_must(calloc(cells + 1, sizeof(*arrays.members)));
	arrays.other_load = nm_must(calloc(nr_cpus + 1, sizeof(*arrays.other_load)));
	arrays.factors = nm_must(calloc(nr_nodes * nr_nodes + 1, sizeof(*arrays.factors)));
	take_groups(measurements, &arrays);
	for (size_t i = 0; i < snapshot->nr_threads; i++)
		take_thread(measurements, i, &arrays);
	for (unsigned cpu = 0; cpu < snapshot->topology->nr_cpus; cpu++)
		arrays.other_load[cpu] = snapshot->cpus[cpu].busy_share;
	for (size_t i = 0; i < snapshot->nr_threads; i++) {
		const struct nm_snap_thread *thread = &snapshot->threads[i];
		if (thread->main_cpu < 0)
			continue;
		double *rest = &arrays.other_load[thread->main_cpu];
		double ran = isnan(thread->run_share) ? 1 : thread->run_share;
		*rest = isnan(*rest) ? *rest : fmax(0, *rest - ran);
	}
	nm_selection_factors(snapshot->topology, arrays.factors);
	arrays.input = (struct nm_balance_input){.topology = snapshot->topology,
						 .threads = arrays.threads,
						 .nr_threads = snapshot->nr_threads,
						 .groups = arrays.groups,
						 .nr_groups = snapshot->nr_processes,
						 .other_load = arrays.other_load,
						 .factors = arrays.factors,
						 .cpu_types = measurements->cpu_types};
	*ret = arrays;
	arrays = (struct nm_balance_input_arrays){0};
}
