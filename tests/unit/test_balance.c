/* SPDX-License-Identifier: MIT */
/* When balancing between nodes begins and ends, and the moves of a round. */
#define SET_UP begin
#define TEAR_DOWN end
#include "../support/test.h"

#include "balance_case.h"

static void expect_move(size_t i, uint32_t thread, int from, int to)
{
	const struct nm_move *move = &proposal(i)->moves[0];
	assert_int_equal(move->thread, thread);
	assert_int_equal(move->cpu_from, from);
	assert_int_equal(move->cpu_to, to);
}

/* ---- hysteresis ---- */

static bool update(double gap)
{
	nm_balance_update(&workload->balancer->state, &machine->config, gap);
	return workload->balancer->state.active;
}

TEST(test_hysteresis)
{
	machine->config.rules.balance_persist = 3;
	assert_false(update(0.6));
	assert_false(update(0.6));
	assert_false(update(0.5)); /* not above the threshold: the count restarts */
	assert_false(update(0.6));
	assert_false(update(0.6));
	assert_true(update(0.6));
	assert_true(update(0.3));
	assert_false(update(0.25));
	assert_false(update(0.4)); /* above the end threshold only */
	assert_false(update(0.9));
	assert_false(update(0.9));
	assert_true(update(0.9));
}

TEST(test_paper_always_balances)
{
	workload_rules(workload, "balance-paper", NM_SELECTION_FIRST_FIT);
	assert_true(update(0));
	assert_true(update(0));
}

/* ---- a round ---- */

TEST(test_the_busiest_sends_to_the_idlest)
{
	workload_programs(workload, 0, 4, 1);
	workload_programs(workload, 1, 3, 1);
	workload_programs(workload, 2, 1, 1);
	machine->config.rules.moves_per_interval = 1;
	assert_int_equal(workload_round(workload), 1);
	expect_move(0, 0, 0, 3);
	const struct nm_proposal *first = proposal(0);
	assert_true(first->balance.load == 1);
	assert_true(first->balance.load_from == 4 && first->balance.load_to == 0);
	assert_true(first->balance.gain == 10 && first->balance.metric == 10);
	assert_int_equal(first->balance.by, NM_SELECTED_BY_RULE);
	assert_int_equal(first->moves[0].node_from, 0);
	assert_int_equal(first->moves[0].node_to, 1);
	/* Distances 10 and 20: all ten pages become local, and each cost two accesses before. */
	assert_true(first->balance.cost_change == -10);
	assert_true(first->balance.gap == 3);
	assert_int_equal(workload->balancer->state.waiting, 8);
}

TEST(test_moves_until_the_nodes_are_alike)
{
	workload_programs(workload, 0, 4, 1);
	workload_programs(workload, 1, 4, 1);
	assert_int_equal(workload_round(workload), 4);
	expect_move(0, 4, 1, 2);
	expect_move(1, 0, 0, 3);
	expect_move(2, 5, 1, 2);
	expect_move(3, 1, 0, 3);
}

TEST(test_a_round_has_a_limit)
{
	workload_programs(workload, 0, 8, 1);
	machine->config.rules.moves_per_interval = 2;
	assert_int_equal(workload_round(workload), 2);
	machine->config.rules.moves_per_interval = 0;
	assert_int_equal(workload_round(workload), 0);
}

TEST(test_no_balancing_below_the_gap)
{
	workload_programs(workload, 0, 3, 1);
	workload_programs(workload, 1, 1, 1);
	workload_programs(workload, 2, 2, 1);
	machine->config.rules.balance_begin = 1;
	assert_int_equal(workload_round(workload), 0); /* 2 against 1 is not above */
	assert_false(workload->balancer->state.active);
	machine->config.rules.balance_begin = 0.9;
	assert_int_equal(workload_round(workload), 1);
	assert_true(workload->balancer->state.active);
}

