/* SPDX-License-Identifier: MIT */
/* From a snapshot to the input of a round of balancing: threads to read, loads, groups, unmanaged
 * load. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "../support/interval.h"
#include "numa-migrd/balance.h"

enum { MOST = 16 };

static struct machine *machine;
static struct nm_snapshot *snapshot;
static struct nm_balance_input_arrays arrays;
static struct nm_balance_times times[MOST];
static struct nm_balance_measurements facts;
static uint32_t suspects[MOST];
static struct nm_balance_rules rules;

/* Two nodes: CPUs 0 and 1, CPUs 2 and 3. */
static int begin(void **state)
{
	(void)state;
	machine = machine_new(2, 2);
	memset(times, 0, sizeof(times));
	facts = (struct nm_balance_measurements){.times = times, .min_run = 0.1};
	rules = (struct nm_balance_rules){.begin = 0.5, .end = 0.25, .persist = 1, .max_moves = 64};
	return 0;
}

static int end(void **state)
{
	(void)state;
	nm_balance_input_clear(&arrays);
	nm_snapshot_free(snapshot);
	snapshot = NULL;
	machine_free(machine);
	return 0;
}

static void look(void)
{
	nm_snapshot_free(snapshot);
	snapshot = machine_snapshot(machine);
	assert_non_null(snapshot);
	facts.snapshot = snapshot;
}

static size_t find_suspects(size_t most)
{
	size_t count = 99;
	look();
	nm_balance_select_threads(snapshot, &rules, most, suspects, &count);
	return count;
}

static void gather(void)
{
	look();
	nm_balance_input_clear(&arrays);
	nm_balance_input_build(&facts, &arrays);
	assert_ptr_equal(arrays.input.threads, arrays.threads);
}

/* Threads of a process that share a CPU and keep it busy together. */
static void share_cpu(uint32_t pid, int cpu, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		machine->figures[machine_thread(machine, pid, cpu, -1)].run_share = 1.0 / count;
	machine->busy[cpu] = 1;
}

/* ---- threads to read ---- */

static void test_idle_cpus_read_no_threads(void **state)
{
	(void)state;
	share_cpu(1000, 0, 3);
	share_cpu(1000, 1, 3);
	machine->busy[0] = machine->busy[1] = 0.89;
	machine->busy[2] = machine->busy[3] = 0.7;
	assert_int_equal(find_suspects(MOST), 0);
	machine->busy[2] = machine->busy[3] = 0.5;
	assert_int_equal(find_suspects(MOST), 0); /* on different nodes, but none can have waited */
}

static void test_threads_of_full_cpus_are_read(void **state)
{
	(void)state;
	share_cpu(1000, 0, 2);
	share_cpu(1000, 1, 3);
	share_cpu(1000, 2, 1);
	machine->busy[2] = 0.5;
	assert_int_equal(find_suspects(MOST), 5);
	const uint32_t expected[] = {2, 3, 4, 0, 1}; /* the fullest first */
	assert_memory_equal(suspects, expected, sizeof(expected));
	assert_int_equal(find_suspects(4), 4);
	machine->busy[1] = 0.9; /* busy except for the tolerated share of waiting */
	assert_int_equal(find_suspects(MOST), 5);
	machine->busy[1] = NAN;
	assert_int_equal(find_suspects(MOST), 2);
}

static void test_equal_nodes_read_no_threads(void **state)
{
	(void)state;
	for (int cpu = 0; cpu < 4; cpu++)
		share_cpu(1000, cpu, 1);
	assert_int_equal(find_suspects(MOST), 0);
	rules.end = -1;
	assert_int_equal(find_suspects(MOST), 4);
}

/* Equal numbers everywhere, but the threads of one node may have slept. */
static void test_full_nodes_may_differ_in_load(void **state)
{
	(void)state;
	for (int cpu = 0; cpu < 4; cpu++)
		share_cpu(1000, cpu, 2);
	assert_int_equal(find_suspects(MOST), 8);
}

static void test_isolated_cpus_are_left_alone(void **state)
{
	(void)state;
	share_cpu(1000, 0, 2);
	share_cpu(1000, 1, 3);
	hwloc_bitmap_clr(machine->topology->usable, 1);
	assert_int_equal(find_suspects(MOST), 2);
}

