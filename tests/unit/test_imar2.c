/* SPDX-License-Identifier: MIT */
/* IMAR²: which threads are considered, in which order, and every kind of ticket on both sides of
 * its condition. */
#define SET_UP set_up
#define TEAR_DOWN tear_down
#include "../support/test.h"

#include "machine_words.h"
#include "policy/policy.h"

static void *record;

/* P is O_R. */
static int set_up(void **state)
{
	int r = open_machine(state);
	machine->config.threads.policy = NM_POLICY_IMAR2;
	machine->config.rules.gate_sigmas = 0;
	machine->config.rules.n = 1;
	machine->config.threads.performance = NM_PERFORMANCE_INSTRUCTIONS;
	record = nm_imar2_policy.open(machine->topology, 4096);
	return r;
}

static int tear_down(void **state)
{
	nm_imar2_policy.close(record);
	record = NULL;
	return close_machine(state);
}

static void propose_with(const struct nm_snapshot *snapshot)
{
	nm_imar2_policy.follow(record, snapshot, &machine->config);
	machine_propose(machine, &nm_imar2_policy, record, snapshot, &rng, &proposals);
}

static void speed(size_t i, double performance)
{
	machine_perform(machine, i, performance, performance, 1, 20);
}

ACTION(speed, speed(U(0), N(1)))

/* fast 10 cpu0 node1 p 0.5: a thread with this P */
WORD(fast)
{
	speed(machine_thread(machine, U(0), (int)N(1), step->nr_numbers > 3 ? (int)N(2) : -1),
	      step->number[step->nr_numbers - 1]);
}

/* ran 0 node1 p 2: it is recorded that the thread ran there with this P */
WORD(ran)
{
	const uint32_t i = U(0);
	const int cpu = machine->sampled[i].stats.main_cpu;
	const double now = machine->sampled[i].stats.instructions;
	machine_run_on(machine, i, (int)U(1) * 2);
	speed(i, N(2));
	nm_auto(nm_snapshot_freep) struct nm_snapshot *snapshot = machine_snapshot(machine);
	nm_imar2_policy.follow(record, snapshot, &machine->config);
	machine->busy[U(1) * 2] = 0;
	machine_run_on(machine, i, cpu);
	speed(i, now);
	machine->interval++;
}

/* only 1: the one proposal is of this thread */
WORD(only)
{
	if (count_proposals() != 1 || first()->moves[0].thread != U(0))
		script_fail(step, "found %zu, of thread %d", proposals.count,
			    proposals.count ? (int)first()->moves[0].thread : -1);
}

/* single 2 4 1: the tickets of a migration, by idle CPU, preference and record; swap 4 4 0 4 3:
 * by preference and record of both threads, and for a slow partner */
static void expect_tickets(const struct step *step, enum nm_proposal_kind kind,
			   struct nm_tickets expected)
{
	expected.total = expected.free_cpu + expected.preferred + expected.record +
			 expected.partner + expected.partner_record + expected.partner_slow;
	if (count_proposals() != 1)
		script_fail(step, "found %zu proposals", proposals.count);
	const struct nm_tickets *found = &first()->tickets;
	if (first()->kind != kind || found->total != expected.total ||
	    found->free_cpu != expected.free_cpu || found->preferred != expected.preferred ||
	    found->record != expected.record || found->partner != expected.partner ||
	    found->partner_record != expected.partner_record ||
	    found->partner_slow != expected.partner_slow)
		script_fail(step, "found kind %d: %g: %g %g %g, %g %g %g", (int)first()->kind,
			    found->total, found->free_cpu, found->preferred, found->record,
			    found->partner, found->partner_record, found->partner_slow);
}

WORD(single)
{
	expect_tickets(step, NM_PROPOSAL_MIGRATE,
		       (struct nm_tickets){.free_cpu = N(0), .preferred = N(1), .record = N(2)});
}

