/* SPDX-License-Identifier: MIT */
#define SET_UP set_up
#define TEAR_DOWN tear_down
#include "../support/test.h"

#include "../support/interval.h"
#include "policy/homes.h"
#include "policy/judge.h"

static struct machine *machine;
static struct nm_snapshot *snapshot;
static struct nm_plan plan;
static uint64_t next_id;

/* Four nodes of two CPUs; thread i runs on CPU i. */
static int set_up(void **state)
{
	(void)state;
	machine = machine_new(4, 2);
	for (int i = 0; i < 4; i++)
		machine_thread(machine, 10, i, 3 - i / 2);
	snapshot = NULL;
	next_id = 7;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	nm_plan_clear(&plan);
	nm_snapshot_free(snapshot);
	machine_free(machine);
	return 0;
}

static void take(void)
{
	nm_plan_clear(&plan);
	nm_snapshot_free(snapshot);
	snapshot = machine_snapshot(machine);
	assert_non_null(snapshot);
}

static struct nm_move move(uint32_t thread, int cpu_to)
{
	return (struct nm_move){.thread = thread,
				.cpu_from = (int)thread,
				.cpu_to = cpu_to,
				.node_from = (int)thread / 2,
				.node_to = cpu_to / 2};
}

static struct nm_proposal single(uint32_t thread, int cpu_to)
{
	return (struct nm_proposal){.kind = NM_PROPOSAL_MIGRATE,
				    .moves = {move(thread, cpu_to)},
				    .tickets = {.total = 6, .free_cpu = 2, .preferred = 4},
				    .draw = 1.5,
				    .gain = 0.5};
}

static struct nm_proposal swap(uint32_t thread, uint32_t partner)
{
	return (struct nm_proposal){
		.kind = NM_PROPOSAL_SWAP,
		.moves = {move(thread, (int)partner), move(partner, (int)thread)}};
}

static void build(struct nm_proposal *items, size_t count)
{
	const struct nm_proposals proposals = {
		.items = items, .count = count, .policy = machine->config.threads.policy};
	take();
	nm_plan_build(snapshot, &machine->config, &proposals, &next_id, &plan);
}

static void assert_target(const struct nm_step *step, const char *list)
{
	hwloc_bitmap_t expected = hwloc_bitmap_alloc();
	hwloc_bitmap_list_sscanf(expected, list);
	bool equal = hwloc_bitmap_isequal(step->target, expected);
	hwloc_bitmap_free(expected);
	assert_true(equal);
}

TEST(no_proposals_make_an_empty_plan)
{
	build(NULL, 0);
	assert_int_equal(plan.count, 0);
	assert_int_equal(next_id, 7);
	nm_plan_clear(&plan);
	nm_plan_clear(&plan);
}

TEST(a_decision_holds_all_that_acting_needs)
{
	struct nm_proposal proposal = single(1, 6);
	machine->managed[1].unrestricted = true;
	build(&proposal, 1);
	assert_int_equal(plan.count, 1);
	const struct nm_decision *decision = &plan.decisions[0];
	assert_int_equal(decision->id, 7);
	assert_int_equal(next_id, 8);
	assert_int_equal(decision->kind, NM_DECISION_MIGRATE);
	assert_int_equal(decision->interval, machine->interval);
	assert_int_equal(decision->undoes, 0);
	assert_int_equal(decision->nr_steps, 1);
	assert_true(decision->tickets.total == 6 && decision->draw == 1.5 && decision->gain == 0.5);
	const struct nm_step *step = &decision->steps[0];
	assert_int_equal(step->tid, 1001);
	assert_int_equal(step->pid, 10);
	assert_int_equal(step->start_ticks, 6001);
	assert_int_equal(step->cpu_from, 1);
	assert_int_equal(step->cpu_to, 6);
	assert_int_equal(step->node_from, 0);
	assert_int_equal(step->node_to, 3);
	assert_target(step, "6-7");
	assert_ptr_equal(step->original, machine->managed[1].original);
	assert_true(step->unrestricted);
	assert_true(step->local_before == 0);
	assert_true(step->samples_before == 100);
	assert_string_equal(step->comm, "prog10");
}

