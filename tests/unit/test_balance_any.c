/* SPDX-License-Identifier: MIT */
/* Invariants of balancing on any machine over several rounds. */
#include "../support/test.h"

#include <math.h>

#include "../support/any_machine.h"
#include "../support/balance_fixture.h"
#include "numa-migrd/base.h"

#define FINGERPRINT 0xc5f2054b011dc198ULL

enum { MACHINES = 400, CPUS = 20, THREADS = 60, ROUNDS = 200 };

/* ---- any machine ---- */

static void draw_process(struct workload *workload, struct nm_rng *dice, uint32_t pid)
{
	double *pages = workload_pages(workload, pid);
	for (unsigned node = 0; node < workload->machine->topology->nr_nodes; node++)
		pages[node] = below(dice, 3) ? below(dice, 20) : 0;
	if (below(dice, 8) == 0)
		pages[0] = NAN;
}

static void draw_mask(struct machine *machine, struct nm_rng *dice, size_t thread)
{
	machine->managed[thread].everywhere = below(dice, 3) > 0;
	if (machine->managed[thread].everywhere)
		return;
	for (unsigned cpu = 0; cpu < machine->topology->nr_cpus; cpu++)
		if (below(dice, 2))
			hwloc_bitmap_clr(machine->masks[thread], cpu);
}

/* Each of the processes has a leader if there is a thread with its number. */
static void draw_thread(struct workload *workload, struct nm_rng *dice, unsigned processes)
{
	struct machine *machine = workload->machine;
	/* Most are on the first CPUs, so that balancing is needed. */
	unsigned cpus = machine->topology->nr_cpus;
	int cpu = (int)below(dice, below(dice, 3) ? 1 + cpus / 3 : cpus);
	bool ran = below(dice, 12) > 0, known = below(dice, 20) > 0;
	uint32_t number = 1000 + (uint32_t)machine->count;
	uint32_t pid = number < 1000 + processes ? number : 1000 + below(dice, processes);
	size_t old_processes = machine->nr_processes;
	size_t i = workload_thread(workload, pid, ran ? cpu : -1);
	if (machine->nr_processes > old_processes)
		draw_process(workload, dice, pid);
	machine->managed[i].start_ticks = below(dice, 20);
	workload->threads[i].load = known ? nm_rng_unit(dice) : (double)NAN;
	workload->threads[i].waiting = known && below(dice, 4) > 0;
	workload->threads[i].behaviour.type = (enum nm_dtas_type)below(dice, 3);
	if (below(dice, 8) == 0)
		workload_hold(workload, i);
	draw_mask(machine, dice, i);
}

static void draw_rules(struct workload *workload, struct nm_rng *dice)
{
	enum nm_selection selection = (enum nm_selection)below(dice, 9);
	workload_rules(workload, below(dice, 3) ? "balance" : "balance-paper", selection);
	workload->machine->config.rules.moves_per_interval = 1 + below(dice, 12);
	if (below(dice, 2))
		workload->machine->config.rules.balance_min_gain = (double)below(dice, 20) - 10;
}

static struct workload *draw_machine(uint64_t seed)
{
	struct nm_rng dice;
	nm_rng_seed(&dice, seed);
	unsigned nodes = 1 + below(&dice, 5), cpus = nodes * (1 + below(&dice, 4));
	struct workload *workload = workload_new(nodes, cpus, THREADS);
	struct nm_topology *topology = workload->machine->topology;
	enum nm_dtas_type types[CPUS];
	for (unsigned k = 0; k < nodes * nodes; k++)
		topology->distance[k] = k % (nodes + 1) ? 10 + below(&dice, 11) : 10;
	for (unsigned cpu = 0; cpu < cpus; cpu++) {
		workload->machine->busy[cpu] = below(&dice, 3) ? 0 : nm_rng_unit(&dice);
		types[cpu] = (enum nm_dtas_type)below(&dice, 3);
		if (below(&dice, 8) == 0)
			hwloc_bitmap_clr(topology->usable, cpu);
	}
	if (below(&dice, 3) == 0)
		workload_split(workload, types);
	unsigned processes = 1 + below(&dice, 12);
	for (unsigned i = below(&dice, THREADS); i > 0; i--)
		draw_thread(workload, &dice, processes);
	draw_rules(workload, &dice);
	return workload;
}