WORD(swap)
{
	expect_tickets(step, NM_PROPOSAL_SWAP,
		       (struct nm_tickets){.preferred = N(0),
					   .record = N(1),
					   .partner = N(2),
					   .partner_record = N(3),
					   .partner_slow = N(4)});
}

QUANTITY(record, first()->moves[U(0)].record)
KNOB(remote_below, machine->config.rules.remote_below)
KNOB(delta_r, machine->config.rules.delta_r)
KNOB(record_band, machine->config.rules.record_band)
KNOB(q1_sibling, machine->config.rules.q1_sibling)
KNOB(q2, machine->config.rules.q2)
KNOB(q3_better, machine->config.rules.q3_better)
KNOB(q3_worse, machine->config.rules.q3_worse)
KNOB(q4, machine->config.rules.q4)
KNOB(samples, machine->sampled[U(0)].stats.recent_latency_samples)
KNOB(sampled_kinds, machine->kinds)
KNOB(never_moves, machine->managed[U(0)].backoff_until)
NAMES(never_moves, {"yes", 1e15})

/* ---- selection ---- */

SCRIPT(no_member_gives_no_proposal, "still")

SCRIPT(only_slow_threads_are_considered,
       "set remote_below = 0; fast 10 cpu0 node1 p 0.81; fast 10 cpu1 node1 p 1.19; still",
       "speed 0 0.79; speed 1 1.21; only 0")

SCRIPT(delta_r_is_a_bound_not_a_member,
       "set remote_below = 0; set delta_r = 0.5; fast 10 cpu0 node1 p 1; fast 10 cpu1 node1 p 3",
       "still; set delta_r = 0.51; only 0")

SCRIPT(remote_below_on_both_sides,
       "fast 10 cpu0 node1 p 1; set gate = paper; touch 0 node0 99.5; only 0; touch 0 node0 100",
       "touch 0 node2 0; still")

/* By process: the mean of the other process is far lower, but its thread is not slow. */
SCRIPT(the_slowest_comes_first,
       "set remote_below = 0; fast 10 cpu0 node1 p 0.4; fast 10 cpu1 node1 p 0.3",
       "fast 10 cpu2 node1 p 9; only 1; fast 20 cpu4 node1 p 0.01; only 1")

SCRIPT(locality_ranks_with_performance,
       "fast 10 cpu0 node1 p 0.5; fast 10 cpu1 node1 p 1.5; touch 0 node0 40; touch 1 node0 10",
       "only 1; set remote_below = 0; only 0")

SCRIPT(a_thread_without_a_candidate_does_not_count,
       "fast 10 cpu0 node1 p 0.1; fast 10 cpu1 node1 p 0.2; fast 10 cpu2 node1 p 9; allow 0 0-1",
       "only 1; set paper_rules = 1; still")

SCRIPT(invalid_and_barred_threads_are_left_alone,
       "fast 10 cpu0 node1 p 1; set samples 0 = 9; still; set samples 0 = 10",
       "set backoff_until 0 = 101; still; set backoff_until 0 = 100; set main_node_share 0 = 0.79",
       "still; set main_node_share 0 = 0.8; only 0")

SCRIPT(an_invalid_sibling_does_not_make_others_slow,
       "set remote_below = 0; fast 10 cpu0 node1 p 1; fast 10 cpu1 node1 p 1000",
       "set samples 1 = 1; still; set samples 1 = 100; only 0")

SCRIPT(without_hardware_locality_decides,
       "thread 10 cpu0 node1; thread 10 cpu1 node0; only 0; set remote_below = 0; only 0",
       "run_on 0 2; still")

SCRIPT(n_threads_are_considered,
       "fast 10 cpu0 node3 p 1; fast 10 cpu1 node3 p 1; fast 10 cpu2 node2 p 1",
       "fast 10 cpu3 node2 p 1; set n = 3; count = 3")

/* ---- tickets ---- */

