/* SPDX-License-Identifier: MIT */
/* When balancing between nodes begins and ends, and the moves of a round. */
#define SET_UP begin
#define TEAR_DOWN end
#include "../support/test.h"

#include "../support/script.h"
#include "balance_case.h"

/* ---- words ---- */

/* machine 3 6: nodes and CPUs of all; at first two nodes, of CPUs 0 and 1, and 2 and 3 */
ACTION(machine, use_machine(U(0), U(1)))
/* programs 4 on cpu0 node1: that wait there, with their pages on a node */
ACTION(programs, workload_programs(workload, (int)N(1), U(0), U(2)))
ACTION(hold, workload_hold(workload, U(0)))
ACTION(only_cpu, hwloc_bitmap_only(machine->masks[U(0)], U(1)))
ACTION(not_cpu, hwloc_bitmap_clr(machine->masks[U(0)], U(1)))
ACTION(unusable, hwloc_bitmap_clr_range(machine->topology->usable, U(0), (int)U(1)))
ACTION(unknown_pages, workload_pages(workload, U(0))[0] = NAN)
ACTION(member_of, workload_thread(workload, U(0), (int)N(1)))
ACTION(run_on, machine_run_on(machine, U(0), (int)N(1)))

static enum nm_selection selection_of(const struct step *step)
{
	return step_has(step, "first_fit")     ? NM_SELECTION_FIRST_FIT
	       : step_has(step, "exclusivity") ? NM_SELECTION_EXCLUSIVITY
	       : step_has(step, "total_min")   ? NM_SELECTION_TOTAL_MIN
					       : NM_SELECTION_MOST_BENEFIT;
}

/* paper first_fit: the rules of the papers; select first_fit */
ACTION(paper, workload_rules(workload, "balance-paper", selection_of(step)))
ACTION(select, machine->config.threads.selection = selection_of(step))

static enum nm_dtas_type type_of(const char *word)
{
	return strcmp(word, "compute") == 0  ? NM_DTAS_COMPUTE
	       : strcmp(word, "memory") == 0 ? NM_DTAS_MEMORY
					     : NM_DTAS_EITHER;
}

/* types compute memory: of the CPUs, in turn */
WORD(types)
{
	enum nm_dtas_type types[64];
	for (unsigned cpu = 0; cpu < machine->topology->nr_cpus; cpu++)
		types[cpu] = type_of(step->word[cpu % step->count]);
	workload_split(workload, types);
}

/* type memory 4-5: of threads */
WORD(type)
{
	for (unsigned i = U(0); i <= U(1); i++)
		workload->threads[i].behaviour.type = type_of(step->word[0]);
}

/* typed 3 memory: threads that ran on CPU 0 */
WORD(typed)
{
	for (unsigned i = 0; i < U(0); i++) {
		size_t thread = workload_thread(workload, 1000 + (uint32_t)machine->count, 0);
		machine->sampled[thread].stats.run_share = 0.3;
		workload->threads[thread].behaviour.type = type_of(step->word[1]);
	}
}

/* move 0 thread 4 from 1 to 2: of a proposal */
WORD(move)
{
	const struct nm_move *move = &proposal(U(0))->moves[0];
	if (move->thread != U(1) || move->cpu_from != (int)N(2) || move->cpu_to != (int)N(3))
		script_fail(step, "found thread %u from %d to %d", move->thread, move->cpu_from,
			    move->cpu_to);
}

static bool update(double gap)
{
	nm_balance_update(&workload->balancer->state, &machine->config, gap);
	return workload->balancer->state.active;
}

static size_t confine_now(void)
{
	nm_balancer_confine(workload->balancer, workload->snapshot, &machine->config);
	return workload->balancer->proposals.count;
}

/* A round that moves nothing to another node. */
static size_t confine(void)
{
	machine->config.rules.balance_begin = machine->config.rules.balance_end = 1000;
	workload_round(workload);
	return confine_now();
}

