/* SPDX-License-Identifier: MIT */
#define SET_UP set_up
#define TEAR_DOWN tear_down
#include "../support/test.h"

#include "../../src/policy/lbma.h"
#include "../support/interval.h"

static struct machine *machine;
static struct nm_proposals proposals;
static struct nm_rng rng;

/* Four nodes of two CPUs. */
static int set_up(void **state)
{
	(void)state;
	machine = machine_new(4, 2);
	nm_rng_seed(&rng, 42);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	nm_proposals_clear(&proposals);
	machine_free(machine);
	return 0;
}

static const struct nm_proposal *propose(void)
{
	nm_auto(nm_snapshot_freep) struct nm_snapshot *snapshot = machine_snapshot(machine);
	assert_non_null(snapshot);
	nm_proposals_clear(&proposals);
	nm_lbma_propose(snapshot, &machine->config, &rng, &proposals);
	return proposals.items;
}

static void assert_still(void)
{
	propose();
	assert_int_equal(proposals.count, 0);
}

/* Unmanaged load. */
static void fill_cpus(int first, int last)
{
	for (int cpu = first; cpu <= last; cpu++)
		machine->busy[cpu] = 0.9;
}

TEST(no_candidates_give_no_move)
{
	assert_still();
	machine_paper(&machine->config);
	assert_still();
}

TEST(one_node_leaves_no_choice)
{
	machine_free(machine);
	machine = machine_new(1, 4);
	machine_thread(machine, 10, 0, 0);
	assert_still();
	machine_paper(&machine->config);
	assert_still();
}

/* Two threads on two nodes have their memory on another one, whose controller serves nothing else:
 * its pages follow the threads if they stay. */
TEST(threads_wait_for_pages_behind_one_controller)
{
	for (int cpu = 0; cpu < 4; cpu += 2)
		machine_perform(machine, machine_thread(machine, 10, cpu, 2), 1e9, 1e9, 5e9, 200);
	machine->config.pages.policy = NM_PAGES_EXCLUSIVITY;
	assert_still();
	/* Nothing moves its pages. */
	machine->config.pages.policy = NM_PAGES_NONE;
	propose();
	assert_true(proposals.count > 0);
	/* Other nodes serve as much. */
	machine->config.pages.policy = NM_PAGES_EXCLUSIVITY;
	machine_perform(machine, machine_thread(machine, 20, 6, 3), 1e9, 1e9, 5e9, 200);
	propose();
	assert_true(proposals.count > 0);
	/* Any controller serves this. */
	for (size_t i = 0; i < 3; i++)
		machine_perform(machine, i, 1e9, 1e9, i < 2 ? 1e9 : 0, 200);
	propose();
	assert_true(proposals.count > 0);
}

TEST(a_stray_thread_moves_to_its_memory)
{
	machine_thread(machine, 10, 0, 2);
	const struct nm_proposal *proposal = propose();
	assert_int_equal(proposals.count, 1);
	assert_int_equal(proposal->nr_candidates, 1);
	assert_int_equal(proposal->kind, NM_PROPOSAL_MIGRATE);
	assert_int_equal(proposal->moves[0].thread, 0);
	assert_int_equal(proposal->moves[0].cpu_from, 0);
	assert_int_equal(proposal->moves[0].node_from, 0);
	assert_int_equal(proposal->moves[0].cpu_to, 4);
	assert_int_equal(proposal->moves[0].node_to, 2);
	assert_true(proposal->tickets.total == 6);
	assert_true(proposal->tickets.free_cpu == 2);
	assert_true(proposal->tickets.preferred == 4);
	assert_true(proposal->tickets.partner == 0);
	assert_true(proposal->gain == 1);
	assert_true(proposal->draw >= 0 && proposal->draw < 6);
}

TEST(the_rule_of_the_paper_moves_it_every_time)
{
	machine_paper(&machine->config);
	machine_thread(machine, 10, 0, 0);
	for (int i = 0; i < 100; i++) {
		const struct nm_proposal *proposal = propose();
		assert_int_equal(proposals.count, 1);
		assert_int_equal(proposal->nr_candidates, 6);
		assert_int_not_equal(proposal->moves[0].node_to, 0);
		assert_true(proposal->tickets.total == 2);
		assert_true(proposal->gain == -1);
	}
}

