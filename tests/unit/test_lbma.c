/* SPDX-License-Identifier: MIT */
#define SET_UP open_machine
#define TEAR_DOWN close_machine
#include "../support/test.h"

#include "../../src/policy/lbma.h"
#include "machine_words.h"

static void propose_with(const struct nm_snapshot *snapshot)
{
	machine_propose(machine, &nm_lbma_policy, NULL, snapshot, &rng, &proposals);
}

SCRIPT(no_candidates_give_no_move, "still; paper; still")

SCRIPT(one_node_leaves_no_choice, "machine 1 4; thread 10 cpu0 node0; still; paper; still")

/* Two threads on two nodes have their memory on another one, whose controller serves nothing else:
 * its pages follow the threads if they stay, unless nothing moves pages, other nodes serve as much,
 * or any controller serves this. */
SCRIPT(threads_wait_for_pages_behind_one_controller,
       "thread 10 cpu0 node2; thread 10 cpu2 node2; perform 0 5e9; perform 1 5e9",
       "set page_policy = exclusivity; still; set page_policy = none; count > 0",
       "set page_policy = exclusivity; thread 20 cpu6 node3; perform 2 5e9; count > 0",
       "perform 0 1e9; perform 1 1e9; perform 2 0; count > 0")

SCRIPT(a_stray_thread_moves_to_its_memory,
       "thread 10 cpu0 node2; count = 1; candidates = 1; migrates = 1; moved 0 = 0; cpu_from 0 = 0",
       "node_from 0 = 0; cpu_to 0 = 4; node_to 0 = 2; tickets = 6; for_cpu = 2; for_node = 4",
       "for_partner = 0; gain = 1; draw >= 0; draw < 6")

SCRIPT(the_rule_of_the_paper_moves_it_every_time, "paper; thread 10 cpu0 node0",
       "each 100: count = 1; candidates = 6; node_to 0 != 0; tickets = 2; gain = -1")

SCRIPT(free_cpus_of_a_node_are_one_candidate_when_merged,
       "paper; set lottery = proportional; thread 10 cpu0 node0; count = 1; candidates = 3")

SCRIPT(a_busy_sibling_halves_the_tickets_of_a_free_cpu,
       "machine 2 2 2; thread 10 cpu0 node1; fill 3-3; count = 1; for_cpu = 1; tickets = 5",
       "cpu_to 0 = 2; paper; count > 0; for_cpu = 2")

/* Thread 0 on CPU 0 and thread 1 on CPU 2; every other CPU has unmanaged load. */
#define PAIR(first, second) "thread 10 cpu0 " first "; thread 20 cpu2 " second "; fill 0-7; "

SCRIPT(a_swap_that_helps_both_earns_both_preferences,
       PAIR("node1", "node0") "count = 1; exchanges = 1; tickets = 8; for_node = 4",
       "for_partner = 4; for_cpu = 0; gain = 1")

/* Either of them may be drawn first. */
SCRIPT(a_swap_may_help_one_thread_without_harming_the_other,
       PAIR("node1", "node3") "count = 1; tickets = 4; gain = 0.5; for_first = 4")

static double tickets_of_first(void)
{
	return first()->moves[0].thread == 0 ? first()->tickets.preferred
					     : first()->tickets.partner;
}

QUANTITY(for_first, tickets_of_first())

SCRIPT(the_gate_considers_the_loss_of_the_partner,
       PAIR("node1", "node1") "touch 1 node2 101; set gate_sigmas = 0; still; touch 0 node1 150",
       "count = 1; gain in 0.1424501..0.1424502")

SCRIPT(only_the_paper_profile_accepts_zero_tickets,
       PAIR("node2", "node3") "still; paper; set lottery = proportional; still",
       "set lottery = paper; count = 1; tickets = 0; draw = 0")

SCRIPT(affinities_limit_the_destinations,
       "thread 10 cpu0 node2; allow 0 0-3,5-7; count > 0; cpu_to 0 = 5; allow 0 0-3,6-7; still",
       "paper; count > 0; candidates = 4")

SCRIPT(affinities_limit_both_threads_of_a_swap,
       PAIR("node1", "node0") "allow 0 0-1; still; allow 0 0-7; allow 1 1-7; still; allow 1 0,2",
       "count = 1")

