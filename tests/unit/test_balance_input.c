/* SPDX-License-Identifier: MIT */
/* Input of a round from a snapshot: threads to read, loads, leaders, pages, unmanaged load. */
#define SET_UP begin
#define TEAR_DOWN end
#include "../support/test.h"

#include "balance_case.h"

enum { MOST = 16 };

static struct nm_times_reading suspects[MOST];

static size_t find_suspects(size_t most)
{
	size_t count = 99;
	workload_look(workload);
	nm_balancer_select_threads(workload->snapshot, &machine->config, most, suspects, &count);
	return count;
}

/* Threads of a process that share a CPU and keep it busy together. */
static void share_cpu(uint32_t pid, int cpu, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		machine->sampled[machine_thread(machine, pid, cpu, -1)].stats.run_share =
			1.0 / count;
	machine->busy[cpu] = 1;
}

/* ---- threads to read ---- */

TEST(test_idle_cpus_read_no_threads)
{
	share_cpu(1000, 0, 3);
	share_cpu(1000, 1, 3);
	machine->busy[0] = machine->busy[1] = 0.89;
	machine->busy[2] = machine->busy[3] = 0.7;
	assert_int_equal(find_suspects(MOST), 0);
	machine->busy[2] = machine->busy[3] = 0.5;
	assert_int_equal(find_suspects(MOST), 0); /* on different nodes, but none can have waited */
}

TEST(test_threads_of_full_cpus_are_read)
{
	share_cpu(1000, 0, 2);
	share_cpu(1000, 1, 3);
	share_cpu(1000, 2, 1);
	machine->busy[2] = 0.5;
	assert_int_equal(find_suspects(MOST), 5);
	const uint32_t expected[] = {2, 3, 4, 0, 1}; /* the fullest first */
	for (size_t i = 0; i < NM_ARRAY_SIZE(expected); i++)
		assert_int_equal(suspects[i].thread, expected[i]);
	assert_int_equal(find_suspects(4), 4);
	machine->busy[1] = 0.9; /* busy except for the tolerated share of waiting */
	assert_int_equal(find_suspects(MOST), 5);
	machine->busy[1] = NAN;
	assert_int_equal(find_suspects(MOST), 2);
}

TEST(test_equal_nodes_read_no_threads)
{
	for (int cpu = 0; cpu < 4; cpu++)
		share_cpu(1000, cpu, 1);
	assert_int_equal(find_suspects(MOST), 0);
	machine->config.rules.balance_end = -1;
	assert_int_equal(find_suspects(MOST), 4);
}

TEST(test_isolated_cpus_are_left_alone)
{
	share_cpu(1000, 0, 2);
	share_cpu(1000, 1, 3);
	hwloc_bitmap_clr(machine->topology->usable, 1);
	assert_int_equal(find_suspects(MOST), 2);
}

TEST(test_single_node_reads_no_threads)
{
	share_cpu(1000, 0, 2);
	machine_take_cpus(machine, 1, 0);
	machine->config.rules.balance_end = 1; /* CPU 1 may idle: same node */
	assert_int_equal(find_suspects(MOST), 0);
}

/* ---- loads ---- */

static double load(uint32_t thread)
{
	return nm_balancer_load(workload->balancer, workload->snapshot, thread);
}

static bool is_waiting(uint32_t thread)
{
	return nm_balancer_thread(workload->balancer, thread)->waiting;
}

/* After a time in which the thread has run: 0 would mean that the kernel provides no times. */
static void add_reading(uint32_t thread, uint64_t interval, uint64_t run_ns, uint64_t delay_ns,
			uint64_t read_ns)
{
	const struct nm_times_reading reading = {
		.thread = thread,
		.now = {.run_ns = 1 + run_ns, .delay_ns = delay_ns, .read_ns = 1 + read_ns}};
	nm_balancer_add_reading(workload->balancer, interval, &reading);
}

TEST(test_load_is_run_and_wait_time)
{
	share_cpu(1000, 0, 2);
	workload_look(workload);
	add_reading(0, 99, 10, 20, 1000);
	add_reading(0, 100, 210, 319, 2000);
	assert_true(load(0) == 0.499 && is_waiting(0));
	add_reading(0, 100, 0, 0, 0);
	add_reading(0, 99, 0, 0, 0);
	add_reading(0, 100, 300, 99, 1000); /* waited for less than 10 % */
	assert_true(load(0) == 0.399 && !is_waiting(0));
	add_reading(1, 99, 0, 0, 0);
	add_reading(1, 100, 900, 200, 1000);
	assert_true(load(1) == 1 && is_waiting(1));
}

