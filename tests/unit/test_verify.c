/* SPDX-License-Identifier: MIT */
#define SET_UP set_up
#define TEAR_DOWN tear_down
#include "../support/test.h"

#include "../support/interval.h"
#include "numa-migrd/judge.h"

static struct machine *machine;
static struct nm_verifier *verifier;
static struct nm_verdicts verdicts;

/* Four nodes of two CPUs; threads 0 and 1 on CPUs 0 and 2. Decisions have the interval of the
 * machine. */
static int set_up(void **state)
{
	(void)state;
	machine = machine_new(4, 2);
	machine_thread(machine, 10, 0, -1);
	machine_thread(machine, 10, 2, -1);
	verifier = nm_verifier_new();
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	nm_verdicts_clear(&verdicts);
	nm_verifier_free(verifier);
	machine_free(machine);
	return 0;
}

/* Returns the cost of accesses with this local access ratio. */
static double cost_of(double local)
{
	double apart = nm_topology_distance(machine->topology, 0, 1) /
		       (double)nm_topology_distance(machine->topology, 0, 0);
	return local + (1 - local) * apart;
}

static struct nm_step step(uint32_t index, int cpu_from, int cpu_to, double local_before)
{
	return (struct nm_step){.tid = 1000 + index,
				.pid = 10,
				.start_ticks = 6000 + index,
				.adopted_ns = 1 * MACHINE_SECOND,
				.cpu_from = cpu_from,
				.cpu_to = cpu_to,
				.node_from = cpu_from / 2,
				.node_to = cpu_to / 2,
				.local_before = local_before,
				.samples_before = 1000,
				.access_cost_before = cost_of(local_before)};
}

/* Thread 0 was moved from CPU 0 to CPU 6 with this local access ratio. */
static void add_move(uint64_t id, double local_before)
{
	const struct nm_decision decision = {.id = id,
					     .policy = NM_POLICY_IMAR2,
					     .kind = NM_DECISION_MIGRATE,
					     .interval = machine->interval,
					     .nr_steps = 1,
					     .steps = {step(0, 0, 6, local_before)}};
	nm_verifier_add(verifier, NULL, &decision);
}

/* Thread 0 to CPU 2, thread 1 to CPU 0. */
static void add_swap(uint64_t id, double first_before, double second_before)
{
	const struct nm_decision decision = {
		.policy = NM_POLICY_IMAR2,
		.id = id,
		.kind = NM_DECISION_SWAP,
		.interval = machine->interval,
		.nr_steps = 2,
		.steps = {step(0, 0, 2, first_before), step(1, 2, 0, second_before)}};
	nm_verifier_add(verifier, NULL, &decision);
}

/* The next interval of the thread: its CPU and the number of accesses per node. */
static void run(size_t i, int cpu, unsigned node, double accesses)
{
	for (unsigned other = 0; other < 4; other++)
		machine_touch(machine, i, other, 0);
	machine_run_on(machine, i, cpu);
	machine_touch(machine, i, node, accesses);
}

static const struct nm_verdict *judge(void)
{
	nm_auto(nm_snapshot_freep) struct nm_snapshot *snapshot = machine_snapshot(machine);
	assert_non_null(snapshot);
	nm_verdicts_clear(&verdicts);
	const struct nm_verifier_input input = {snapshot, NULL, &machine->config, NULL};
	nm_verifier_judge(verifier, &input, &verdicts);
	return verdicts.items;
}

static const struct nm_verdict *judge_next(void)
{
	machine->interval++;
	return judge();
}

static void assert_open(size_t open)
{
	assert_int_equal(verdicts.count, 0);
	assert_int_equal(nm_verifier_open(verifier), open);
}

static void assert_verdict_of(uint64_t id, enum nm_verdict_kind kind, size_t open)
{
	assert_int_equal(verdicts.count, 1);
	assert_int_equal(verdicts.items[0].decision, id);
	assert_int_equal(verdicts.items[0].kind, kind);
	assert_int_equal(nm_verifier_open(verifier), open);
}

