/* SPDX-License-Identifier: MIT */
/*
 * kmaf_moves_ms_8k is the time to turn a mapping of 8,000 threads, each of which shares with its
 * neighbours, into moves that fit and are useful. Threads are on random CPUs, and all move at once.
 * kmaf_moves_growth_exponent is the exponent k of the growth, time ~ threads^k, from 1,000 to 8,000
 * threads.
 */
#include <math.h>

#include "../../src/policy/mapping/mapping.h"
#include "../support/interval.h"
#include "bench.h"
#include "numa-migrd/base.h"
#include "policy/policy.h"

#define NODES 4U
#define CPUS_PER_NODE 64U
#define CPUS (NODES * CPUS_PER_NODE)
#define FEW 1000U
#define MANY 8000U
#define REACH 4U /* neighbours on each side that share with a thread */
#define REPETITIONS 5U

static void must(bool done)
{
	if (done)
		return;
	fprintf(stderr, "bench: out of memory\n");
	exit(EXIT_FAILURE);
}

/* A ring of threads. */
static struct nm_affinity_graph make_ring(size_t threads)
{
	struct nm_affinity_graph graph = {
		.nr_threads = threads,
		.first = calloc(threads + 1, sizeof(uint32_t)),
		.partner = calloc(threads * 2 * REACH, sizeof(uint32_t)),
		.weight = calloc(threads * 2 * REACH, sizeof(uint32_t)),
	};
	must(graph.first && graph.partner && graph.weight);
	uint32_t arcs = 0;
	for (size_t i = 0; i < threads; i++) {
		for (unsigned k = 1; k <= REACH; k++, arcs += 2) {
			graph.partner[arcs] = (uint32_t)((i + k) % threads);
			graph.partner[arcs + 1] = (uint32_t)((i + threads - k) % threads);
			graph.weight[arcs] = graph.weight[arcs + 1] = 1000;
		}
		graph.first[i + 1] = arcs;
	}
	return graph;
}

static double measure(size_t threads)
{
	struct machine *machine = machine_of_size(NODES, CPUS_PER_NODE, 1, threads);
	struct nm_affinity_graph graph = make_ring(threads);
	int *cpus = calloc(threads, sizeof(*cpus));
	double ms[REPETITIONS];
	struct nm_rng rng;

	must(cpus);
	nm_rng_seed(&rng, 5);
	machine->config.threads.policy = NM_POLICY_KMAF;
	machine->config.rules.moves_per_interval = 4096;
	for (size_t i = 0; i < threads; i++) {
		size_t thread = machine_thread(machine, 10 + (uint32_t)nm_rng_below(&rng, 4),
					       (int)nm_rng_below(&rng, CPUS), -1);
		machine->sampled[thread].stats.run_share = nm_rng_unit(&rng);
		cpus[i] = (int)(i * CPUS / threads);
	}
	nm_auto(nm_snapshot_freep) struct nm_snapshot *snapshot = machine_snapshot(machine);
	const struct nm_mapping mapping = {.nr_threads = threads, .cpu = cpus, .worthwhile = true};
	for (unsigned i = 0; i < REPETITIONS; i++) {
		struct nm_proposals proposals = {0};
		double start = bench_cpu_ns();
		nm_kmaf_moves(snapshot, &machine->config, &graph, &mapping, &proposals);
		ms[i] = (bench_cpu_ns() - start) / 1e6;
		if (i == 0)
			fprintf(stderr, "%zu threads: %zu proposals\n", threads, proposals.count);
		nm_proposals_clear(&proposals);
	}
	free(graph.first);
	free(graph.partner);
	free(graph.weight);
	free(cpus);
	machine_free(machine);
	return bench_median(ms, REPETITIONS);
}

int main(void)
{
	double few = measure(FEW), many = measure(MANY);

	bench_print("kmaf_moves_ms_8k", many, "ms");
	bench_print("kmaf_moves_growth_exponent", log(many / few) / log(MANY / (double)FEW),
		    "exponent");
	return EXIT_SUCCESS;
}
