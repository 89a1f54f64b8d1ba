/* SPDX-License-Identifier: MIT */
/* Verdicts on page moves: batches that share an evaluation, its time, and its criteria. */
#define SET_UP set_up
#define TEAR_DOWN tear_down
#include "../support/test.h"

#include <math.h>
#include <stdint.h>

#include "../support/machine.h"
#define SCRIPT_STEP() (void)0
#include "../support/script.h"
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
					     .stats.main_node = 0,
					     .stats.accesses = accesses,
					     .stats.fresh = fresh,
					     .stats.access_total = 100,
					     .stats.fresh_samples = 50,
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

/* ---- words ---- */

static enum nm_page_reason reason_of(const struct step *step)
{
	return step_has(step, "region")       ? NM_PAGE_REASON_REGION
	       : step_has(step, "rollback")   ? NM_PAGE_REASON_ROLLBACK
	       : step_has(step, "contention") ? NM_PAGE_REASON_CONTENTION
					       : NM_PAGE_REASON_PAGES;
}

/* ask 1 pages: submits decision 1 while accesses are as they were; ask_now 1 pages: as they are */
WORD(ask)
{
	const uint32_t later[] = {fresh[0], fresh[1]};
	fresh[0] = (uint32_t)(accesses[0] / 2);
	fresh[1] = (uint32_t)(accesses[1] / 2);
	ask(U(0), reason_of(step));
	fresh[0] = later[0];
	fresh[1] = later[1];
}

WORD(done)
{
	const struct nm_page_results results = {.moved = U(1), .failed = 10 - U(1)};
	nm_verifier_done(verifier, U(0), &results, snapshot.interval);
}

/* accesses 90 10: before; now 40 10: in this interval */
ACTION(accesses, accesses[0] = N(0), accesses[1] = N(1))
ACTION(now, fresh[0] = U(0), fresh[1] = U(1))
ACTION(processes, snapshot.nr_threads = snapshot.nr_processes = U(0))
ACTION(disturb, nm_verifier_disturb(verifier, U(0)))
ACTION(move_threads_of, nm_feedback_disturb(feedback, U(0)))
ACTION(calm, calm(N(0)))
ACTION(ask_now, ask(U(0), reason_of(step)))
/* p 80 = 1: the performance of each thread in the next interval, and the number of verdicts */
QUANTITY(p, interval(N(0)))
QUANTITY(verdict, verdicts.items[U(0)].kind)
NAMES(verdict, {"improved", NM_VERDICT_IMPROVED}, {"neutral", NM_VERDICT_NEUTRAL},
      {"rolled-back", NM_VERDICT_ROLLED_BACK}, {"inconclusive", NM_VERDICT_INCONCLUSIVE})
QUANTITY(decision, verdicts.items[U(0)].decision)
QUANTITY(moved, verdicts.items[U(0)].results.moved)
QUANTITY(intervals, verdicts.items[U(0)].intervals)
QUANTITY(together, verdicts.items[U(0)].together)
QUANTITY(figure, verdicts.items[U(0)].figure)
QUANTITY(noise, verdicts.items[U(0)].noise)
QUANTITY(no_gain, verdicts.items[U(0)].no_gain)
QUANTITY(local_before, verdicts.items[U(0)].threads[0].local_before)
QUANTITY(local_after, verdicts.items[U(0)].threads[0].local_after)
QUANTITY(samples_after, verdicts.items[U(0)].threads[0].samples_after)
QUANTITY(open, nm_verifier_open(verifier))
QUANTITY(awaits, nm_verifier_awaits(verifier, 7, U(0), snapshot.interval))
QUANTITY(awaits_earlier, nm_verifier_awaits(verifier, 7, U(0), snapshot.interval - 1))
KNOB(start_ticks, processes[0].start_ticks)
KNOB(rollback_pages, config->rules.rollback_pages)
KNOB(rollback, config->rules.rollback)
KNOB(fresh_samples, threads[0].stats.fresh_samples)
KNOB(access_samples, threads[0].stats.access_samples)
KNOB(by_locality, snapshot.by_locality)

