/* SPDX-License-Identifier: MIT */
/*
 * What one round of balancing costs for 10,000 runnable threads of 500 processes on 256 CPUs and 8
 * nodes, with 64 moves at most: of the rules the dearest median, and the round in which every pair
 * of CPUs is looked at and nobody can go; the same where each thread may run on half of the CPUs
 * only.
 */
#include "../support/balance_fixture.h"
#include "bench.h"
#include "numa-migrd/rng.h"

enum { NODES = 8, CPUS = 256, THREADS = 10000, GROUPS = 500, REPEATS = 31, RULES = 9 };

/* Half of the threads crowd on a quarter of the nodes. */
static int draw_cpu(struct nm_rng *rng)
{
	return (int)nm_rng_below(rng, nm_rng_below(rng, 2) ? CPUS / 4 : CPUS);
}

static struct crowd *draw(uint64_t seed, bool masks)
{
	struct crowd *crowd = crowd_new(NODES, CPUS, THREADS);
	struct nm_rng rng;
	nm_rng_seed(&rng, seed);
	for (unsigned i = 0; i < GROUPS; i++) {
		uint32_t group = crowd_group(crowd, (int)nm_rng_below(&rng, NODES));
		for (unsigned node = 0; node < NODES; node++)
			crowd_pages(crowd, group, node, (double)nm_rng_below(&rng, 100000));
	}
	for (unsigned i = 0; i < THREADS; i++) {
		uint32_t group = (uint32_t)nm_rng_below(&rng, GROUPS);
		size_t thread = crowd_thread(crowd, group, draw_cpu(&rng), i < GROUPS);
		crowd->threads[thread].start_ticks = nm_rng_below(&rng, 1000000);
		crowd->threads[thread].load = 0.5 + nm_rng_unit(&rng) / 2;
		crowd->threads[thread].everywhere = !masks;
		for (unsigned cpu = 0; masks && cpu < CPUS; cpu++)
			if (nm_rng_below(&rng, 2))
				hwloc_bitmap_clr(crowd->masks[thread], cpu);
	}
	return crowd;
}

static double measure(struct crowd *crowd, size_t *ret_moves)
{
	double us[REPEATS];
	for (unsigned i = 0; i < REPEATS; i++) {
		struct nm_balance_state state = {0};
		struct nm_balance_result result;
		double start = bench_cpu_ns();
		if (nm_balance_round(&crowd->input, &crowd->rules, &state, &result) < 0)
			abort();
		us[i] = (bench_cpu_ns() - start) / 1e3;
		*ret_moves = result.count;
		nm_balance_result_clear(&result);
	}
	return bench_median(us, REPEATS);
}

static double measure_rules(struct crowd *crowd, size_t *ret_moves)
{
	double most = 0;
	for (unsigned rule = 0; rule < RULES; rule++) {
		size_t moves;
		crowd->rules = crowd_rules((enum nm_selection)rule);
		double us = measure(crowd, &moves);
		fprintf(stderr, "rule %u: %zu moves, %.0f us\n", rule, moves, us);
		if (us > most) {
			most = us;
			*ret_moves = moves;
		}
	}
	return most;
}

int main(void)
{
	struct crowd *crowd = draw(1, false), *masked = draw(1, true);
	size_t moves = 0;
	bench_print("balance_round_us_10k", measure_rules(crowd, &moves), "us");
	bench_print("balance_round_moves_10k", (double)moves, "moves");
	bench_print("balance_masked_us_10k", measure_rules(masked, &moves), "us");
	masked->rules.min_gain = crowd->rules.min_gain = INFINITY;
	bench_print("balance_stuck_us_10k", measure(crowd, &moves), "us");
	bench_print("balance_stuck_masked_us_10k", measure(masked, &moves), "us");
	crowd_free(crowd);
	crowd_free(masked);
	return EXIT_SUCCESS;
}