static void assert_verdict(enum nm_verdict_kind kind)
{
	assert_int_equal(verdicts.count, 1);
	assert_int_equal(verdicts.items[0].kind, kind);
	assert_int_equal(nm_verifier_open(verifier), 0);
}

static void add_one(uint64_t id, unsigned thread)
{
	const struct nm_decision decision = {.id = id,
					     .policy = NM_POLICY_IMAR2,
					     .kind = NM_DECISION_MIGRATE,
					     .interval = machine->interval,
					     .nr_steps = 1,
					     .steps = {step(thread, 0, 6, 0)}};
	nm_verifier_add(verifier, NULL, &decision);
}

/* Verdicts shift the indices of other evaluations; a further move still closes the right one. */
TEST(a_further_move_closes_the_right_evaluation)
{
	machine_thread(machine, 10, 4, -1);
	add_one(5, 0);
	add_one(6, 1);
	add_one(7, 2);
	run(0, 6, 3, 100);
	for (size_t i = 1; i < 3; i++)
		run(i, 6, 3, 0); /* they have arrived, and access nothing */
	judge_next();
	assert_verdict_of(5, NM_VERDICT_IMPROVED, 2);
	add_one(8, 2);
	judge_next();
	assert_verdict_of(7, NM_VERDICT_INCONCLUSIVE, 2);
	add_one(9, 1);
	judge_next();
	assert_verdict_of(6, NM_VERDICT_INCONCLUSIVE, 2);
}

TEST(no_evaluation_gives_no_verdict)
{
	judge();
	assert_open(0);
	nm_verifier_free(NULL);
}

TEST(the_interval_of_the_move_is_ignored)
{
	add_move(5, 0);
	run(0, 6, 3, 100);
	judge();
	assert_open(1);
}

TEST(a_move_that_helped_has_improved)
{
	add_move(5, 0.25);
	run(0, 6, 3, 90);
	machine_touch(machine, 0, 0, 10);
	machine->figures[0].access_new = 100;
	const struct nm_verdict *verdict = judge_next();
	assert_verdict(NM_VERDICT_IMPROVED);
	assert_int_equal(verdict->decision, 5);
	assert_int_equal(verdict->of, NM_DECISION_MIGRATE);
	assert_int_equal(verdict->intervals, 1);
	assert_int_equal(verdict->nr_threads, 1);
	const struct nm_verdict_thread *thread = &verdict->threads[0];
	assert_int_equal(thread->tid, 1000);
	assert_int_equal(thread->pid, 10);
	assert_true(thread->alive && thread->ran_on_node);
	assert_int_equal(thread->cpu_from, 0);
	assert_int_equal(thread->node_from, 0);
	assert_int_equal(thread->node_to, 3);
	assert_true(thread->local_before == 0.25 && thread->local_after == 0.9);
	assert_true(fabs(verdict->locality_before - 1 / cost_of(0.25)) < 1e-9);
	assert_true(fabs(verdict->locality_after - 1 / cost_of(0.9)) < 1e-9);
	assert_true(verdict->locality_noise > 0.05 && verdict->locality_noise < 0.1);
	assert_int_equal(thread->accesses_after, 100);
}

/* All accesses go to a node where none is local, as before. */
TEST(an_unchanged_ratio_is_neutral)
{
	add_move(5, 0);
	run(0, 6, 0, 100);
	judge_next();
	assert_verdict(NM_VERDICT_NEUTRAL);
	assert_true(verdicts.items[0].threads[0].local_after == 0);
}