/* round = 2: the number of moves of the next round */
QUANTITY(round, workload_round(workload))
QUANTITY(confine, confine())
QUANTITY(confine_now, confine_now())
QUANTITY(update, update(N(0)))
QUANTITY(active, workload->balancer->state.active)
QUANTITY(waiting, workload->balancer->state.waiting)
QUANTITY(gap, workload->balancer->state.gap)
QUANTITY(stopped_by_gain, workload->balancer->tally.stopped_by_gain)
QUANTITY(unknown, workload->balancer->tally.unknown)
QUANTITY(returned, workload->balancer->tally.returned)
QUANTITY(load, proposal(U(0))->balance.load)
QUANTITY(load_from, proposal(U(0))->balance.load_from)
QUANTITY(load_to, proposal(U(0))->balance.load_to)
QUANTITY(gain, proposal(U(0))->balance.gain)
QUANTITY(metric, proposal(U(0))->balance.metric)
QUANTITY(cost_change, proposal(U(0))->balance.cost_change)
QUANTITY(gap_of, proposal(U(0))->balance.gap)
QUANTITY(resident, proposal(U(0))->balance.resident)
QUANTITY(age_s, proposal(U(0))->balance.age_s)
QUANTITY(by, proposal(U(0))->balance.by)
NAMES(by, {"rule", NM_SELECTED_BY_RULE}, {"type", NM_SELECTED_BY_TYPE})
QUANTITY(node_from, proposal(U(0))->moves[0].node_from)
QUANTITY(node_to, proposal(U(0))->moves[0].node_to)
QUANTITY(within, hwloc_bitmap_weight(proposal(U(0))->moves[0].within))
QUANTITY(within_first, hwloc_bitmap_first(proposal(U(0))->moves[0].within))
KNOB(persist, machine->config.rules.balance_persist)
KNOB(most, machine->config.rules.moves_per_interval)
KNOB(begin, machine->config.rules.balance_begin)
KNOB(end, machine->config.rules.balance_end)
KNOB(overload, machine->config.rules.balance_overload)
KNOB(min_gain, machine->config.rules.balance_min_gain)
NAMES(min_gain, {"any", NM_CONFIG_ANY_GAIN})
KNOB(idle_max, machine->config.rules.balance_idle_max)
KNOB(busy, machine->busy[U(0)])
KNOB(thread_load, workload->threads[U(0)].load)
KNOB(is_waiting, workload->threads[U(0)].waiting)
KNOB(node_share, machine->sampled[U(0)].stats.main_node_share)
KNOB(everywhere, machine->managed[U(0)].everywhere)
KNOB(start_ticks, machine->managed[U(0)].start_ticks)

/* ---- hysteresis ---- */

/* 0.5 is not above the threshold: the count restarts. 0.4 is above the end threshold only. */
SCRIPT(test_hysteresis,
       "set persist = 3; update 0.6 = 0; update 0.6 = 0; update 0.5 = 0; update 0.6 = 0",
       "update 0.6 = 0; update 0.6 = 1; update 0.3 = 1; update 0.25 = 0; update 0.4 = 0",
       "update 0.9 = 0; update 0.9 = 0; update 0.9 = 1")

SCRIPT(test_paper_always_balances, "paper first_fit; update 0 = 1; update 0 = 1")

/* ---- a round ---- */

/* Distances 10 and 20: all ten pages become local, and each cost two accesses before. */
SCRIPT(test_the_busiest_sends_to_the_idlest,
       "programs 4 on cpu0 node1; programs 3 on cpu1 node1; programs 1 on cpu2 node1",
       "set most = 1; round = 1; move 0 thread 0 from 0 to 3; load 0 = 1; load_from 0 = 4",
       "load_to 0 = 0; gain 0 = 10; metric 0 = 10; by 0 = rule; node_from 0 = 0; node_to 0 = 1",
       "cost_change 0 = -10; gap_of 0 = 3; waiting = 8")

SCRIPT(test_moves_until_the_nodes_are_alike,
       "programs 4 on cpu0 node1; programs 4 on cpu1 node1; round = 4; move 0 4 1 2; move 1 0 0 3",
       "move 2 5 1 2; move 3 1 0 3")

SCRIPT(test_a_round_has_a_limit,
       "programs 8 on cpu0 node1; set most = 2; round = 2; set most = 0; round = 0")

/* 2 against 1 is not above. */
SCRIPT(test_no_balancing_below_the_gap,
       "programs 3 on cpu0 node1; programs 1 on cpu1 node1; programs 2 on cpu2 node1",
       "set begin = 1; round = 0; active = 0; set begin = 0.9; round = 1; active = 1")