/* Thread 0 on node 0; only CPU 2 (node 1) is idle. */
#define ONE_DESTINATION(memory)                                                                    \
	"fast 10 cpu0 " memory " p 1; set remote_below = 1.1; set gate = paper; fill 0-1; "        \
	"fill 3-7; "

SCRIPT(a_single_has_3_at_least,
       ONE_DESTINATION("node0") "ran 0 node1 p 0.5; single 2 0 1; record 0 = 0.5")

SCRIPT(unknown_memory_counts_as_equal, ONE_DESTINATION("node1") "single 2 4 2; record 0 = nan")

SCRIPT(records_within_the_band_are_equal,
       ONE_DESTINATION("node1") "ran 0 node1 p 1.049; single 2 4 2; ran 0 node1 p 1.051",
       "single 2 4 4; ran 0 node1 p 0.951; single 2 4 2; ran 0 node1 p 0.949; single 2 4 1",
       "set record_band = 0; ran 0 node1 p 1.001; single 2 4 4")

SCRIPT(the_record_of_another_node_is_not_asked,
       ONE_DESTINATION("node1") "ran 0 node3 p 2; single 2 4 2")

ACTION(by_instructions, machine->config.threads.performance = NM_PERFORMANCE_INSTRUCTIONS)

SCRIPT(a_busy_sibling_halves_q1,
       "machine 2 2 2; by_instructions; fast 10 cpu0 node1 p 1; set busy 3 = 1; single 1 4 2",
       "set q1_sibling = 1.5; single 1.5 4 2")

/* Thread 0 on node 0 and thread 1 on node 1, no idle CPU; only thread 0 is a candidate. */
#define PAIR(memory, memory_of_partner)                                                            \
	"set gate = paper; set remote_below = 1.1; set paper_rules = 1; "                          \
	"fast 10 cpu0 " memory " p 1; fast 20 cpu2 " memory_of_partner " p 1; "                    \
	"fast 20 cpu3 node1 p 1; allow 2 3; set never_moves 2 = yes; allow 0 0,2; allow 1 0,2; "   \
	"fill 0-7; "

SCRIPT(a_swap_has_19_at_most,
       PAIR("node1", "node0") "ran 0 node1 p 2; speed 2 9; ran 1 node0 p 2; swap 4 4 4 4 3",
       "tickets = 19; record 1 = 2")

SCRIPT(q4_needs_a_slow_partner,
       PAIR("node1", "node0") "set n = 1; speed 1 0.67; speed 2 1; set delta_r = 0.8",
       "swap 4 2 4 2 0; speed 1 0.66; swap 4 2 4 2 3")

/* The published algorithm would look up the record of the partner for its current node. */
SCRIPT(the_record_of_the_partner_is_of_its_destination,
       PAIR("node1", "node1") "ran 1 node0 p 2; swap 4 2 0 4 0")

SCRIPT(settings_are_the_tickets,
       PAIR("node1", "node0") "set q2 = 100; set q3_better = 30; set q3_worse = 20; set q4 = 7",
       "speed 2 9; ran 0 node1 p 2; ran 1 node0 p 0.5; swap 100 30 100 20 7")

/* ---- gate ---- */

SCRIPT(the_gate_considers_both_threads_of_a_swap,
       PAIR("node1", "node1") "set gate = benefit; still; touch 0 node1 120; only 0")

/* Both prefer node 1, and the remote one accesses it more often. */
SCRIPT(locality_settles_no_contest,
       PAIR("node1", "node1") "set gate = benefit; touch 0 node1 120; only 0",
       "set sampled_kinds = 0; still; set gate = paper; only 0")

/* Enough samples show that it works in its caches, so it may move anywhere. */
SCRIPT(a_cached_partner_may_move_anywhere,
       PAIR("node1", "unknown") "set gate = benefit; only 0; set samples 1 = 9; still")

SCRIPT(users_are_kept_apart,
       PAIR("node1", "node0") "other_user 20; still; set cross_owner_swap = 1; only 0")

RUN_TESTS()