/* Six of ten samples are local now, four before, which may be chance; with thousands it is not. */
TEST(a_rise_within_the_noise_is_neutral)
{
	static const double accesses[] = {10, 10000};
	static const enum nm_verdict_kind kinds[] = {NM_VERDICT_NEUTRAL, NM_VERDICT_IMPROVED};
	for (size_t i = 0; i < NM_ARRAY_SIZE(kinds); i++) {
		add_move(5 + i, 0.4);
		run(0, 6, 3, accesses[i] * 0.6);
		machine_touch(machine, 0, 0, accesses[i] * 0.4);
		machine->figures[0].access_new = (uint32_t)accesses[i];
		judge_next();
		assert_verdict(kinds[i]);
	}
}

/* Its memory is on node 2, which is nearer to node 3 than to node 0; the local access ratio does
 * not show this. */
TEST(a_nearer_node_is_an_improvement_without_local_accesses)
{
	unsigned *distance = machine->topology->distance;
	distance[3 * 4 + 2] = 12;
	distance[0 * 4 + 2] = 32;
	struct nm_decision decision = {.id = 5,
				       .policy = NM_POLICY_IMAR2,
				       .kind = NM_DECISION_MIGRATE,
				       .interval = machine->interval,
				       .nr_steps = 1,
				       .steps = {step(0, 0, 6, 0)}};
	decision.steps[0].access_cost_before = 3.2;
	nm_verifier_add(verifier, NULL, &decision);
	run(0, 6, 2, 100);
	judge_next();
	assert_verdict(NM_VERDICT_IMPROVED);
	assert_true(verdicts.items[0].threads[0].local_after == 0);
	assert_true(fabs(verdicts.items[0].locality_after - 1 / 1.2) < 1e-9);
}

/* 10 % of the later accesses go to remote memory. */
TEST(a_prediction_is_compared_with_the_measurement)
{
	struct nm_decision decision = {
		.policy = NM_POLICY_BALANCE,
		.id = 5,
		.kind = NM_DECISION_MIGRATE,
		.interval = machine->interval,
		.balance = {.given = true, .resident = 1000, .cost_change = -800},
		.nr_steps = 1,
		.steps = {step(0, 0, 6, 0.25)}};
	decision.steps[0].access_cost_before = 2;
	nm_verifier_add(verifier, NULL, &decision);
	run(0, 6, 3, 90);
	machine_touch(machine, 0, 0, 10);
	double apart = nm_topology_distance(machine->topology, 3, 0) /
		       (double)nm_topology_distance(machine->topology, 3, 3);
	const struct nm_verdict *verdict = judge_next();
	assert_verdict(NM_VERDICT_INCONCLUSIVE);
	double cost = 0.9 + 0.1 * apart;
	assert_true(verdict->balance.given && verdict->balance.cost_change == -800);
	assert_true(fabs(verdict->threads[0].access_cost_after - cost) < 1e-9);
	assert_true(fabs(verdict->measured_benefit - 1000 * (2 - cost)) < 1e-6);
}

TEST(a_fall_beyond_the_margin_is_rolled_back)
{
	add_move(5, 0.5);
	run(0, 6, 3, 36); /* 0.61 after 0.67 */
	machine_touch(machine, 0, 0, 64);
	judge_next();
	assert_verdict(NM_VERDICT_ROLLED_BACK);
	const struct nm_verdict *verdict = &verdicts.items[0];
	assert_int_equal(verdict->decision, 5);
	assert_int_equal(verdict->nr_threads, 1);
	assert_int_equal(verdict->threads[0].tid, 1000);
	assert_int_equal(verdict->threads[0].start_ticks, 6000);
	assert_int_equal(verdict->threads[0].cpu_from, 0);
	assert_int_equal(verdict->threads[0].node_from, 0);
}

TEST(a_fall_within_the_margin_is_neutral)
{
	add_move(5, 0.5);
	run(0, 6, 3, 42); /* 0.63 after 0.67 */
	machine_touch(machine, 0, 0, 58);
	judge_next();
	assert_verdict(NM_VERDICT_NEUTRAL);
}

