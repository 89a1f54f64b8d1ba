/* SPDX-License-Identifier: MIT */
/* When balancing between nodes begins and ends, and the moves of a round. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "../support/balance_fixture.h"

static struct workload *workload;
static struct nm_balance_result result;

/* Two nodes: CPUs 0 and 1, CPUs 2 and 3. */
static int begin(void **state)
{
	(void)state;
	workload = workload_new(2, 4, 64);
	return 0;
}

static int end(void **state)
{
	(void)state;
	nm_balance_result_clear(&result);
	workload_free(workload);
	return 0;
}

static size_t run_round(void)
{
	nm_balance_result_clear(&result);
	nm_balance_round(&workload->input, &workload->rules, &workload->state, &result);
	return result.count;
}

static void expect_move(size_t i, uint32_t thread, int from, int to)
{
	assert_true(i < result.count);
	assert_int_equal(result.moves[i].thread, thread);
	assert_int_equal(result.moves[i].cpu_from, from);
	assert_int_equal(result.moves[i].cpu_to, to);
}

/* ---- load ---- */

static void test_load_is_run_and_wait_time(void **state)
{
	(void)state;
	assert_true(nm_balance_load(200, 300, 1000) == 0.5);
	assert_true(nm_balance_load(0, 0, 1000) == 0);
	assert_true(nm_balance_load(900, 200, 1000) == 1);
	assert_true(isnan(nm_balance_load(0, 0, 0)));
	assert_true(isnan(nm_balance_load(5, 0, 0)));
}

static void test_waiting_begins_at_the_share(void **state)
{
	(void)state;
	assert_true(nm_balance_waits(100, 1000));
	assert_false(nm_balance_waits(99, 1000));
}

/* ---- hysteresis ---- */

static bool update(double gap)
{
	return nm_balance_update(&workload->state, &workload->rules, gap);
}

static void test_hysteresis(void **state)
{
	(void)state;
	workload->rules.persist = 2;
	assert_false(update(0.6));
	assert_false(update(0.5)); /* not above the threshold: the count restarts */
	assert_false(update(0.6));
	assert_true(update(0.6));
	assert_true(update(0.3));
	assert_false(update(0.25));
	assert_false(update(0.4)); /* above the end threshold only */
	assert_false(update(0.9));
	assert_true(update(0.9));
}

static void test_paper_always_balances(void **state)
{
	(void)state;
	workload->rules = workload_paper(NM_SELECTION_FIRST_FIT);
	assert_true(update(0));
	assert_true(update(0));
}

/* ---- a round ---- */

static void test_the_busiest_sends_to_the_idlest(void **state)
{
	(void)state;
	workload_programs(workload, 0, 4, 1);
	workload_programs(workload, 1, 3, 1);
	workload_programs(workload, 2, 1, 1);
	workload->rules.max_moves = 1;
	assert_int_equal(run_round(), 1);
	expect_move(0, 0, 0, 3);
	const struct nm_balance_move *move = &result.moves[0];
	assert_true(move->load == 1 && move->load_from == 4 && move->load_to == 0);
	assert_true(move->gain == 10 && move->metric == 10);
	assert_int_equal(move->reason, NM_SELECTED_BY_RULE);
	assert_int_equal(move->node_from, 0);
	assert_int_equal(move->node_to, 1);
	/* Distances 10 and 20: all ten pages become local, and each cost two accesses before. */
	assert_true(move->cost_change == -10);
	assert_true(result.gap == 3);
	assert_int_equal(result.waiting, 8);
}

static void test_moves_until_the_nodes_are_alike(void **state)
{
	(void)state;
	workload_programs(workload, 0, 4, 1);
	workload_programs(workload, 1, 4, 1);
	assert_int_equal(run_round(), 4);
	expect_move(0, 4, 1, 2);
	expect_move(1, 0, 0, 3);
	expect_move(2, 5, 1, 2);
	expect_move(3, 1, 0, 3);
}