/* Ten pages have moved. */
#define MOVED "calm 100; ask 1 pages; done 1 10; "
#define RANGE_MOVED "calm 100; ask 1 region; done 1 10; "

/* ---- verdicts ---- */

/* A new process with the same number does not affect the evaluation of the former one. */
SCRIPT(a_reused_number_is_another_process,
       MOVED "set start_ticks = 6; p 200 = 1; verdict 0 = inconclusive")

/* In the first interval after the move caches fill. */
SCRIPT(a_gain_has_improved,
       "calm 100; ask 1 pages; p 100 = 0; done 1 10; p 180 = 0; p 200 = 1; verdict 0 = improved",
       "decision 0 = 1; moved 0 = 10; intervals 0 = 3; together 0 = 1; figure 0 in 1.99..2.01",
       "local_before 0 = 0.2; local_after 0 = 0.8; samples_after 0 = 100; open = 0")

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

SCRIPT(a_loss_is_undone, RANGE_MOVED "p 80 = 0; p 80 = 1; verdict 0 = rolled-back")

SCRIPT(unremembered_moves_are_not_rolled_back,
       "set rollback_pages = 0; " RANGE_MOVED "p 50 = 0; p 50 = 1; verdict 0 = neutral")

SCRIPT(delta_g_is_the_limit, RANGE_MOVED "p 91 = 0; p 91 = 1; verdict 0 = neutral")

/* Normal variation of P is inconclusive. */
SCRIPT(noise_is_not_a_loss, "each 10: p 100 = 0; p 160 = 0", "ask 1 pages; done 1 10",
       "p 100 = 0; p 100 = 1; verdict 0 = neutral; figure 0 < 0.9")

/* P varies by more than the gain, but the accesses have become local. */
SCRIPT(more_local_accesses_are_a_gain_within_noise, "each 10: p 100 = 0; p 160 = 0",
       "p 100 = 0; ask 1 pages; done 1 10; p 105 = 0; p 105 = 1; verdict 0 = improved",
       "keep noise = noise 0; figure 0 < noise+1")

/* 80 % before and after: of 25 accesses this may be chance, of 2,500 it is not. A rollback is not
 * meant to gain. At last it was 90 %, so that something else has changed. */
#define SEEN(samples, id, before, reason)                                                          \
	"set fresh_samples = " samples "; now " before "; ask_now " id " " reason "; now 40 10; "  \
	"done " id " 10; p 100 = 0; p 100 = 1; verdict 0 = neutral; no_gain 0 = "

SCRIPT(enough_accesses_show_the_lack_of_a_gain, "calm 100; " SEEN("25", "1", "40 10", "pages") "0",
       SEEN("2500", "2", "40 10", "pages") "1", SEEN("2500", "3", "40 10", "rollback") "0",
       SEEN("2500", "4", "45 5", "pages") "0")

/* All processes lose, and only the pages of one moved, whose accesses improved; then also the
 * threads of another one, so that too few were left alone. */
SCRIPT(a_loss_of_all_is_not_that_of_a_move,
       "processes 4; " MOVED "p 50 = 0; p 50 = 1; verdict 0 = improved; figure 0 in 0.99..1.01",
       "ask 2 pages; done 2 10; move_threads_of 8; p 25 = 0; p 25 = 1; verdict 0 = rolled-back")

SCRIPT(a_rollback_is_not_undone,
       "calm 100; ask 1 rollback; done 1 10; p 50 = 0; p 50 = 1; verdict 0 = neutral")

/* The second batch joins the first and ends later; both are compared with the state before the
 * first. One without moves counts as not made. Samples before the last batch has ended count
 * neither as before nor as after. */
