/* SPDX-License-Identifier: MIT */
/* Verdicts on page moves: batches that share an evaluation, its time, and its criteria. */
#define SET_UP set_up
#define TEAR_DOWN tear_down
#include "../support/test.h"

#include <math.h>
#include <stdint.h>

#include "../support/machine.h"
#include "policy/judge.h"

static struct nm_config *config;
static struct nm_topology *topology;
static struct nm_feedback *feedback;
static struct nm_verifier *verifier;
static struct nm_verdicts verdicts;

static struct nm_snap_process processes[4]; /* the pages of the first are moved */
static double accesses[2];
static uint32_t fresh[2];
static struct nm_snap_thread threads[4];
static struct nm_snapshot snapshot;

static int set_up(void **state)
{
	(void)state;
	processes[0] = (struct nm_snap_process){.pid = 7, .start_ticks = 5};
	threads[0] = (struct nm_snap_thread){.tid = 7,
					     .pid = 7,
					     .main_node = 0,
					     .accesses = accesses,
					     .fresh = fresh,
					     .access_total = 100,
					     .fresh_samples = 50,
					     .performance = 100,
					     .active = true,
					     .measured = true};
	for (uint32_t i = 1; i < NM_ARRAY_SIZE(threads); i++) {
		processes[i] = (struct nm_snap_process){.pid = 7 + i, .domain = i};
		threads[i] = threads[0];
		threads[i].tid = threads[i].pid = 7 + i;
		threads[i].process = i;
	}
	accesses[0] = 20;
	accesses[1] = 80;
	fresh[0] = 40;
	fresh[1] = 10;
	topology = machine_topology(2, 4);
	snapshot = (struct nm_snapshot){.interval = 1,
					.topology = topology,
					.threads = threads,
					.nr_threads = 1,
					.measured = 1,
					.active = 1,
					.processes = processes,
					.nr_processes = 1};
	if (!topology || nm_config_default(&config) < 0)
		return -1;
	feedback = nm_feedback_new();
	verifier = nm_verifier_new();
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	nm_verdicts_clear(&verdicts);
	nm_verifier_free(verifier);
	nm_feedback_free(feedback);
	nm_topology_free(topology);
	nm_config_free(config);
	return 0;
}

/* Runs the next interval with this P of each thread (NaN: not measured); returns the number of
 * verdicts. */
static size_t interval(double performance)
{
	struct nm_feedback_result result;
	nm_verdicts_clear(&verdicts);
	snapshot.interval++;
	for (size_t i = 0; i < snapshot.nr_threads; i++) {
		threads[i].performance = performance;
		threads[i].measured = !isnan(performance);
	}
	snapshot.measured = isnan(performance) ? 0 : snapshot.nr_threads;
	nm_imar2_feedback(feedback, &snapshot, config, &result);
	nm_verifier_judge(verifier, &(struct nm_verifier_input){&snapshot, feedback, config, NULL},
			  &verdicts);
	return verdicts.count;
}

/* Constant performance, so that the noise estimate is small. */
static void calm(double performance)
{
	for (int i = 0; i < 20; i++)
		assert_int_equal(interval(performance * (i % 2 ? 1.002 : 1)), 0);
}

static void ask(uint64_t id, enum nm_page_reason reason)
{
	struct nm_decision decision = {.id = id,
				       .kind = NM_DECISION_PAGES,
				       .interval = snapshot.interval,
				       .pages = {.reason = reason, .pages = 10},
				       .nr_steps = 1,
				       .steps = {{.pid = 7, .start_ticks = 5}}};
	nm_verifier_add(verifier, &(struct nm_verifier_input){&snapshot, feedback, config, NULL},
			&decision);
}

/* Submits moves while the accesses equal those of earlier intervals. */
static void ask_steadily(uint64_t id, enum nm_page_reason reason)
{
	const uint32_t later[] = {fresh[0], fresh[1]};
	fresh[0] = (uint32_t)(accesses[0] / 2);
	fresh[1] = (uint32_t)(accesses[1] / 2);
	ask(id, reason);
	fresh[0] = later[0];
	fresh[1] = later[1];
}

