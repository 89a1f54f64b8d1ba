/* SPDX-License-Identifier: MIT */
/* IMAR²: which threads are considered, in which order, and every kind of ticket on both sides of
 * its condition. */
#define SET_UP set_up
#define TEAR_DOWN tear_down
#include "../support/test.h"

#include "../support/interval.h"
#include "policy/policy.h"

static struct machine *machine;
static struct nm_record *record;
static struct nm_proposals proposals;
static struct nm_rng rng;

/* Four nodes of two CPUs; P is O_R. */
static int set_up(void **state)
{
	(void)state;
	machine = machine_new(4, 2);
	machine->config.threads.policy = NM_POLICY_IMAR2;
	machine->config.rules.gate_sigmas = 0;
	machine->config.rules.n = 1;
	machine->config.threads.performance = NM_PERFORMANCE_INSTRUCTIONS;
	nm_rng_seed(&rng, 42);
	nm_record_new(&record);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	nm_proposals_clear(&proposals);
	nm_record_free(record);
	record = NULL;
	machine_free(machine);
	return 0;
}

static size_t thread(uint32_t pid, int cpu, int node, double performance)
{
	size_t i = machine_thread(machine, pid, cpu, node);
	machine_perform(machine, i, performance, performance, 1, 20);
	return i;
}

static void speed(size_t i, double performance)
{
	machine_perform(machine, i, performance, performance, 1, 20);
}

/* Records that the thread ran on that node with this P. */
static void remember(size_t i, int node, double performance)
{
	int cpu = machine->figures[i].main_cpu;
	double now = machine->figures[i].instructions;
	machine_run_on(machine, i, node * 2);
	speed(i, performance);
	nm_auto(nm_snapshot_freep) struct nm_snapshot *snapshot = machine_snapshot(machine);
	nm_record_update(record, snapshot, &machine->config);
	machine->busy[node * 2] = 0;
	machine_run_on(machine, i, cpu);
	speed(i, now);
	machine->interval++;
}

static void propose(void)
{
	nm_auto(nm_snapshot_freep) struct nm_snapshot *snapshot = machine_snapshot(machine);
	assert_non_null(snapshot);
	nm_proposals_clear(&proposals);
	nm_record_update(record, snapshot, &machine->config);
	nm_imar2_propose(snapshot, &machine->config, record, &rng, &proposals);
}

static const struct nm_proposal *only(void)
{
	propose();
	assert_int_equal(proposals.count, 1);
	return &proposals.items[0];
}

static void only_thread(uint32_t index)
{
	assert_int_equal(only()->moves[0].thread, index);
}

static void assert_none(void)
{
	propose();
	assert_int_equal(proposals.count, 0);
}

/* Fills every CPU except those of thread indices with an unmanaged load. */
static void occupy_all_but(int cpu_a, int cpu_b)
{
	for (int cpu = 0; cpu < 8; cpu++)
		if (cpu != cpu_a && cpu != cpu_b)
			machine->busy[cpu] = 1;
}

/* ---- selection ---- */

TEST(no_member_gives_no_proposal)
{
	assert_none();
}

TEST(only_slow_threads_are_considered)
{
	machine->config.rules.remote_below = 0;
	thread(10, 0, 1, 0.81);
	thread(10, 1, 1, 1.19);
	assert_none();
	speed(0, 0.79);
	speed(1, 1.21);
	only_thread(0);
}

TEST(delta_r_is_a_bound_not_a_member)
{
	machine->config.rules.remote_below = 0;
	machine->config.rules.delta_r = 0.5;
	thread(10, 0, 1, 1);
	thread(10, 1, 1, 3);
	assert_none();
	machine->config.rules.delta_r = 0.51;
	only_thread(0);
}

TEST(remote_below_on_both_sides)
{
	thread(10, 0, 1, 1);
	machine->config.rules.gate = NM_GATE_PAPER;
	machine_touch(machine, 0, 0, 99.5);
	only_thread(0);
	machine_touch(machine, 0, 0, 100);
	machine_touch(machine, 0, 2, 0);
	assert_none();
}

TEST(the_slowest_comes_first)
{
	machine->config.rules.remote_below = 0;
	thread(10, 0, 1, 0.4);
	thread(10, 1, 1, 0.3);
	thread(10, 2, 1, 9);
	only_thread(1);
	/* By process: the mean of the other process is far lower, but its thread is not slow. */
	thread(20, 4, 1, 0.01);
	only_thread(1);
}