TEST(without_rollback_a_fall_is_only_reported)
{
	machine->config.rules.rollback = false;
	add_move(5, 1);
	run(0, 6, 0, 100);
	judge_next();
	assert_verdict(NM_VERDICT_NEUTRAL);
	assert_true(verdicts.items[0].threads[0].local_after == 0);
}

TEST(a_rollback_is_never_undone)
{
	const struct nm_decision decision = {.id = 6,
					     .policy = NM_POLICY_IMAR2,
					     .kind = NM_DECISION_ROLLBACK,
					     .interval = machine->interval,
					     .nr_steps = 1,
					     .steps = {step(0, 6, 0, 1)}};
	nm_verifier_add(verifier, NULL, &decision);
	run(0, 0, 3, 100);
	judge_next();
	assert_verdict(NM_VERDICT_NEUTRAL);
	assert_int_equal(verdicts.items[0].of, NM_DECISION_ROLLBACK);
}

TEST(few_accesses_are_accumulated_over_intervals)
{
	add_move(5, 0);
	run(0, 6, 3, 4);
	judge_next();
	assert_open(1);
	judge_next();
	assert_open(1);
	judge_next();
	assert_verdict(NM_VERDICT_IMPROVED);
	assert_int_equal(verdicts.items[0].intervals, 3);
	assert_int_equal(verdicts.items[0].threads[0].accesses_after, 12);
}

TEST(after_ten_intervals_it_is_inconclusive)
{
	add_move(5, 0);
	run(0, 6, 3, 0);
	for (int i = 1; i < 10; i++) {
		judge_next();
		assert_open(1);
	}
	judge_next();
	assert_verdict(NM_VERDICT_INCONCLUSIVE);
	assert_int_equal(verdicts.items[0].intervals, 10);
	assert_true(isnan(verdicts.items[0].threads[0].local_after));
}

TEST(an_unknown_ratio_before_the_move_is_inconclusive)
{
	add_move(5, NAN);
	run(0, 6, 3, 100);
	judge_next();
	assert_verdict(NM_VERDICT_INCONCLUSIVE);
}

TEST(running_elsewhere_twice_cancels)
{
	add_move(5, 0);
	run(0, 1, 3, 100);
	judge_next();
	assert_open(1);
	judge_next();
	assert_verdict(NM_VERDICT_CANCELLED);
	assert_false(verdicts.items[0].threads[0].ran_on_node);
}

/* The performance of an interval is that of the new node only if the thread was there. */
TEST(imar2_needs_ninety_percent_of_an_interval)
{
	const struct nm_feedback_judgement fall = {.decision = 5,
						   .change = nm_change_of(-0.5, 0.01, 0.1)};
	const struct nm_feedback_result result = {.judgements = &fall, .nr_judgements = 1};
	add_move(5, 0);
	run(0, 6, 3, 100);
	machine->figures[0].main_node_share = 0.89;
	nm_verifier_apply(verifier, &result);
	judge_next();
	assert_open(1); /* the fall is not taken for one by the move */
	machine->figures[0].main_node_share = 0.9;
	judge_next();
	assert_verdict(NM_VERDICT_IMPROVED); /* by locality */
	add_move(6, 0);
	machine->figures[0].main_node_share = 0.89;
	for (int i = 1; i < 10; i++) {
		judge_next();
		assert_open(1);
	}
	judge_next();
	assert_verdict(NM_VERDICT_CANCELLED);
}

TEST(a_paper_and_other_policies_need_most_of_an_interval)
{
	struct nm_decision decision = {.id = 5,
				       .policy = NM_POLICY_LBMA,
				       .kind = NM_DECISION_MIGRATE,
				       .interval = machine->interval,
				       .nr_steps = 1,
				       .steps = {step(0, 0, 6, 0)}};
	nm_verifier_add(verifier, NULL, &decision);
	run(0, 6, 3, 100);
	machine->figures[0].main_node_share = 0.6;
	judge_next();
	assert_verdict(NM_VERDICT_IMPROVED);
	machine->config.rules.paper = true;
	decision.id = 6;
	decision.policy = NM_POLICY_IMAR2;
	decision.interval = machine->interval;
	nm_verifier_add(verifier, NULL, &decision);
	judge_next();
	assert_verdict(NM_VERDICT_IMPROVED);
}

