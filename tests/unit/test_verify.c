/* SPDX-License-Identifier: MIT */
/* Verdicts on moves of threads: a table of scenes, each of which checks every field of its verdict,
 * and what needs more than one scene. */
#define SET_UP set_up
#define TEAR_DOWN tear_down
#include "../support/test.h"

#include "../support/interval.h"
#include "policy/judge.h"

static struct machine *machine;
static struct nm_verifier *verifier;
static struct nm_verdicts verdicts;

/* Four nodes of two CPUs; threads 0 to 2 on CPUs 0, 2 and 4. Decisions have the interval of the
 * machine. */
static int set_up(void **state)
{
	(void)state;
	machine = machine_new(4, 2);
	for (int thread = 0; thread < 3; thread++)
		machine_thread(machine, 10, 2 * thread, -1);
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

/* ---- decisions ---- */

static struct nm_step step(uint32_t thread, int cpu_from, int cpu_to, double local_before)
{
	return (struct nm_step){.tid = 1000 + thread,
				.pid = 10,
				.comm = "program",
				.start_ticks = 6000 + thread,
				.adopted_ns = 1 * MACHINE_SECOND,
				.cpu_from = cpu_from,
				.cpu_to = cpu_to,
				.node_from = cpu_from / 2,
				.node_to = cpu_to / 2,
				.local_before = local_before,
				.samples_before = 1000,
				.performance_before = 100,
				.latency_before = 300,
				.access_cost_before = cost_of(local_before)};
}

#define MOVE NM_DECISION_MIGRATE
#define SWAP NM_DECISION_SWAP
#define ROLLBACK NM_DECISION_ROLLBACK

/* A move of thread 0 from CPU 0 to CPU 6, its rollback, or its swap with thread 1. */
static struct nm_decision make_decision(uint64_t id, enum nm_decision_kind kind, double before,
					double before_of_other)
{
	struct nm_decision decision = {.id = id,
				       .policy = NM_POLICY_IMAR2,
				       .kind = kind,
				       .interval = machine->interval,
				       .nr_steps = kind == SWAP ? 2 : 1};

	decision.steps[0] = kind == ROLLBACK ? step(0, 6, 0, before)
			    : kind == SWAP   ? step(0, 0, 2, before)
					     : step(0, 0, 6, before);
	if (kind == SWAP)
		decision.steps[1] = step(1, 2, 0, before_of_other);
	return decision;
}

static void add_move(uint64_t id, unsigned thread, double before)
{
	struct nm_decision decision = make_decision(id, MOVE, 0, 0);
	decision.steps[0] = step(thread, 0, 6, before);
	nm_verifier_add(verifier, NULL, &decision);
}

/* ---- intervals ---- */

/* The next interval of the thread: its CPU, and its accesses to two nodes. */
static void run(size_t thread, int cpu, unsigned node, double accesses, unsigned other,
		double others)
{
	for (unsigned k = 0; k < 4; k++)
		machine_touch(machine, thread, k, 0);
	machine_run_on(machine, thread, cpu);
	machine_touch(machine, thread, other, others);
	machine_touch(machine, thread, node, accesses);
	machine->sampled[thread].stats.fresh_samples = (uint32_t)(accesses + others);
}

static void judge(void)
{
	nm_auto(nm_snapshot_freep) struct nm_snapshot *snapshot = machine_snapshot(machine);
	const struct nm_verifier_input input = {snapshot, NULL, &machine->config, NULL};
	nm_verdicts_clear(&verdicts);
	nm_verifier_judge(verifier, &input, &verdicts);
}

/* Judges the next interval: the verdict on one decision, or none (id 0), and how many stay open. */
static void judge_next(uint64_t id, enum nm_verdict_kind kind, size_t open)
{
	machine->interval++;
	judge();
	assert_int_equal(verdicts.count, id ? 1 : 0);
	if (id) {
		assert_int_equal(verdicts.items[0].decision, id);
		assert_int_equal(verdicts.items[0].kind, kind);
	}
	assert_int_equal(nm_verifier_open(verifier), open);
}

/* ---- scenes ---- */

#define IMPROVED NM_VERDICT_IMPROVED
#define NEUTRAL NM_VERDICT_NEUTRAL
#define ROLLED_BACK NM_VERDICT_ROLLED_BACK
#define CANCELLED NM_VERDICT_CANCELLED
#define INCONCLUSIVE NM_VERDICT_INCONCLUSIVE

/* The change of performance by the feedback: on this decision, or on another one only. */
enum feedback { SILENT, GAIN, KEEP, LOSS, LOSS_OF_OTHERS, UNKNOWN };

#define AWAITED .by_performance = true
#define REPORTS .keeps = true
#define PAPER .paper = true
#define LBMA .policy = NM_POLICY_LBMA
#define IN(part) .share = (part)

/* A decision, and what its threads do in each interval from then on. The verdict comes after
 * `intervals`, and no earlier. */
static const struct scene {
	const char *name;
	enum nm_decision_kind kind;
	struct {
		double before;	 /* its local access ratio */
		int cpu;	 /* where it runs; -1: it sleeps */
		double at, away; /* accesses to the node that it goes to, and comes from */
		bool gone;	 /* its number is that of another thread */
	} threads[2];
	unsigned intervals;
	enum nm_verdict_kind verdict;
	enum feedback feedback; /* otherwise the decision is not by performance */
	bool by_performance;
	bool keeps; /* nothing is rolled back */
	bool paper;
	enum nm_thread_policy policy; /* 0: IMAR2 */
	double share;		      /* of the interval on its main node; 0: all of it */
} scenes[] = {
	/* By locality. */
	{"all accesses are as remote as before", MOVE, {{0, 6, 0, 100}}, 1, NEUTRAL},
	{"memory is local now", MOVE, {{0.25, 6, 90, 10}}, 1, IMPROVED},
	{"a rise within the noise of ten samples", MOVE, {{0.4, 6, 6, 4}}, 1, NEUTRAL},
	{"the same rise of ten thousand", MOVE, {{0.4, 6, 6000, 4000}}, 1, IMPROVED},
	{"a fall beyond the margin: 0.61 after 0.67", MOVE, {{0.5, 6, 36, 64}}, 1, ROLLED_BACK},
	{"a fall within the margin: 0.63 after 0.67", MOVE, {{0.5, 6, 42, 58}}, 1, NEUTRAL},
	{"a fall is only reported", MOVE, {{1, 6, 0, 100}}, 1, NEUTRAL, REPORTS},
	{"a rollback is never undone", ROLLBACK, {{1, 0, 0, 100}}, 1, NEUTRAL},
	{"few accesses add up", MOVE, {{0, 6, 4, 0}}, 3, IMPROVED},
	{"no accesses", MOVE, {{0, 6, 0, 0}}, 10, INCONCLUSIVE},
	{"the ratio before is unknown", MOVE, {{NAN, 6, 100, 0}}, 1, INCONCLUSIVE},
	/* Threads that are elsewhere. */
	{"it runs elsewhere", MOVE, {{0, 1, 100, 0}}, 2, CANCELLED},
	{"it sleeps", MOVE, {{0, -1, 0, 0}}, 10, CANCELLED},
	{"it has exited", MOVE, {{0, 6, 100, 0, true}}, 1, INCONCLUSIVE},
	{"IMAR2 needs nine tenths", MOVE, {{0, 6, 100, 0}}, 10, CANCELLED, IN(0.89)},
	{"and that is enough", MOVE, {{0, 6, 100, 0}}, 1, IMPROVED, IN(0.9)},
	{"LBMA needs more than half", MOVE, {{0, 6, 100, 0}}, 1, IMPROVED, LBMA, IN(0.6)},
	{"as the paper's IMAR2 does", MOVE, {{0, 6, 100, 0}}, 1, IMPROVED, PAPER, IN(0.6)},
	/* Swaps. */
	{"a swap is weighed by accesses", SWAP, {{0, 2, 100, 0}, {1, 0, 0, 10}}, 1, IMPROVED},
	{"the other half has more", SWAP, {{0, 2, 10, 0}, {1, 0, 0, 100}}, 1, ROLLED_BACK},
	{"one half runs elsewhere", SWAP, {{0, 2, 100, 0}, {0, 5, 100, 0}}, 2, CANCELLED},
	{"the survivor decides", SWAP, {{0.9, 2, 0, 100}, {0, 0, 100, 0, true}}, 1, ROLLED_BACK},
	{"the active half decides", SWAP, {{0, 2, 100, 0}, {0.5, 0, 0, 0}}, 10, IMPROVED},
	/* By performance. */
	{"a gain, although locality fell", MOVE, {{0.5, 6, 0, 100}}, 1, IMPROVED, GAIN},
	{"a loss, although locality rose", MOVE, {{0.5, 6, 100, 0}}, 1, ROLLED_BACK, LOSS},
	{"IMAR2 keeps a move without a change", MOVE, {{0.5, 6, 0, 100}}, 1, NEUTRAL, KEEP},
	{"LBMA accepts no lost locality", MOVE, {{0.5, 6, 0, 100}}, 1, ROLLED_BACK, KEEP, LBMA},
	{"unless it only reports", MOVE, {{0.5, 6, 0, 100}}, 1, NEUTRAL, KEEP, LBMA, REPORTS},
	{"not even with a gain", MOVE, {{0.5, 6, 0, 100}}, 1, ROLLED_BACK, GAIN, LBMA},
	{"a gain needs no accesses", MOVE, {{0.5, 6, 0, 0}}, 1, IMPROVED, GAIN},
	{"another one of the interval lost", MOVE, {{0.5, 6, 100, 0}}, 1, NEUTRAL, LOSS_OF_OTHERS},
	{"the change is unknown", MOVE, {{0.5, 6, 100, 0}}, 1, IMPROVED, UNKNOWN, LBMA},
	{"a rollback awaits nothing", ROLLBACK, {{0.5, 0, 0, 100}}, 1, NEUTRAL, AWAITED},
	{"a loss, but it has exited", MOVE, {{0.5, 6, 100, 0, true}}, 1, INCONCLUSIVE, LOSS},
	{"it never arrived", MOVE, {{0.5, 0, 0, 100}}, 2, CANCELLED, KEEP},
};

/* The feedback on a decision and, before it, on another one. */
static void give_feedback(uint64_t decision, enum feedback feedback)
{
	const struct nm_change changes[] = {[GAIN] = {true, 1, 0.5, 0.5, 0},
					    [KEEP] = {true, 0, 0.5, 0.5, 0},
					    [LOSS] = {true, -1, 0.5, 0.5, 0},
					    [LOSS_OF_OTHERS] = {true, 0, 0.5, 0.5, 0},
					    [UNKNOWN] = {0}};
	const struct nm_feedback_judgement judgements[] = {
		{.decision = 4, .change = changes[feedback == LOSS_OF_OTHERS ? LOSS : KEEP]},
		{.decision = decision,
		 .change = changes[feedback],
		 .figure = feedback == UNKNOWN ? NAN : 0.7,
		 .noise = 0.1,
		 .losses = 0.6}};
	const struct nm_feedback_result result = {
		.outcome = feedback == GAIN				    ? NM_FEEDBACK_GAIN
			   : feedback == LOSS || feedback == LOSS_OF_OTHERS ? NM_FEEDBACK_ROLL_BACK
									    : NM_FEEDBACK_KEEP,
		.figure = 0.9,
		.before = 1000,
		.after = 700,
		.interval_s = 2,
		.judgements = judgements,
		.nr_judgements = 2};
	nm_verifier_apply(verifier, &result);
}

static void check_thread(const struct scene *row, const struct nm_step *asked, unsigned i)
{
	const struct nm_verdict_thread *thread = &verdicts.items[0].threads[i];
	double at = row->threads[i].at, all = at + row->threads[i].away;
	bool gone = row->threads[i].gone,
	     arrived = row->threads[i].cpu >= 0 && row->threads[i].cpu / 2 == asked->node_to;

	CHECK(row, thread->tid == asked->tid && thread->pid == 10);
	CHECK(row, thread->start_ticks == asked->start_ticks);
	CHECK(row, strcmp(thread->comm, "program") == 0);
	CHECK(row, thread->cpu_from == asked->cpu_from);
	CHECK(row, thread->node_from == asked->node_from && thread->node_to == asked->node_to);
	CHECK(row, thread->alive == !gone);
	CHECK(row, gone || row->share == 0.89 || thread->ran_on_node == arrived);
	CHECK(row, gone || (double)thread->accesses_after == all * row->intervals);
	CHECK(row, gone || all == 0 ? isnan(thread->local_after)
				    : fabs(thread->local_after - at / all) < 1e-9);
	if (gone || !row->feedback || row->verdict == CANCELLED)
		return;
	CHECK(row, thread->performance_before == 100 && thread->performance_after == 70);
	CHECK(row, thread->latency_before == 300 && thread->latency_after == 400);
}

static void check_verdict(const struct scene *row, const struct nm_decision *decision)
{
	const struct nm_verdict *verdict = &verdicts.items[0];
	bool known = row->feedback && row->feedback != UNKNOWN;

	CHECK(row, verdicts.count == 1 && nm_verifier_open(verifier) == 0);
	CHECK(row, verdict->decision == 5 && verdict->of == row->kind);
	CHECK(row, verdict->intervals == row->intervals);
	if (verdict->kind != row->verdict)
		fail_msg("%s: verdict %d instead of %d", row->name, verdict->kind, row->verdict);
	CHECK(row, verdict->nr_threads == decision->nr_steps);
	for (unsigned i = 0; i < decision->nr_steps; i++)
		check_thread(row, &decision->steps[i], i);
	if (!known || row->threads[0].gone || row->verdict == CANCELLED)
		return;
	CHECK(row, verdict->by_performance && verdict->figure == 0.7);
	CHECK(row, verdict->global_before == 1000 && verdict->global_after == 700);
	CHECK(row, verdict->interval_s == 2 && verdict->noise == 0.1 && verdict->losses == 0.6);
}

static void play(const struct scene *row)
{
	struct nm_decision decision =
		make_decision(5, row->kind, row->threads[0].before, row->threads[1].before);

	decision.by_performance = row->feedback || row->by_performance;
	decision.policy = row->policy ? row->policy : NM_POLICY_IMAR2;
	machine->config.rules.rollback = !row->keeps;
	machine->config.rules.paper = row->paper;
	if (decision.by_performance)
		machine->config.threads.performance = NM_PERFORMANCE_INSTRUCTIONS;
	nm_verifier_add(verifier, NULL, &decision);
	for (unsigned i = 0; i < decision.nr_steps; i++) {
		run(i, row->threads[i].cpu, (unsigned)decision.steps[i].node_to, row->threads[i].at,
		    (unsigned)decision.steps[i].node_from, row->threads[i].away);
		machine->managed[i].start_ticks += row->threads[i].gone;
	}
	if (decision.by_performance)
		machine_perform(machine, 0, 70, 70, 1, 400);
	if (row->share > 0)
		machine->sampled[0].stats.main_node_share = row->share;
	if (row->feedback)
		give_feedback(5, row->feedback);
	for (unsigned i = 0; i < row->intervals; i++) {
		CHECK(row, nm_verifier_open(verifier) == 1 && (i == 0 || verdicts.count == 0));
		machine->interval++;
		judge();
	}
	check_verdict(row, &decision);
}

TEST(each_scene_has_its_verdict)
{
	EACH_ROW(row, scenes)
	{
		play(row);
		(void)tear_down(NULL);
		(void)set_up(NULL);
	}
}

/* ---- values ---- */

TEST(no_evaluation_gives_no_verdict)
{
	judge_next(0, 0, 0);
	nm_verifier_free(NULL);
}

TEST(a_verdict_has_its_locality_and_what_was_predicted)
{
	struct nm_decision decision = make_decision(5, MOVE, 0.25, 0);
	decision.balance = (struct nm_balance_reason){true, .resident = 1000, .cost_change = -800};
	nm_verifier_add(verifier, NULL, &decision);
	run(0, 6, 3, 90, 0, 10);
	judge_next(5, IMPROVED, 0);
	const struct nm_verdict *verdict = &verdicts.items[0];
	assert_true(fabs(verdict->locality_before - 1 / cost_of(0.25)) < 1e-9);
	assert_true(fabs(verdict->locality_after - 1 / cost_of(0.9)) < 1e-9);
	assert_true(verdict->locality_noise > 0.05 && verdict->locality_noise < 0.1);
	assert_true(fabs(verdict->threads[0].access_cost_after - cost_of(0.9)) < 1e-9);
	assert_true(verdict->balance.given && verdict->balance.cost_change == -800);
	assert_true(fabs(verdict->measured_benefit - 1000 * (cost_of(0.25) - cost_of(0.9))) < 1e-6);
}

/* Its memory is on node 2, which is nearer to node 3 than to node 0; the local access ratio does
 * not show this. */
TEST(a_nearer_node_is_an_improvement_without_local_accesses)
{
	struct nm_decision decision = make_decision(5, MOVE, 0, 0);
	machine->topology->distance[3 * 4 + 2] = 12;
	machine->topology->distance[0 * 4 + 2] = 32;
	decision.steps[0].access_cost_before = 3.2;
	nm_verifier_add(verifier, NULL, &decision);
	run(0, 6, 2, 100, 0, 0);
	judge_next(5, IMPROVED, 0);
	assert_true(verdicts.items[0].threads[0].local_after == 0);
	assert_true(fabs(verdicts.items[0].locality_after - 1 / 1.2) < 1e-9);
}

TEST(memory_only_nodes_count_as_local_to_their_neighbour)
{
	machine_take_cpus(machine, 1, 3);
	add_move(5, 0, 0);
	run(0, 6, 1, 100, 0, 0);
	judge_next(5, IMPROVED, 0);
	assert_true(verdicts.items[0].threads[0].local_after == 1);
}

/* ---- several intervals, and several decisions ---- */

TEST(the_interval_of_the_move_is_ignored)
{
	add_move(5, 0, 0);
	run(0, 6, 3, 100, 0, 0);
	judge();
	assert_int_equal(verdicts.count, 0);
	assert_int_equal(nm_verifier_open(verifier), 1);
}

TEST(a_late_arrival_counts)
{
	add_move(5, 0, 0);
	run(0, 1, 3, 100, 0, 0);
	judge_next(0, 0, 1);
	run(0, 7, 3, 100, 0, 0);
	judge_next(5, IMPROVED, 0);
}

/* After an exec the same numbers belong to another program; a step without a thread has none. */
TEST(another_program_or_thread_makes_a_verdict_inconclusive)
{
	const struct nm_decision unknown = {.id = 6, .nr_steps = 1, .steps = {{.tid = 5}}};
	add_move(5, 0, 0.5);
	run(0, 6, 3, 100, 0, 0);
	machine->managed[0].adopted_ns++;
	judge_next(5, INCONCLUSIVE, 0);
	assert_false(verdicts.items[0].threads[0].alive);
	nm_verifier_add(verifier, NULL, &unknown);
	judge_next(6, INCONCLUSIVE, 0);
}

/* A loss in an interval that the thread spent elsewhere in part is not taken for one by the move.
 */
TEST(the_feedback_of_a_divided_interval_does_not_count)
{
	add_move(5, 0, 0);
	run(0, 6, 3, 100, 0, 0);
	machine->sampled[0].stats.main_node_share = 0.89;
	give_feedback(5, LOSS);
	judge_next(0, 0, 1);
	machine->sampled[0].stats.main_node_share = 0.9;
	judge_next(5, IMPROVED, 0);
}

TEST(a_verdict_waits_for_its_feedback)
{
	struct nm_decision decision = make_decision(5, MOVE, 0.5, 0);
	decision.by_performance = true;
	machine->config.threads.performance = NM_PERFORMANCE_INSTRUCTIONS;
	nm_verifier_add(verifier, NULL, &decision);
	run(0, 6, 3, 100, 0, 0);
	machine_perform(machine, 0, 130, 130, 1, 200);
	give_feedback(6, LOSS); /* not its own */
	judge_next(0, 0, 1);
	machine_perform(machine, 0, 999, 999, 1, 100);
	give_feedback(5, KEEP);
	judge_next(5, NEUTRAL, 0);
	assert_true(verdicts.items[0].threads[0].performance_after == 130);
	assert_true(verdicts.items[0].threads[0].latency_after == 200);
}

/* A further move of a thread closes its evaluation; verdicts shift the indices of the others. */
TEST(a_further_move_closes_the_right_evaluation)
{
	for (unsigned thread = 0; thread < 3; thread++) {
		add_move(5 + thread, thread, 0);
		run(thread, 6, 3, thread == 0 ? 100 : 0, 0, 0);
	}
	judge_next(5, IMPROVED, 2);
	add_move(8, 2, 0);
	judge_next(7, INCONCLUSIVE, 2);
	add_move(9, 1, 0);
	run(1, 6, 3, 100, 0, 0);
	machine->interval++;
	judge();
	assert_int_equal(verdicts.count, 2);
	assert_int_equal(verdicts.items[0].decision, 6);
	assert_int_equal(verdicts.items[0].kind, INCONCLUSIVE);
	assert_int_equal(verdicts.items[1].decision, 9);
	assert_int_equal(verdicts.items[1].kind, IMPROVED);
	assert_int_equal(nm_verifier_open(verifier), 1);
}

/* A move from node 0 to node 3, while the CPUs of one node, or the number of node 1, change. */
TEST(verdicts_outlive_changes_of_other_nodes)
{
	static const struct {
		unsigned node, cpu, os_id;
		size_t open;
	} changes[] = {{1, 2, 1, 1}, {2, 4, 2, 1}, {3, 7, 3, 0}, {0, 1, 0, 0}, {1, 99, 77, 0}};
	for (size_t i = 0; i < NM_ARRAY_SIZE(changes); i++) {
		struct nm_topology *changed;
		add_move(1, 0, 0.5);
		nm_topology_copy(machine->topology, &changed);
		hwloc_bitmap_clr(changed->nodes[changes[i].node].cpus, changes[i].cpu);
		changed->nodes[changes[i].node].os_id = changes[i].os_id;
		nm_verifier_retarget(verifier, machine->topology, changed);
		nm_topology_free(changed);
		assert_int_equal(nm_verifier_open(verifier), changes[i].open);
		(void)tear_down(NULL);
		(void)set_up(NULL);
	}
}

RUN_TESTS()