static void test_single_node_reads_no_threads(void **state)
{
	(void)state;
	share_cpu(1000, 0, 2);
	machine_take_cpus(machine, 1, 0);
	rules.end = 1; /* CPU 1 may idle: same node */
	assert_int_equal(find_suspects(MOST), 0);
}

/* ---- gathering ---- */

static void know(size_t thread, uint64_t run_ms, uint64_t delay_ms)
{
	times[thread] = (struct nm_balance_times){.run_ns = run_ms * NM_NSEC_PER_MSEC,
						  .delay_ns = delay_ms * NM_NSEC_PER_MSEC,
						  .length_ns = NM_NSEC_PER_SEC};
}

static void test_loads(void **state)
{
	(void)state;
	share_cpu(1000, 0, 3);
	machine_thread(machine, 1000, 2, -1);
	machine_thread(machine, 1000, -1, -1);
	machine->figures[3].run_share = 0.4;
	machine->busy[2] = 0.4;
	know(0, 300, 600);
	know(1, 300, 99);
	know(4, 300, 600);
	times[2].delay_ns = NM_NSEC_PER_SEC; /* start unknown */
	gather();
	assert_true(arrays.threads[0].load == 0.9 && arrays.threads[0].waiting);
	assert_false(arrays.threads[1].waiting);
	assert_true(isnan(arrays.threads[2].load) && !arrays.threads[2].waiting);
	assert_true(arrays.threads[3].load == 0.4 && !arrays.threads[3].waiting);
	assert_true(arrays.threads[4].load == 0 && arrays.threads[4].cpu == -1);
	facts.times = NULL;
	gather();
	assert_true(isnan(arrays.threads[0].load) && !arrays.threads[0].waiting);
}

static void test_decisions_name_their_threads(void **state)
{
	(void)state;
	machine_thread(machine, 1000, 0, -1);
	machine_thread(machine, 1000, 2, -1);
	machine_thread(machine, 77, 2, -1);
	machine->members[1].barred_until = machine->interval + 1;
	machine->members[1].everywhere = true;
	gather();
	assert_true(arrays.threads[1].everywhere && !arrays.threads[0].everywhere);
	assert_int_equal(arrays.input.nr_threads, 3);
	assert_int_equal(arrays.input.nr_groups, 2);
	assert_true(arrays.threads[0].leader && !arrays.threads[1].leader);
	assert_true(arrays.threads[0].movable && !arrays.threads[1].movable);
	assert_int_equal(arrays.threads[0].group, arrays.threads[1].group);
	assert_int_not_equal(arrays.threads[0].group, arrays.threads[2].group);
	assert_int_equal(arrays.threads[1].tid, 1001);
	assert_int_equal(arrays.threads[1].start_ticks, 6001);
	assert_int_equal(arrays.threads[1].cpu, 2);
	assert_ptr_equal(arrays.threads[1].allowed, machine->masks[1]);
	machine->figures[0].main_node_share = 0.6; /* too spread to be moved */
	gather();
	assert_false(arrays.threads[0].movable);
}

static void test_groups(void **state)
{
	(void)state;
	machine_thread(machine, 1000, 2, -1);
	machine_thread(machine, 1000, 0, -1);
	machine_thread(machine, 1000, 1, -1);
	machine_thread(machine, 1000, -1, -1);
	gather();
	const struct nm_selection_group *group = &arrays.groups[0];
	assert_int_equal(group->leader_node, 1);
	assert_int_equal(group->members[0], 2);
	assert_int_equal(group->members[1], 1);
	assert_null(group->resident);
}

static void test_an_idle_leader_is_ignored(void **state)
{
	(void)state;
	machine_thread(machine, 1000, 2, -1);
	machine_thread(machine, 1000, 0, -1);
	machine->figures[0].run_share = 0.05;
	gather();
	assert_int_equal(arrays.groups[0].leader_node, -1);
	know(0, 50, 50); /* it was runnable */
	gather();
	assert_int_equal(arrays.groups[0].leader_node, 1);
	machine_run_on(machine, 0, -1);
	know(0, 0, 900);
	gather();
	assert_int_equal(arrays.groups[0].leader_node, -1);
}