/* Moves of LBMA are judged by performance if it is counted, otherwise by locality. */
TEST(the_judging_metric_depends_on_the_counters)
{
	static const struct {
		enum nm_thread_policy policy;
		uint32_t kinds;
		bool by_performance;
	} cases[] = {{NM_POLICY_LBMA, UINT32_MAX, true},
		     {NM_POLICY_LBMA, 1U << NM_EVENT_MEMORY, false},
		     {NM_POLICY_IMAR2, 1U << NM_EVENT_MEMORY, true},
		     {NM_POLICY_KMAF, UINT32_MAX, false}};
	struct nm_proposal proposal = single(1, 6);
	machine->config.threads.performance = NM_PERFORMANCE_INSTRUCTIONS;
	for (size_t i = 0; i < NM_ARRAY_SIZE(cases); i++) {
		machine->config.threads.policy = cases[i].policy;
		machine->kinds = cases[i].kinds;
		build(&proposal, 1);
		assert_int_equal(plan.decisions[0].by_performance, cases[i].by_performance);
		nm_plan_clear(&plan);
	}
}

TEST(a_swap_is_one_decision_of_two_steps)
{
	struct nm_proposal proposal = swap(0, 3);
	build(&proposal, 1);
	assert_int_equal(plan.count, 1);
	assert_int_equal(plan.decisions[0].kind, NM_DECISION_SWAP);
	assert_int_equal(plan.decisions[0].nr_steps, 2);
	assert_target(&plan.decisions[0].steps[0], "2-3");
	assert_target(&plan.decisions[0].steps[1], "0-1");
}

/* SECURITY: cap-nice */
TEST(targets_stay_within_the_original_affinity)
{
	struct nm_proposal proposal = single(0, 6);
	machine_allow(machine, 0, "0-3,6");
	build(&proposal, 1);
	assert_target(&plan.decisions[0].steps[0], "6");
	machine_allow(machine, 0, "0-3");
	build(&proposal, 1);
	assert_int_equal(plan.count, 0);
	assert_int_equal(next_id, 8);
}

/* The CPUs of the node that the proposal names; none if they are not allowed. */
TEST(a_target_contains_only_proposed_cpus)
{
	struct nm_proposal proposal = single(1, 6);
	hwloc_bitmap_t within = hwloc_bitmap_alloc();
	hwloc_bitmap_set_range(within, 5, 6);
	proposal.moves[0].within = within;
	build(&proposal, 1);
	assert_target(&plan.decisions[0].steps[0], "6");
	nm_plan_clear(&plan);
	hwloc_bitmap_only(within, 5);
	build(&proposal, 1);
	assert_int_equal(plan.count, 0);
	hwloc_bitmap_free(within);
}

TEST(a_target_below_a_cache_contains_its_cpus)
{
	struct nm_proposal proposal = single(0, 7);
	proposal.moves[0].below_cache = true;
	for (unsigned cpu = 0; cpu < 8; cpu++)
		machine->topology->cpus[cpu].cache = (int)cpu;
	build(&proposal, 1);
	assert_target(&plan.decisions[0].steps[0], "7");
}

TEST(a_swap_must_fit_both_affinities)
{
	struct nm_proposal proposals[] = {swap(0, 3), single(1, 6)};
	machine_allow(machine, 3, "2-7");
	build(proposals, 2);
	assert_int_equal(plan.count, 1);
	assert_int_equal(plan.decisions[0].steps[0].tid, 1001);
}

/* kMAF would keep it on its current node, to which it is assigned already. */
TEST(an_assigned_thread_on_its_target_is_left_out)
{
	struct nm_proposal proposal = single(0, 0);
	const struct nm_proposals proposals = {
		.items = &proposal, .count = 1, .policy = NM_POLICY_KMAF};
	build(&proposal, 1);
	assert_int_equal(plan.count, 1);
	nm_plan_clear(&plan);
	snapshot->threads[0].assigned = 0;
	nm_plan_build(snapshot, &machine->config, &proposals, &next_id, &plan);
	assert_int_equal(plan.count, 0);
}

/* SECURITY: journal-flood */
TEST(the_budget_counts_threads)
{
	struct nm_proposal proposals[] = {single(0, 6), swap(1, 2), single(3, 7)};
	machine->config.rules.moves_per_interval = 4;
	build(proposals, 3);
	assert_int_equal(plan.count, 3);
	machine->config.rules.moves_per_interval = 2;
	build(proposals, 3);
	assert_int_equal(plan.count, 2);
	assert_int_equal(plan.decisions[1].steps[0].tid, 1003);
	assert_int_equal(plan.decisions[1].id, plan.decisions[0].id + 1);
	machine->config.rules.moves_per_interval = 0;
	build(proposals, 3);
	assert_int_equal(plan.count, 0);
}

/* Plans the moves to homes of the processes 10 and 20, each on another node. Returns how many moves
 * are of process 20. */