static void test_a_round_has_a_limit(void **state)
{
	(void)state;
	workload_programs(workload, 0, 8, 1);
	workload->rules.max_moves = 2;
	assert_int_equal(run_round(), 2);
	workload->rules.max_moves = 0;
	assert_int_equal(run_round(), 0);
}

static void test_no_balancing_below_the_gap(void **state)
{
	(void)state;
	workload_programs(workload, 0, 3, 1);
	workload_programs(workload, 1, 1, 1);
	workload_programs(workload, 2, 2, 1);
	workload->rules.begin = 1;
	assert_int_equal(run_round(), 0); /* 2 against 1 is not above */
	assert_false(result.active);
	workload->rules.begin = 0.9;
	assert_int_equal(run_round(), 1);
	assert_true(result.active);
}

/* 1 + load is not below 2, so the move would only exchange loads. */
static void test_no_exchange_without_gain(void **state)
{
	(void)state;
	workload_programs(workload, 0, 2, 1);
	workload_programs(workload, 1, 2, 1);
	workload_programs(workload, 2, 1, 1);
	workload_programs(workload, 3, 1, 1);
	assert_int_equal(run_round(), 0);
	assert_true(result.active);
	workload->threads[0].load = 0.9;
	workload->threads[1].load = 0.9; /* 1 + 0.9 against 1.8 */
	assert_int_equal(run_round(), 0);
	workload_programs(workload, 0, 1, 1);
	assert_int_equal(run_round(), 1);
}

/* 0.55 + 0.6 is only slightly below 1.2. */
static void test_relief_must_exceed_a_minimum(void **state)
{
	(void)state;
	workload_programs(workload, 0, 2, 1);
	workload->threads[0].load = workload->threads[1].load = 0.6;
	for (int cpu = 1; cpu < (int)workload->topology->nr_cpus; cpu++)
		workload->other[cpu] = 0.55;
	workload->rules.overload = 0;
	workload->rules.begin = workload->rules.end = -INFINITY;
	workload->rules.relief = 0.1;
	assert_int_equal(run_round(), 0);
	workload->rules.relief = 0.04;
	assert_int_equal(run_round(), 1);
}

/* Afterwards the destination node would have more load, and CPU 3 of the source is idle. */
static void test_nodes_do_not_change_places(void **state)
{
	(void)state;
	workload_programs(workload, 0, 2, 1);
	workload_programs(workload, 1, 1, 1);
	workload_programs(workload, 2, 2, 1);
	workload->rules.begin = 0.4;
	assert_int_equal(run_round(), 0);
	assert_true(result.active);
	workload->rules.end = -0.1; /* equal loads suffice */
	assert_int_equal(run_round(), 1);
}

/* The kernel moves threads within a node. */
static void test_never_within_a_node(void **state)
{
	(void)state;
	workload_programs(workload, 0, 6, 1);
	workload->other[2] = 2.5;
	workload->other[3] = 2.5;
	workload->rules = workload_paper(NM_SELECTION_FIRST_FIT);
	assert_int_equal(run_round(), 1); /* CPU 1 is idle, and the kernel fills it */
	expect_move(0, 0, 0, 2);
	hwloc_bitmap_clr_range(workload->topology->usable, 2, 3);
	assert_int_equal(run_round(), 0);
	assert_true(result.gap == 0);
}

static void test_a_node_with_enough_cpus_keeps_its_threads(void **state)
{
	(void)state;
	workload_programs(workload, 0, 3, 1);
	workload->input.nr_threads = 3;
	workload->threads[2].load = 0;
	workload->threads[0].load = workload->threads[1].load = 0.9; /* 0.9 per CPU */
	assert_int_equal(run_round(), 0);
	assert_true(result.active);
	workload->rules.overload = 0.9;
	assert_int_equal(run_round(), 1);
}

static void test_unmanaged_work_counts(void **state)
{
	(void)state;
	workload_programs(workload, 0, 4, 1);
	workload_programs(workload, 1, 4, 1);
	workload->other[2] = 4;
	workload->other[3] = NAN; /* unknown: a whole CPU */
	workload->rules.max_moves = 1;
	assert_int_equal(run_round(), 1);
	expect_move(0, 4, 1, 3);
	assert_true(result.moves[0].load_to == 1);
	workload->input.other_load = NULL;
	assert_int_equal(run_round(), 1);
	expect_move(0, 4, 1, 2);
}