/* 0.55 + 0.6 is only slightly below 1.2. */
TEST(test_relief_must_exceed_a_minimum)
{
	workload_programs(workload, 0, 2, 1);
	workload->threads[0].load = workload->threads[1].load = 0.6;
	for (int cpu = 1; cpu < (int)machine->topology->nr_cpus; cpu++)
		machine->busy[cpu] = 0.55;
	machine->config.rules.balance_overload = 0;
	machine->config.rules.balance_begin = machine->config.rules.balance_end = -1000;
	assert_int_equal(workload_round(workload), 0);
	workload_rules(workload, "balance-paper", NM_SELECTION_MOST_BENEFIT);
	machine->config.rules.moves_per_interval = 1;
	assert_int_equal(workload_round(workload), 1);
}

/* Afterwards the destination node would have more load, and CPU 3 of the source is idle. */
TEST(test_nodes_do_not_change_places)
{
	workload_programs(workload, 0, 2, 1);
	workload_programs(workload, 1, 1, 1);
	workload_programs(workload, 2, 2, 1);
	machine->config.rules.balance_begin = 0.4;
	assert_int_equal(workload_round(workload), 0);
	assert_true(workload->balancer->state.active);
	machine->config.rules.balance_end = -0.1; /* equal loads suffice */
	assert_int_equal(workload_round(workload), 1);
}

/* The kernel moves threads within a node. */
TEST(test_never_within_a_node)
{
	workload_programs(workload, 0, 6, 1);
	machine->busy[2] = 2.5;
	machine->busy[3] = 2.5;
	workload_rules(workload, "balance-paper", NM_SELECTION_FIRST_FIT);
	machine->config.rules.moves_per_interval = 1;
	assert_int_equal(workload_round(workload), 1); /* CPU 1 is idle, and the kernel fills it */
	expect_move(0, 0, 0, 2);
	hwloc_bitmap_clr_range(machine->topology->usable, 2, 3);
	assert_int_equal(workload_round(workload), 0);
	assert_true(workload->balancer->state.gap == 0);
}

TEST(test_a_node_with_enough_cpus_keeps_its_threads)
{
	workload_programs(workload, 0, 3, 1);
	workload->threads[2].load = 0;
	workload->threads[0].load = workload->threads[1].load = 0.9; /* 0.9 per CPU */
	assert_int_equal(workload_round(workload), 0);
	assert_true(workload->balancer->state.active);
	machine->config.rules.balance_overload = 0.9;
	assert_int_equal(workload_round(workload), 1);
}

TEST(test_unmanaged_work_counts)
{
	workload_programs(workload, 0, 4, 1);
	workload_programs(workload, 1, 4, 1);
	machine->busy[2] = 4;
	machine->busy[3] = NAN; /* unknown: a whole CPU */
	machine->config.rules.moves_per_interval = 1;
	assert_int_equal(workload_round(workload), 1);
	expect_move(0, 4, 1, 3);
	assert_true(proposal(0)->balance.load_to == 1);
	machine->busy[2] = machine->busy[3] = 0;
	assert_int_equal(workload_round(workload), 1);
	expect_move(0, 4, 1, 2);
}

TEST(test_immovable_threads)
{
	workload_programs(workload, 0, 6, 1);
	workload_hold(workload, 0);
	workload->threads[1].waiting = false;
	machine->figures[2].main_node_share = 0.6; /* too spread */
	hwloc_bitmap_only(machine->masks[3], 1);
	machine->config.rules.moves_per_interval = 1;
	assert_int_equal(workload_round(workload), 1);
	expect_move(0, 4, 0, 2);
	assert_int_equal(workload->balancer->state.waiting, 3);
	workload_hold(workload, 4);
	workload_hold(workload, 5);
	assert_int_equal(workload_round(workload), 0);
}

