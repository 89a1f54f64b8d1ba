/* SPDX-License-Identifier: MIT */
#define SET_UP set_up
#define TEAR_DOWN tear_down
#include "../support/test.h"

#include <inttypes.h>

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

static void print_step(FILE *out, const struct nm_step *step)
{
	char cpus[64];
	hwloc_bitmap_list_snprintf(cpus, sizeof(cpus), step->target);
	(void)fprintf(out, " %u cpu %d>%d node %d>%d on %s", step->tid, step->cpu_from,
		      step->cpu_to, step->node_from, step->node_to, cpus);
}

/* Compares the decisions, each with all of its steps, and the number of the next one. */
static void expect_plan(const char *expected)
{
	static const char *const kinds[] = {[NM_DECISION_MIGRATE] = "migrate",
					    [NM_DECISION_SWAP] = "swap",
					    [NM_DECISION_ROLLBACK] = "rollback"};
	char text[1000] = "";
	FILE *out = fmemopen(text, sizeof(text), "w");
	for (size_t i = 0; i < plan.count; i++) {
		const struct nm_decision *decision = &plan.decisions[i];
		(void)fprintf(out, "%" PRIu64 " %s", decision->id, kinds[decision->kind]);
		if (decision->undoes)
			(void)fprintf(out, " of %" PRIu64, decision->undoes);
		for (unsigned k = 0; k < decision->nr_steps; k++)
			print_step(out, &decision->steps[k]);
		(void)fputs("; ", out);
		assert_int_equal(decision->interval, machine->interval);
	}
	(void)fprintf(out, "next %" PRIu64, next_id);
	(void)fclose(out);
	assert_string_equal(text, expected);
}

static void build(struct nm_proposal *items, size_t count)
{
	const struct nm_proposals proposals = {
		.items = items, .count = count, .policy = machine->config.threads.policy};
	take();
	nm_plan_build(snapshot, &machine->config, &proposals, &next_id, &plan);
}

#define PROPOSE(expected, ...)                                                                     \
	do {                                                                                       \
		struct nm_proposal items_[] = {__VA_ARGS__};                                       \
		build(items_, sizeof(items_) / sizeof(struct nm_proposal));                        \
		expect_plan(expected);                                                             \
	} while (0)

TEST(no_proposals_make_an_empty_plan)
{
	PROPOSE("next 7");
	nm_plan_clear(&plan);
	nm_plan_clear(&plan);
}

TEST(a_decision_holds_all_that_acting_needs)
{
	struct nm_proposal proposal = single(1, 6);
	proposal.shared[0] = 0.25;
	proposal.moves[0].record = 3;
	machine->managed[1].unrestricted = true;
	PROPOSE("7 migrate 1001 cpu 1>6 node 0>3 on 6-7; next 8", proposal);
	const struct nm_decision *decision = &plan.decisions[0];
	const struct nm_step *step = &decision->steps[0];
	assert_true(decision->tickets.total == 6 && decision->draw == 1.5 && decision->gain == 0.5);
	assert_true(step->pid == 10 && step->start_ticks == 6001 && step->unrestricted);
	assert_true(step->local_before == 0 && step->samples_before == 100);
	assert_true(step->shared == 0.25 && step->record == 3);
	assert_ptr_equal(step->original, machine->managed[1].original);
	assert_string_equal(step->comm, "prog10");
}

/* Moves of LBMA are judged by performance if it is counted, otherwise by locality. */
TEST(the_judging_metric_depends_on_the_counters)
{
	static const struct {
		const char *name;
		enum nm_thread_policy policy;
		uint32_t kinds;
		bool by_performance;
	} rows[] = {{"LBMA", NM_POLICY_LBMA, UINT32_MAX, true},
		    {"LBMA, not counted", NM_POLICY_LBMA, 1U << NM_EVENT_MEMORY, false},
		    {"IMAR2", NM_POLICY_IMAR2, 1U << NM_EVENT_MEMORY, true},
		    {"kMAF", NM_POLICY_KMAF, UINT32_MAX, false}};
	machine->config.threads.performance = NM_PERFORMANCE_INSTRUCTIONS;
	EACH_ROW(row, rows)
	{
		struct nm_proposal proposal = single(1, 6);
		machine->config.threads.policy = row->policy;
		machine->kinds = row->kinds;
		build(&proposal, 1);
		CHECK(row, plan.decisions[0].by_performance == row->by_performance);
	}
}