TEST(locality_ranks_with_performance)
{
	thread(10, 0, 1, 0.5);
	thread(10, 1, 1, 1.5);
	machine_touch(machine, 0, 0, 40);
	machine_touch(machine, 1, 0, 10);
	only_thread(1);
	machine->config.rules.remote_below = 0;
	only_thread(0);
}

TEST(a_thread_without_a_candidate_does_not_count)
{
	thread(10, 0, 1, 0.1);
	thread(10, 1, 1, 0.2);
	thread(10, 2, 1, 9);
	machine_allow(machine, 0, "0-1");
	only_thread(1);
	machine->config.rules.paper = true;
	assert_none();
}

TEST(invalid_and_barred_threads_are_left_alone)
{
	thread(10, 0, 1, 1);
	machine->figures[0].recent_latency_samples = 9;
	assert_none();
	machine->figures[0].recent_latency_samples = 10;
	machine->members[0].barred_until = machine->interval + 1;
	assert_none();
	machine->members[0].barred_until = machine->interval;
	machine->figures[0].main_node_share = 0.79;
	assert_none();
	machine->figures[0].main_node_share = 0.8;
	only_thread(0);
}

TEST(an_invalid_sibling_does_not_make_others_slow)
{
	machine->config.rules.remote_below = 0;
	thread(10, 0, 1, 1);
	thread(10, 1, 1, 1000);
	machine->figures[1].recent_latency_samples = 1;
	assert_none();
	machine->figures[1].recent_latency_samples = 100;
	only_thread(0);
}

TEST(without_hardware_locality_decides)
{
	machine_thread(machine, 10, 0, 1);
	machine_thread(machine, 10, 1, 0);
	only_thread(0);
	machine->config.rules.remote_below = 0;
	only_thread(0);
	machine_run_on(machine, 0, 2);
	assert_none();
}

TEST(n_threads_are_considered)
{
	for (int i = 0; i < 4; i++)
		thread(10, i, 3 - i / 2, 1);
	machine->config.rules.n = 3;
	propose();
	assert_int_equal(proposals.count, 3);
}

/* ---- tickets ---- */

static void assert_single(double free_cpu, double preferred, double by_record)
{
	const struct nm_tickets *tickets = &only()->tickets;
	assert_int_equal(proposals.items[0].kind, NM_PROPOSAL_MIGRATE);
	assert_true(tickets->free_cpu == free_cpu);
	assert_true(tickets->preferred == preferred);
	assert_true(tickets->record == by_record);
	assert_true(tickets->total == free_cpu + preferred + by_record);
	assert_true(tickets->partner == 0 && tickets->partner_record == 0);
	assert_true(tickets->partner_slow == 0);
}

/* Thread 0 on node 0; only CPU 2 (node 1) is idle. */
static void one_destination(int memory)
{
	thread(10, 0, memory, 1);
	machine->config.rules.remote_below = 1.1;
	machine->config.rules.gate = NM_GATE_PAPER;
	occupy_all_but(2, -1);
}

TEST(a_single_has_3_at_least)
{
	one_destination(0);
	remember(0, 1, 0.5);
	assert_single(2, 0, 1);
	assert_true(proposals.items[0].moves[0].record == 0.5);
}

TEST(unknown_memory_counts_as_equal)
{
	one_destination(1);
	assert_single(2, 4, 2);
	assert_true(isnan(proposals.items[0].moves[0].record));
}

TEST(records_within_the_band_are_equal)
{
	one_destination(1);
	remember(0, 1, 1.049);
	assert_single(2, 4, 2);
	remember(0, 1, 1.051);
	assert_single(2, 4, 4);
	remember(0, 1, 0.951);
	assert_single(2, 4, 2);
	remember(0, 1, 0.949);
	assert_single(2, 4, 1);
	machine->config.rules.record_band = 0;
	remember(0, 1, 1.001);
	assert_single(2, 4, 4);
}

TEST(the_record_of_another_node_is_not_asked)
{
	one_destination(1);
	remember(0, 3, 2);
	assert_single(2, 4, 2);
}