TEST(test_affinities_permit_other_destinations)
{
	workload_programs(workload, 0, 3, 1);
	workload_programs(workload, 1, 3, 1);
	machine->busy[3] = 0.5;
	for (unsigned i = 0; i < 6; i++)
		hwloc_bitmap_clr(machine->masks[i], 2);
	machine->config.rules.moves_per_interval = 1;
	assert_int_equal(workload_round(workload), 1);
	expect_move(0, 3, 1, 3);
	machine->members[4].everywhere = true; /* then the affinity need not be queried */
	assert_int_equal(workload_round(workload), 1);
	expect_move(0, 4, 1, 2);
}

/* kMLB 3.2.1: no thread of the busiest CPU can move, so the next busiest is tried. */
TEST(test_the_next_busiest_cpu_is_tried)
{
	workload_programs(workload, 0, 5, 0); /* its memory is local */
	workload_programs(workload, 1, 3, 1);
	machine->config.rules.moves_per_interval = 1;
	assert_int_equal(workload_round(workload), 1);
	expect_move(0, 5, 1, 2);
	assert_int_equal(workload->balancer->tally.stopped_by_gain, 5);
	machine->config.rules.balance_min_gain = -10;
	assert_int_equal(workload_round(workload), 1);
	expect_move(0, 0, 0, 2);
}

/* Numbers wrap, so the older thread may have the higher one. */
TEST(test_the_older_thread_comes_first)
{
	workload_programs(workload, 0, 4, 1);
	machine->members[0].start_ticks = 50;
	machine->members[3].start_ticks = 20;
	machine->members[2].start_ticks = 20;
	machine->config.threads.selection = NM_SELECTION_FIRST_FIT;
	machine->config.rules.moves_per_interval = 2;
	assert_int_equal(workload_round(workload), 2);
	expect_move(0, 2, 0, 2);
	expect_move(1, 3, 0, 3);
}

/* Exclusivity is evaluated again after each move, as the group is then spread wider. */
TEST(test_counts_follow_the_moves)
{
	use_machine(3, 3);
	const uint32_t a = 1006, b = 1007; /* leaders: threads 6 and 7 */
	for (unsigned i = 0; i < 3; i++) {
		workload_thread(workload, a, 0);
		workload_thread(workload, b, 0);
	}
	workload_thread(workload, a, 2);
	workload_thread(workload, b, 2);
	workload_thread(workload, b, 2); /* a: 3/4, b: 3/5 */
	workload_hold(workload, 6);
	workload_hold(workload, 7);
	workload_rules(workload, "balance-paper", NM_SELECTION_EXCLUSIVITY);
	machine->config.rules.moves_per_interval = 3;
	assert_int_equal(workload_round(workload), 3);
	expect_move(0, 1, 0, 1);
	assert_true(proposal(0)->balance.metric == 3.0 / 5);
	expect_move(1, 3, 0, 1);
	assert_true(proposal(1)->balance.metric == 2.0 / 5);
}

static void expect_no_node_in_both_roles(void)
{
	for (size_t i = 0; i < workload->balancer->proposals.count; i++)
		for (size_t k = 0; k < workload->balancer->proposals.count; k++)
			assert_int_not_equal(proposal(i)->moves[0].node_to,
					     proposal(k)->moves[0].node_from);
}

/* CPU 1 is idle, but its node has sent threads: the kernel will fill it from CPU 0. */
TEST(test_a_sending_node_does_not_receive)
{
	use_machine(3, 6);
	workload_programs(workload, 0, 9, 1);
	workload_programs(workload, 4, 4, 0);
	workload_programs(workload, 5, 4, 0);
	workload_rules(workload, "balance-paper", NM_SELECTION_FIRST_FIT);
	assert_true(workload_round(workload) > 2);
	assert_int_equal(proposal(0)->moves[0].node_from, 0);
	expect_no_node_in_both_roles();
}