TEST(a_late_arrival_counts)
{
	add_move(5, 0);
	run(0, 1, 3, 100);
	judge_next();
	run(0, 7, 3, 100);
	judge_next();
	assert_verdict(NM_VERDICT_IMPROVED);
}

TEST(a_move_of_a_sleeping_thread_is_eventually_cancelled)
{
	add_move(5, 0);
	run(0, -1, 3, 0);
	for (int i = 1; i < 10; i++) {
		judge_next();
		assert_open(1);
	}
	judge_next();
	assert_verdict(NM_VERDICT_CANCELLED);
}

TEST(exited_threads_are_inconclusive)
{
	add_move(5, 0);
	machine->members[0].start_ticks++;
	run(0, 6, 3, 100);
	judge_next();
	assert_verdict(NM_VERDICT_INCONCLUSIVE);
	assert_false(verdicts.items[0].threads[0].alive);
	machine->interval++;
	const struct nm_decision decision = {.id = 6, .nr_steps = 1, .steps = {{.tid = 5}}};
	nm_verifier_add(verifier, NULL, &decision);
	judge();
	assert_verdict(NM_VERDICT_INCONCLUSIVE);
}

/* After an exec the same numbers belong to another program. */
TEST(a_new_program_makes_a_verdict_inconclusive)
{
	add_move(5, 0.5);
	run(0, 6, 3, 100);
	machine->members[0].adopted_ns++;
	judge_next();
	assert_verdict(NM_VERDICT_INCONCLUSIVE);
	assert_false(verdicts.items[0].threads[0].alive);
}

TEST(a_second_move_closes_the_first_evaluation)
{
	add_move(5, 0);
	run(0, 6, 3, 2);
	judge_next();
	assert_open(1);
	add_move(6, 0);
	run(0, 6, 3, 100);
	judge_next();
	assert_int_equal(verdicts.count, 2);
	assert_int_equal(verdicts.items[0].decision, 5);
	assert_int_equal(verdicts.items[0].kind, NM_VERDICT_INCONCLUSIVE);
	assert_int_equal(verdicts.items[1].decision, 6);
	assert_int_equal(verdicts.items[1].kind, NM_VERDICT_IMPROVED);
}

TEST(evaluations_of_other_threads_stay_open)
{
	add_move(5, 0);
	const struct nm_decision decision = {.policy = NM_POLICY_IMAR2,
					     .id = 6,
					     .interval = machine->interval,
					     .nr_steps = 1,
					     .steps = {step(1, 2, 6, 0)}};
	nm_verifier_add(verifier, NULL, &decision);
	run(0, 6, 3, 2);
	run(1, 6, 3, 50);
	judge_next();
	assert_int_equal(verdicts.count, 1);
	assert_int_equal(verdicts.items[0].decision, 6);
	assert_int_equal(nm_verifier_open(verifier), 1);
}

TEST(a_swap_is_weighed_by_accesses)
{
	add_swap(5, 0, 1);
	run(0, 2, 1, 100);
	run(1, 0, 1, 10);
	judge_next();
	assert_verdict(NM_VERDICT_IMPROVED);
	add_swap(6, 0, 1);
	run(0, 2, 1, 10);
	run(1, 0, 1, 100);
	judge_next();
	assert_verdict(NM_VERDICT_ROLLED_BACK);
	const struct nm_verdict *verdict = &verdicts.items[0];
	assert_int_equal(verdict->nr_threads, 2);
	assert_int_equal(verdict->threads[1].tid, 1001);
	assert_int_equal(verdict->threads[1].cpu_from, 2);
}