static void done(uint64_t id, uint64_t moved)
{
	const struct nm_page_results results = {.moved = moved, .failed = 10 - moved};
	nm_verifier_done(verifier, id, &results, snapshot.interval);
}

/* A new process with the same number does not affect the evaluation of the former one. */
TEST(a_reused_number_is_another_process)
{
	calm(100);
	ask_steadily(1, NM_PAGE_REASON_PAGES);
	done(1, 10);
	processes[0].start_ticks++;
	assert_int_equal(interval(200), 1);
	assert_int_equal(verdicts.items[0].kind, NM_VERDICT_INCONCLUSIVE);
}

TEST(a_gain_has_improved)
{
	calm(100);
	ask_steadily(1, NM_PAGE_REASON_PAGES);
	assert_int_equal(interval(100), 0);
	done(1, 10);
	assert_int_equal(interval(180), 0); /* caches fill */
	assert_int_equal(interval(200), 1);
	const struct nm_verdict *verdict = &verdicts.items[0];
	assert_int_equal(verdict->kind, NM_VERDICT_IMPROVED);
	assert_int_equal(verdict->decision, 1);
	assert_int_equal(verdict->results.moved, 10);
	assert_int_equal(verdict->intervals, 3);
	assert_int_equal(verdict->together, 1);
	assert_true(fabs(verdict->figure - 2) < 0.01);
	assert_true(fabs(verdict->threads[0].local_before - 0.2) < 1e-9);
	assert_true(fabs(verdict->threads[0].local_after - 0.8) < 1e-9);
	assert_int_equal(verdict->threads[0].samples_after, 100);
	assert_int_equal(nm_verifier_open(verifier), 0);
}

/* Locality shows no improvement if the performance is known and fell, even within its noise. */
TEST(locality_does_not_outweigh_a_fall)
{
	static const struct nm_criterion criteria[] = {{.by = NM_BY_PERFORMANCE},
						       {NM_BY_LOCALITY, NM_CRITERION_CONFIRMS},
						       {.by = NM_BY_NOTHING}};
	struct nm_change changes[NM_MEASURES] = {
		[NM_BY_PERFORMANCE] = nm_change_of(0.01, 0.05, 0.05),
		[NM_BY_LOCALITY] = nm_change_of(0.8, 0.05, 0.05),
	};
	assert_int_equal(nm_judge_by(criteria, changes).kind, NM_VERDICT_IMPROVED);
	changes[NM_BY_PERFORMANCE].value = -0.01;
	assert_int_equal(nm_judge_by(criteria, changes).kind, NM_VERDICT_NEUTRAL);
	changes[NM_BY_PERFORMANCE].value = -0.06;
	assert_int_equal(nm_judge_by(criteria, changes).kind, NM_VERDICT_ROLLED_BACK);
}

TEST(a_loss_is_undone)
{
	calm(100);
	ask_steadily(1, NM_PAGE_REASON_REGION);
	done(1, 10);
	assert_int_equal(interval(80), 0);
	assert_int_equal(interval(80), 1);
	assert_int_equal(verdicts.items[0].kind, NM_VERDICT_ROLLED_BACK);
}

TEST(unremembered_moves_are_not_rolled_back)
{
	config->rules.rollback_pages = 0;
	calm(100);
	ask_steadily(1, NM_PAGE_REASON_REGION);
	done(1, 10);
	(void)interval(50);
	assert_int_equal(interval(50), 1);
	assert_int_equal(verdicts.items[0].kind, NM_VERDICT_NEUTRAL);
}

TEST(delta_g_is_the_limit)
{
	calm(100);
	ask_steadily(1, NM_PAGE_REASON_REGION);
	done(1, 10);
	assert_int_equal(interval(91), 0);
	assert_int_equal(interval(91), 1);
	assert_int_equal(verdicts.items[0].kind, NM_VERDICT_NEUTRAL);
}