/* Both reach their memory. */
SCRIPT(users_are_swapped_if_both_gain, PAIR("node1", "node0") "other_user 20; count = 1")

SCRIPT(losses_of_a_user_do_not_affect_others,
       PAIR("node1", "node0") "touch 1 node0 0; touch 1 node2 100; other_user 20; still",
       "set cross_owner_swap = 1; count = 1")

SCRIPT(unmovable_threads_are_not_candidates_or_partners,
       PAIR("node1", "node0") "set backoff_until 1 = 101; still; set backoff_until 1 = 0",
       "set main_node_share 1 = 0.5; still; paper; set backoff_until 1 = 101; still")

WORD(isolate)
{
	hwloc_bitmap_clr(machine->topology->usable, U(0));
	hwloc_bitmap_clr(machine->topology->nodes[U(0) / 2].cpus, U(0));
}

SCRIPT(isolated_cpus_are_ignored,
       PAIR("node1", "node0") "set busy 3 = 0; isolate 3; isolate 0; still")

/* Which of two threads that prefer one node is there depends on whose faults were sampled more
 * often. */
SCRIPT(two_threads_that_prefer_one_node_are_not_swapped,
       PAIR("node1", "node1") "touch 0 node1 900; set paper_rules = 1; still; set gate = paper",
       "count = 1")

/* Too few samples show what it would lose, so the gate keeps it where it is. */
SCRIPT(an_unknown_thread_is_a_partner_only_without_the_gate,
       PAIR("node1", "unknown") "still; set gate = paper; count = 1; moved 0 = 0; moved 1 = 1",
       "gain = 1; touch 0 node1 9; still; paper; set n = 2; count >= 0")

SCRIPT(unknown_metrics_cause_no_move,
       "thread 10 cpu0 node2; set run_share 0 = nan; still; set run_share 0 = 0.9",
       "set access_total 0 = nan; still; touch 0 node2 100; set busy 0 = nan; set busy 1 = nan",
       "set busy 2 = nan; set busy 3 = nan; set busy 4 = nan; set busy 5 = nan; set busy 6 = nan",
       "set busy 7 = nan; still")

SCRIPT(a_thread_without_home_stays_out, "thread 10 -1 node2; still; paper; still")

static unsigned idle; /* intervals without a proposal */

ACTION(note_idle, idle += count_proposals() == 0)
QUANTITY(idle, idle)

SCRIPT(in_the_paper_profile_a_thread_without_candidates_uses_its_turn,
       "thread 10 cpu0 node2; thread 10 cpu1 node2; allow 1 1", "each 50: count = 1", "paper",
       "each 50: note_idle", "idle in 5..45")

SCRIPT(accesses_to_a_memory_only_node_attract_to_its_neighbour,
       "memory_only 3 1; thread 10 cpu0 node3; count > 0; node_to 0 = 1; tickets = 6; gain = 1",
       "run_on 0 2; still")

/* Three busy threads prefer node 1, which has two CPUs; the last has the fewest accesses. */
SCRIPT(a_full_preferred_node_receives_no_more_threads,
       "thread 10 cpu2 node1; thread 20 cpu4 node1; thread 30 cpu6 node1; touch 2 node1 50",
       "set n = 8; count = 1; moved 0 = 1; set paper_rules = 1; allow 1 4-7; count = 1",
       "moved 0 = 2")

SCRIPT(a_refused_thread_is_not_a_partner,
       "thread 10 cpu2 node1; touch 0 node0 110; thread 10 cpu3 node1; thread 10 cpu4 node1",
       "thread 20 cpu0 node1; touch 3 node1 60; fill 0-7; set gate_sigmas = 0; still",
       "set paper_rules = 1; count = 1")

SCRIPT(n_bounds_threads_and_winners,
       "thread 10 cpu0 node1; thread 10 cpu1 node1; thread 10 cpu2 node2; thread 10 cpu3 node2",
       "thread 10 cpu4 node3; thread 10 cpu5 node3; thread 10 cpu6 node0; thread 10 cpu7 node0",
       "set n = 0; still; set n = 1; count <= 1; set n = 2; count <= 2; set n = 3; count <= 3",
       "set n = 5; count <= 5; set n = 7; count <= 7; set n = 9; count <= 9")

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
		machine->sampled[i].stats.run_share = 1e-6;
	machine->busy[0] = machine->busy[1] = 0.9;
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