TEST(both_threads_of_a_swap_must_arrive)
{
	add_swap(5, 0, 0);
	run(0, 2, 1, 100);
	run(1, 5, 0, 100);
	judge_next();
	assert_open(1);
	judge_next();
	assert_verdict(NM_VERDICT_CANCELLED);
	assert_true(verdicts.items[0].threads[0].ran_on_node);
	assert_false(verdicts.items[0].threads[1].ran_on_node);
}

TEST(the_survivor_of_a_swap_decides)
{
	add_swap(5, 0.9, 0);
	machine->members[1].start_ticks++;
	run(0, 2, 0, 100);
	run(1, 0, 0, 100);
	judge_next();
	assert_verdict(NM_VERDICT_ROLLED_BACK);
	assert_false(verdicts.items[0].threads[1].alive);
}

TEST(the_verdict_of_a_swap_falls_to_the_active_half)
{
	add_swap(5, 0, 0.5);
	run(0, 2, 1, 100);
	run(1, 0, 0, 0);
	for (int i = 1; i < 10; i++) {
		judge_next();
		assert_open(1);
	}
	judge_next();
	assert_verdict(NM_VERDICT_IMPROVED);
	assert_int_equal(verdicts.items[0].threads[0].accesses_after, 1000);
}

TEST(memory_only_nodes_count_as_local_to_their_neighbour)
{
	machine_take_cpus(machine, 1, 3);
	add_move(5, 0);
	run(0, 6, 1, 100);
	judge_next();
	assert_verdict(NM_VERDICT_IMPROVED);
	assert_true(verdicts.items[0].threads[0].local_after == 1);
}

/* ---- decisions by performance ---- */

static void add_by_performance(enum nm_decision_kind kind, enum nm_thread_policy policy)
{
	struct nm_decision decision = {.id = 5,
				       .kind = kind,
				       .policy = policy,
				       .interval = machine->interval,
				       .by_performance = true,
				       .nr_steps = 1,
				       .steps = {step(0, 0, 6, 0.5)}};
	machine->config.threads.performance = NM_PERFORMANCE_INSTRUCTIONS;
	decision.steps[0].performance_before = 100;
	decision.steps[0].latency_before = 300;
	nm_verifier_add(verifier, NULL, &decision);
}

static const struct nm_change rose = {true, 1, 0.5, 0.5, 0}, fell = {true, -1, 0.5, 0.5, 0},
			      stayed = {true, 0, 0.5, 0.5, 0};

static void give_feedback(enum nm_feedback_outcome outcome)
{
	const struct nm_feedback_judgement judgement = {
		.decision = 5,
		.change = outcome == NM_FEEDBACK_ROLL_BACK ? fell
			  : outcome == NM_FEEDBACK_GAIN	   ? rose
							   : stayed,
		.figure = 0.7,
		.noise = 0.1,
		.losses = 0.6};
	const struct nm_feedback_result result = {.outcome = outcome,
						  .figure = 0.9,
						  .before = 1000,
						  .after = 700,
						  .interval_s = 2,
						  .judgements = &judgement,
						  .nr_judgements = 1};
	nm_verifier_apply(verifier, &result);
}

/* A move from node 0 to node 3, while the CPUs of one node change. */
static size_t open_after_change_of(unsigned node, unsigned cpu)
{
	struct nm_topology *changed;
	nm_topology_copy(machine->topology, &changed);
	hwloc_bitmap_clr(changed->nodes[node].cpus, cpu);
	nm_verifier_retarget(verifier, machine->topology, changed);
	nm_topology_free(changed);
	return nm_verifier_open(verifier);
}