static unsigned moves_of_second(uint64_t budget)
{
	nm_auto(nm_assignments_freep) struct nm_assignments *assignments = nm_assignments_new();
	struct nm_placement *placement;
	unsigned count = 0;
	machine->config.rules.moves_per_interval = budget;
	take();
	placement = nm_auto_policy.open(machine->topology, 4096);
	nm_column_follow_processes(&placement->processes, snapshot);
	nm_home_state_find(placement, 10)->home = 2;
	nm_home_state_find(placement, 20)->home = 3;
	const struct nm_home_round round = {
		.snapshot = snapshot, .config = &machine->config, .assignments = assignments};
	nm_placement_plan(placement, &round, &plan);
	for (size_t i = 0; i < plan.count; i++)
		count += plan.decisions[i].steps[0].pid == 20;
	nm_auto_policy.close(placement);
	return count;
}

/* The threads of process 10 have the lower numbers, and could be moved back and forth forever. */
/* SECURITY: moves */
TEST(domains_share_the_moves_to_homes)
{
	for (unsigned i = 0; i < 30; i++)
		(void)machine_thread(machine, 10, (int)i % 4, 0);
	for (unsigned i = 0; i < 6; i++)
		(void)machine_thread(machine, 20, (int)i % 4, 0);
	machine_process(machine, 10)->domain = 1;
	machine_process(machine, 20)->domain = 2;
	assert_int_equal(moves_of_second(8), 2);
	assert_int_equal(plan.count, 8); /* including those that the second one does not need */
	assert_int_equal(moves_of_second(20), 5);
	assert_int_equal(plan.count, 20);
	assert_int_equal(moves_of_second(80), 6);
	assert_int_equal(plan.count, 40);
	machine_process(machine, 20)->domain = 1;
	assert_int_equal(moves_of_second(8), 0);
	assert_int_equal(plan.count, 8);
}

/* ---- rollback ---- */

static struct nm_verdict of(uint32_t tid, int cpu_from)
{
	struct nm_verdict rollback = {.decision = 3, .policy = NM_POLICY_LBMA, .nr_threads = 1};
	rollback.threads[0].tid = tid;
	rollback.threads[0].start_ticks = 5000 + tid;
	rollback.threads[0].adopted_ns = 1 * MACHINE_SECOND;
	rollback.threads[0].cpu_from = cpu_from;
	rollback.threads[0].node_from = cpu_from / 2;
	return rollback;
}

static struct nm_verdict of_both(uint32_t a, int a_from, uint32_t b, int b_from)
{
	struct nm_verdict rollback = of(a, a_from), other = of(b, b_from);
	rollback.nr_threads = 2;
	rollback.threads[1] = other.threads[0];
	return rollback;
}

static void undo(const struct nm_verdict *rollback)
{
	nm_plan_add_rollback(snapshot, &machine->config, rollback, &next_id, &plan);
}

TEST(a_rollback_moves_back_to_the_source_node)
{
	struct nm_verdict rollback = of(1000, 6);
	take();
	undo(&rollback);
	assert_int_equal(plan.count, 1);
	const struct nm_decision *decision = &plan.decisions[0];
	assert_int_equal(decision->kind, NM_DECISION_ROLLBACK);
	assert_int_equal(decision->undoes, 3);
	assert_int_equal(decision->id, 7);
	assert_int_equal(next_id, 8);
	assert_true(isnan(decision->draw) && isnan(decision->gain));
	assert_int_equal(decision->steps[0].node_from, 0);
	assert_int_equal(decision->steps[0].cpu_from, 0);
	assert_int_equal(decision->steps[0].node_to, 3);
	assert_target(&decision->steps[0], "6-7");
}

/* It has no CPU, so distances are those from node 0. */
TEST(a_sleeping_threads_rollback_has_no_cost_before)
{
	struct nm_verdict rollback = of(1000, 6);
	unsigned *distance = machine->topology->distance, before_it[5 * 4];
	for (size_t i = 0; i < NM_ARRAY_SIZE(before_it); i++)
		before_it[i] = 10;
	machine_run_on(machine, 0, -1);
	machine_touch(machine, 0, 1, 100);
	take();
	machine->topology->distance = before_it + 4;
	undo(&rollback);
	machine->topology->distance = distance;
	assert_int_equal(plan.count, 1);
	const struct nm_step *step = &plan.decisions[0].steps[0];
	assert_int_equal(step->cpu_from, -1);
	assert_int_equal(step->node_from, -1);
	assert_int_equal(step->node_to, 3);
	assert_true(isnan(step->access_cost_before));
}

TEST(a_rollback_does_not_use_the_budget)
{
	struct nm_proposal proposal = single(1, 6);
	struct nm_verdict rollback = of(1000, 6);
	machine->config.rules.moves_per_interval = 1;
	build(&proposal, 1);
	undo(&rollback);
	assert_int_equal(plan.count, 2);
	assert_int_equal(plan.decisions[0].kind, NM_DECISION_MIGRATE);
}

