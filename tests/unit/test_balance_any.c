/* SPDX-License-Identifier: MIT */
/* Invariants of balancing on any machine over several rounds. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "../support/balance_fixture.h"
#include "numa-migrd/base.h"

#define FINGERPRINT 0xaba87ed56e29f60dULL

enum { MACHINES = 400, THREADS = 60, ROUNDS = 200 };

static unsigned below(struct nm_rng *dice, unsigned bound)
{
	return (unsigned)nm_rng_below(dice, bound);
}

/* ---- any machine ---- */

static void draw_group(struct workload *workload, struct nm_rng *dice)
{
	unsigned nodes = workload->topology->nr_nodes;
	uint32_t group = workload_group(workload, (int)below(dice, nodes + 1) - 1);
	for (unsigned node = 0; node < nodes; node++)
		workload_pages(workload, group, node, below(dice, 3) ? below(dice, 20) : 0);
	if (below(dice, 8) == 0)
		workload->groups[group].resident = NULL;
}

static void draw_mask(struct workload *workload, struct nm_rng *dice, size_t thread)
{
	workload->threads[thread].everywhere = below(dice, 3) > 0;
	if (workload->threads[thread].everywhere)
		return;
	for (unsigned cpu = 0; cpu < workload->topology->nr_cpus; cpu++)
		if (below(dice, 2))
			hwloc_bitmap_clr(workload->masks[thread], cpu);
}

static void draw_thread(struct workload *workload, struct nm_rng *dice)
{
	/* Most are on the first CPUs, so that balancing is needed. */
	unsigned cpus = workload->topology->nr_cpus;
	int cpu = (int)below(dice, below(dice, 3) ? 1 + cpus / 3 : cpus);
	uint32_t group = below(dice, (unsigned)workload->input.nr_groups);
	bool ran = below(dice, 12) > 0, leader = below(dice, 6) == 0;
	size_t i = workload_thread(workload, group, ran ? cpu : -1, leader);
	struct nm_balance_thread *thread = &workload->threads[i];
	if (thread->leader && thread->cpu >= 0)
		workload->groups[group].leader_node =
			nm_topology_node_of_cpu(workload->topology, thread->cpu);
	thread->start_ticks = below(dice, 20);
	thread->load = below(dice, 20) ? nm_rng_unit(dice) : (double)NAN;
	thread->waiting = below(dice, 4) > 0;
	thread->movable = below(dice, 8) > 0;
	thread->type = (enum nm_dtas_type)below(dice, 3);
	draw_mask(workload, dice, i);
}

static void draw_rules(struct workload *workload, struct nm_rng *dice)
{
	enum nm_selection selection = (enum nm_selection)below(dice, 9);
	workload->rules = below(dice, 3) ? workload_rules(selection) : workload_paper(selection);
	workload->rules.max_moves = 1 + below(dice, 12);
	if (below(dice, 2))
		workload->rules.min_gain = (double)below(dice, 20) - 10;
}

static struct workload *draw_machine(uint64_t seed)
{
	struct nm_rng dice;
	nm_rng_seed(&dice, seed);
	unsigned nodes = 1 + below(&dice, 5), cpus = nodes * (1 + below(&dice, 4));
	struct workload *workload = workload_new(nodes, cpus, THREADS);
	for (unsigned k = 0; k < nodes * nodes; k++)
		workload->factors[k] = k % (nodes + 1) ? 1 + nm_rng_unit(&dice) : 1;
	for (unsigned cpu = 0; cpu < cpus; cpu++) {
		workload->other[cpu] = below(&dice, 3) ? 0 : nm_rng_unit(&dice);
		workload->types[cpu] = (enum nm_dtas_type)below(&dice, 3);
		if (below(&dice, 8) == 0)
			hwloc_bitmap_clr(workload->topology->usable, cpu);
	}
	if (below(&dice, 3) == 0)
		workload->input.cpu_types = workload->types;
	for (unsigned i = 1 + below(&dice, 12); i > 0; i--)
		draw_group(workload, &dice);
	for (unsigned i = below(&dice, THREADS); i > 0; i--)
		draw_thread(workload, &dice);
	draw_rules(workload, &dice);
	return workload;
}

/* ---- invariants ---- */

static double load_of(const struct workload *workload, int cpu)
{
	double load = workload->other[cpu];
	for (size_t i = 0; i < workload->input.nr_threads; i++)
		if (workload->threads[i].cpu == cpu)
			load += isnan(workload->threads[i].load) ? 1 : workload->threads[i].load;
	return load;
}

static double load_of_node(const struct workload *workload, int node)
{
	double load = 0, count = 0;
	for (unsigned cpu = 0; cpu < workload->topology->nr_cpus; cpu++)
		if (workload->topology->cpus[cpu].node == node &&
		    hwloc_bitmap_isset(workload->topology->usable, cpu)) {
			load += load_of(workload, (int)cpu);
			count++;
		}
	return load / count;
}

