/* SPDX-License-Identifier: MIT */
#include <math.h>

#include "numa-migrd/base.h"
#include "sharing.h"

struct sum {
	const struct nm_snapshot *snapshot;
	struct nm_sharing_place *places;
	struct nm_tidmap *first_of; /* index of the first place of each thread */
};

/* Adds a partner that runs on node `there`. */
static void add_at(const struct nm_topology *topology, struct nm_sharing_place *place, int there,
		   double weight)
{
	double from = 0, to = 0;
	if (place->node_from >= 0)
		from = nm_topology_distance(topology, place->node_from, there);
	if (place->node_to >= 0)
		to = nm_topology_distance(topology, place->node_to, there);
	place->before += weight * from;
	place->after += weight * to;
	place->variance += weight * (from - to) * (from - to);
}

static void add_partner(struct sum *sum, uint32_t tid, uint32_t partner, uint32_t weight)
{
	const struct nm_topology *topology = sum->snapshot->topology;
	uint32_t at = nm_tidmap_get(sum->first_of, tid);
	if (at == NM_TIDMAP_NONE)
		return;
	const struct nm_snap_thread *other = nm_snapshot_thread(sum->snapshot, partner);
	int there = other ? nm_topology_node_of_cpu(topology, other->stats.main_cpu) : -1;
	if (there < 0)
		return;
	for (; at != NM_TIDMAP_NONE; at = sum->places[at].next)
		add_at(topology, &sum->places[at], there, weight);
}

static void add_pair(void *context, uint32_t tid_a, uint32_t tid_b, uint32_t weight)
{
	add_partner(context, tid_a, tid_b, weight);
	add_partner(context, tid_b, tid_a, weight);
}

static void index_places(struct nm_tidmap *first_of, struct nm_sharing_place *places, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct nm_sharing_place *place = &places[i];
		place->before = place->node_from < 0 ? (double)NAN : 0;
		place->after = place->node_to < 0 ? (double)NAN : 0;
		place->variance = 0;
		place->next = nm_tidmap_get(first_of, place->tid);
		(void)nm_tidmap_set(first_of, place->tid, (uint32_t)i);
	}
}

void nm_sharing_costs(const struct nm_affinity *affinity, const struct nm_snapshot *snapshot,
		      struct nm_sharing_place *places, size_t count)
{
	nm_auto(nm_tidmap_freep) struct nm_tidmap *first_of = nm_tidmap_new();
	index_places(first_of, places, count);
	struct sum sum = {.snapshot = snapshot, .places = places, .first_of = first_of};
	nm_affinity_each(affinity, add_pair, &sum);
}

/* ---- access latency ---- */

struct latency_sums {
	double before, after, variance;
};

/* The relative error of a mean over n samples is taken to be 1/√n, because the spread of latencies
 * is about as large as their mean. */
static void add_latencies(const struct nm_verdict *verdict, struct latency_sums *sums)
{
	for (unsigned i = 0; i < verdict->nr_threads; i++) {
		const struct nm_verdict_thread *thread = &verdict->threads[i];
		if (!thread->alive || isnan(thread->latency_before) ||
		    isnan(thread->latency_after) || !(thread->latency_samples_before > 0))
			continue;
		double weight = thread->latency_samples_after;
		double after = weight * thread->latency_after;
		sums->before += weight * thread->latency_before;
		sums->after += after;
		sums->variance += after * after * (1 / thread->latency_samples_before + 1 / weight);
	}
}

/* Orders by placement and process: these threads were moved together. */
static int compare_placements(const struct nm_verdict *a, const struct nm_verdict *b)
{
	uint32_t pid_a = a->threads[0].pid, pid_b = b->threads[0].pid;
	if (a->intervals != b->intervals)
		return a->intervals > b->intervals ? -1 : 1;
	if (pid_a != pid_b)
		return pid_a < pid_b ? -1 : 1;
	return NM_COMPARE(a->of, b->of);
}

/* Within such a set, orders by decision, so that sums are the same on any machine. */
static int by_placement(const void *one, const void *other)
{
	const struct nm_verdict *const *a = one, *const *b = other;
	int order = compare_placements(*a, *b);
	return order ? order : NM_COMPARE((*a)->decision, (*b)->decision);
}

static void compare_set(struct nm_verdict **verdicts, size_t count, const struct nm_config *config)
{
	struct latency_sums sums = {0};
	for (size_t i = 0; i < count; i++)
		add_latencies(verdicts[i], &sums);
	for (size_t i = 0; i < count && sums.before > 0; i++) {
		verdicts[i]->slowdown = sums.after / sums.before;
		verdicts[i]->slowdown_noise =
			config->rules.gate_sigmas * sqrt(sums.variance) / sums.before;
	}
}

void nm_sharing_compare_latencies(struct nm_verdict **verdicts, size_t count,
				  const struct nm_config *config)
{
	size_t next;
	qsort(verdicts, count, sizeof(struct nm_verdict *), by_placement);
	for (size_t first = 0; first < count; first = next) {
		next = first + 1;
		while (next < count && compare_placements(verdicts[first], verdicts[next]) == 0)
			next++;
		compare_set(verdicts + first, next - first, config);
	}
}