/* Normal variation of P is inconclusive. */
TEST(noise_is_not_a_loss)
{
	for (int i = 0; i < 20; i++)
		(void)interval(i % 2 ? 160 : 100);
	ask_steadily(1, NM_PAGE_REASON_PAGES);
	done(1, 10);
	(void)interval(100);
	assert_int_equal(interval(100), 1);
	assert_int_equal(verdicts.items[0].kind, NM_VERDICT_NEUTRAL);
	assert_true(verdicts.items[0].figure < 0.9);
}

/* P varies by more than the gain, but the accesses have become local. */
TEST(more_local_accesses_are_a_gain_within_noise)
{
	for (int i = 0; i <= 20; i++)
		(void)interval(i % 2 ? 160 : 100);
	ask_steadily(1, NM_PAGE_REASON_PAGES);
	done(1, 10);
	(void)interval(105);
	assert_int_equal(interval(105), 1);
	assert_int_equal(verdicts.items[0].kind, NM_VERDICT_IMPROVED);
	assert_true(verdicts.items[0].figure < 1 + verdicts.items[0].noise);
}

/* 80 % before and after: of 25 accesses this may be chance, of 2,500 it is not. At last it was 90
 * %, so that something else has changed. */
TEST(enough_accesses_show_the_lack_of_a_gain)
{
	static const uint32_t samples[] = {25, 2500, 2500, 2500};
	static const enum nm_page_reason reasons[] = {NM_PAGE_REASON_PAGES, NM_PAGE_REASON_PAGES,
						      NM_PAGE_REASON_ROLLBACK,
						      NM_PAGE_REASON_PAGES};
	calm(100);
	for (size_t i = 0; i < NM_ARRAY_SIZE(samples); i++) {
		threads[0].fresh_samples = samples[i];
		fresh[0] = i == 3 ? 45 : 40;
		fresh[1] = 50 - fresh[0];
		ask(1 + i, reasons[i]);
		fresh[0] = 40;
		fresh[1] = 10;
		done(1 + i, 10);
		(void)interval(100);
		assert_int_equal(interval(100), 1);
		assert_int_equal(verdicts.items[0].kind, NM_VERDICT_NEUTRAL);
		assert_int_equal(verdicts.items[0].no_gain, i == 1);
	}
}

/* All processes lose, and only the pages of one moved; then also the threads of another one, so
 * that too few were left alone. */
TEST(a_loss_of_all_is_not_that_of_a_move)
{
	snapshot.nr_threads = snapshot.nr_processes = 4;
	calm(100);
	ask_steadily(1, NM_PAGE_REASON_PAGES);
	done(1, 10);
	(void)interval(50);
	assert_int_equal(interval(50), 1);
	assert_int_equal(verdicts.items[0].kind, NM_VERDICT_IMPROVED); /* by its accesses */
	assert_true(fabs(verdicts.items[0].figure - 1) < 0.01);
	ask_steadily(2, NM_PAGE_REASON_PAGES);
	done(2, 10);
	nm_feedback_disturb(feedback, 8);
	(void)interval(25);
	assert_int_equal(interval(25), 1);
	assert_int_equal(verdicts.items[0].kind, NM_VERDICT_ROLLED_BACK);
}

TEST(a_rollback_is_not_undone)
{
	calm(100);
	ask_steadily(1, NM_PAGE_REASON_ROLLBACK);
	done(1, 10);
	(void)interval(50);
	assert_int_equal(interval(50), 1);
	assert_int_equal(verdicts.items[0].kind, NM_VERDICT_NEUTRAL);
}

/* The second batch joins the first and ends later; both are compared with the state before the
 * first. */