/* 0.55 + 0.6 is only slightly below 1.2. */
SCRIPT(test_relief_must_exceed_a_minimum,
       "programs 2 on cpu0 node1; set thread_load 0 = 0.6; set thread_load 1 = 0.6",
       "set busy 1 = 0.55; set busy 2 = 0.55; set busy 3 = 0.55; set overload = 0",
       "set begin = -1000; set end = -1000; round = 0; paper most_benefit; set most = 1; round = 1")

/* Afterwards the destination node would have more load, and CPU 3 of the source is idle. At last
 * equal loads suffice. */
SCRIPT(test_nodes_do_not_change_places,
       "programs 2 on cpu0 node1; programs 1 on cpu1 node1; programs 2 on cpu2 node1",
       "set begin = 0.4; round = 0; active = 1; set end = -0.1; round = 1")

/* The kernel moves threads within a node: it fills the idle CPU 1. */
SCRIPT(test_never_within_a_node,
       "programs 6 on cpu0 node1; set busy 2 = 2.5; set busy 3 = 2.5; paper first_fit",
       "set most = 1; round = 1; move 0 0 0 2; unusable 2-3; round = 0; gap = 0")

/* 0.9 per CPU. */
SCRIPT(test_a_node_with_enough_cpus_keeps_its_threads,
       "programs 3 on cpu0 node1; set thread_load 2 = 0; set thread_load 0 = 0.9",
       "set thread_load 1 = 0.9; round = 0; active = 1; set overload = 0.9; round = 1")

/* An unknown load is a whole CPU. */
SCRIPT(test_unmanaged_work_counts,
       "programs 4 on cpu0 node1; programs 4 on cpu1 node1; set busy 2 = 4; set busy 3 = nan",
       "set most = 1; round = 1; move 0 4 1 3; load_to 0 = 1; set busy 2 = 0; set busy 3 = 0",
       "round = 1; move 0 4 1 2")

/* Thread 2 is too spread. */
SCRIPT(test_immovable_threads,
       "programs 6 on cpu0 node1; hold 0; set is_waiting 1 = 0; set node_share 2 = 0.6",
       "only_cpu 3 1; set most = 1; round = 1; move 0 4 0 2; waiting = 3; hold 4; hold 5; round = "
       "0")

/* The affinity of a thread that may run everywhere need not be queried. */
SCRIPT(test_affinities_permit_other_destinations,
       "programs 3 on cpu0 node1; programs 3 on cpu1 node1; set busy 3 = 0.5; not_cpu 0 2",
       "not_cpu 1 2; not_cpu 2 2; not_cpu 3 2; not_cpu 4 2; not_cpu 5 2; set most = 1; round = 1",
       "move 0 3 1 3; set everywhere 4 = 1; round = 1; move 0 4 1 2")

/* kMLB 3.2.1: no thread of the busiest CPU can move, as its memory is local, so the next busiest is
 * tried. */
SCRIPT(test_the_next_busiest_cpu_is_tried,
       "programs 5 on cpu0 node0; programs 3 on cpu1 node1; set most = 1; round = 1; move 0 5 1 2",
       "stopped_by_gain = 5; set min_gain = -10; round = 1; move 0 0 0 2")

/* Numbers wrap, so the older thread may have the higher one. */
SCRIPT(test_the_older_thread_comes_first,
       "programs 4 on cpu0 node1; set start_ticks 0 = 50; set start_ticks 3 = 20",
       "set start_ticks 2 = 20; select first_fit; set most = 2; round = 2; move 0 2 0 2",
       "move 1 3 0 3")

/* Exclusivity is evaluated again after each move, as the group is then spread wider. The leaders
 * are threads 6 and 7: 3/4 of the first group, 3/5 of the second one, are on CPU 0. */
SCRIPT(test_counts_follow_the_moves,
       "machine 3 3; member_of 1006 cpu0; member_of 1007 cpu0; member_of 1006 cpu0",
       "member_of 1007 cpu0; member_of 1006 cpu0; member_of 1007 cpu0; member_of 1006 cpu2",
       "member_of 1007 cpu2; member_of 1007 cpu2; hold 6; hold 7; paper exclusivity; set most = 3",
       "round = 3; move 0 1 0 1; metric 0 = 0.6; move 1 3 0 1; metric 1 = 0.4")

