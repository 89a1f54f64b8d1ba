/* SPDX-License-Identifier: MIT */
/* P, and relative and global performance (IMAR² paper, section 4.3, equations 2–8). */
#include <math.h>

#include "build.h"

#define BIT(kind) (1U << NM_EVENT_##kind)

static const uint32_t needed[] = {
	[NM_PERFORMANCE_PRODUCT] = BIT(MEMORY) | BIT(INSTRUCTIONS) | BIT(FLOPS) | BIT(DRAM),
	[NM_PERFORMANCE_PRODUCT_INSTRUCTIONS] = BIT(MEMORY) | BIT(INSTRUCTIONS) | BIT(DRAM),
	[NM_PERFORMANCE_OPERATIONS] = BIT(INSTRUCTIONS) | BIT(FLOPS),
	[NM_PERFORMANCE_INSTRUCTIONS] = BIT(INSTRUCTIONS),
	[NM_PERFORMANCE_INTENSITY] = BIT(INSTRUCTIONS) | BIT(DRAM),
	[NM_PERFORMANCE_LATENCY] = BIT(MEMORY),
};

static double operations_of(const struct nm_config *config, const struct nm_thread_stats *stats)
{
	if (config->threads.performance == NM_PERFORMANCE_PRODUCT_INSTRUCTIONS)
		return stats->instructions;
	/* With intensity, O is not defined by the setting. */
	if (config->threads.performance == NM_PERFORMANCE_INTENSITY && isnan(stats->operations))
		return stats->instructions;
	return stats->operations;
}

double nm_snapshot_intensity(const struct nm_config *config, const struct nm_thread_stats *stats)
{
	/* O_F contains O_R. */
	double operations = config->rules.paper ? stats->operations - stats->instructions
						: operations_of(config, stats);
	return operations / stats->traffic;
}

static uint32_t needed_kinds(const struct nm_config *config)
{
	uint32_t kinds = needed[config->threads.performance];
	bool floating = config->rules.paper && (kinds & BIT(DRAM));
	return floating ? kinds | BIT(FLOPS) : kinds;
}

static bool has_latencies(const struct nm_snapshot *view)
{
	for (size_t i = 0; i < view->nr_threads; i++)
		if (view->threads[i].stats.latency_samples > 0)
			return true;
	return false;
}

/* A source of memory samples that never contains a latency provides no L. */
static uint32_t kinds_of(const struct nm_snapshot_input *input, const struct nm_snapshot *view)
{
	if (view->has_latencies || input->had_latencies)
		return input->kinds | BIT(MEMORY);
	return input->kinds & ~BIT(MEMORY);
}

/* The paper prints P := L (equation 5), but P must increase with the performance. */
static double performance_of(const struct nm_config *config, const struct nm_snap_thread *thread)
{
	/* This interval's latency if it has enough samples, so that P follows changes of the
	 * program at once. */
	double latency = thread->stats.latency_samples >= config->rules.min_samples
				 ? thread->stats.latency
				 : thread->stats.recent_latency;
	switch (config->threads.performance) {
	case NM_PERFORMANCE_PRODUCT:
		return thread->stats.operations * thread->intensity / latency;
	case NM_PERFORMANCE_PRODUCT_INSTRUCTIONS:
		return thread->stats.instructions * thread->intensity / latency;
	case NM_PERFORMANCE_OPERATIONS:
		return thread->stats.operations;
	case NM_PERFORMANCE_INSTRUCTIONS:
		return thread->stats.instructions;
	case NM_PERFORMANCE_INTENSITY:
		return thread->intensity;
	case NM_PERFORMANCE_LATENCY:
		return 1 / latency;
	}
	return NAN;
}

/* Uses latency samples if there are any: the accesses of the local access ratio are only those
 * served by DRAM. */