static void test_pages_of_nodes_without_cpus(void **state)
{
	(void)state;
	machine_free(machine);
	machine = machine_new(3, 2);
	machine_take_cpus(machine, 2, 1);
	machine_thread(machine, 1000, 0, -1);
	machine_thread(machine, 2000, 0, -1);
	const double pages[] = {5, 7, 90};
	const double *const resident[] = {pages, NULL};
	facts.resident = resident;
	gather();
	assert_true(arrays.groups[0].resident[0] == 5);
	assert_true(arrays.groups[0].resident[1] == 97);
	assert_true(arrays.groups[0].resident[2] == 0);
	assert_null(arrays.groups[1].resident);
}

static void test_unmanaged_threads_are_not_read(void **state)
{
	(void)state;
	machine_thread(machine, 1000, 0, -1);
	machine_thread(machine, 1000, 1, -1);
	machine->figures[0].run_share = 0.25;
	machine->figures[1].run_share = 0.8;
	machine->busy[0] = 1;
	machine->busy[1] = 0.7; /* it also ran elsewhere */
	machine->busy[2] = 0.5;
	machine->busy[3] = NAN;
	gather();
	assert_true(arrays.other_load[0] == 0.75 && arrays.other_load[1] == 0);
	assert_true(arrays.other_load[2] == 0.5 && isnan(arrays.other_load[3]));
	machine->figures[0].run_share = NAN;
	machine->busy[1] = NAN;
	gather();
	assert_true(arrays.other_load[0] == 0 && isnan(arrays.other_load[1]));
}

/* A complete round: full CPUs on one node, two idle ones on the other, memory there. */
static void test_a_round_from_a_snapshot(void **state)
{
	(void)state;
	const double pages[] = {10, 30};
	const double *const resident[] = {pages};
	struct nm_balance_state balance = {0};
	struct nm_balance_result result;
	share_cpu(77, 0, 4);
	share_cpu(77, 1, 4);
	facts.resident = resident;
	assert_int_equal(find_suspects(MOST), 8);
	for (unsigned i = 0; i < 8; i++)
		know(suspects[i], 250, 750);
	gather();
	rules.selection = NM_SELECTION_MOST_BENEFIT;
	nm_balance_round(&arrays.input, &rules, &balance, &result);
	assert_true(result.gap == 4);
	assert_int_equal(result.count, 4);
	assert_true(result.moves[0].gain == 20 && result.moves[0].cost_change == -20);
	nm_balance_result_clear(&result);
}

static void test_types_are_passed_on(void **state)
{
	(void)state;
	const enum nm_dtas_type types[] = {NM_DTAS_MEMORY, NM_DTAS_COMPUTE};
	const enum nm_dtas_type cpu_types[4] = {NM_DTAS_EITHER};
	machine_thread(machine, 1000, 0, -1);
	machine_thread(machine, 1000, 0, -1);
	gather();
	assert_int_equal(arrays.threads[0].type, NM_DTAS_EITHER);
	assert_null(arrays.input.cpu_types);
	facts.types = types;
	facts.cpu_types = cpu_types;
	gather();
	assert_int_equal(arrays.threads[0].type, NM_DTAS_MEMORY);
	assert_int_equal(arrays.threads[1].type, NM_DTAS_COMPUTE);
	assert_ptr_equal(arrays.input.cpu_types, cpu_types);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_idle_cpus_read_no_threads, begin, end),
		cmocka_unit_test_setup_teardown(test_threads_of_full_cpus_are_read, begin, end),
		cmocka_unit_test_setup_teardown(test_equal_nodes_read_no_threads, begin, end),
		cmocka_unit_test_setup_teardown(test_full_nodes_may_differ_in_load, begin, end),
		cmocka_unit_test_setup_teardown(test_isolated_cpus_are_left_alone, begin, end),
		cmocka_unit_test_setup_teardown(test_single_node_reads_no_threads, begin, end),
		cmocka_unit_test_setup_teardown(test_loads, begin, end),
		cmocka_unit_test_setup_teardown(test_decisions_name_their_threads, begin, end),
		cmocka_unit_test_setup_teardown(test_groups, begin, end),
		cmocka_unit_test_setup_teardown(test_an_idle_leader_is_ignored, begin, end),
		cmocka_unit_test_setup_teardown(test_pages_of_nodes_without_cpus, begin, end),
		cmocka_unit_test_setup_teardown(test_unmanaged_threads_are_not_read, begin, end),
		cmocka_unit_test_setup_teardown(test_a_round_from_a_snapshot, begin, end),
		cmocka_unit_test_setup_teardown(test_types_are_passed_on, begin, end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