TEST(free_cpus_of_a_node_are_one_candidate_when_merged)
{
	machine_paper(&machine->config);
	machine->config.rules.lottery = NM_LOTTERY_PROPORTIONAL;
	machine_thread(machine, 10, 0, 0);
	assert_int_equal(propose()->nr_candidates, 3);
	assert_int_equal(proposals.count, 1);
}

TEST(a_busy_sibling_halves_the_tickets_of_a_free_cpu)
{
	machine_free(machine);
	machine = machine_of_size(2, 2, 2, 4);
	machine_thread(machine, 10, 0, 1);
	fill_cpus(3, 3);
	assert_true(propose()->tickets.free_cpu == 1);
	assert_true(proposals.items[0].tickets.total == 5);
	assert_int_equal(proposals.items[0].moves[0].cpu_to, 2);
	machine_paper(&machine->config);
	assert_true(propose()->tickets.free_cpu == 2);
}

/* Thread 0 on CPU 0 and thread 1 on CPU 2; every other CPU has unmanaged load. */
static void pair(int memory_of_first, int memory_of_second)
{
	machine_thread(machine, 10, 0, memory_of_first);
	machine_thread(machine, 20, 2, memory_of_second);
	fill_cpus(0, 7);
}

TEST(a_swap_that_helps_both_earns_both_preferences)
{
	pair(1, 0);
	const struct nm_proposal *proposal = propose();
	assert_int_equal(proposals.count, 1);
	assert_int_equal(proposal->kind, NM_PROPOSAL_SWAP);
	assert_int_equal(proposal->moves[0].cpu_to, proposal->moves[1].cpu_from);
	assert_int_equal(proposal->moves[1].cpu_to, proposal->moves[0].cpu_from);
	assert_int_not_equal(proposal->moves[0].thread, proposal->moves[1].thread);
	assert_true(proposal->tickets.total == 8);
	assert_true(proposal->tickets.preferred == 4 && proposal->tickets.partner == 4);
	assert_true(proposal->tickets.free_cpu == 0);
	assert_true(proposal->gain == 1);
}

TEST(a_swap_may_help_one_thread_without_harming_the_other)
{
	pair(1, 3);
	const struct nm_proposal *proposal = propose();
	bool first = proposal->moves[0].thread == 0;
	assert_true(proposal->tickets.total == 4);
	assert_true((first ? proposal->tickets.preferred : proposal->tickets.partner) == 4);
	assert_true(proposal->gain == 0.5);
}

TEST(the_gate_considers_the_loss_of_the_partner)
{
	pair(1, 1);
	machine_touch(machine, 1, 2, 101);
	machine->config.rules.gate_sigmas = 0;
	assert_still();
	machine_touch(machine, 0, 1, 150);
	propose();
	assert_int_equal(proposals.count, 1);
	assert_true(fabs(proposals.items[0].gain - 50.0 / 351) < 1e-12);
}

TEST(only_the_paper_profile_accepts_zero_tickets)
{
	pair(2, 3);
	assert_still();
	machine_paper(&machine->config);
	machine->config.rules.lottery = NM_LOTTERY_PROPORTIONAL;
	assert_still();
	machine->config.rules.lottery = NM_LOTTERY_PAPER;
	propose();
	assert_int_equal(proposals.count, 1);
	assert_true(proposals.items[0].tickets.total == 0);
	assert_true(proposals.items[0].draw == 0);
}

TEST(affinities_limit_the_destinations)
{
	machine_thread(machine, 10, 0, 2);
	machine_allow(machine, 0, "0-3,5-7");
	assert_int_equal(propose()->moves[0].cpu_to, 5);
	machine_allow(machine, 0, "0-3,6-7");
	assert_still();
	machine_paper(&machine->config);
	assert_int_equal(propose()->nr_candidates, 4);
}