SCRIPT(batches_share_a_verdict,
       "calm 100; ask 1 pages; ask 2 region; done 1 10; p 80 = 0; p 80 = 0; open = 2; done 2 10",
       "now 5 10; p 80 = 0; ask 3 pages; done 3 10; ask 4 pages; done 4 0; now 40 10; p 80 = 0",
       "p 80 = 3; local_after 0 = 0.8; together 0 = 3; together 1 = 3; together 2 = 3",
       "figure 0 in 0.79..0.81; figure 1 in 0.79..0.81; figure 2 in 0.79..0.81",
       "verdict 0 = rolled-back; verdict 1 = rolled-back")

SCRIPT(a_pending_evaluation_expires,
       "calm 100; ask 1 region; done 1 10; p 100 = 0; ask 2 region; done 2 10; p 100 = 0",
       "ask 3 region; done 3 10; p 100 = 0; ask 4 region; done 4 10; p 100 = 0; awaits 5 = 1",
       "awaits_earlier 5 = 0; awaits 6 = 0; ask 5 region; p 100 = 4; open = 1")

/* No change of performance is attributed to it, and it delays no other decision. */
SCRIPT(a_batch_without_moves_has_no_verdict, "calm 100; ask 1 pages; done 1 0; open = 0",
       "each 10: p 10 = 0", "awaits 5 = 0")

SCRIPT(exited_processes_are_inconclusive, MOVED "processes 0; p nan = 1; verdict 0 = inconclusive")

/* If P is unknown, the local access ratios decide: 90 % before, 80 % now. Interleaving is not for
 * locality. */
SCRIPT(a_lower_local_access_ratio_is_a_loss,
       "p nan = 0; accesses 90 10; ask 1 pages; done 1 10; p nan = 0; p nan = 1",
       "verdict 0 = rolled-back; ask 2 contention; done 2 10; p nan = 0; p nan = 1",
       "verdict 0 = neutral; set rollback = 0; ask 3 pages; done 3 10; p nan = 0; p nan = 1",
       "verdict 0 = neutral")

/* The effect of a move of threads is not attributed to the pages. */
SCRIPT(threads_that_move_meanwhile_make_it_inconclusive,
       MOVED "disturb 8; disturb 7; p 50 = 0; p 50 = 1; verdict 0 = inconclusive; ask 2 pages",
       "done 2 10; disturb 8; p 20 = 0; p 20 = 1; verdict 0 = rolled-back")

/* It had just switched to other memory: earlier metrics are no baseline of the move. If one
 * interval has too few accesses, those before it count too. */
SCRIPT(a_new_phase_is_no_loss,
       "accesses 90 10; now 0 50; p nan = 0; ask_now 1 pages; done 1 10; p nan = 0; p nan = 1",
       "local_before 0 < 1e-9; verdict 0 = neutral; set fresh_samples = 9; ask_now 2 pages",
       "done 2 10; set fresh_samples = 50; p nan = 0; p nan = 1; local_before 0 = 0.9",
       "verdict 0 = rolled-back")

/* Locality replaces P, but an interleaved range must lose locality. */
SCRIPT(a_spread_range_is_not_judged_by_locality,
       "set by_locality = 1; calm 100; ask 1 contention; done 1 10; p 50 = 0; p 50 = 1",
       "verdict 0 = neutral; set by_locality = 0; calm 100; ask 2 contention; done 2 10; p 50 = 0",
       "p 50 = 1; verdict 0 = rolled-back")

/* Without P the local access ratio decides: 20 % before, 80 % of dozens after; a ratio of three
 * accesses may be chance. */
#define RISE(samples, id)                                                                          \
	"p nan = 0; set fresh_samples = 0; set access_samples = " samples "; ask_now " id          \
	" pages; set fresh_samples = 25; done " id " 10; until p nan > 0 within 20; "              \
	"keep before = local_before 0; local_after 0 > before+0.5; verdict 0 = "

SCRIPT(without_performance_a_rise_must_exceed_chance, RISE("100", "1") "improved",
       RISE("3", "2") "neutral")

SCRIPT(too_few_samples_are_finally_inconclusive,
       "p nan = 0; set fresh_samples = 0; ask 1 pages; done 1 10", "each 9: p nan = 0",
       "p nan = 1; verdict 0 = inconclusive")

RUN_TESTS()
