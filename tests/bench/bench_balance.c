/* SPDX-License-Identifier: MIT */
/*
 * The cost of one round of balancing for 10,000 runnable threads of 500 processes on 256 CPUs and 8
 * nodes, with at most 64 moves. Prints the highest median of all rules, the cost of a round in
 * which every pair of CPUs is examined and no thread can move, the cost if each thread may run on
 * only half of the CPUs, and the cost of building the input of a round from a snapshot.
 */
#include "../support/balance_fixture.h"
#include "../support/interval.h"
#include "bench.h"
#include "numa-migrd/balance.h"
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
	struct nm_rng rng;
	nm_rng_seed(&rng, seed);
	for (unsigned i = 0; i < GROUPS; i++) {
		uint32_t group = workload_group(workload, (int)nm_rng_below(&rng, NODES));
		for (unsigned node = 0; node < NODES; node++)
			workload_pages(workload, group, node, (double)nm_rng_below(&rng, 100000));
	}
	for (unsigned i = 0; i < THREADS; i++) {
		uint32_t group = (uint32_t)nm_rng_below(&rng, GROUPS);
		size_t thread = workload_thread(workload, group, draw_cpu(&rng), i < GROUPS);
		workload->threads[thread].start_ticks = nm_rng_below(&rng, 1000000);
		workload->threads[thread].load = 0.5 + nm_rng_unit(&rng) / 2;
		workload->threads[thread].everywhere = !masks;
		for (unsigned cpu = 0; masks && cpu < CPUS; cpu++)
			if (nm_rng_below(&rng, 2))
				hwloc_bitmap_clr(workload->masks[thread], cpu);
	}
	return workload;
}

static double measure(struct workload *workload, size_t *ret_moves)
{
	double us[REPEATS];
	for (unsigned i = 0; i < REPEATS; i++) {
		struct nm_balance_state state = {0};
		struct nm_balance_result result;
		double start = bench_cpu_ns();
		nm_balance_round(&workload->input, &workload->rules, &state, &result);
		us[i] = (bench_cpu_ns() - start) / 1e3;
		*ret_moves = result.count;
		nm_balance_result_clear(&result);
	}
	return bench_median(us, REPEATS);
}

static double measure_rules(struct workload *workload, size_t *ret_moves)
{
	double most = 0;
	for (unsigned rule = 0; rule < RULES; rule++) {
		size_t moves;
		workload->rules = workload_rules((enum nm_selection)rule);
		double us = measure(workload, &moves);
		fprintf(stderr, "rule %u: %zu moves, %.0f us\n", rule, moves, us);
		if (us > most) {
			most = us;
			*ret_moves = moves;
		}
	}
	return most;
}

/* Threads in the order of a snapshot. The CPUs of the first nodes are full. */
static struct machine *draw_snapshot(void)
{
	struct machine *m = machine_of_size(NODES, CPUS / NODES, 1, THREADS);
	struct nm_rng rng;
	nm_rng_seed(&rng, 1);
	for (unsigned i = 0; i < THREADS; i++)
		(void)machine_thread(m, 1 + i / (THREADS / GROUPS), draw_cpu(&rng), -1);
	for (unsigned cpu = 0; cpu < CPUS; cpu++)
		m->busy[cpu] = cpu < CPUS / 4 ? 1 : 0.5;
	return m;
}

static double measure_gathering(size_t *ret_suspects)
{
	static uint32_t suspects[THREADS];
	struct machine *m = draw_snapshot();
	struct nm_snapshot *snapshot = machine_snapshot(m);
	const struct nm_balance_rules rules = workload_rules(NM_SELECTION_MOST_BENEFIT);
	const struct nm_balance_measurements facts = {.snapshot = snapshot, .min_run = 0.1};
	double us[REPEATS];
	for (unsigned i = 0; i < REPEATS; i++) {
		struct nm_balance_input_arrays arrays;
		double start = bench_cpu_ns();
		nm_balance_select_threads(snapshot, &rules, THREADS, suspects, ret_suspects);
		nm_balance_input_build(&facts, &arrays);
		us[i] = (bench_cpu_ns() - start) / 1e3;
		nm_balance_input_clear(&arrays);
	}
	nm_snapshot_free(snapshot);
	machine_free(m);
	return bench_median(us, REPEATS);
}

int main(void)
{
	struct workload *workload = draw(1, false), *masked = draw(1, true);
	size_t moves = 0;
	bench_print("balance_round_us_10k", measure_rules(workload, &moves), "us");
	bench_print("balance_round_moves_10k", (double)moves, "moves");
	bench_print("balance_masked_us_10k", measure_rules(masked, &moves), "us");
	masked->rules.min_gain = workload->rules.min_gain = INFINITY;
	bench_print("balance_stuck_us_10k", measure(workload, &moves), "us");
	bench_print("balance_stuck_masked_us_10k", measure(masked, &moves), "us");
	bench_print("balance_gather_us_10k", measure_gathering(&moves), "us");
	bench_print("balance_suspects_10k", (double)moves, "threads");
	workload_free(workload);
	workload_free(masked);
	return EXIT_SUCCESS;
}