/* ---- invariants ---- */

static bool is_usable(const struct workload *workload, int cpu)
{
	return hwloc_bitmap_isset(workload->machine->topology->usable, (unsigned)cpu);
}

static int node_of(const struct workload *workload, int cpu)
{
	return workload->machine->topology->cpus[cpu].node;
}

static int cpu_of(const struct workload *workload, size_t thread)
{
	return workload->machine->sampled[thread].stats.main_cpu;
}

/* Threads whose load is not known count as a CPU on a busy one, otherwise by the time they ran:
 * none. */
static double load_of(const struct workload *workload, int cpu)
{
	double busy = workload->machine->busy[cpu], load = busy;
	bool saturated = busy >= 1 - NM_WAIT_SHARE && is_usable(workload, cpu);
	for (size_t i = 0; i < workload->machine->count; i++)
		if (cpu_of(workload, i) == cpu)
			load += !isnan(workload->threads[i].load) ? workload->threads[i].load
				: saturated			  ? 1
								  : 0;
	return load;
}

static double load_with(const struct workload *workload, int node, double load)
{
	unsigned count = 0;
	for (int cpu = 0; cpu < (int)workload->machine->topology->nr_cpus; cpu++)
		if (node_of(workload, cpu) == node && is_usable(workload, cpu)) {
			load += load_of(workload, cpu);
			count++;
		}
	return load / count;
}

static bool is_enhanced(enum nm_selection rule)
{
	return rule == NM_SELECTION_EXCLUSIVITY || rule == NM_SELECTION_MOST_BENEFIT_PLUS;
}

static bool is_allowed(const struct workload *workload, size_t thread, int cpu)
{
	return workload->machine->managed[thread].everywhere ||
	       hwloc_bitmap_isset(workload->machine->masks[thread], (unsigned)cpu);
}

static bool fits_type(const struct workload *workload, size_t thread, int cpu, bool idle)
{
	return !workload->balancer->split ||
	       nm_dtas_fits(workload->balancer->cpu_types[cpu],
			    workload->threads[thread].behaviour.type, idle);
}

static bool is_movable(const struct workload *workload, size_t thread)
{
	return workload->threads[thread].waiting &&
	       workload->machine->managed[thread].backoff_until == 0;
}

static void check_destination(const struct workload *workload, const struct nm_move *move)
{
	double idle_max = workload->machine->config.rules.balance_idle_max;
	assert_true(is_usable(workload, move->cpu_to) && is_usable(workload, move->cpu_from));
	assert_true(is_allowed(workload, move->thread, move->cpu_to));
	assert_int_equal(node_of(workload, move->cpu_to), move->node_to);
	assert_int_not_equal(move->node_from, move->node_to);
	assert_true(load_of(workload, move->cpu_to) < idle_max + 1e-9 ||
		    fits_type(workload, move->thread, move->cpu_to, false));
}

static double relief(const struct workload *workload)
{
	return workload->machine->config.rules.paper ? 0 : 0.1;
}

static void check_loads(const struct workload *workload, const struct nm_proposal *proposal)
{
	const struct nm_move *move = &proposal->moves[0];
	const struct nm_balance_reason *reason = &proposal->balance;
	const struct nm_policy_rules *rules = &workload->machine->config.rules;
	double from = load_of(workload, move->cpu_from), to = load_of(workload, move->cpu_to);
	double node_from = load_with(workload, move->node_from, 0);
	double node_to = load_with(workload, move->node_to, reason->load);
	assert_true(fabs(from - reason->load_from) < 1e-9 && fabs(to - reason->load_to) < 1e-9);
	assert_true(to + reason->load < from - relief(workload) + 1e-9);
	assert_true(node_from >= rules->balance_overload - 1e-9);
	assert_true(node_from - node_to > rules->balance_end - 1e-9);
}

static bool is_alone(const struct workload *workload, uint32_t pid)
{
	unsigned threads = 0;
	for (size_t i = 0; i < workload->machine->count; i++)
		threads += workload->machine->managed[i].pid == pid;
	return threads == 1;
}