TEST(test_loads_without_two_readings)
{
	share_cpu(1000, 0, 2);
	machine_thread(machine, 1000, 2, -1);
	machine_thread(machine, 1000, -1, -1);
	machine->sampled[2].stats.run_share = 0.4;
	machine->busy[2] = 0.4;
	workload_look(workload);
	assert_true(isnan(load(0)) && load(2) == 0.4 && load(3) == 0);
	add_reading(0, 100, 300, 600, 1000); /* the first */
	assert_true(isnan(load(0)) && !is_waiting(0));
	add_reading(0, 98, 300, 600, 1000);
	add_reading(0, 100, 600, 1200, 2000); /* not of the last interval */
	assert_true(isnan(load(0)) && !is_waiting(0));
	add_reading(0, 99, 300, 600, 1000);
	add_reading(0, 100, 299, 1200, 2000); /* another thread's */
	assert_true(isnan(load(0)) && !is_waiting(0));
	add_reading(0, 99, 300, 600, 1000);
	add_reading(0, 100, 300, 700, 1000); /* at the same time */
	assert_true(isnan(load(0)) && !is_waiting(0));
	add_reading(2, 98, 0, 0, 0);
	add_reading(2, 99, 900, 0, 1000); /* of an earlier interval */
	assert_true(load(2) == 0.4);
	add_reading(3, 99, 0, 0, 0);
	add_reading(3, 100, 900, 0, 1000); /* on no CPU */
	assert_true(load(3) == 0);
}

/* ---- in a round ---- */

TEST(test_old_readings_do_not_count)
{
	workload_programs(workload, 0, 4, 1);
	assert_int_equal(workload_round(workload), 2);
	machine->interval++;
	workload_look(workload);
	nm_balancer_round(workload->balancer, workload->snapshot, &machine->config);
	assert_int_equal(workload->balancer->state.waiting, 0);
}

TEST(test_an_idle_leader_is_ignored)
{
	machine->config.threads.selection = NM_SELECTION_MOST_BENEFIT_PLUS;
	workload_thread(workload, 1000, 2); /* the leader, on node 1 */
	for (unsigned i = 0; i < 4; i++)
		workload_thread(workload, 1000, 0);
	workload_pages(workload, 1000)[0] = 10;
	machine->config.rules.balance_min_gain = NM_CONFIG_ANY_GAIN;
	workload->threads[0].load = machine->config.rules.min_run; /* it ran or waited */
	assert_true(workload_round(workload) > 0);
	assert_int_equal(proposal(0)->balance.by, NM_SELECTED_BY_LEADER);
	workload->threads[0].load = machine->config.rules.min_run * 0.99;
	assert_int_equal(workload_round(workload), 0); /* its pages count instead: threads stay */
	machine->sampled[0].stats.run_share = machine->config.rules.min_run;
	assert_true(workload_round(workload) > 0);
	machine_run_on(machine, 0, -1);
	assert_int_equal(workload_round(workload), 0);
}

/* Exclusivity, 3.2.2: an idle leader is on the CPU on which it is, and nowhere else. */
TEST(test_in_the_paper_an_idle_leader_is_where_it_is)
{
	workload_rules(workload, "balance-paper", NM_SELECTION_MOST_BENEFIT_PLUS);
	workload_thread(workload, 1000, 2); /* the leader, on node 1 */
	workload->threads[0].load = 0;
	workload->threads[0].waiting = false;
	for (unsigned i = 0; i < 4; i++)
		workload_thread(workload, 1000, 0);
	workload_pages(workload, 1000)[0] = 10;
	assert_true(workload_round(workload) > 0);
	assert_int_equal(proposal(0)->balance.by, NM_SELECTED_BY_LEADER);
	machine_run_on(machine, 0, -1); /* its CPU is not known */
	assert_true(workload_round(workload) > 0);
	assert_int_equal(proposal(0)->balance.by, NM_SELECTED_BY_RULE);
}

/* As a leader it could never move. */
TEST(test_a_program_of_one_thread_follows_its_pages)
{
	workload_rules(workload, "balance", NM_SELECTION_EXCLUSIVITY);
	workload_programs(workload, 0, 4, 1);
	assert_int_equal(workload_round(workload), 2);
	assert_int_equal(proposal(0)->balance.by, NM_SELECTED_BY_LEADER);
	for (uint32_t pid = 1000; pid < 1004; pid++) {
		workload_pages(workload, pid)[1] = 0;
		workload_pages(workload, pid)[0] = 10;
	}
	assert_int_equal(workload_round(workload), 0);
	workload_rules(workload, "balance-paper", NM_SELECTION_EXCLUSIVITY);
	assert_int_equal(workload_round(workload), 0);
	workload_rules(workload, "balance-paper", NM_SELECTION_TOTAL_MIN);
	assert_int_equal(workload_round(workload), 2);
}

