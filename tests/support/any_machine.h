/* SPDX-License-Identifier: MIT */
/* Machines drawn at random, and invariants of moves on any of them. Include cmocka.h first. */
#ifndef NUMA_MIGRD_TESTS_ANY_MACHINE_H
#define NUMA_MIGRD_TESTS_ANY_MACHINE_H

#include "interval.h"

static inline unsigned below(struct nm_rng *dice, unsigned bound)
{
	return (unsigned)nm_rng_below(dice, bound);
}

#define FINGERPRINT_START 0xcbf29ce484222325ULL

/* Adds data to a fingerprint of decisions. */
static inline uint64_t mix(uint64_t print, const void *data, size_t size)
{
	const unsigned char *bytes = data;
	for (size_t i = 0; i < size; i++)
		print = (print ^ bytes[i]) * 0x100000001b3ULL;
	return print;
}

static inline void shuffle_rules(struct nm_config *config, struct nm_rng *dice)
{
	if (below(dice, 2))
		machine_paper(config);
	config->rules.gate = below(dice, 2) ? NM_GATE_PAPER : NM_GATE_BENEFIT;
	config->rules.lottery = below(dice, 2) ? NM_LOTTERY_PAPER : NM_LOTTERY_PROPORTIONAL;
	config->rules.paper = below(dice, 2);
	config->rules.cross_owner_swap = below(dice, 2);
	config->rules.n = below(dice, 12);
}

static inline void add_any_thread(struct machine *m, struct nm_rng *dice)
{
	unsigned cpus = m->topology->nr_cpus;
	int cpu = below(dice, 8) ? (int)below(dice, cpus) : -1;
	size_t i = machine_thread(m, 1 + below(dice, 6), cpu, -1);
	for (unsigned node = 0; node < m->topology->nr_nodes; node++)
		machine_touch(m, i, node, below(dice, 4) ? below(dice, 100) : 0);
	if (below(dice, 10) == 0)
		m->sampled[i].stats.access_total = NAN;
	if (below(dice, 10) == 0)
		m->managed[i].backoff_until = m->interval + 1;
	if (below(dice, 3) == 0)
		for (unsigned c = 0; c < cpus; c++)
			if (below(dice, 2))
				hwloc_bitmap_clr(m->masks[i], c);
	machine_process(m, m->managed[i].pid)->uid = 1000 + m->managed[i].pid % 2;
}

static inline struct machine *any_machine(uint64_t seed)
{
	struct nm_rng dice;
	nm_rng_seed(&dice, seed);
	unsigned nodes = 1 + below(&dice, 5), cpus = 1 + below(&dice, 6);
	struct machine *m = machine_of_size(nodes, cpus, 1 + below(&dice, 2), 32);
	shuffle_rules(&m->config, &dice);
	for (unsigned cpu = 0; cpu < m->topology->nr_cpus; cpu++)
		m->busy[cpu] = below(&dice, 3) ? 0 : 0.5;
	if (nodes > 2 && below(&dice, 3) == 0)
		machine_take_cpus(m, nodes - 1, 0);
	for (unsigned i = below(&dice, 32); i > 0; i--)
		add_any_thread(m, &dice);
	return m;
}

static inline void check_move(const struct nm_snapshot *snapshot, const struct nm_move *move,
			      bool *moved)
{
	const struct nm_snap_thread *thread = &snapshot->threads[move->thread];
	assert_false(moved[move->thread]);
	moved[move->thread] = true;
	assert_true(thread->movable);
	assert_true(hwloc_bitmap_isset(thread->allowed, (unsigned)move->cpu_to));
	assert_true(snapshot->cpus[move->cpu_to].usable);
	assert_int_equal(snapshot->cpus[move->cpu_to].node, move->node_to);
	assert_int_equal(thread->stats.main_cpu, move->cpu_from);
	assert_int_equal(thread->stats.main_node, move->node_from);
	assert_int_not_equal(move->node_from, move->node_to);
}

#endif