TEST(test_idle_cpu_on_the_emptier_node_is_chosen)
{
	use_machine(3, 6);
	workload_programs(workload, 0, 6, 1);
	machine->busy[3] = 0.5;
	machine->config.rules.moves_per_interval = 1;
	machine->config.rules.balance_min_gain = NM_CONFIG_ANY_GAIN;
	assert_int_equal(workload_round(workload), 1);
	expect_move(0, 0, 0, 4);
	machine->busy[3] = 0;
	machine->busy[4] = 0.5;
	assert_int_equal(workload_round(workload), 1);
	expect_move(0, 0, 0, 2);
}

TEST(test_pages_not_known)
{
	workload_programs(workload, 0, 4, 1);
	workload_pages(workload, 1000)[0] = NAN;
	machine->config.threads.selection = NM_SELECTION_FIRST_FIT;
	machine->config.rules.moves_per_interval = 1;
	assert_int_equal(workload_round(workload), 1);
	expect_move(0, 1, 0, 2);
	assert_int_equal(workload->balancer->tally.unknown, 1);
	machine->config.rules.balance_min_gain = NM_CONFIG_ANY_GAIN;
	assert_int_equal(workload_round(workload), 1);
	expect_move(0, 0, 0, 2);
	assert_true(isnan(proposal(0)->balance.gain) && isnan(proposal(0)->balance.cost_change));
	assert_true(isnan(proposal(0)->balance.resident) && isnan(proposal(0)->balance.age_s));
}

TEST(test_a_machine_without_threads)
{
	workload_rules(workload, "balance-paper", NM_SELECTION_FIRST_FIT);
	assert_int_equal(workload_round(workload), 0);
}

/* ---- types of CPUs ---- */

static void set_types(enum nm_dtas_type even, enum nm_dtas_type odd)
{
	const enum nm_dtas_type types[] = {even, odd, even, odd};
	workload_split(workload, types);
}

TEST(test_threads_go_to_cpus_of_their_type)
{
	workload_programs(workload, 0, 6, 1);
	machine->busy[2] = 0.2;
	machine->busy[3] = 0.1;
	set_types(NM_DTAS_COMPUTE, NM_DTAS_MEMORY);
	for (unsigned i = 0; i < 6; i++)
		workload->threads[i].behaviour.type = i < 4 ? NM_DTAS_COMPUTE : NM_DTAS_MEMORY;
	machine->config.rules.moves_per_interval = 2;
	assert_int_equal(workload_round(workload), 2);
	expect_move(0, 4, 0, 3);
	expect_move(1, 0, 0, 2);
	assert_int_equal(hwloc_bitmap_weight(proposal(0)->moves[0].within), 1);
	assert_true(hwloc_bitmap_isset(proposal(0)->moves[0].within, 3));
}

/* The idlest CPU has the other type; its neighbour may have this one. */
TEST(test_another_cpu_of_the_node_has_the_type)
{
	workload_programs(workload, 0, 4, 1);
	machine->busy[2] = 0.2;
	machine->busy[3] = 0.1;
	set_types(NM_DTAS_COMPUTE, NM_DTAS_MEMORY);
	for (unsigned i = 0; i < 4; i++)
		workload->threads[i].behaviour.type = NM_DTAS_COMPUTE;
	machine->config.rules.moves_per_interval = 1;
	assert_int_equal(workload_round(workload), 1);
	expect_move(0, 0, 0, 2);
}

TEST(test_idle_cpus_take_either_type)
{
	workload_programs(workload, 0, 4, 1);
	set_types(NM_DTAS_MEMORY, NM_DTAS_MEMORY);
	for (unsigned i = 0; i < 4; i++)
		workload->threads[i].behaviour.type = NM_DTAS_COMPUTE;
	assert_int_equal(workload_round(workload), 2); /* one for each idle CPU */
	expect_move(0, 0, 0, 2);
	expect_move(1, 1, 0, 3);
	machine->config.rules.balance_idle_max = 0; /* strict */
	assert_int_equal(workload_round(workload), 0);
	workload->threads[3].behaviour.type = NM_DTAS_EITHER;
	assert_int_equal(workload_round(workload), 1);
	expect_move(0, 3, 0, 2);
}