TEST(verdicts_outlive_changes_of_other_nodes)
{
	add_move(1, 0.5);
	assert_int_equal(open_after_change_of(1, 2), 1);
	assert_int_equal(open_after_change_of(2, 4), 1);
	assert_int_equal(open_after_change_of(3, 7), 0);
	add_move(2, 0.5);
	assert_int_equal(open_after_change_of(0, 1), 0);
	/* Node indices mean others. */
	add_move(3, 0.5);
	struct nm_topology *changed;
	nm_topology_copy(machine->topology, &changed);
	changed->nodes[1].os_id = 77;
	nm_verifier_retarget(verifier, machine->topology, changed);
	nm_topology_free(changed);
	assert_int_equal(nm_verifier_open(verifier), 0);
}

TEST(the_feedback_rolls_back)
{
	add_by_performance(NM_DECISION_MIGRATE, NM_POLICY_IMAR2);
	run(0, 6, 3, 100);
	machine_perform(machine, 0, 70, 70, 1, 400);
	give_feedback(NM_FEEDBACK_ROLL_BACK);
	const struct nm_verdict *verdict = judge_next();
	assert_verdict(NM_VERDICT_ROLLED_BACK);
	assert_true(verdict->by_performance && verdict->figure == 0.7);
	assert_true(verdict->global_before == 1000 && verdict->global_after == 700);
	assert_true(verdict->interval_s == 2);
	assert_true(verdict->noise == 0.1 && verdict->losses == 0.6);
	const struct nm_verdict_thread *thread = &verdict->threads[0];
	assert_true(thread->performance_before == 100 && thread->performance_after == 70);
	assert_true(thread->latency_before == 300 && thread->latency_after == 400);
	assert_true(thread->local_before == 0.5 && thread->local_after == 1);
}

/* Its local access ratio fell to 0, which is not the criterion. */
TEST(a_gain_by_feedback_is_improved)
{
	add_by_performance(NM_DECISION_MIGRATE, NM_POLICY_IMAR2);
	run(0, 6, 0, 100);
	machine_perform(machine, 0, 130, 130, 1, 200);
	give_feedback(NM_FEEDBACK_GAIN);
	judge_next();
	assert_verdict(NM_VERDICT_IMPROVED);
}

/* IMAR² considers performance only; LBMA considers locality and permits no loss of it. */
TEST(performance_gains_do_not_excuse_lbma)
{
	static const struct {
		enum nm_thread_policy policy;
		enum nm_feedback_outcome outcome;
		bool rollback;
		enum nm_verdict_kind kind;
	} cases[] = {{NM_POLICY_IMAR2, NM_FEEDBACK_KEEP, true, NM_VERDICT_NEUTRAL},
		     {NM_POLICY_LBMA, NM_FEEDBACK_KEEP, true, NM_VERDICT_ROLLED_BACK},
		     {NM_POLICY_LBMA, NM_FEEDBACK_KEEP, false, NM_VERDICT_NEUTRAL},
		     {NM_POLICY_IMAR2, NM_FEEDBACK_GAIN, true, NM_VERDICT_IMPROVED},
		     {NM_POLICY_LBMA, NM_FEEDBACK_GAIN, true, NM_VERDICT_ROLLED_BACK}};
	for (size_t i = 0; i < NM_ARRAY_SIZE(cases); i++) {
		machine->config.rules.rollback = cases[i].rollback;
		add_by_performance(NM_DECISION_MIGRATE, cases[i].policy);
		run(0, 6, 0, 100);
		machine_perform(machine, 0, 100, 100, 1, 200);
		give_feedback(cases[i].outcome);
		judge_next();
		assert_verdict(cases[i].kind);
	}
}

/* Performance before and after cannot be compared, so locality decides. */
TEST(incomparable_performance_is_judged_by_locality)
{
	const struct nm_feedback_judgement judgement = {.decision = 5, .figure = NAN};
	const struct nm_feedback_result result = {
		.outcome = NM_FEEDBACK_KEEP, .judgements = &judgement, .nr_judgements = 1};
	add_by_performance(NM_DECISION_MIGRATE, NM_POLICY_LBMA);
	run(0, 6, 3, 100);
	nm_verifier_apply(verifier, &result);
	judge_next();
	assert_verdict(NM_VERDICT_IMPROVED);
}