TEST(a_swap_is_one_decision_of_two_steps)
{
	PROPOSE("7 swap 1000 cpu 0>3 node 0>1 on 2-3 1003 cpu 3>0 node 1>0 on 0-1; next 8",
		swap(0, 3));
}

/* SECURITY: cap-nice */
TEST(targets_stay_within_the_original_affinity)
{
	machine_allow(machine, 0, "0-3,6");
	PROPOSE("7 migrate 1000 cpu 0>6 node 0>3 on 6; next 8", single(0, 6));
	machine_allow(machine, 0, "0-3");
	PROPOSE("next 8", single(0, 6));
}

/* The CPUs of the node that the proposal names; none if they are not allowed. */
TEST(a_target_contains_only_proposed_cpus)
{
	struct nm_proposal proposal = single(1, 6);
	hwloc_bitmap_t within = hwloc_bitmap_alloc();
	hwloc_bitmap_set_range(within, 5, 6);
	proposal.moves[0].within = within;
	PROPOSE("7 migrate 1001 cpu 1>6 node 0>3 on 6; next 8", proposal);
	hwloc_bitmap_only(within, 5);
	PROPOSE("next 8", proposal);
	hwloc_bitmap_free(within);
}

TEST(a_target_below_a_cache_contains_its_cpus)
{
	struct nm_proposal proposal = single(0, 7);
	proposal.moves[0].below_cache = true;
	for (unsigned cpu = 0; cpu < 8; cpu++)
		machine->topology->cpus[cpu].cache = (int)cpu;
	PROPOSE("7 migrate 1000 cpu 0>7 node 0>3 on 7; next 8", proposal);
}

TEST(a_swap_must_fit_both_affinities)
{
	machine_allow(machine, 3, "2-7");
	PROPOSE("7 migrate 1001 cpu 1>6 node 0>3 on 6-7; next 8", swap(0, 3), single(1, 6));
}

/* kMAF would keep it on its current node, to which it is assigned already. */
TEST(an_assigned_thread_on_its_target_is_left_out)
{
	struct nm_proposal proposal = single(0, 0);
	const struct nm_proposals proposals = {
		.items = &proposal, .count = 1, .policy = NM_POLICY_KMAF};
	PROPOSE("7 migrate 1000 cpu 0>0 node 0>0 on 0-1; next 8", proposal);
	nm_plan_clear(&plan);
	snapshot->threads[0].assigned = 0;
	nm_plan_build(snapshot, &machine->config, &proposals, &next_id, &plan);
	expect_plan("next 8");
}

/* SECURITY: journal-flood */
TEST(the_budget_counts_threads)
{
	static const struct {
		const char *name;
		unsigned budget;
		const char *expected;
	} rows[] = {
		{"all", 4,
		 "7 migrate 1000 cpu 0>6 node 0>3 on 6-7; 8 swap 1001 cpu 1>2 node 0>1 on 2-3 1002 "
		 "cpu 2>1 node 1>0 on 0-1; 9 migrate 1003 cpu 3>7 node 1>3 on 6-7; next 10"},
		{"two", 2,
		 "10 migrate 1000 cpu 0>6 node 0>3 on 6-7; 11 migrate 1003 cpu 3>7 node 1>3 on "
		 "6-7; "
		 "next 12"},
		{"none", 0, "next 12"},
	};
	EACH_ROW(row, rows)
	{
		machine->config.rules.moves_per_interval = row->budget;
		PROPOSE(row->expected, single(0, 6), swap(1, 2), single(3, 7));
	}
}

static bool is_not_20(void *context, uint32_t pid)
{
	(void)context;
	return pid != 20;
}

