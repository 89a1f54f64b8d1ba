/* SPDX-License-Identifier: MIT */
/* Verdicts on moves by sharing: by the latency of accesses, otherwise by the communication cost. */
#define SET_UP set_up
#define TEAR_DOWN tear_down
#include "../support/test.h"

#include "../support/interval.h"
#include "../support/sharing.h"
#include "numa-migrd/base.h"
#include "policy/judge.h"

static struct machine *machine;
static struct nm_affinity *affinity;
static struct nm_verifier *verifier;
static struct nm_verdicts verdicts;

/* Four nodes of two CPUs; threads 0 and 1, which share, were moved from nodes 0 and 1 to 2. */
static int set_up(void **state)
{
	(void)state;
	machine = machine_new(4, 2);
	machine_thread(machine, 10, 4, -1);
	machine_thread(machine, 10, 5, -1);
	machine_thread(machine, 10, 0, -1);
	nm_affinity_new(&machine->config, &affinity);
	verifier = nm_verifier_new();
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	nm_verdicts_clear(&verdicts);
	nm_verifier_free(verifier);
	nm_affinity_free(affinity);
	affinity = NULL;
	machine_free(machine);
	return 0;
}

static void share(uint32_t a, uint32_t b, unsigned times)
{
	uint16_t id_a, id_b;
	assert_int_equal(nm_affinity_join(affinity, 1000 + a, 0, &id_a), 0);
	assert_int_equal(nm_affinity_join(affinity, 1000 + b, 0, &id_b), 0);
	while (times--)
		nm_affinity_share(affinity, id_a, id_b);
}

/* One of the two, with a mean latency of 200 cycles over N samples before. */
static void add_move(uint64_t id, uint32_t thread, double samples)
{
	struct nm_decision decision = {.id = id,
				       .kind = NM_DECISION_MIGRATE,
				       .policy = NM_POLICY_KMAF,
				       .interval = machine->interval,
				       .nr_steps = 1};
	decision.steps[0] = (struct nm_step){.tid = 1000 + thread,
					     .pid = 10,
					     .start_ticks = 6000 + thread,
					     .adopted_ns = 1 * MACHINE_SECOND,
					     .cpu_from = 2 * (int)thread,
					     .cpu_to = 4 + (int)thread,
					     .node_from = (int)thread,
					     .node_to = 2,
					     .local_before = 1,
					     .latency_before = samples > 0 ? 200 : NAN,
					     .latency_samples_before = samples,
					     .performance_before = NAN};
	nm_verifier_add(verifier, NULL, &decision);
}

static void judge_next(void)
{
	machine->interval++;
	nm_auto(nm_snapshot_freep) struct nm_snapshot *snapshot = machine_snapshot(machine);
	nm_verdicts_clear(&verdicts);
	const struct nm_verifier_input input = {snapshot, NULL, &machine->config, affinity};
	nm_verifier_judge(verifier, &input, &verdicts);
}

static void latencies(double first, double second)
{
	machine_perform(machine, 0, NAN, NAN, NAN, first);
	machine_perform(machine, 1, NAN, NAN, NAN, second);
}

TEST(accesses_as_fast_as_before_are_enough)
{
	add_move(7, 0, 100);
	machine_touch(machine, 0, 0, 100); /* all remote */
	latencies(210, NAN);
	judge_next();
	assert_int_equal(verdicts.count, 1);
	assert_int_equal(verdicts.items[0].kind, NM_VERDICT_NEUTRAL);
	assert_int_equal(verdicts.items[0].decision, 7);
	assert_int_equal(verdicts.items[0].policy, NM_POLICY_KMAF);
	assert_true(verdicts.items[0].slowdown == 1.05);
	/* 3 σ, of 100 samples before and after */
	assert_true(fabs(verdicts.items[0].slowdown_noise - 3 * 1.05 * sqrt(0.02)) < 1e-9);
	assert_true(verdicts.items[0].threads[0].latency_after == 210);
}

TEST(slow_accesses_have_time_until_pages_follow)
{
	add_move(7, 0, 1000);
	latencies(600, NAN);
	for (unsigned i = 1; i < NM_VERDICT_INTERVALS; i++) {
		judge_next();
		assert_int_equal(verdicts.count, 0);
	}
	latencies(180, NAN);
	judge_next();
	assert_int_equal(verdicts.items[0].kind, NM_VERDICT_NEUTRAL);
	assert_int_equal(verdicts.items[0].intervals, NM_VERDICT_INTERVALS);
}