static void test_immovable_threads(void **state)
{
	(void)state;
	workload_programs(workload, 0, 6, 1);
	workload->threads[0].movable = false;
	workload->threads[1].waiting = false;
	workload->threads[2].load = NAN;
	hwloc_bitmap_only(workload->masks[3], 1);
	workload->rules.max_moves = 1;
	assert_int_equal(run_round(), 1);
	expect_move(0, 4, 0, 2);
	assert_int_equal(result.waiting, 3);
	workload->threads[4].movable = workload->threads[5].movable = false;
	assert_int_equal(run_round(), 0);
}

static void test_affinities_permit_other_destinations(void **state)
{
	(void)state;
	workload_programs(workload, 0, 3, 1);
	workload_programs(workload, 1, 3, 1);
	workload->other[3] = 0.5;
	for (unsigned i = 0; i < 6; i++)
		hwloc_bitmap_clr(workload->masks[i], 2);
	workload->rules.max_moves = 1;
	assert_int_equal(run_round(), 1);
	expect_move(0, 3, 1, 3);
	workload->threads[4].everywhere = true; /* then the affinity need not be queried */
	assert_int_equal(run_round(), 1);
	expect_move(0, 4, 1, 2);
}

/* kMLB 3.2.1: no thread of the busiest CPU can move, so the next busiest is tried. */
static void test_the_next_busiest_cpu_is_tried(void **state)
{
	(void)state;
	workload_programs(workload, 0, 5, 0); /* its memory is local */
	workload_programs(workload, 1, 3, 1);
	workload->rules.max_moves = 1;
	assert_int_equal(run_round(), 1);
	expect_move(0, 5, 1, 2);
	assert_int_equal(result.stopped_by_gain, 5);
	workload->rules.min_gain = -10;
	assert_int_equal(run_round(), 1);
	expect_move(0, 0, 0, 2);
}

/* Numbers wrap, so the older thread may have the higher one. */
static void test_the_older_thread_comes_first(void **state)
{
	(void)state;
	workload_programs(workload, 0, 4, 1);
	workload->threads[0].start_ticks = 50;
	workload->threads[3].start_ticks = 20;
	workload->threads[2].start_ticks = 20;
	workload->rules.selection = NM_SELECTION_FIRST_FIT;
	workload->rules.max_moves = 2;
	assert_int_equal(run_round(), 2);
	expect_move(0, 2, 0, 2);
	expect_move(1, 3, 0, 3);
}

/* Exclusivity is evaluated again after each move, as the group is then spread wider. */
static void test_counts_follow_the_moves(void **state)
{
	(void)state;
	workload_free(workload);
	workload = workload_new(3, 3, 64);
	uint32_t a = workload_group(workload, 2), b = workload_group(workload, 2);
	for (unsigned i = 0; i < 3; i++) {
		workload_thread(workload, a, 0, false);
		workload_thread(workload, b, 0, false);
	}
	workload_thread(workload, a, 2, true);
	workload_thread(workload, b, 2, true);
	workload_thread(workload, b, 2, false); /* a: 3/4, b: 3/5 */
	workload->threads[6].movable = workload->threads[7].movable = false;
	workload->rules = workload_paper(NM_SELECTION_EXCLUSIVITY);
	workload->rules.max_moves = 3;
	assert_int_equal(run_round(), 3);
	assert_int_equal(result.moves[0].thread, 1);
	assert_true(result.moves[0].metric == 3.0 / 5);
	assert_int_equal(result.moves[1].thread, 3);
	assert_true(result.moves[1].metric == 2.0 / 5);
	assert_int_equal(workload->members[1 * 3 + 0], 3); /* the input is unchanged */
}

static void expect_no_node_in_both_roles(void)
{
	for (size_t i = 0; i < result.count; i++)
		for (size_t k = 0; k < result.count; k++)
			assert_int_not_equal(result.moves[i].node_to, result.moves[k].node_from);
}