TEST(a_swap_needs_that_both_processes_allow_it)
{
	(void)machine_thread(machine, 20, 4, 0);
	PROPOSE("7 migrate 1000 cpu 0>6 node 0>3 on 6-7; 8 swap 1001 cpu 1>4 node 0>2 on 4-5 1004 "
		"cpu 4>1 node 2>0 on 0-1; 9 migrate 1003 cpu 3>7 node 1>3 on 6-7; next 10",
		single(0, 6), swap(1, 4), single(3, 7));
	nm_plan_filter(&plan, is_not_20, NULL);
	expect_plan("7 migrate 1000 cpu 0>6 node 0>3 on 6-7; "
		    "9 migrate 1003 cpu 3>7 node 1>3 on 6-7; next 10");
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

static void add(struct nm_verdict rollback)
{
	nm_plan_add_rollback(snapshot, &machine->config, &rollback, &next_id, &plan);
}

/* The plan of the rollback alone. */
static void undo(struct nm_verdict rollback, const char *expected)
{
	take();
	next_id = 7;
	add(rollback);
	expect_plan(expected);
}

TEST(a_rollback_moves_back_to_the_source_node)
{
	undo(of(1000, 6), "7 rollback of 3 1000 cpu 0>6 node 0>3 on 6-7; next 8");
	assert_true(isnan(plan.decisions[0].draw) && isnan(plan.decisions[0].gain));
}

/* It has no CPU, so distances are those from node 0. */
TEST(a_sleeping_threads_rollback_has_no_cost_before)
{
	unsigned *distance = machine->topology->distance, before_it[5 * 4];
	for (size_t i = 0; i < NM_ARRAY_SIZE(before_it); i++)
		before_it[i] = 10;
	machine_run_on(machine, 0, -1);
	machine_touch(machine, 0, 1, 100);
	take();
	machine->topology->distance = before_it + 4;
	add(of(1000, 6));
	machine->topology->distance = distance;
	expect_plan("7 rollback of 3 1000 cpu -1>6 node -1>3 on 6-7; next 8");
	assert_true(isnan(plan.decisions[0].steps[0].access_cost_before));
}

TEST(a_rollback_does_not_use_the_budget)
{
	machine->config.rules.moves_per_interval = 1;
	PROPOSE("7 migrate 1001 cpu 1>6 node 0>3 on 6-7; next 8", single(1, 6));
	add(of(1000, 6));
	expect_plan("7 migrate 1001 cpu 1>6 node 0>3 on 6-7; "
		    "8 rollback of 3 1000 cpu 0>6 node 0>3 on 6-7; next 9");
}

/* Pinned by its owner since, or excluded by an attribute. */
TEST(an_observed_thread_is_not_rolled_back)
{
	machine->managed[0].only_watched = true;
	undo(of(1000, 6), "next 7");
}

/* If the affinity of one was changed since, the other is rolled back nevertheless. */
TEST(threads_of_a_swap_are_rolled_back_individually)
{
	machine->config.rules.paper = true;
	undo(of_both(1000, 2, 1002, 0), "7 rollback of 3 1000 cpu 0>2 node 0>1 on 2; "
					"8 rollback of 3 1002 cpu 2>0 node 1>0 on 0; next 9");
}

TEST(an_occupied_source_cpu_yields_its_node)
{
	machine->config.rules.paper = true;
	undo(of(1000, 6), "7 rollback of 3 1000 cpu 0>6 node 0>3 on 6; next 8");
	undo(of(1000, 3), "7 rollback of 3 1000 cpu 0>3 node 0>1 on 2-3; next 8");
	machine_run_on(machine, 3, 2);
	undo(of_both(1001, 2, 1002, 1), "7 rollback of 3 1001 cpu 1>2 node 0>1 on 2-3; "
					"8 rollback of 3 1002 cpu 2>1 node 1>0 on 1; next 9");
	hwloc_bitmap_clr(machine->topology->usable, 6);
	hwloc_bitmap_clr(machine->topology->nodes[3].cpus, 6);
	undo(of(1000, 6), "7 rollback of 3 1000 cpu 0>6 node 0>3 on 7; next 8");
	struct nm_verdict rollback = of(1000, 6);
	rollback.threads[0].cpu_from = 99;
	undo(rollback, "7 rollback of 3 1000 cpu 0>99 node 0>3 on 7; next 8");
}

TEST(exited_threads_are_skipped)
{
	struct nm_verdict rollback = of_both(999, 2, 1001, 6);
	undo(of_both(1001, 6, 999, 2), "7 rollback of 3 1001 cpu 1>6 node 0>3 on 6-7; next 8");
	undo(rollback, "7 rollback of 3 1001 cpu 1>6 node 0>3 on 6-7; next 8");
	rollback.threads[1].start_ticks++;
	undo(rollback, "next 7");
	rollback.threads[1].start_ticks--;
	rollback.threads[1].adopted_ns++;
	undo(rollback, "next 7");
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
	undo(rollback, "next 7");
	rollback.threads[0].node_from = 4;
	undo(rollback, "next 7");
	rollback.threads[0].node_from = -1;
	undo(rollback, "next 7");
}

RUN_TESTS()