TEST(batches_share_a_verdict)
{
	calm(100);
	ask_steadily(1, NM_PAGE_REASON_PAGES);
	ask_steadily(2, NM_PAGE_REASON_REGION);
	done(1, 10);
	assert_int_equal(interval(80), 0);
	assert_int_equal(interval(80), 0);
	assert_int_equal(nm_verifier_open(verifier), 2);
	done(2, 10);
	fresh[0] = 5;
	assert_int_equal(interval(80), 0);
	ask_steadily(3, NM_PAGE_REASON_PAGES);
	done(3, 10);
	ask_steadily(4, NM_PAGE_REASON_PAGES);
	done(4, 0); /* it counts as not made */
	fresh[0] = 40;
	(void)interval(80);
	assert_int_equal(interval(80), 3);
	/* Samples before the last batch has ended count neither as before nor as after. */
	assert_true(fabs(verdicts.items[0].threads[0].local_after - 0.8) < 1e-9);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(verdicts.items[i].together, 3);
		assert_true(fabs(verdicts.items[i].figure - 0.8) < 0.01);
	}
	assert_int_equal(verdicts.items[0].kind, NM_VERDICT_ROLLED_BACK);
	assert_int_equal(verdicts.items[1].kind, NM_VERDICT_ROLLED_BACK);
}

TEST(a_pending_evaluation_expires)
{
	calm(100);
	for (uint64_t id = 1; id <= 4; id++) {
		ask_steadily(id, NM_PAGE_REASON_REGION);
		done(id, 10);
		assert_int_equal(interval(100), 0);
	}
	assert_true(nm_verifier_awaits(verifier, 7, 5, snapshot.interval));
	assert_false(nm_verifier_awaits(verifier, 7, 5, snapshot.interval - 1));
	assert_false(nm_verifier_awaits(verifier, 7, 6, snapshot.interval));
	ask_steadily(5, NM_PAGE_REASON_REGION);
	assert_int_equal(interval(100), 4);
	assert_int_equal(nm_verifier_open(verifier), 1);
}

/* No change of performance is attributed to it, and it delays no other decision. */
TEST(a_batch_without_moves_has_no_verdict)
{
	calm(100);
	ask_steadily(1, NM_PAGE_REASON_PAGES);
	done(1, 0);
	assert_int_equal(nm_verifier_open(verifier), 0);
	for (unsigned i = 0; i < NM_VERDICT_INTERVALS; i++)
		assert_int_equal(interval(10), 0);
	assert_false(nm_verifier_awaits(verifier, 7, 5, snapshot.interval));
}

TEST(exited_processes_are_inconclusive)
{
	calm(100);
	ask_steadily(1, NM_PAGE_REASON_PAGES);
	done(1, 10);
	snapshot.nr_threads = snapshot.nr_processes = 0;
	assert_int_equal(interval(NAN), 1);
	assert_int_equal(verdicts.items[0].kind, NM_VERDICT_INCONCLUSIVE);
}

/* If P is unknown, the local access ratios decide. */
TEST(a_lower_local_access_ratio_is_a_loss)
{
	assert_int_equal(interval(NAN), 0);
	accesses[0] = 90;
	accesses[1] = 10;
	ask_steadily(1, NM_PAGE_REASON_PAGES);
	done(1, 10);
	assert_int_equal(interval(NAN), 0);
	assert_int_equal(interval(NAN), 1); /* 90 % before, 80 % now */
	assert_int_equal(verdicts.items[0].kind, NM_VERDICT_ROLLED_BACK);
	ask_steadily(2, NM_PAGE_REASON_CONTENTION); /* was interleaved, not for locality */
	done(2, 10);
	assert_int_equal(interval(NAN), 0);
	assert_int_equal(interval(NAN), 1);
	assert_int_equal(verdicts.items[0].kind, NM_VERDICT_NEUTRAL);
	config->rules.rollback = false;
	ask_steadily(3, NM_PAGE_REASON_PAGES);
	done(3, 10);
	assert_int_equal(interval(NAN), 0);
	assert_int_equal(interval(NAN), 1);
	assert_int_equal(verdicts.items[0].kind, NM_VERDICT_NEUTRAL);
}