/* kMLB, 3.2.2: the pages that are resident, not those that are used. */
TEST(test_in_the_paper_accesses_do_not_count_as_pages)
{
	machine_thread(machine, 1000, 0, 1); /* 100 samples on node 1 */
	machine_process(machine, 1000)->rss_bytes = 128;
	workload_look(workload);
	nm_balancer_follow_pages(workload->balancer, workload->snapshot);
	assert_true(nm_balancer_residence(workload->balancer, 1000)->pages[1] == 128);
	assert_null(nm_balancer_next_query(workload->balancer, UINT64_MAX));
	workload->balancer->paper = true;
	nm_balancer_follow_pages(workload->balancer, workload->snapshot);
	assert_null(nm_balancer_residence(workload->balancer, 1000));
	assert_non_null(nm_balancer_next_query(workload->balancer, UINT64_MAX));
	const double pages[] = {3, 1};
	nm_balancer_set_pages(workload->balancer, 1000, machine_process(machine, 1000)->start_ticks,
			      pages, workload->snapshot->time_ns);
	assert_true(nm_balancer_residence(workload->balancer, 1000)->pages[0] == 96);
	nm_balancer_follow_pages(workload->balancer, workload->snapshot);
	assert_true(nm_balancer_residence(workload->balancer, 1000)->pages[0] == 96);
}

TEST(test_in_the_paper_every_wait_counts)
{
	share_cpu(1000, 0, 2);
	machine->busy[0] = 0.5;
	assert_int_equal(find_suspects(MOST), 0);
	machine_paper(&machine->config);
	assert_int_equal(find_suspects(MOST), 2);
	machine->busy[0] = 0;
	assert_int_equal(find_suspects(MOST), 0);
	add_reading(0, 99, 0, 0, 0);
	add_reading(0, 100, 500, 1, 1000);
	assert_false(is_waiting(0));
	workload->balancer->paper = true;
	add_reading(0, 99, 0, 0, 0);
	add_reading(0, 100, 500, 1, 1000);
	assert_true(is_waiting(0));
	add_reading(1, 99, 0, 0, 0);
	add_reading(1, 100, 500, 0, 1000);
	assert_false(is_waiting(1));
}

TEST(test_pages_of_nodes_without_cpus)
{
	use_machine(3, 6);
	machine_take_cpus(machine, 2, 1);
	machine_thread(machine, 1000, 0, -1);
	machine_process(machine, 1000)->rss_bytes = 128;
	workload_look(workload);
	nm_balancer_follow_pages(workload->balancer, workload->snapshot);
	assert_null(nm_balancer_residence(workload->balancer, 1000));
	const double pages[] = {1, 2, 5};
	nm_balancer_set_pages(workload->balancer, 1000, machine_process(machine, 1000)->start_ticks,
			      pages, workload->snapshot->time_ns);
	const struct nm_residence *residence = nm_balancer_residence(workload->balancer, 1000);
	assert_non_null(residence);
	assert_true(residence->pages[0] == 16 && residence->pages[1] == 112);
	assert_true(residence->pages[2] == 0 && residence->resident == 128);
}

/* Of the time that a CPU was busy, the part in which no managed thread ran. */
TEST(test_unmanaged_load)
{
	workload_programs(workload, 0, 4, 1);
	for (unsigned i = 0; i < 4; i++)
		machine->sampled[i].stats.run_share = 0.25;
	machine->config.rules.moves_per_interval = 1;
	machine->busy[0] = 1;
	machine->busy[2] = 0.75;
	machine->busy[3] = 0.5;
	assert_int_equal(workload_round(workload), 1);
	assert_true(proposal(0)->balance.load_from == 4);
	assert_int_equal(proposal(0)->moves[0].cpu_to, 3);
	assert_true(proposal(0)->balance.load_to == 0.5);
	size_t other = workload_thread(workload, 2000, 2);
	workload->threads[other].load = 0.25;
	machine->sampled[other].stats.run_share = 1; /* it also ran elsewhere */
	assert_int_equal(workload_round(workload), 1);
	assert_int_equal(proposal(0)->moves[0].cpu_to, 2);
	assert_true(proposal(0)->balance.load_to == 0.25);
	machine->sampled[0].stats.run_share = NAN; /* counts as a whole CPU */
	machine->busy[0] = 2;
	assert_int_equal(workload_round(workload), 1);
	assert_true(proposal(0)->balance.load_from == 4.25);
}

RUN_TESTS()