static bool has_evidence(const struct nm_config *config, const struct nm_snap_thread *thread,
			 bool by_latency)
{
	if (by_latency)
		return thread->stats.recent_latency_samples >= (double)config->rules.min_samples;
	return thread->stats.access_samples >= (double)config->rules.min_samples;
}

/*
 * The distance of local memory divided by the mean distance of the accesses; 1 if all are local.
 * The local access ratio alone would rate all remote nodes equally, and a ratio of two values near
 * 0 has no meaning.
 */
static double locality_of(const struct nm_snapshot_input *input,
			  const struct nm_snap_thread *thread)
{
	const struct nm_topology *topology = input->topology;
	bool fresh = thread->stats.fresh_samples >= input->config->rules.min_samples;
	double accesses = 0, distance = 0;
	int home = thread->stats.main_node;
	if (home < 0)
		return NAN;
	for (int node = 0; node < (int)topology->nr_nodes; node++) {
		/* Those of this interval if they suffice, so that P follows changes at once. */
		double count = fresh ? thread->stats.fresh[node] : thread->stats.accesses[node];
		accesses += count;
		distance += count * nm_topology_distance(topology, home, node);
	}
	return accesses * nm_topology_distance(topology, home, home) / distance;
}

/* If threads wait for CPUs, their share of a CPU is equally important. */
static double substitute_of(const struct nm_snapshot_input *input,
			    const struct nm_snap_thread *thread)
{
	double locality = locality_of(input, thread);
	if (input->config->threads.policy == NM_POLICY_BALANCE)
		return locality * thread->stats.run_share;
	return locality;
}

/* Threads that queue run little, and balancing is judged by how much they run. */
static bool has_run(const struct nm_config *config, const struct nm_snap_thread *thread)
{
	return thread->active ||
	       (config->threads.policy == NM_POLICY_BALANCE && thread->stats.run_share > 0);
}

static void measure(const struct nm_snapshot_input *input, struct nm_snap_thread *thread,
		    bool by_locality, bool by_latency)
{
	const struct nm_config *config = input->config;
	double performance =
		by_locality ? substitute_of(input, thread) : performance_of(config, thread);
	bool enough = has_evidence(config, thread, by_latency);
	thread->undersampled = thread->active && !enough;
	thread->measured = has_run(config, thread) && isfinite(performance) && enough;
	if (thread->measured)
		thread->performance = performance;
}

/* The mean in equations 2 and 3 is over all threads; one that was not measured counts as 0. */
static unsigned divisor_of(const struct nm_config *config, const struct nm_snap_process *process)
{
	return config->rules.paper && process->measured > 0 ? process->threads : process->measured;
}

void nm_snapshot_fill_performance(const struct nm_snapshot_input *input,
				  struct nm_snapshot_storage *storage)
{
	struct nm_snapshot *view = &storage->view;
	const struct nm_config *config = input->config;
	view->has_latencies = has_latencies(view);
	uint32_t kinds = kinds_of(input, view);
	view->missing = needed_kinds(config) & ~kinds;
	bool by_locality = view->missing;
	view->by_locality = by_locality;
	for (size_t i = 0; i < view->nr_threads; i++) {
		struct nm_snap_thread *thread = &view->threads[i];
		struct nm_snap_process *process = &view->processes[thread->process];
		measure(input, thread, by_locality, !by_locality && (kinds & BIT(MEMORY)));
		view->active += thread->active;
		view->undersampled += thread->undersampled;
		if (!thread->measured)
			continue;
		view->measured++;
		view->performance += thread->performance;
		process->measured++;
		process->performance += thread->performance;
	}
	for (size_t i = 0; i < view->nr_processes; i++)
		view->processes[i].performance /= divisor_of(config, &view->processes[i]);
	for (size_t i = 0; i < view->nr_threads; i++) {
		struct nm_snap_thread *thread = &view->threads[i];
		double mean = view->processes[thread->process].performance;
		if (thread->measured && mean > 0)
			thread->relative = thread->performance / mean;
	}
}