TEST(persistent_slowdown_is_rolled_back)
{
	for (int rollback = 0; rollback < 2; rollback++) {
		machine->config.rules.rollback = rollback;
		add_move(7, 0, 1000);
		latencies(600, NAN);
		for (unsigned i = 0; i < NM_VERDICT_INTERVALS; i++) {
			assert_int_equal(verdicts.count, 0);
			judge_next();
		}
		assert_int_equal(verdicts.count, 1);
		assert_int_equal(verdicts.items[0].kind,
				 rollback ? NM_VERDICT_ROLLED_BACK : NM_VERDICT_NEUTRAL);
		nm_verdicts_clear(&verdicts);
	}
}

TEST(changes_within_chance_are_kept)
{
	add_move(7, 0, 10); /* 3 σ are as much as the whole */
	latencies(350, NAN);
	judge_next();
	assert_int_equal(verdicts.items[0].kind, NM_VERDICT_NEUTRAL);
	machine->config.rules.gate_sigmas = 0;
	add_move(8, 0, 10);
	judge_next();
	assert_int_equal(verdicts.count, 0);
}

/* Faster than threads.delta_g requires, and than chance explains. */
TEST(faster_accesses_have_improved_beyond_chance)
{
	static const unsigned samples[] = {1000, 10};
	static const enum nm_verdict_kind kinds[] = {NM_VERDICT_IMPROVED, NM_VERDICT_NEUTRAL};
	for (size_t i = 0; i < NM_ARRAY_SIZE(kinds); i++) {
		add_move(7 + i, 0, samples[i]);
		latencies(120, NAN);
		judge_next();
		assert_int_equal(verdicts.count, 1);
		assert_int_equal(verdicts.items[0].kind, kinds[i]);
	}
}

/* One left its memory for the other: the sum of both counts. */
TEST(moves_of_one_mapping_are_judged_together)
{
	add_move(7, 0, 1000);
	add_move(8, 1, 1000);
	latencies(260, 100);
	judge_next();
	assert_int_equal(verdicts.count, 2);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(verdicts.items[i].kind, NM_VERDICT_NEUTRAL);
		assert_true(verdicts.items[i].slowdown == 0.9);
	}
	add_move(9, 0, 1000);
	add_move(10, 1, 1000);
	latencies(600, 100);
	for (unsigned i = 0; i < NM_VERDICT_INTERVALS; i++)
		judge_next();
	assert_int_equal(verdicts.count, 2);
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(verdicts.items[i].kind, NM_VERDICT_ROLLED_BACK);
}

TEST(mappings_are_judged_apart)
{
	add_move(7, 0, 1000);
	latencies(600, NAN);
	judge_next();
	assert_int_equal(verdicts.count, 0);
	add_move(8, 1, 1000);
	latencies(600, 100);
	judge_next();
	assert_int_equal(verdicts.count, 1);
	assert_int_equal(verdicts.items[0].decision, 8);
	assert_int_equal(verdicts.items[0].kind, NM_VERDICT_IMPROVED);
}

TEST(a_few_samples_give_no_mean)
{
	add_move(7, 0, 1000);
	latencies(100, NAN);
	machine->sampled[0].stats.latency_samples = 9;
	judge_next();
	assert_int_equal(verdicts.count, 0);
	machine->sampled[0].stats.latency_samples = 10;
	judge_next();
	assert_int_equal(verdicts.count, 1);
}

TEST(sharing_replaces_missing_latencies)
{
	for (int sharers = 0; sharers < 2; sharers++) {
		add_move(7, 0, 0);
		/* the other one that moved, then one more on its former node */
		share(0, sharers ? 2 : 1, 10 * (1 + 4 * (unsigned)sharers));
		for (unsigned i = 1; i < NM_VERDICT_AGED_INTERVALS; i++) {
			judge_next();
			assert_int_equal(verdicts.count, 0);
		}
		judge_next();
		assert_int_equal(verdicts.count, 1);
		assert_int_equal(verdicts.items[0].kind,
				 sharers ? NM_VERDICT_ROLLED_BACK : NM_VERDICT_IMPROVED);
		assert_true(verdicts.items[0].cost_after == (sharers ? 50 * 20 + 10 * 10 : 100));
		assert_true(verdicts.items[0].cost_before == (sharers ? 50 * 10 + 10 * 20 : 200));
	}
}