TEST(affinities_limit_both_threads_of_a_swap)
{
	pair(1, 0);
	machine_allow(machine, 0, "0-1");
	assert_still();
	machine_allow(machine, 0, "0-7");
	machine_allow(machine, 1, "1-7");
	assert_still();
	machine_allow(machine, 1, "0,2");
	propose();
	assert_int_equal(proposals.count, 1);
}

/* Both reach their memory. */
TEST(users_are_swapped_if_both_gain)
{
	pair(1, 0);
	machine_process(machine, 20)->uid = 1001;
	propose();
	assert_int_equal(proposals.count, 1);
}

TEST(losses_of_a_user_do_not_affect_others)
{
	pair(1, 0);
	machine_touch(machine, 1, 0, 0);
	machine_touch(machine, 1, 2, 100);
	machine_process(machine, 20)->uid = 1001;
	assert_still();
	machine->config.rules.cross_owner_swap = true;
	propose();
	assert_int_equal(proposals.count, 1);
}

TEST(unmovable_threads_are_not_candidates_or_partners)
{
	pair(1, 0);
	machine->members[1].barred_until = machine->interval + 1;
	assert_still();
	machine->members[1].barred_until = 0;
	machine->figures[1].main_node_share = 0.5;
	assert_still();
	machine_paper(&machine->config);
	machine->members[1].barred_until = machine->interval + 1;
	assert_still();
}

TEST(isolated_cpus_are_ignored)
{
	pair(1, 0);
	machine->busy[3] = 0;
	hwloc_bitmap_clr(machine->topology->usable, 3);
	hwloc_bitmap_clr(machine->topology->nodes[1].cpus, 3);
	hwloc_bitmap_clr(machine->topology->usable, 0);
	hwloc_bitmap_clr(machine->topology->nodes[0].cpus, 0);
	assert_still();
}

/* Which of two threads that prefer one node is there depends on whose faults were sampled more
 * often. */
TEST(two_threads_that_prefer_one_node_are_not_swapped)
{
	pair(1, 1);
	machine_touch(machine, 0, 1, 900);
	machine->config.rules.paper = true;
	assert_still();
	machine->config.rules.gate = NM_GATE_PAPER;
	propose();
	assert_int_equal(proposals.count, 1);
}

/* Too few samples show what it would lose, so the gate keeps it where it is. */
TEST(an_unknown_thread_is_a_partner_only_without_the_gate)
{
	pair(1, -1);
	assert_still();
	machine->config.rules.gate = NM_GATE_PAPER;
	const struct nm_proposal *proposal = propose();
	assert_int_equal(proposals.count, 1);
	assert_int_equal(proposal->moves[0].thread, 0);
	assert_int_equal(proposal->moves[1].thread, 1);
	assert_true(proposal->gain == 1);
	machine_touch(machine, 0, 1, 9);
	assert_still();
	machine_paper(&machine->config);
	machine->config.rules.n = 2;
	propose();
}

TEST(unknown_metrics_cause_no_move)
{
	machine_thread(machine, 10, 0, 2);
	machine->figures[0].run_share = NAN;
	assert_still();
	machine->figures[0].run_share = 0.9;
	machine->figures[0].access_total = NAN;
	assert_still();
	machine_touch(machine, 0, 2, 100);
	for (int cpu = 0; cpu < 8; cpu++)
		machine->busy[cpu] = NAN;
	assert_still();
}

TEST(a_thread_without_home_stays_out)
{
	machine_thread(machine, 10, -1, 2);
	assert_still();
	machine_paper(&machine->config);
	assert_still();
}

TEST(in_the_paper_profile_a_thread_without_candidates_uses_its_turn)
{
	unsigned idle = 0;
	machine_thread(machine, 10, 0, 2);
	machine_thread(machine, 10, 1, 2);
	machine_allow(machine, 1, "1");
	for (int i = 0; i < 50; i++) {
		propose();
		assert_int_equal(proposals.count, 1);
	}
	machine_paper(&machine->config);
	for (int i = 0; i < 50; i++) {
		propose();
		idle += proposals.count == 0;
	}
	assert_in_range(idle, 5, 45);
}