/* ---- confinement, kMLB 2.4 ---- */

/* Adds threads that ran on CPU 0, which is for computing ones. */
static void add_typed(unsigned count, enum nm_dtas_type type)
{
	for (unsigned i = 0; i < count; i++) {
		size_t thread = workload_thread(workload, 1000 + (uint32_t)machine->count, 0);
		machine->figures[thread].run_share = 0.3;
		workload->threads[thread].behaviour.type = type;
	}
}

static size_t confine(void)
{
	machine->config.rules.balance_begin = 1000;
	machine->config.rules.balance_end = 1000;
	workload_round(workload);
	nm_balancer_confine(workload->balancer, workload->snapshot, &machine->config);
	return workload->balancer->proposals.count;
}

TEST(test_threads_return_to_cpus_of_their_type)
{
	add_typed(1, NM_DTAS_COMPUTE);
	add_typed(3, NM_DTAS_MEMORY);
	add_typed(1, NM_DTAS_EITHER);
	assert_int_equal(confine(), 0); /* CPUs have no types */
	set_types(NM_DTAS_COMPUTE, NM_DTAS_MEMORY);
	assert_int_equal(confine(), 3);
	for (unsigned i = 0; i < 3; i++) {
		expect_move(i, 1 + i, 0, 1);
		assert_int_equal(proposal(i)->balance.by, NM_SELECTED_BY_TYPE);
		assert_int_equal(hwloc_bitmap_weight(proposal(i)->moves[0].within), 1);
	}
	assert_int_equal(workload->balancer->tally.returned, 3);
	workload_hold(workload, 2);
	assert_int_equal(confine(), 2);
	hwloc_bitmap_clr(machine->masks[3], 1);
	assert_int_equal(confine(), 1);
	expect_move(0, 1, 0, 1);
	machine_run_on(machine, 1, 1);
	assert_int_equal(confine(), 0);
}

/* Both types have CPUs on node 0: the least loaded one is chosen, and a round's moves count. */
TEST(test_returns_have_a_limit_and_spread)
{
	use_machine(2, 6);
	const enum nm_dtas_type types[] = {NM_DTAS_COMPUTE, NM_DTAS_MEMORY, NM_DTAS_MEMORY,
					   NM_DTAS_COMPUTE, NM_DTAS_MEMORY, NM_DTAS_MEMORY};
	add_typed(4, NM_DTAS_MEMORY);
	workload_split(workload, types);
	machine->config.rules.moves_per_interval = 3;
	assert_int_equal(confine(), 3);
	expect_move(0, 0, 0, 1);
	expect_move(1, 1, 0, 2);
	expect_move(2, 2, 0, 1);
	/* Those that the round moves to another node are not moved again. */
	workload_rules(workload, "balance-paper", NM_SELECTION_FIRST_FIT);
	size_t moved = workload_round(workload);
	nm_balancer_confine(workload->balancer, workload->snapshot, &machine->config);
	assert_true(moved > 0 && workload->balancer->proposals.count == 4);
	for (size_t i = moved; i < 4; i++)
		for (size_t k = 0; k < i; k++)
			assert_int_not_equal(proposal(i)->moves[0].thread,
					     proposal(k)->moves[0].thread);
}

/* A CPU that no other thread wants serves either type; in the paper it would idle. */
TEST(test_a_thread_alone_on_its_cpu_stays)
{
	add_typed(1, NM_DTAS_MEMORY);
	set_types(NM_DTAS_COMPUTE, NM_DTAS_MEMORY);
	assert_int_equal(confine(), 0);
	workload_rules(workload, "balance-paper", NM_SELECTION_TOTAL_MIN);
	assert_int_equal(confine(), 1);
	expect_move(0, 0, 0, 1);
}

RUN_TESTS()