/* Returns the node of the process's leader if it waited or ran, otherwise of its pages, as for a
 * program of one thread; in the paper, the leader's alone. */
static int leader_node(const struct workload *workload, uint32_t pid)
{
	bool paper = workload->machine->config.rules.paper;
	struct nm_selection_group group = {.resident = workload_pages(workload, pid),
					   .leader_node = -1};
	size_t leader = pid - 1000;
	if (isnan(group.resident[0]))
		group.resident = NULL;
	if (leader < workload->machine->count && cpu_of(workload, leader) >= 0 &&
	    (paper || (!is_alone(workload, pid) &&
		       workload->threads[leader].load >= workload->machine->config.rules.min_run)))
		group.leader_node = node_of(workload, cpu_of(workload, leader));
	if (paper)
		return group.leader_node;
	return nm_selection_leader_node(&group, workload->machine->topology->nr_nodes);
}

static void check_thread(struct workload *workload, const struct nm_proposal *proposal, int leader)
{
	const struct nm_move *move = &proposal->moves[0];
	const struct nm_balance_reason *reason = &proposal->balance;
	const struct nm_config *config = &workload->machine->config;
	assert_true(is_movable(workload, move->thread));
	assert_int_equal(cpu_of(workload, move->thread), move->cpu_from);
	assert_true(workload->threads[move->thread].load == reason->load);
	if (config->rules.balance_min_gain > NM_CONFIG_ANY_GAIN)
		assert_true(reason->gain >= config->rules.balance_min_gain);
	if (is_enhanced(config->threads.selection)) {
		uint32_t pid = workload->machine->managed[move->thread].pid;
		if (config->rules.paper || !is_alone(workload, pid))
			assert_int_not_equal(pid, workload->machine->managed[move->thread].tid);
		assert_int_not_equal(leader, move->node_from);
		assert_true((leader == move->node_to) == (reason->by == NM_SELECTED_BY_LEADER));
	}
}

/* Checks each move against the machine state after the moves before it. */
static void check_round(struct workload *workload)
{
	const struct nm_proposals *proposals = &workload->balancer->proposals;
	bool moved[THREADS] = {false};
	assert_true(proposals->count <= workload->machine->config.rules.moves_per_interval);
	for (size_t i = 0; i < proposals->count; i++) {
		const struct nm_proposal *proposal = &proposals->items[i];
		const struct nm_move *move = &proposal->moves[0];
		uint32_t pid = workload->machine->managed[move->thread].pid;
		assert_false(moved[move->thread]);
		moved[move->thread] = true;
		check_destination(workload, move);
		check_loads(workload, proposal);
		check_thread(workload, proposal, leader_node(workload, pid));
		workload_run_on(workload, move);
		for (size_t k = 0; k < i; k++)
			assert_int_not_equal(proposals->items[k].moves[0].node_to, move->node_from);
	}
}

static double crowding(const struct workload *workload)
{
	double sum = 0;
	for (int cpu = 0; cpu < (int)workload->machine->topology->nr_cpus; cpu++)
		sum += load_of(workload, cpu) * load_of(workload, cpu);
	return sum;
}

/* Returns true if a thread could still have moved between a pair of CPUs. */
static bool can_go(struct workload *workload, size_t thread, int to)
{
	const struct nm_policy_rules *rules = &workload->machine->config.rules;
	int from = cpu_of(workload, thread);
	double load = workload->threads[thread].load;
	int node_from = node_of(workload, from), node_to = node_of(workload, to);
	double here = load_with(workload, node_from, 0), there = load_with(workload, node_to, load);
	if (node_from == node_to || here < rules->balance_overload ||
	    !(here - there > rules->balance_end + 1e-9) ||
	    !(load_of(workload, to) + load < load_of(workload, from) - relief(workload) - 1e-9) ||
	    !is_allowed(workload, thread, to) ||
	    !fits_type(workload, thread, to, load_of(workload, to) < rules->balance_idle_max))
		return false;
	/* All other rules are those of first_fit without a minimum gain. */
	const double *pages = workload_pages(workload, workload->machine->managed[thread].pid);
	return rules->balance_min_gain <= NM_CONFIG_ANY_GAIN ||
	       (!isnan(pages[0]) && pages[node_to] - pages[node_from] >= rules->balance_min_gain);
}