TEST(accesses_to_a_memory_only_node_attract_to_its_neighbour)
{
	machine_take_cpus(machine, 3, 1);
	machine_thread(machine, 10, 0, 3);
	const struct nm_proposal *proposal = propose();
	assert_int_equal(proposal->moves[0].node_to, 1);
	assert_true(proposal->tickets.total == 6);
	assert_true(proposal->gain == 1);
	machine_run_on(machine, 0, 2);
	assert_still();
}

/* Three busy threads prefer node 1, which has two CPUs; the last has the fewest accesses. */
TEST(a_full_preferred_node_receives_no_more_threads)
{
	machine_thread(machine, 10, 2, 1);
	machine_thread(machine, 20, 4, 1);
	machine_thread(machine, 30, 6, 1);
	machine_touch(machine, 2, 1, 50);
	machine->config.rules.n = 8;
	propose();
	assert_int_equal(proposals.count, 1);
	assert_int_equal(proposals.items[0].moves[0].thread, 1);
	machine->config.rules.paper = true;
	machine_allow(machine, 1, "4-7");
	propose();
	assert_int_equal(proposals.count, 1);
	assert_int_equal(proposals.items[0].moves[0].thread, 2);
}

TEST(a_refused_thread_is_not_a_partner)
{
	size_t leaves = machine_thread(machine, 10, 2, 1);
	machine_touch(machine, leaves, 0, 110);
	machine_thread(machine, 10, 3, 1);
	machine_thread(machine, 10, 4, 1);
	size_t refused = machine_thread(machine, 20, 0, 1);
	machine_touch(machine, refused, 1, 60);
	fill_cpus(0, 7);
	machine->config.rules.gate_sigmas = 0;
	propose();
	assert_int_equal(proposals.count, 0);
	machine->config.rules.paper = true;
	propose();
	assert_int_equal(proposals.count, 1);
}

TEST(n_bounds_threads_and_winners)
{
	for (int i = 0; i < 8; i++)
		machine_thread(machine, 10, i, (i / 2 + 1) % 4);
	for (uint64_t n = 0; n < 10; n++) {
		machine->config.rules.n = n;
		propose();
		assert_true(proposals.count <= n);
	}
}

/*
 * 3,000 local threads on each of two CPUs, and a remote thread of another user on the second one,
 * so that every pair is examined and none is a candidate.
 */
TEST(a_futile_search_is_abandoned)
{
	machine_free(machine);
	machine = machine_of_size(2, 1, 1, 6001);
	machine->config.rules.min_run = 0;
	for (int i = 0; i < 6000; i++)
		machine_thread(machine, 10, i % 2, i % 2);
	size_t stray = machine_thread(machine, 20, 1, 0);
	machine_touch(machine, stray, 0, 1e6);
	machine_process(machine, 20)->uid = 1001;
	for (size_t i = 0; i <= stray; i++)
		machine->figures[i].run_share = 1e-6;
	fill_cpus(0, 1);
	propose();
	assert_int_equal(proposals.count, 0);
	/* The limit, and the comparisons begun for the last thread. */
	assert_in_range(proposals.comparisons, 4ULL << 20, (4ULL << 20) + 6001);
}

/* Equation 1: A(θ,k') = max A(θ,r) holds for each of them. */
TEST(in_the_paper_every_node_with_the_most_accesses_is_preferred)
{
	machine_thread(machine, 10, 0, 2);
	machine_touch(machine, 0, 3, 100);
	machine_touch(machine, 0, 1, 99);
	machine_thread(machine, 10, 1, -1);
	const double shipped[] = {0, 0, 4, 0}, paper[] = {0, 0, 4, 4};
	for (int k = 0; k < 2; k++) {
		nm_auto(nm_snapshot_freep) struct nm_snapshot *snapshot = machine_snapshot(machine);
		for (int node = 0; node < 4; node++) {
			double q2 = nm_search_preference(snapshot, &machine->config, 0, node);
			assert_true(q2 == (k == 0 ? shipped[node] : paper[node]));
			/* No accesses. */
			assert_true(nm_search_preference(snapshot, &machine->config, 1, node) == 0);
		}
		machine_paper(&machine->config);
	}
}

RUN_TESTS()