/* Pinned by its owner since, or excluded by an attribute. */
TEST(an_observed_thread_is_not_rolled_back)
{
	struct nm_verdict rollback = of(1000, 6);
	machine->managed[0].only_watched = true;
	take();
	undo(&rollback);
	assert_int_equal(plan.count, 0);
}

/* If the affinity of one was changed since, the other is rolled back nevertheless. */
TEST(threads_of_a_swap_are_rolled_back_individually)
{
	struct nm_verdict rollback = of_both(1000, 2, 1002, 0);
	machine->config.rules.paper = true;
	take();
	undo(&rollback);
	assert_int_equal(plan.count, 2);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(plan.decisions[i].nr_steps, 1);
		assert_int_equal(plan.decisions[i].undoes, 3);
		assert_int_equal(plan.decisions[i].id, 7 + i);
	}
	assert_target(&plan.decisions[0].steps[0], "2");
	assert_target(&plan.decisions[1].steps[0], "0");
}

TEST(an_occupied_source_cpu_yields_its_node)
{
	struct nm_verdict rollback = of(1000, 6);
	machine->config.rules.paper = true;
	take();
	undo(&rollback);
	assert_target(&plan.decisions[0].steps[0], "6");
	rollback = of(1000, 3);
	undo(&rollback);
	assert_target(&plan.decisions[1].steps[0], "2-3");
	hwloc_bitmap_clr(machine->topology->usable, 6);
	hwloc_bitmap_clr(machine->topology->nodes[3].cpus, 6);
	rollback = of(1000, 6);
	take();
	undo(&rollback);
	assert_target(&plan.decisions[0].steps[0], "7");
	rollback.threads[0].cpu_from = 99;
	undo(&rollback);
	assert_target(&plan.decisions[1].steps[0], "7");
}

TEST(exited_threads_are_skipped)
{
	struct nm_verdict rollback = of_both(1001, 6, 999, 2);
	take();
	undo(&rollback);
	assert_int_equal(plan.decisions[0].nr_steps, 1);
	assert_int_equal(plan.decisions[0].steps[0].tid, 1001);
	rollback = of_both(999, 2, 1001, 6);
	undo(&rollback);
	assert_int_equal(plan.decisions[1].nr_steps, 1);
	rollback.threads[1].start_ticks++;
	undo(&rollback);
	rollback.threads[1].start_ticks--;
	rollback.threads[1].adopted_ns++;
	undo(&rollback);
	assert_int_equal(plan.count, 2);
	assert_int_equal(next_id, 9);
}

/* Restoring the affinity of a thread that moved would not make it move back. */
TEST(only_bound_threads_are_restored)
{
	struct nm_verdict verdict = {.kind = NM_VERDICT_ROLLED_BACK,
				     .nr_threads = 1,
				     .threads = {{.node_from = 1, .node_to = 1}}};
	assert_true(nm_verdict_restores(&verdict));
	verdict.threads[0].node_to = 0;
	assert_false(nm_verdict_restores(&verdict));
	verdict.kind = NM_VERDICT_CANCELLED;
	assert_true(nm_verdict_restores(&verdict));
	verdict.kind = NM_VERDICT_NEUTRAL;
	assert_false(nm_verdict_restores(&verdict));
}

TEST(threads_that_gain_nothing_are_left_alone)
{
	struct nm_verdict verdict = {.kind = NM_VERDICT_IMPROVED, .policy = NM_POLICY_IMAR2};
	struct nm_verdict_thread thread = {.performance_before = 1, .performance_after = 2};
	assert_false(nm_verdict_bars(&verdict, &thread, true));
	assert_true(nm_verdict_bars(&verdict, &thread, false));
	thread.performance_after = 1;
	assert_true(nm_verdict_bars(&verdict, &thread, true));
	verdict.of = NM_DECISION_ROLLBACK;
	assert_false(nm_verdict_bars(&verdict, &thread, true));
	verdict.kind = NM_VERDICT_INCONCLUSIVE;
	assert_true(nm_verdict_bars(&verdict, &thread, true));
}

TEST(a_plan_without_rollback_is_not_added)
{
	struct nm_verdict rollback = of(1000, 6);
	machine_allow(machine, 0, "0-5");
	take();
	undo(&rollback);
	rollback.threads[0].node_from = 4;
	undo(&rollback);
	rollback.threads[0].node_from = -1;
	undo(&rollback);
	assert_int_equal(plan.count, 0);
	assert_int_equal(next_id, 7);
}

RUN_TESTS()