static bool any_thread_can_go(struct workload *workload)
{
	for (size_t i = 0; i < workload->machine->count; i++) {
		int from = cpu_of(workload, i);
		if (from < 0 || !is_movable(workload, i) || !is_usable(workload, from))
			continue;
		for (int cpu = 0; cpu < (int)workload->machine->topology->nr_cpus; cpu++)
			if (is_usable(workload, cpu) && can_go(workload, i, cpu))
				return true;
	}
	return false;
}

/* ---- tests ---- */

TEST(test_rounds_end)
{
	size_t moves = 0;
	for (uint64_t seed = 1; seed <= MACHINES; seed++) {
		struct workload *workload = draw_machine(seed);
		size_t count = 1;
		for (unsigned i = 0; i < ROUNDS && count > 0; i++) {
			double before = crowding(workload);
			count = workload_round(workload);
			moves += count;
			check_round(workload);
			assert_true(count == 0 || crowding(workload) < before);
		}
		assert_int_equal(count, 0);
		workload_free(workload);
	}
	assert_true(moves > MACHINES);
}

/* When first_fit stops, no thread can move: no pair was overlooked. */
TEST(test_no_candidate_is_overlooked)
{
	size_t stuck = 0, moves = 0;
	for (uint64_t seed = 1; seed <= MACHINES; seed++) {
		struct workload *workload = draw_machine(seed);
		workload->machine->config.threads.selection = NM_SELECTION_FIRST_FIT;
		workload->machine->config.rules.moves_per_interval = 1;
		size_t count = workload_round(workload);
		bool active = workload->balancer->state.active;
		moves += count;
		stuck += active && count == 0;
		if (active)
			assert_true(any_thread_can_go(workload) == (count == 1));
		workload_free(workload);
	}
	assert_true(stuck > 10 && moves > 10);
}

/* After a whole round, another round with the same roles could not move any thread. */
TEST(test_a_long_round_equals_short_rounds)
{
	for (uint64_t seed = 1; seed <= MACHINES; seed++) {
		struct workload *workload = draw_machine(seed);
		const struct nm_proposals *proposals = &workload->balancer->proposals;
		bool two = workload->machine->topology->nr_nodes <= 2;
		workload->machine->config.threads.selection = NM_SELECTION_FIRST_FIT;
		workload->machine->config.rules.moves_per_interval = THREADS;
		workload_round(workload);
		check_round(workload);
		for (size_t i = 0; i < proposals->count; i++)
			workload_hold(workload, proposals->items[i].moves[0].thread);
		if (two && workload->balancer->state.active &&
		    workload->machine->config.rules.balance_overload > 0)
			assert_false(any_thread_can_go(workload));
		workload_free(workload);
	}
}

static uint64_t fingerprint(uint64_t first_seed)
{
	uint64_t print = FINGERPRINT_START;
	for (uint64_t seed = first_seed; seed < first_seed + MACHINES; seed++) {
		struct workload *workload = draw_machine(seed);
		size_t count = workload_round(workload);
		for (size_t i = 0; i < count; i++) {
			const struct nm_proposal *proposal =
				&workload->balancer->proposals.items[i];
			const struct nm_move *move = &proposal->moves[0];
			double change = proposal->balance.cost_change;
			double cost = isnan(change) ? 0 : change;
			print = mix(print, &move->thread, sizeof(move->thread));
			print = mix(print, &move->cpu_to, sizeof(move->cpu_to));
			print = mix(print, &cost, sizeof(cost));
		}
		print = mix(print, &count, sizeof(count));
		workload_free(workload);
	}
	return print;
}

/* The same input gives identical moves in every build. */
TEST(test_decisions_repeat)
{
	uint64_t print = fingerprint(1);
	assert_true(print == fingerprint(1));
	assert_true(print != fingerprint(2));
	if (print != FINGERPRINT)
		fail_msg("the fingerprint is 0x%llxULL", (unsigned long long)print);
}

RUN_TESTS()