static double load_with(const struct workload *workload, int node, double load)
{
	double count = 0;
	for (unsigned cpu = 0; cpu < workload->topology->nr_cpus; cpu++)
		count += workload->topology->cpus[cpu].node == node &&
			 hwloc_bitmap_isset(workload->topology->usable, cpu);
	return load_of_node(workload, node) + load / count;
}

static bool is_enhanced(enum nm_selection rule)
{
	return rule == NM_SELECTION_EXCLUSIVITY || rule == NM_SELECTION_MOST_BENEFIT_PLUS;
}

static void check_destination(const struct workload *workload, const struct nm_balance_move *move)
{
	const struct nm_balance_thread *thread = &workload->threads[move->thread];
	unsigned to = (unsigned)move->cpu_to;
	assert_true(hwloc_bitmap_isset(workload->topology->usable, to));
	assert_true(hwloc_bitmap_isset(workload->topology->usable, (unsigned)move->cpu_from));
	assert_true(thread->everywhere || hwloc_bitmap_isset(thread->allowed, to));
	assert_int_equal(workload->topology->cpus[to].node, move->node_to);
	assert_int_not_equal(move->node_from, move->node_to);
	if (workload->input.cpu_types &&
	    load_of(workload, move->cpu_to) >= workload->rules.idle_max + 1e-9)
		assert_true(nm_dtas_fits(workload->types[to], thread->type, false));
}

static void check_loads(const struct workload *workload, const struct nm_balance_move *move)
{
	double from = load_of(workload, move->cpu_from), to = load_of(workload, move->cpu_to);
	double node_from = load_of_node(workload, move->node_from);
	double node_to = load_with(workload, move->node_to, move->load);
	assert_true(fabs(from - move->load_from) < 1e-9 && fabs(to - move->load_to) < 1e-9);
	assert_true(to + move->load < from + 1e-9);
	assert_true(node_from >= workload->rules.overload - 1e-9);
	assert_true(node_from - node_to > workload->rules.end - 1e-9);
}

static void check_thread(const struct workload *workload, const struct nm_balance_move *move)
{
	const struct nm_balance_thread *thread = &workload->threads[move->thread];
	const struct nm_selection_group *group = &workload->groups[thread->group];
	int leader = nm_selection_leader_node(group, workload->topology->nr_nodes);
	assert_true(thread->waiting && thread->movable && !isnan(thread->load));
	assert_int_equal(thread->cpu, move->cpu_from);
	assert_true(thread->load == move->load);
	if (workload->rules.min_gain > -INFINITY)
		assert_true(move->gain >= workload->rules.min_gain);
	if (is_enhanced(workload->rules.selection)) {
		assert_false(thread->leader);
		assert_int_not_equal(leader, move->node_from);
		assert_true((leader == move->node_to) == (move->reason == NM_SELECTED_BY_LEADER));
	}
}

/* Checks each move against the machine state after the moves before it. */
static void check_round(struct workload *workload, const struct nm_balance_result *result)
{
	bool moved[THREADS] = {false};
	assert_true(result->count <= workload->rules.max_moves);
	for (size_t i = 0; i < result->count; i++) {
		const struct nm_balance_move *move = &result->moves[i];
		const struct nm_balance_result one = {.moves = &result->moves[i], .count = 1};
		assert_false(moved[move->thread]);
		moved[move->thread] = true;
		check_destination(workload, move);
		check_loads(workload, move);
		check_thread(workload, move);
		workload_apply(workload, &one);
		for (size_t k = 0; k < i; k++)
			assert_int_not_equal(result->moves[k].node_to, move->node_from);
	}
}

static double crowding(const struct workload *workload)
{
	double sum = 0;
	for (unsigned cpu = 0; cpu < workload->topology->nr_cpus; cpu++) {
		double load = load_of(workload, (int)cpu);
		sum += load * load;
	}
	return sum;
}

/* Returns true if a thread could still have moved between a pair of CPUs. */
static bool can_go(const struct workload *workload, const struct nm_balance_thread *thread, int to)
{
	const struct nm_topology *topology = workload->topology;
	const struct nm_selection_group *group = &workload->groups[thread->group];
	int node_from = topology->cpus[thread->cpu].node, node_to = topology->cpus[to].node;
	double here = load_of_node(workload, node_from),
	       there = load_with(workload, node_to, thread->load);
	bool idle = load_of(workload, to) < workload->rules.idle_max;
	if (node_from == node_to || here < workload->rules.overload ||
	    !(here - there > workload->rules.end + 1e-9))
		return false;
	if (!(load_of(workload, to) + thread->load < load_of(workload, thread->cpu) - 1e-9))
		return false;
	if (!thread->everywhere && !hwloc_bitmap_isset(thread->allowed, (unsigned)to))
		return false;
	if (workload->input.cpu_types && !nm_dtas_fits(workload->types[to], thread->type, idle))
		return false;
	/* All other rules are those of first_fit without a minimum gain. */
	return workload->rules.min_gain == -INFINITY ||
	       (group->resident &&
		group->resident[node_to] - group->resident[node_from] >= workload->rules.min_gain);
}