/* The effect of a move of threads is not attributed to the pages. */
TEST(threads_that_move_meanwhile_make_it_inconclusive)
{
	calm(100);
	ask_steadily(1, NM_PAGE_REASON_PAGES);
	done(1, 10);
	nm_verifier_disturb(verifier, 8);
	nm_verifier_disturb(verifier, 7);
	(void)interval(50);
	assert_int_equal(interval(50), 1);
	assert_int_equal(verdicts.items[0].kind, NM_VERDICT_INCONCLUSIVE);
	ask_steadily(2, NM_PAGE_REASON_PAGES);
	done(2, 10);
	nm_verifier_disturb(verifier, 8);
	(void)interval(20);
	assert_int_equal(interval(20), 1);
	assert_int_equal(verdicts.items[0].kind, NM_VERDICT_ROLLED_BACK);
}

/* It had just switched to other memory: earlier metrics are no baseline of the move. */
TEST(a_new_phase_is_no_loss)
{
	accesses[0] = 90;
	accesses[1] = 10;
	fresh[0] = 0;
	fresh[1] = 50;
	interval((double)NAN);
	ask(1, NM_PAGE_REASON_PAGES);
	done(1, 10);
	interval((double)NAN);
	assert_int_equal(interval((double)NAN), 1);
	assert_true(verdicts.items[0].threads[0].local_before < 1e-9);
	assert_int_equal(verdicts.items[0].kind, NM_VERDICT_NEUTRAL);
	/* If one interval has too few accesses, those before it count too. */
	threads[0].fresh_samples = (uint32_t)config->rules.min_samples - 1;
	ask(2, NM_PAGE_REASON_PAGES);
	done(2, 10);
	threads[0].fresh_samples = 50;
	interval((double)NAN);
	assert_int_equal(interval((double)NAN), 1);
	assert_true(fabs(verdicts.items[0].threads[0].local_before - 0.9) < 1e-9);
	assert_int_equal(verdicts.items[0].kind, NM_VERDICT_ROLLED_BACK);
}

/* Locality replaces P, but an interleaved range must lose locality. */
TEST(a_spread_range_is_not_judged_by_locality)
{
	snapshot.by_locality = true;
	calm(100);
	ask_steadily(1, NM_PAGE_REASON_CONTENTION);
	done(1, 10);
	(void)interval(50);
	assert_int_equal(interval(50), 1);
	assert_int_equal(verdicts.items[0].kind, NM_VERDICT_NEUTRAL);
	snapshot.by_locality = false;
	calm(100);
	ask_steadily(2, NM_PAGE_REASON_CONTENTION);
	done(2, 10);
	(void)interval(50);
	assert_int_equal(interval(50), 1);
	assert_int_equal(verdicts.items[0].kind, NM_VERDICT_ROLLED_BACK);
}

/* Without P the local access ratio decides: 20 % before, 80 % of dozens after; a ratio of three
 * accesses may be chance. */
TEST(without_performance_a_rise_must_exceed_chance)
{
	static const unsigned samples[] = {50, 50};
	static const double before[] = {100, 3};
	static const enum nm_verdict_kind kinds[] = {NM_VERDICT_IMPROVED, NM_VERDICT_NEUTRAL};
	for (size_t i = 0; i < NM_ARRAY_SIZE(kinds); i++) {
		(void)interval(NAN);
		threads[0].fresh_samples = 0;
		threads[0].access_samples = before[i];
		ask(1 + i, NM_PAGE_REASON_PAGES);
		threads[0].fresh_samples = samples[i] / 2;
		done(1 + i, 10);
		while (interval(NAN) == 0)
			;
		assert_int_equal(verdicts.items[0].kind, kinds[i]);
		assert_true(verdicts.items[0].threads[0].local_after >
			    verdicts.items[0].threads[0].local_before + 0.5);
	}
}

TEST(too_few_samples_are_finally_inconclusive)
{
	(void)interval(NAN);
	threads[0].fresh_samples = 0;
	ask_steadily(1, NM_PAGE_REASON_PAGES);
	done(1, 10);
	for (unsigned i = 1; i < NM_VERDICT_INTERVALS; i++)
		assert_int_equal(interval(NAN), 0);
	assert_int_equal(interval(NAN), 1);
	assert_int_equal(verdicts.items[0].kind, NM_VERDICT_INCONCLUSIVE);
}

RUN_TESTS()
