/* SPDX-License-Identifier: MIT */
/*
 * mapping_ms_1k is the time to map 1,000 threads, all of which share with each other, mostly with
 * threads of similar number, onto 8 nodes of 32 CPUs: pruning of the dense matrix, Scotch, renaming
 * and costs. mapping_prune_ms_1k is the part spent on pruning. mapping_age_ms_1k is the time to age
 * the same matrix.
 */
#include "../../src/policy/mapping/mapping.h"
#include "../support/machine.h"
#include "bench.h"
#include "numa-migrd/base.h"

#define THREADS 1000U
#define NODES 8U
#define CPUS 256U
#define REPETITIONS 15U

static struct nm_affinity *affinity;
static uint32_t tids[THREADS];
static uint16_t ids[THREADS];
static struct nm_mapping_thread threads[THREADS];

static void must(int r)
{
	if (r < 0) {
		fprintf(stderr, "bench: %s\n", strerror(-r));
		exit(EXIT_FAILURE);
	}
}

/* The sharing of two threads falls with their distance, plus noise. Threads are ordered by TID, and
 * TIDs were assigned in random order. */
static void share_all(struct nm_rng *rng)
{
	for (unsigned a = 0; a < THREADS; a++)
		for (unsigned b = 0; b < a; b++) {
			unsigned times = 1 + 64 / (a - b) + (unsigned)nm_rng_below(rng, 4);
			while (times--)
				nm_affinity_share(affinity, ids[a], ids[b]);
		}
}

static void make_matrix(struct nm_rng *rng)
{
	for (unsigned i = 0; i < THREADS; i++) {
		tids[i] = 1000 + i;
		must(nm_affinity_join(affinity, tids[i], 0, &ids[i]));
	}
	for (unsigned i = 0; i < 6; i++) { /* each aging adds room */
		share_all(rng);
		nm_affinity_age(affinity);
	}
}

static double measure(const struct nm_topology *topology, double *ret_prune_ms)
{
	double ms[REPETITIONS], prune_ms[REPETITIONS];
	struct nm_affinity_graph *graph = NULL;
	struct nm_mapping *mapping = NULL;

	for (unsigned i = 0; i < REPETITIONS; i++) {
		double start = bench_cpu_ns();
		nm_affinity_graph(affinity, tids, THREADS, 16, &graph);
		prune_ms[i] = (bench_cpu_ns() - start) / 1e6;
		must(nm_mapping_compute(topology, graph, threads, 0.1, i, &mapping));
		ms[i] = (bench_cpu_ns() - start) / 1e6;
		if (i == 0)
			fprintf(stderr, "%u edges; cost %.0f → %.0f\n", graph->first[THREADS] / 2,
				mapping->cost_now, mapping->cost_new);
		nm_affinity_graph_free(graph);
		nm_mapping_free(mapping);
	}
	*ret_prune_ms = bench_median(prune_ms, REPETITIONS);
	return bench_median(ms, REPETITIONS);
}

static double measure_aging(void)
{
	double ms[REPETITIONS];

	for (unsigned i = 0; i < REPETITIONS; i++) {
		double start = bench_cpu_ns();
		nm_affinity_age(affinity);
		ms[i] = (bench_cpu_ns() - start) / 1e6;
	}
	return bench_median(ms, REPETITIONS);
}

int main(void)
{
	struct nm_config *config = NULL;
	struct nm_topology *topology = machine_topology(NODES, CPUS);
	hwloc_bitmap_t everywhere = hwloc_bitmap_alloc_full();
	struct nm_rng rng;
	double prune_ms;

	must(topology && everywhere ? 0 : -ENOMEM);
	must(nm_config_default(&config));
	nm_affinity_new(config, &affinity);
	nm_rng_seed(&rng, 20240601);
	make_matrix(&rng);
	struct nm_affinity_counts counts = nm_affinity_counts(affinity);
	fprintf(stderr, "%llu pairs in %llu KiB\n", (unsigned long long)counts.pairs,
		(unsigned long long)counts.bytes / 1024);
	for (unsigned i = 0; i < THREADS; i++)
		threads[i] = (struct nm_mapping_thread){.cpu = (int)nm_rng_below(&rng, CPUS),
							.load = 0.2 + nm_rng_unit(&rng) * 0.1,
							.allowed = everywhere};
	for (unsigned cpu = 0; cpu < CPUS; cpu++) {
		topology->cpus[cpu].core = (int)cpu / 2;
		topology->cpus[cpu].cache = (int)cpu / 8;
	}
	bench_print("mapping_ms_1k", measure(topology, &prune_ms), "ms");
	bench_print("mapping_prune_ms_1k", prune_ms, "ms");
	bench_print("mapping_age_ms_1k", measure_aging(), "ms");
	nm_topology_free(topology);
	hwloc_bitmap_free(everywhere);
	nm_affinity_free(affinity);
	nm_config_free(config);
	return EXIT_SUCCESS;
}