TEST(a_verdict_waits_for_the_feedback)
{
	add_by_performance(NM_DECISION_MIGRATE, NM_POLICY_IMAR2);
	run(0, 6, 3, 100);
	machine_perform(machine, 0, 130, 130, 1, 200);
	judge_next();
	assert_open(1);
	run(0, 6, 3, 100);
	machine_perform(machine, 0, 999, 999, 1, 100);
	give_feedback(NM_FEEDBACK_KEEP);
	const struct nm_verdict *verdict = judge_next();
	assert_verdict(NM_VERDICT_NEUTRAL);
	assert_true(verdict->threads[0].performance_after == 130);
	assert_true(verdict->threads[0].latency_after == 200);
}

/* Another decision of the same interval is rolled back, this one is not. */
TEST(a_rollback_of_others_does_not_count)
{
	const struct nm_feedback_judgement judgements[] = {{.decision = 4, .change = fell},
							   {.decision = 5, .change = stayed}};
	const struct nm_feedback_result result = {
		.outcome = NM_FEEDBACK_ROLL_BACK, .judgements = judgements, .nr_judgements = 2};
	add_by_performance(NM_DECISION_MIGRATE, NM_POLICY_IMAR2);
	run(0, 6, 3, 100);
	machine_perform(machine, 0, 130, 130, 1, 200);
	nm_verifier_apply(verifier, &result);
	judge_next();
	assert_verdict(NM_VERDICT_NEUTRAL);
}

TEST(feedback_on_other_processes_is_ignored)
{
	add_by_performance(NM_DECISION_MIGRATE, NM_POLICY_IMAR2);
	const struct nm_feedback_judgement other = {.decision = 6, .change = fell};
	const struct nm_feedback_result result = {
		.outcome = NM_FEEDBACK_ROLL_BACK, .judgements = &other, .nr_judgements = 1};
	run(0, 6, 3, 100);
	nm_verifier_apply(verifier, &result);
	judge_next();
	assert_open(1);
}

TEST(known_performance_suffices_without_accesses)
{
	add_by_performance(NM_DECISION_MIGRATE, NM_POLICY_IMAR2);
	run(0, 6, 3, 0);
	machine_perform(machine, 0, 130, 130, 1, 200);
	give_feedback(NM_FEEDBACK_GAIN);
	judge_next();
	assert_verdict(NM_VERDICT_IMPROVED);
}

TEST(a_rollback_awaits_no_feedback)
{
	add_by_performance(NM_DECISION_ROLLBACK, NM_POLICY_IMAR2);
	run(0, 6, 3, 100);
	machine_perform(machine, 0, 130, 130, 1, 200);
	judge_next();
	assert_verdict(NM_VERDICT_NEUTRAL);
}

TEST(exited_threads_are_not_rolled_back)
{
	add_by_performance(NM_DECISION_MIGRATE, NM_POLICY_IMAR2);
	machine->members[0].start_ticks++;
	give_feedback(NM_FEEDBACK_ROLL_BACK);
	judge_next();
	assert_verdict(NM_VERDICT_INCONCLUSIVE);
}

TEST(a_move_that_never_arrived_is_cancelled)
{
	add_by_performance(NM_DECISION_MIGRATE, NM_POLICY_IMAR2);
	for (int i = 0; i < 2; i++) {
		run(0, 0, 3, 100);
		machine_perform(machine, 0, 130, 130, 1, 200);
		if (i == 0)
			give_feedback(NM_FEEDBACK_KEEP);
		judge_next();
	}
	assert_verdict(NM_VERDICT_CANCELLED);
}

RUN_TESTS()