/* It slept when it was moved back: its cost on the former node is unknown. */
TEST(a_sleeping_thread_has_no_cost_before)
{
	struct nm_decision decision = {.id = 7,
				       .kind = NM_DECISION_ROLLBACK,
				       .policy = NM_POLICY_KMAF,
				       .interval = machine->interval,
				       .nr_steps = 1};
	decision.steps[0] = (struct nm_step){.tid = 1000,
					     .pid = 10,
					     .start_ticks = 6000,
					     .adopted_ns = 1 * MACHINE_SECOND,
					     .cpu_from = -1,
					     .cpu_to = 4,
					     .node_from = -1,
					     .node_to = 2,
					     .local_before = NAN,
					     .latency_before = NAN,
					     .performance_before = NAN};
	nm_verifier_add(verifier, NULL, &decision);
	share(0, 1, 10);
	judge_next();
	assert_int_equal(verdicts.count, 1);
	assert_int_equal(verdicts.items[0].kind, NM_VERDICT_NEUTRAL);
	assert_true(isnan(verdicts.items[0].cost_before));
	assert_true(verdicts.items[0].cost_after == 10 * 10);
}

/* Sum over all partners that run, one by one. */
static double cost_on(const struct nm_snapshot *snapshot, uint32_t tid, int node)
{
	double cost = 0;
	for (size_t i = 0; i < snapshot->nr_threads; i++) {
		const struct nm_snap_thread *other = &snapshot->threads[i];
		int there = nm_topology_node_of_cpu(snapshot->topology, other->stats.main_cpu);
		if (there >= 0)
			cost += (double)sharing_between(affinity, tid, other->tid) *
				nm_topology_distance(snapshot->topology, node, there);
	}
	return cost / NM_SHARING_STEP;
}

/* For any pairs, several decisions about the same threads, some of which sleep. */
TEST(costs_are_the_sum_over_all_partners)
{
	struct nm_rng rng;
	nm_rng_seed(&rng, 11);
	for (unsigned round = 0; round < 30; round++) {
		for (unsigned i = 3; i < 20; i++)
			machine_thread(machine, 10 + i, (int)nm_rng_below(&rng, 9) - 1, -1);
		for (unsigned i = 0; i < 60; i++) {
			uint32_t a = (uint32_t)nm_rng_below(&rng, 20);
			share(a, (a + 1 + (uint32_t)nm_rng_below(&rng, 19)) % 20,
			      1 + (unsigned)nm_rng_below(&rng, 5));
		}
		nm_affinity_leave(affinity, 1000 + 19, 0);
		for (unsigned i = 0; i < 40; i++)
			add_move(i, (uint32_t)(nm_rng_below(&rng, 4)), 0);
		machine->interval += NM_VERDICT_INTERVALS;
		nm_auto(nm_snapshot_freep) struct nm_snapshot *snapshot = machine_snapshot(machine);
		const struct nm_verifier_input input = {snapshot, NULL, &machine->config, affinity};
		nm_verifier_judge(verifier, &input, &verdicts);
		assert_true(verdicts.count > 0);
		for (size_t i = 0; i < verdicts.count; i++) {
			const struct nm_verdict *verdict = &verdicts.items[i];
			uint32_t tid = verdict->threads[0].tid;
			assert_true(verdict->cost_after == cost_on(snapshot, tid, 2));
			assert_true(verdict->cost_before ==
				    cost_on(snapshot, tid, verdict->threads[0].node_from));
		}
		assert_int_equal(tear_down(state), 0);
		assert_int_equal(set_up(state), 0);
	}
}

/* Hundreds of sharings are half as far as before; two would not be significant. */
TEST(nearer_sharers_must_exceed_chance)
{
	static const unsigned sharings[] = {2, 400};
	static const enum nm_verdict_kind kinds[] = {NM_VERDICT_NEUTRAL, NM_VERDICT_IMPROVED};
	for (size_t i = 0; i < NM_ARRAY_SIZE(kinds); i++) {
		add_move(7 + i, 0, 0);
		share(0, 1, sharings[i]);
		for (unsigned k = 0; k < NM_VERDICT_AGED_INTERVALS; k++)
			judge_next();
		assert_int_equal(verdicts.count, 1);
		assert_int_equal(verdicts.items[0].kind, kinds[i]);
	}
}

TEST(a_move_that_did_not_arrive_is_cancelled)
{
	add_move(7, 0, 100);
	machine_run_on(machine, 0, 1);
	latencies(100, NAN);
	judge_next();
	assert_int_equal(verdicts.count, 0);
	judge_next();
	assert_int_equal(verdicts.items[0].kind, NM_VERDICT_CANCELLED);
}

RUN_TESTS()
