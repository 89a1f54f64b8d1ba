/* SPDX-License-Identifier: MIT */
/*
 * The cost of one round of balancing for 10,000 runnable threads of 500 processes on 256 CPUs and 8
 * nodes, with at most 64 moves. Prints the highest median of all rules, the cost of a round in
 * which every pair of CPUs is examined and no thread can move, the cost if each thread may run on
 * only half of the CPUs, and the cost of selecting the threads to read.
 */
#include "../support/balance_fixture.h"
#include "bench.h"
#include "policy/balance.h"
#include "numa-migrd/base.h"

enum { NODES = 8, CPUS = 256, THREADS = 10000, GROUPS = 500, REPEATS = 31, RULES = 9 };

/* Half of the threads are on 25 % of the nodes. */
static int draw_cpu(struct nm_rng *rng)
{
	return (int)nm_rng_below(rng, nm_rng_below(rng, 2) ? CPUS / 4 : CPUS);
}

static struct workload *draw(uint64_t seed, bool masks)
{
	struct workload *workload = workload_new(NODES, CPUS, THREADS);
	struct machine *machine = workload->machine;
	struct nm_rng rng;
	nm_rng_seed(&rng, seed);
	for (unsigned i = 0; i < THREADS; i++) {
		uint32_t process = i < GROUPS ? i : (uint32_t)nm_rng_below(&rng, GROUPS);
		size_t thread = workload_thread(workload, 1000 + process, draw_cpu(&rng));
		machine->managed[thread].start_ticks = nm_rng_below(&rng, 1000000);
		machine->managed[thread].everywhere = !masks;
		workload->threads[thread].load = 0.5 + nm_rng_unit(&rng) / 2;
		for (unsigned cpu = 0; masks && cpu < CPUS; cpu++)
			if (nm_rng_below(&rng, 2))
				hwloc_bitmap_clr(machine->masks[thread], cpu);
	}
	for (unsigned i = 0; i < GROUPS * NODES; i++)
		workload->pages[i] = (double)nm_rng_below(&rng, 100000);
	workload_measure(workload);
	return workload;
}

static double measure(struct workload *workload, size_t *ret_moves)
{
	double us[REPEATS];
	for (unsigned i = 0; i < REPEATS; i++) {
		double start = bench_cpu_ns();
		nm_balancer_round(workload->balancer, workload->snapshot,
				  &workload->machine->config);
		us[i] = (bench_cpu_ns() - start) / 1e3;
		*ret_moves = workload->balancer->proposals.count;
	}
	return bench_median(us, REPEATS);
}

static double measure_rules(struct workload *workload, size_t *ret_moves)
{
	double most = 0;
	for (unsigned rule = 0; rule < RULES; rule++) {
		size_t moves;
		workload->machine->config.threads.selection = (enum nm_selection)rule;
		double us = measure(workload, &moves);
		fprintf(stderr, "rule %u: %zu moves, %.0f us\n", rule, moves, us);
		if (us > most) {
			most = us;
			*ret_moves = moves;
		}
	}
	return most;
}

/* The CPUs of the first nodes are full. */
static double measure_suspects(struct workload *workload, size_t *ret_suspects)
{
	static struct nm_times_reading suspects[THREADS];
	double us[REPEATS];
	for (unsigned cpu = 0; cpu < CPUS; cpu++)
		workload->machine->busy[cpu] = cpu < CPUS / 4 ? 1 : 0.5;
	workload_look(workload);
	for (unsigned i = 0; i < REPEATS; i++) {
		double start = bench_cpu_ns();
		nm_balancer_select_threads(workload->snapshot, &workload->machine->config, THREADS,
					   suspects, ret_suspects);
		us[i] = (bench_cpu_ns() - start) / 1e3;
	}
	return bench_median(us, REPEATS);
}

int main(void)
{
	struct workload *workload = draw(1, false), *masked = draw(1, true);
	size_t moves = 0;
	bench_print("balance_round_us_10k", measure_rules(workload, &moves), "us");
	bench_print("balance_round_moves_10k", (double)moves, "moves");
	bench_print("balance_masked_us_10k", measure_rules(masked, &moves), "us");
	masked->machine->config.rules.balance_min_gain = INFINITY;
	workload->machine->config.rules.balance_min_gain = INFINITY;
	bench_print("balance_stuck_us_10k", measure(workload, &moves), "us");
	bench_print("balance_stuck_masked_us_10k", measure(masked, &moves), "us");
	bench_print("balance_suspects_us_10k", measure_suspects(workload, &moves), "us");
	bench_print("balance_suspects_10k", (double)moves, "threads");
	workload_free(workload);
	workload_free(masked);
	return EXIT_SUCCESS;
}