static void test_a_receiving_node_does_not_send(void **state)
{
	(void)state;
	workload_free(workload);
	workload = workload_new(3, 3, 64);
	workload_programs(workload, 0, 9, 1);
	workload_programs(workload, 1, 4, 2);
	workload->rules = workload_paper(NM_SELECTION_FIRST_FIT);
	workload->rules.max_moves = 64;
	assert_true(run_round() > 2);
	expect_no_node_in_both_roles();
}

/* CPU 1 is idle, but its node has sent threads: the kernel will fill it from CPU 0. */
static void test_a_sending_node_does_not_receive(void **state)
{
	(void)state;
	workload_free(workload);
	workload = workload_new(3, 6, 64);
	workload_programs(workload, 0, 9, 1);
	workload_programs(workload, 4, 4, 0);
	workload_programs(workload, 5, 4, 0);
	workload->rules = workload_paper(NM_SELECTION_FIRST_FIT);
	workload->rules.max_moves = 64;
	assert_true(run_round() > 2);
	assert_int_equal(result.moves[0].node_from, 0);
	expect_no_node_in_both_roles();
}

static void test_idle_cpu_on_the_emptier_node_is_chosen(void **state)
{
	(void)state;
	workload_free(workload);
	workload = workload_new(3, 6, 64);
	workload_programs(workload, 0, 6, 1);
	workload->other[3] = 0.5;
	workload->rules.max_moves = 1;
	workload->rules.min_gain = -INFINITY;
	assert_int_equal(run_round(), 1);
	expect_move(0, 0, 0, 4);
	workload->other[3] = 0;
	workload->other[4] = 0.5;
	assert_int_equal(run_round(), 1);
	expect_move(0, 0, 0, 2);
}

static void test_rounds_remember_the_gap(void **state)
{
	(void)state;
	workload_programs(workload, 0, 4, 1);
	workload->rules.persist = 2;
	workload->rules.max_moves = 1;
	assert_int_equal(run_round(), 0);
	assert_int_equal(run_round(), 1);
}

static void test_pages_not_known(void **state)
{
	(void)state;
	workload_programs(workload, 0, 4, 1);
	workload->groups[0].resident = NULL;
	workload->rules.selection = NM_SELECTION_FIRST_FIT;
	workload->rules.max_moves = 1;
	assert_int_equal(run_round(), 1);
	expect_move(0, 1, 0, 2);
	assert_int_equal(result.unknown, 1);
	workload->rules.min_gain = -INFINITY;
	assert_int_equal(run_round(), 1);
	expect_move(0, 0, 0, 2);
	assert_true(isnan(result.moves[0].gain) && isnan(result.moves[0].cost_change));
}

static void test_a_machine_without_threads(void **state)
{
	(void)state;
	workload->rules = workload_paper(NM_SELECTION_FIRST_FIT);
	assert_int_equal(run_round(), 0);
	workload->input.other_load = NULL;
	assert_int_equal(run_round(), 0);
}

/* ---- types of CPUs ---- */

static void set_types(enum nm_dtas_type even, enum nm_dtas_type odd)
{
	for (unsigned cpu = 0; cpu < 4; cpu++)
		workload->types[cpu] = cpu % 2 ? odd : even;
	workload->input.cpu_types = workload->types;
}

static void test_threads_go_to_cpus_of_their_type(void **state)
{
	(void)state;
	workload_programs(workload, 0, 6, 1);
	workload->other[2] = 0.2;
	workload->other[3] = 0.1;
	set_types(NM_DTAS_COMPUTE, NM_DTAS_MEMORY);
	for (unsigned i = 0; i < 6; i++)
		workload->threads[i].type = i < 4 ? NM_DTAS_COMPUTE : NM_DTAS_MEMORY;
	workload->rules.max_moves = 2;
	assert_int_equal(run_round(), 2);
	expect_move(0, 4, 0, 3);
	expect_move(1, 0, 0, 2);
}

