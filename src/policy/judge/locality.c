/* SPDX-License-Identifier: MIT */
#include <math.h>

#include "locality.h"

/* Mean cost of an access relative to a local one, and the variance of that mean. */
struct cost {
	double mean, variance;
};

struct costs {
	struct cost before, after;
	double weight;
};

bool nm_verdict_is_sampled(const struct nm_verdict_thread *thread, const struct nm_config *config)
{
	return thread->accesses_after > 0 && thread->samples_after >= config->rules.min_samples;
}

static double highest_cost(const struct nm_topology *topology)
{
	double highest = 1;
	for (int from = 0; from < (int)topology->nr_nodes; from++)
		for (int to = 0; to < (int)topology->nr_nodes; to++)
			highest = fmax(highest, (double)nm_topology_distance(topology, from, to) /
							nm_topology_distance(topology, from, from));
	return highest;
}

static void add_cost(struct cost *sum, double mean, double samples, double weight, double highest)
{
	sum->mean += weight * mean;
	sum->variance +=
		weight * weight * fmax(0, (mean - 1) * (highest - mean)) / fmax(samples, 1);
}

static struct costs costs_of(const struct nm_verdict *verdict, const struct nm_config *config,
			     double highest)
{
	struct costs costs = {0};
	for (unsigned i = 0; i < verdict->nr_threads; i++) {
		const struct nm_verdict_thread *thread = &verdict->threads[i];
		double weight = (double)thread->accesses_after;
		if (!thread->alive || !nm_verdict_is_sampled(thread, config) ||
		    isnan(thread->access_cost_before))
			continue;
		add_cost(&costs.before, thread->access_cost_before, thread->samples_before, weight,
			 highest);
		add_cost(&costs.after, thread->access_cost_after, (double)thread->samples_after,
			 weight, highest);
		costs.weight += weight;
	}
	return costs;
}

/* Locality is the reciprocal of the cost. */
static double locality_variance(const struct cost *cost, double weight)
{
	double mean = cost->mean / weight;
	return cost->variance / (weight * weight) / (mean * mean * mean * mean);
}

void nm_verdict_measure_locality(struct nm_verdict *verdict, const struct nm_topology *topology,
				 const struct nm_config *config)
{
	struct costs costs = costs_of(verdict, config, highest_cost(topology));
	verdict->locality_before = verdict->locality_after = verdict->locality_noise = NAN;
	if (!(costs.weight > 0))
		return;
	verdict->locality_before = costs.weight / costs.before.mean;
	verdict->locality_after = costs.weight / costs.after.mean;
	verdict->locality_noise =
		config->rules.gate_sigmas * sqrt(locality_variance(&costs.before, costs.weight) +
						 locality_variance(&costs.after, costs.weight));
}

struct nm_change nm_locality_change(double change, double noise)
{
	return nm_change_of(change, fmax(NM_GATE_MARGIN, noise), NM_GATE_MARGIN);
}
