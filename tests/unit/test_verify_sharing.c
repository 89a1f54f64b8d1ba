/* SPDX-License-Identifier: MIT */
/* Verdicts on moves by sharing: by the latency of accesses, otherwise by the communication cost. */
#define SET_UP set_up
#define TEAR_DOWN tear_down
#include "../support/test.h"

#include "../support/sharing.h"
#include "numa-migrd/base.h"
#include "policy/judge.h"
#include "snapshot_words.h"

static struct nm_affinity *affinity;
static struct nm_verifier *verifier;
static struct nm_verdicts verdicts;

/* Four nodes of two CPUs; threads 0 and 1, which share, were moved from nodes 0 and 1 to 2. */
static int set_up(void **state)
{
	(void)open_snapshot(state);
	machine_thread(machine, 10, 4, -1);
	machine_thread(machine, 10, 5, -1);
	machine_thread(machine, 10, 0, -1);
	nm_affinity_new(&machine->config, &affinity);
	verifier = nm_verifier_new();
	return 0;
}

static int tear_down(void **state)
{
	nm_verdicts_clear(&verdicts);
	nm_verifier_free(verifier);
	nm_affinity_free(affinity);
	affinity = NULL;
	return close_snapshot(state);
}

/* ---- words ---- */

static void share(uint32_t a, uint32_t b, unsigned times)
{
	uint16_t id_a, id_b;
	assert_int_equal(nm_affinity_join(affinity, 1000 + a, 0, &id_a), 0);
	assert_int_equal(nm_affinity_join(affinity, 1000 + b, 0, &id_b), 0);
	while (times--)
		nm_affinity_share(affinity, id_a, id_b);
}

ACTION(share, share(U(0), U(1), U(2)))

static void add(enum nm_decision_kind kind, uint64_t id, uint32_t thread, int cpu, double samples)
{
	struct nm_decision decision = {.id = id,
				       .kind = kind,
				       .policy = NM_POLICY_KMAF,
				       .interval = machine->interval,
				       .nr_steps = 1};
	decision.steps[0] = (struct nm_step){.tid = 1000 + thread,
					     .pid = 10,
					     .start_ticks = 6000 + thread,
					     .adopted_ns = 1 * MACHINE_SECOND,
					     .cpu_from = cpu,
					     .cpu_to = 4 + (int)thread,
					     .node_from = cpu < 0 ? -1 : cpu / 2,
					     .node_to = 2,
					     .local_before = cpu < 0 ? NAN : 1,
					     .latency_before = samples > 0 ? 200 : NAN,
					     .latency_samples_before = samples,
					     .performance_before = NAN};
	nm_verifier_add(verifier, NULL, &decision);
}

/* move 7 0 100: of thread 0, with a mean latency of 200 cycles over 100 samples before */
ACTION(move, add(NM_DECISION_MIGRATE, U(0), U(1), 2 * (int)U(1), N(2)))

/* rollback_asleep 7 0: it slept when it was moved back */
ACTION(rollback_asleep, add(NM_DECISION_ROLLBACK, U(0), U(1), -1, 0))

/* latency 210 nan: of threads 0 and 1, over 100 samples each */
WORD(latency)
{
	for (unsigned i = 0; i < 2; i++)
		machine_perform(machine, i, NAN, NAN, NAN, N(i));
}

/* The verdicts of the next interval: "7 neutral, 8 improved". */
static const char *judge_next(void)
{
	static const char *const kinds[NM_VERDICT_KINDS] = {
		"improved", "neutral", "rolled back", "worse", "cancelled", "inconclusive"};
	static char text[200];
	size_t length = 0;
	machine->interval++;
	nm_verdicts_clear(&verdicts);
	const struct nm_verifier_input input = {take(), NULL, &machine->config, affinity};
	nm_verifier_judge(verifier, &input, &verdicts);
	for (size_t i = 0; i < verdicts.count; i++) {
		assert_int_equal(verdicts.items[i].policy, NM_POLICY_KMAF);
		length += (size_t)snprintf(text + length, sizeof(text) - length, "%s%u %s",
					   i > 0 ? ", " : "", (unsigned)verdicts.items[i].decision,
					   kinds[verdicts.items[i].kind]);
	}
	return verdicts.count > 0 ? text : NULL;
}

TEXT(next, judge_next())
KNOB(rollback, machine->config.rules.rollback)
KNOB(gate_sigmas, machine->config.rules.gate_sigmas)
KNOB(latency_samples, machine->sampled[U(0)].stats.latency_samples)
QUANTITY(intervals, verdicts.items[U(0)].intervals)
QUANTITY(slowdown, verdicts.items[U(0)].slowdown)
QUANTITY(slowdown_noise, verdicts.items[U(0)].slowdown_noise)
QUANTITY(latency_after, verdicts.items[U(0)].threads[0].latency_after)
QUANTITY(cost_before, verdicts.items[U(0)].cost_before)
QUANTITY(cost_after, verdicts.items[U(0)].cost_after)

