/* SPDX-License-Identifier: MIT */
/*
 * What one interval's decision costs on a large machine: a fresh snapshot, LBMA with n = 64, and
 * the plan, for 10,000 threads of 500 processes on 256 CPUs and 8 nodes. Medians over repeats with
 * different seeds.
 */
#include "../support/interval.h"
#include "bench.h"

enum { NODES = 8, CPUS_PER_NODE = 32, SMT = 2, THREADS = 10000, THREADS_PER_PROCESS = 20 };
enum { REPEATS = 31 };

/* Every CPU has homes and most threads' memory is elsewhere, or all are at home. */
static struct machine *make_machine(bool settled)
{
	struct machine *m = machine_of_size(NODES, CPUS_PER_NODE, SMT, THREADS);
	struct nm_rng rng;
	nm_rng_seed(&rng, 1);
	for (unsigned i = 0; i < THREADS; i++) {
		int cpu = (int)nm_rng_below(&rng, m->topology->nr_cpus);
		unsigned memory = settled ? (unsigned)m->topology->cpus[cpu].node
					  : (unsigned)nm_rng_below(&rng, NODES);
		size_t thread = machine_thread(m, 1 + i / THREADS_PER_PROCESS, cpu, -1);
		m->figures[thread].run_share = 0.1;
		for (unsigned node = 0; node < NODES; node++)
			machine_touch(m, thread, node, (double)nm_rng_below(&rng, 50));
		machine_touch(m, thread, memory, 200 + (double)nm_rng_below(&rng, 100));
	}
	return m;
}

static void tick(struct machine *m, struct nm_rng *rng)
{
	struct nm_proposals proposals;
	struct nm_plan plan;
	uint64_t next_id = 1;
	nm_auto(nm_snapshot_freep) struct nm_snapshot *snapshot = machine_snapshot(m);
	if (!snapshot || nm_lbma_propose(snapshot, &m->config, rng, &proposals) < 0)
		abort();
	if (nm_plan_build(snapshot, &m->config, &proposals, &next_id, &plan) < 0)
		abort();
	nm_proposals_clear(&proposals);
	nm_plan_clear(&plan);
}

static void measure(const char *name, struct machine *m)
{
	double took[REPEATS];
	struct nm_rng rng;
	nm_rng_seed(&rng, 7);
	m->config.threads.n = 64;
	tick(m, &rng);
	for (unsigned i = 0; i < REPEATS; i++) {
		double start = bench_cpu_ns();
		tick(m, &rng);
		took[i] = (bench_cpu_ns() - start) * 1e-6;
	}
	bench_print(name, bench_median(took, REPEATS), "ms");
}

int main(void)
{
	struct machine *m = make_machine(false);
	measure("tick_ms_10k", m);
	machine_paper(&m->config);
	measure("tick_paper_ms_10k", m);
	machine_free(m);
	m = make_machine(true);
	measure("tick_settled_ms_10k", m);
	machine_free(m);
	return 0;
}