/* The idlest CPU has the other type; its neighbour may have this one. */
static void test_another_cpu_of_the_node_has_the_type(void **state)
{
	(void)state;
	workload_programs(workload, 0, 4, 1);
	workload->other[2] = 0.2;
	workload->other[3] = 0.1;
	set_types(NM_DTAS_COMPUTE, NM_DTAS_MEMORY);
	for (unsigned i = 0; i < 4; i++)
		workload->threads[i].type = NM_DTAS_COMPUTE;
	workload->rules.max_moves = 1;
	assert_int_equal(run_round(), 1);
	expect_move(0, 0, 0, 2);
}

static void test_idle_cpus_take_either_type(void **state)
{
	(void)state;
	workload_programs(workload, 0, 4, 1);
	set_types(NM_DTAS_MEMORY, NM_DTAS_MEMORY);
	for (unsigned i = 0; i < 4; i++)
		workload->threads[i].type = NM_DTAS_COMPUTE;
	assert_int_equal(run_round(), 2); /* one for each idle CPU */
	expect_move(0, 0, 0, 2);
	expect_move(1, 1, 0, 3);
	workload->rules.idle_max = 0; /* strict */
	assert_int_equal(run_round(), 0);
	workload->threads[3].type = NM_DTAS_EITHER;
	assert_int_equal(run_round(), 1);
	expect_move(0, 3, 0, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_load_is_run_and_wait_time),
		cmocka_unit_test(test_waiting_begins_at_the_share),
		cmocka_unit_test_setup_teardown(test_hysteresis, begin, end),
		cmocka_unit_test_setup_teardown(test_paper_always_balances, begin, end),
		cmocka_unit_test_setup_teardown(test_the_busiest_sends_to_the_idlest, begin, end),
		cmocka_unit_test_setup_teardown(test_moves_until_the_nodes_are_alike, begin, end),
		cmocka_unit_test_setup_teardown(test_a_round_has_a_limit, begin, end),
		cmocka_unit_test_setup_teardown(test_no_balancing_below_the_gap, begin, end),
		cmocka_unit_test_setup_teardown(test_no_exchange_without_gain, begin, end),
		cmocka_unit_test_setup_teardown(test_relief_must_exceed_a_minimum, begin, end),
		cmocka_unit_test_setup_teardown(test_nodes_do_not_change_places, begin, end),
		cmocka_unit_test_setup_teardown(test_never_within_a_node, begin, end),
		cmocka_unit_test_setup_teardown(test_a_node_with_enough_cpus_keeps_its_threads,
						begin, end),
		cmocka_unit_test_setup_teardown(test_unmanaged_work_counts, begin, end),
		cmocka_unit_test_setup_teardown(test_immovable_threads, begin, end),
		cmocka_unit_test_setup_teardown(test_affinities_permit_other_destinations, begin,
						end),
		cmocka_unit_test_setup_teardown(test_the_next_busiest_cpu_is_tried, begin, end),
		cmocka_unit_test_setup_teardown(test_the_older_thread_comes_first, begin, end),
		cmocka_unit_test_setup_teardown(test_counts_follow_the_moves, begin, end),
		cmocka_unit_test_setup_teardown(test_a_receiving_node_does_not_send, begin, end),
		cmocka_unit_test_setup_teardown(test_a_sending_node_does_not_receive, begin, end),
		cmocka_unit_test_setup_teardown(test_idle_cpu_on_the_emptier_node_is_chosen, begin,
						end),
		cmocka_unit_test_setup_teardown(test_rounds_remember_the_gap, begin, end),
		cmocka_unit_test_setup_teardown(test_pages_not_known, begin, end),
		cmocka_unit_test_setup_teardown(test_a_machine_without_threads, begin, end),
		cmocka_unit_test_setup_teardown(test_threads_go_to_cpus_of_their_type, begin, end),
		cmocka_unit_test_setup_teardown(test_another_cpu_of_the_node_has_the_type, begin,
						end),
		cmocka_unit_test_setup_teardown(test_idle_cpus_take_either_type, begin, end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