/* ---- by latency: 10 intervals at most ---- */

/* All are remote; 3 σ, of 100 samples before and after, are 3 × 1.05 × √0.02. */
SCRIPT(accesses_as_fast_as_before_are_enough,
       "move 7 0 100; touch 0 node0 100; latency 210 nan; next = 7 neutral; slowdown 0 = 1.05",
       "slowdown_noise 0 in 0.445477..0.445478; latency_after 0 = 210")

SCRIPT(slow_accesses_have_time_until_pages_follow, "move 7 0 1000; latency 600 nan",
       "each 9: next = none", "latency 180 nan; next = 7 neutral; intervals 0 = 10")

SCRIPT(persistent_slowdown_is_rolled_back, "set rollback = 0; move 7 0 1000; latency 600 nan",
       "each 9: next = none", "next = 7 neutral; set rollback = 1; move 7 0 1000",
       "each 9: next = none", "next = 7 rolled back")

/* 3 σ of ten samples are as much as the whole. */
SCRIPT(changes_within_chance_are_kept, "move 7 0 10; latency 350 nan; next = 7 neutral",
       "set gate_sigmas = 0; move 8 0 10; next = none")

/* Faster than threads.delta_g requires, and than chance explains. */
SCRIPT(faster_accesses_have_improved_beyond_chance,
       "move 7 0 1000; latency 120 nan; next = 7 improved; move 8 0 10; next = 8 neutral")

/* One left its memory for the other: the sum of both counts. */
SCRIPT(moves_of_one_mapping_are_judged_together,
       "move 7 0 1000; move 8 1 1000; latency 260 100; next = 7 neutral, 8 neutral",
       "slowdown 0 = 0.9; slowdown 1 = 0.9; move 9 0 1000; move 10 1 1000; latency 600 100",
       "each 9: next = none", "next = 9 rolled back, 10 rolled back")

SCRIPT(mappings_are_judged_apart,
       "move 7 0 1000; latency 600 nan; next = none; move 8 1 1000; latency 600 100",
       "next = 8 improved")

SCRIPT(a_few_samples_give_no_mean,
       "move 7 0 1000; latency 100 nan; set latency_samples 0 = 9; next = none",
       "set latency_samples 0 = 10; next = 7 improved")

SCRIPT(a_move_that_did_not_arrive_is_cancelled,
       "move 7 0 100; run_on 0 cpu1; latency 100 nan; next = none; next = 7 cancelled")

/* ---- by sharing, after 4 intervals ---- */

/* First with the other one that moved, then more with one on its former node. */
SCRIPT(sharing_replaces_missing_latencies, "move 7 0 0; share 0 1 10", "each 3: next = none",
       "next = 7 improved; cost_before 0 = 200; cost_after 0 = 100; move 7 0 0; share 0 2 50",
       "each 3: next = none", "next = 7 rolled back; cost_before 0 = 700; cost_after 0 = 1100")

/* Its cost on the former node is unknown. */
SCRIPT(a_sleeping_thread_has_no_cost_before,
       "rollback_asleep 7 0; share 0 1 10; next = 7 neutral; cost_before 0 = nan",
       "cost_after 0 = 100")

/* Hundreds of sharings are half as far as before; two would not be significant. */
SCRIPT(nearer_sharers_must_exceed_chance, "move 7 0 0; share 0 1 2", "each 3: next = none",
       "next = 7 neutral; move 8 0 0; share 0 1 400", "each 3: next = none", "next = 8 improved")

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
		for (unsigned i = 0; i < 40; i++) {
			uint32_t thread = (uint32_t)nm_rng_below(&rng, 4);
			add(NM_DECISION_MIGRATE, i, thread, 2 * (int)thread, 0);
		}
		machine->interval += NM_VERDICT_INTERVALS;
		const struct nm_verifier_input input = {take(), NULL, &machine->config, affinity};
		nm_verifier_judge(verifier, &input, &verdicts);
		assert_true(verdicts.count > 0);
		for (size_t i = 0; i < verdicts.count; i++) {
			const struct nm_verdict *verdict = &verdicts.items[i];
			uint32_t tid = verdict->threads[0].tid;
			assert_true(verdict->cost_after == cost_on(taken, tid, 2));
			assert_true(verdict->cost_before ==
				    cost_on(taken, tid, verdict->threads[0].node_from));
		}
		assert_int_equal(tear_down(state), 0);
		assert_int_equal(set_up(state), 0);
	}
}

RUN_TESTS()