static unsigned count_nodes_in_both_roles(void)
{
	unsigned count = 0;
	for (size_t i = 0; i < workload->balancer->proposals.count; i++)
		for (size_t k = 0; k < workload->balancer->proposals.count; k++)
			count += proposal(i)->moves[0].node_to == proposal(k)->moves[0].node_from;
	return count;
}

QUANTITY(nodes_in_both_roles, count_nodes_in_both_roles())

/* CPU 1 is idle, but its node has sent threads: the kernel will fill it from CPU 0. */
SCRIPT(test_a_sending_node_does_not_receive,
       "machine 3 6; programs 9 on cpu0 node1; programs 4 on cpu4 node0; programs 4 on cpu5 node0",
       "paper first_fit; round > 2; node_from 0 = 0; nodes_in_both_roles = 0")

SCRIPT(test_idle_cpu_on_the_emptier_node_is_chosen,
       "machine 3 6; programs 6 on cpu0 node1; set busy 3 = 0.5; set most = 1; set min_gain = any",
       "round = 1; move 0 0 0 4; set busy 3 = 0; set busy 4 = 0.5; round = 1; move 0 0 0 2")

SCRIPT(test_pages_not_known,
       "programs 4 on cpu0 node1; unknown_pages 1000; select first_fit; set most = 1; round = 1",
       "move 0 1 0 2; unknown = 1; set min_gain = any; round = 1; move 0 0 0 2; gain 0 = nan",
       "cost_change 0 = nan; resident 0 = nan; age_s 0 = nan")

SCRIPT(test_a_machine_without_threads, "paper first_fit; round = 0")

/* ---- types of CPUs ---- */

SCRIPT(test_threads_go_to_cpus_of_their_type,
       "programs 6 on cpu0 node1; set busy 2 = 0.2; set busy 3 = 0.1; types compute memory",
       "type compute 0-3; type memory 4-5; set most = 2; round = 2; move 0 4 0 3; move 1 0 0 2",
       "within 0 = 1; within_first 0 = 3")

/* The idlest CPU has the other type; its neighbour may have this one. */
SCRIPT(test_another_cpu_of_the_node_has_the_type,
       "programs 4 on cpu0 node1; set busy 2 = 0.2; set busy 3 = 0.1; types compute memory",
       "type compute 0-3; set most = 1; round = 1; move 0 0 0 2")

/* One for each idle CPU, unless the rule is strict. */
SCRIPT(test_idle_cpus_take_either_type,
       "programs 4 on cpu0 node1; types memory; type compute 0-3; round = 2; move 0 0 0 2",
       "move 1 1 0 3; set idle_max = 0; round = 0; type either 3-3; round = 1; move 0 3 0 2")

/* ---- confinement, kMLB 2.4 ---- */

/* First the CPUs have no types. */
SCRIPT(test_threads_return_to_cpus_of_their_type,
       "typed 1 compute; typed 3 memory; typed 1 either; confine = 0; types compute memory",
       "confine = 3; move 0 1 0 1; move 1 2 0 1; move 2 3 0 1; by 0 = type; by 1 = type",
       "by 2 = type; within 0 = 1; within 1 = 1; within 2 = 1; returned = 3; hold 2; confine = 2",
       "not_cpu 3 1; confine = 1; move 0 1 0 1; run_on 1 1; confine = 0")

static unsigned count_moved_twice(void)
{
	unsigned count = 0;
	for (size_t i = 0; i < workload->balancer->proposals.count; i++)
		for (size_t k = 0; k < i; k++)
			count += proposal(i)->moves[0].thread == proposal(k)->moves[0].thread;
	return count;
}

QUANTITY(moved_twice, count_moved_twice())

/* Both types have CPUs on node 0: the least loaded one is chosen, and a round's moves count. Those
 * that the round moves to another node are not moved again. */
SCRIPT(test_returns_have_a_limit_and_spread,
       "machine 2 6; typed 4 memory; types compute memory memory; set most = 3; confine = 3",
       "move 0 0 0 1; move 1 1 0 2; move 2 2 0 1; paper first_fit; round > 0; confine_now = 4",
       "moved_twice = 0")

/* A CPU that no other thread wants serves either type; in the paper it would idle. */
SCRIPT(test_a_thread_alone_on_its_cpu_stays,
       "typed 1 memory; types compute memory; confine = 0; paper total_min; confine = 1",
       "move 0 0 0 1")

RUN_TESTS()