TEST(a_busy_sibling_halves_q1)
{
	machine_free(machine);
	machine = machine_of_size(2, 2, 2, 8);
	machine->config.threads.performance = NM_PERFORMANCE_INSTRUCTIONS;
	thread(10, 0, 1, 1);
	machine->busy[3] = 1;
	assert_single(1, 4, 2);
	machine->config.rules.q1_sibling = 1.5;
	assert_single(1.5, 4, 2);
}

/* Thread 0 on node 0 and thread 1 on node 1, no idle CPU; only thread 0 is in Θ̂. */
static void a_pair(int memory, int partner_memory)
{
	machine->config.rules.gate = NM_GATE_PAPER;
	machine->config.rules.remote_below = 1.1;
	machine->config.rules.paper = true;
	thread(10, 0, memory, 1);
	thread(20, 2, partner_memory, 1);
	thread(20, 3, 1, 1);
	machine_allow(machine, 2, "3");
	machine->members[2].barred_until = UINT64_MAX;
	machine_allow(machine, 0, "0,2");
	machine_allow(machine, 1, "0,2");
	occupy_all_but(-1, -1);
}

static void assert_swap(double preferred, double by_record, double partner, double partner_record,
			double slow)
{
	const struct nm_proposal *proposal = only();
	const struct nm_tickets *tickets = &proposal->tickets;
	assert_int_equal(proposal->kind, NM_PROPOSAL_SWAP);
	assert_true(tickets->free_cpu == 0);
	assert_true(tickets->preferred == preferred);
	assert_true(tickets->record == by_record);
	assert_true(tickets->partner == partner);
	assert_true(tickets->partner_record == partner_record);
	assert_true(tickets->partner_slow == slow);
	assert_true(tickets->total == preferred + by_record + partner + partner_record + slow);
}

TEST(a_swap_has_19_at_most)
{
	a_pair(1, 0);
	remember(0, 1, 2);
	speed(2, 9);
	remember(1, 0, 2);
	assert_swap(4, 4, 4, 4, 3);
	assert_true(proposals.items[0].tickets.total == 19);
	assert_true(proposals.items[0].moves[1].record == 2);
}

TEST(q4_needs_a_slow_partner)
{
	a_pair(1, 0);
	machine->config.rules.n = 1;
	speed(1, 0.67);
	speed(2, 1);
	machine->config.rules.delta_r = 0.80;
	assert_swap(4, 2, 4, 2, 0);
	speed(1, 0.66);
	assert_swap(4, 2, 4, 2, 3);
}

/* The published algorithm would look up the record of the partner for γ', its current node. */
TEST(the_record_of_the_partner_is_of_its_destination)
{
	a_pair(1, 1);
	remember(1, 0, 2);
	assert_swap(4, 2, 0, 4, 0);
}

TEST(settings_are_the_tickets)
{
	a_pair(1, 0);
	machine->config.rules.q2 = 100;
	machine->config.rules.q3_better = 30;
	machine->config.rules.q3_worse = 20;
	machine->config.rules.q4 = 7;
	speed(2, 9);
	remember(0, 1, 2);
	remember(1, 0, 0.5);
	assert_swap(100, 30, 100, 20, 7);
}

/* ---- gate ---- */

TEST(the_gate_considers_both_threads_of_a_swap)
{
	a_pair(1, 1);
	machine->config.rules.gate = NM_GATE_BENEFIT;
	assert_none();
	machine_touch(machine, 0, 1, 120);
	only_thread(0);
}

/* Both prefer node 1, and the remote one accesses it more often. */
TEST(locality_settles_no_contest)
{
	a_pair(1, 1);
	machine->config.rules.gate = NM_GATE_BENEFIT;
	machine_touch(machine, 0, 1, 120);
	only_thread(0);
	machine->kinds = 0;
	assert_none();
	machine->config.rules.gate = NM_GATE_PAPER;
	only_thread(0);
}

/* Enough samples show that it works in its caches, so it may move anywhere. */
TEST(a_cached_partner_may_move_anywhere)
{
	a_pair(1, -1);
	machine->config.rules.gate = NM_GATE_BENEFIT;
	only_thread(0);
	machine->figures[1].recent_latency_samples = 9;
	assert_none();
}

TEST(users_are_kept_apart)
{
	a_pair(1, 0);
	machine_process(machine, 20)->uid = 1001;
	assert_none();
	machine->config.rules.cross_owner_swap = true;
	only_thread(0);
}

RUN_TESTS()