static bool any_thread_can_go(const struct workload *workload)
{
	for (size_t i = 0; i < workload->input.nr_threads; i++) {
		const struct nm_balance_thread *thread = &workload->threads[i];
		if (thread->cpu < 0 || !thread->waiting || !thread->movable ||
		    isnan(thread->load) ||
		    !hwloc_bitmap_isset(workload->topology->usable, (unsigned)thread->cpu))
			continue;
		for (unsigned cpu = 0; cpu < workload->topology->nr_cpus; cpu++)
			if (hwloc_bitmap_isset(workload->topology->usable, cpu) &&
			    can_go(workload, thread, (int)cpu))
				return true;
	}
	return false;
}

/* ---- tests ---- */

static void test_rounds_end(void **state)
{
	(void)state;
	size_t moves = 0;
	for (uint64_t seed = 1; seed <= MACHINES; seed++) {
		struct workload *workload = draw_machine(seed);
		size_t count = 1;
		for (unsigned i = 0; i < ROUNDS && count > 0; i++) {
			struct nm_balance_result result;
			double before = crowding(workload);
			nm_balance_round(&workload->input, &workload->rules, &workload->state,
					 &result);
			count = result.count;
			moves += count;
			check_round(workload, &result);
			assert_true(count == 0 || crowding(workload) < before);
			nm_balance_result_clear(&result);
		}
		assert_int_equal(count, 0);
		workload_free(workload);
	}
	assert_true(moves > MACHINES);
}

/* When first_fit stops, no thread can move: no pair was overlooked. */
static void test_no_candidate_is_overlooked(void **state)
{
	(void)state;
	size_t stuck = 0, moves = 0;
	for (uint64_t seed = 1; seed <= MACHINES; seed++) {
		struct workload *workload = draw_machine(seed);
		struct nm_balance_result result;
		workload->rules.selection = NM_SELECTION_FIRST_FIT;
		workload->rules.max_moves = 1;
		nm_balance_round(&workload->input, &workload->rules, &workload->state, &result);
		moves += result.count;
		stuck += result.active && result.count == 0;
		if (result.active)
			assert_true(any_thread_can_go(workload) == (result.count == 1));
		nm_balance_result_clear(&result);
		workload_free(workload);
	}
	assert_true(stuck > 10 && moves > 10);
}

/* After a whole round, another round with the same roles could not move any thread. */
static void test_a_long_round_equals_short_rounds(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= MACHINES; seed++) {
		struct workload *workload = draw_machine(seed);
		struct nm_balance_result result;
		bool two = workload->topology->nr_nodes <= 2;
		workload->rules.selection = NM_SELECTION_FIRST_FIT;
		workload->rules.max_moves = THREADS;
		nm_balance_round(&workload->input, &workload->rules, &workload->state, &result);
		check_round(workload, &result);
		for (size_t i = 0; i < result.count; i++)
			workload->threads[result.moves[i].thread].movable = false;
		if (two && result.active && workload->rules.overload > 0)
			assert_false(any_thread_can_go(workload));
		nm_balance_result_clear(&result);
		workload_free(workload);
	}
}

static uint64_t mix(uint64_t print, const void *data, size_t size)
{
	for (size_t i = 0; i < size; i++)
		print = (print ^ ((const unsigned char *)data)[i]) * 0x100000001b3ULL;
	return print;
}

static uint64_t mix_result(uint64_t print, const struct nm_balance_result *result)
{
	for (size_t i = 0; i < result->count; i++) {
		const struct nm_balance_move *move = &result->moves[i];
		double cost = isnan(move->cost_change) ? 0 : move->cost_change;
		print = mix(print, &move->thread, sizeof(move->thread));
		print = mix(print, &move->cpu_to, sizeof(move->cpu_to));
		print = mix(print, &cost, sizeof(cost));
	}
	return mix(print, &result->count, sizeof(result->count));
}

static uint64_t fingerprint(uint64_t first_seed)
{
	uint64_t print = 0xcbf29ce484222325ULL;
	for (uint64_t seed = first_seed; seed < first_seed + MACHINES; seed++) {
		struct workload *workload = draw_machine(seed);
		struct nm_balance_result result;
		nm_balance_round(&workload->input, &workload->rules, &workload->state, &result);
		print = mix_result(print, &result);
		nm_balance_result_clear(&result);
		workload_free(workload);
	}
	return print;
}

/* The same input gives identical moves in every build. */
static void test_decisions_repeat(void **state)
{
	(void)state;
	uint64_t print = fingerprint(1);
	assert_true(print == fingerprint(1));
	assert_true(print != fingerprint(2));
	if (print != FINGERPRINT)
		fail_msg("the fingerprint is 0x%llxULL", (unsigned long long)print);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rounds_end),
		cmocka_unit_test(test_no_candidate_is_overlooked),
		cmocka_unit_test(test_a_long_round_equals_short_rounds),
		cmocka_unit_test(test_decisions_repeat),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
