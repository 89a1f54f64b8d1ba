/* SPDX-License-Identifier: MIT */
/* The feedback of IMAR²: gain, neutral change, rollback, T, postponed verdicts, accumulated
 * losses. */
#define SET_UP set_up
#define TEAR_DOWN tear_down
#include "../support/test.h"

#include "feedback_fixture.h"

/* Noise margins are zero. */
static int set_up(void **state)
{
	(void)state;
	return set_up_with_noise_gate(0);
}

static void move(uint64_t decision, uint32_t pid)
{
	nm_feedback_moved(feedback, snapshot, decision, pid, false);
}

/* An interval at this speed of process 20, a move of it, and an interval at the other speed. */
static enum nm_feedback_outcome after_move(double before, double after)
{
	speed(2, before);
	look();
	move(7, 20);
	speed(2, after);
	return look();
}

static bool near(double value, double expected)
{
	return fabs(value - expected) < 1e-9;
}

TEST(without_a_move_t_stays)
{
	machine->config.general.interval_s = 2;
	look();
	speed(0, 1);
	assert_int_equal(look(), NM_FEEDBACK_NONE);
	speed(0, 1000);
	assert_int_equal(look(), NM_FEEDBACK_NONE);
	assert_true(result.may_propose && result.interval_s == 2);
	assert_true(isnan(result.figure) && isnan(result.before));
	assert_int_equal(result.nr_judgements, 0);
	nm_feedback_free(NULL);
}

TEST(a_gain_halves_t)
{
	machine->config.general.interval_s = 3;
	assert_int_equal(after_move(100, 100.1), NM_FEEDBACK_GAIN);
	assert_true(result.may_propose && result.interval_s == 1.5);
	assert_true(near(result.figure, 1.001));
	assert_true(result.before == 300 && near(result.after, 300.1));
	assert_int_equal(result.nr_judgements, 1);
	assert_int_equal(result.judgements[0].decision, 7);
	assert_int_equal(after_move(100, 101), NM_FEEDBACK_GAIN);
	assert_true(result.interval_s == 1);
}

TEST(a_heavy_loss_is_undone_and_doubles_t)
{
	assert_int_equal(after_move(100, 89.9), NM_FEEDBACK_ROLL_BACK);
	assert_false(result.may_propose);
	assert_true(result.interval_s == 2);
	assert_int_equal(result.judgements[0].decision, 7);
	assert_int_equal(after_move(100, 10), NM_FEEDBACK_ROLL_BACK);
	assert_true(result.interval_s == 4);
	assert_int_equal(after_move(100, 10), NM_FEEDBACK_ROLL_BACK);
	assert_true(result.interval_s == 4);
}

/* A changed interval takes effect at once. */
TEST(a_changed_interval_resets_t)
{
	assert_int_equal(after_move(100, 50), NM_FEEDBACK_ROLL_BACK);
	assert_true(nm_feedback_interval_s(feedback, &machine->config) == 2);
	machine->config.general.interval_s = 3;
	assert_true(nm_feedback_interval_s(feedback, &machine->config) == 3);
	assert_int_equal(after_move(100, 101), NM_FEEDBACK_GAIN);
	assert_true(result.interval_s == 1.5);
}

/* The recovery would halve T and cancel the doubling. */
TEST(the_interval_after_a_rollback_has_no_verdict)
{
	assert_int_equal(after_move(100, 50), NM_FEEDBACK_ROLL_BACK);
	nm_feedback_moved(feedback, snapshot, 8, 20, true);
	speed(2, 100);
	assert_int_equal(look(), NM_FEEDBACK_NONE);
	assert_true(result.may_propose && result.interval_s == 2);
}

TEST(a_swap_is_one_decision)
{
	look();
	move(7, 10);
	move(7, 20);
	move(8, 10);
	look();
	assert_int_equal(result.nr_judgements, 2);
	assert_int_equal(result.judgements[0].decision, 7);
	assert_int_equal(result.judgements[1].decision, 8);
}

/* ---- scope of the performance ---- */

TEST(other_processes_do_not_affect_the_verdict)
{
	look();
	move(7, 20);
	speed(0, 1);
	speed(2, 101);
	assert_int_equal(look(), NM_FEEDBACK_GAIN);
	look();
	move(8, 20);
	speed(0, 1000);
	speed(2, 50);
	assert_int_equal(look(), NM_FEEDBACK_ROLL_BACK);
}

TEST(global_is_the_sum_of_all)
{
	machine->config.rules.feedback = NM_FEEDBACK_GLOBAL;
	assert_int_equal(after_move(100, 71), NM_FEEDBACK_KEEP);
	assert_int_equal(after_move(100, 69), NM_FEEDBACK_ROLL_BACK);
	assert_true(near(result.figure, 269.0 / 300));
	assert_int_equal(after_move(100, 100.1), NM_FEEDBACK_GAIN);
	speed(2, 100);
	look();
	move(9, 20);
	speed(2, 101);
	speed(0, 10);
	assert_int_equal(look(), NM_FEEDBACK_ROLL_BACK);
}

TEST(moved_is_a_geometric_mean)
{
	look();
	move(7, 10);
	move(7, 20);
	speed(0, 300);
	speed(2, 51);
	assert_int_equal(look(), NM_FEEDBACK_GAIN);
	assert_true(near(result.figure, sqrt(2 * 0.51)));
	assert_true(result.before == 300 && near(result.after, 451));
}

TEST(only_threads_measured_twice_count)
{
	look();
	move(7, 10);
	machine->figures[1].recent_latency_samples = 1;
	speed(0, 100);
	assert_int_equal(look(), NM_FEEDBACK_KEEP);
	assert_true(result.figure == 1);
	assert_true(result.before == 200);
	look();
	move(8, 10);
	machine->members[0].start_ticks++;
	speed(0, 1);
	assert_int_equal(look(), NM_FEEDBACK_KEEP);
	assert_true(isnan(result.figure));
	assert_true(result.before == 100);
}

TEST(no_common_thread_is_kept)
{
	look();
	move(7, 20);
	for (size_t i = 0; i < 3; i++)
		machine->figures[i].recent_latency_samples = 1;
	assert_int_equal(look(), NM_FEEDBACK_KEEP);
	assert_true(isnan(result.figure) && isnan(result.before) && isnan(result.after));
	assert_true(result.may_propose);
}

TEST(earlier_events_are_dropped)
{
	assert_int_equal(after_move(0, 50), NM_FEEDBACK_KEEP);
	machine->config.rules.feedback = NM_FEEDBACK_GLOBAL;
	speed(0, 0);
	speed(1, 0);
	assert_int_equal(after_move(0, 50), NM_FEEDBACK_KEEP);
}

TEST(a_different_metric_cannot_be_compared)
{
	look();
	move(7, 20);
	machine->config.threads.performance = NM_PERFORMANCE_LATENCY;
	assert_int_equal(look(), NM_FEEDBACK_KEEP);
	assert_true(isnan(result.figure));
	look();
	move(8, 20);
	machine->kinds = 0;
	for (size_t i = 0; i < 3; i++) {
		machine->figures[i].latency_samples = 0;
		machine->figures[i].recent_latency_samples = 0;
	}
	assert_int_equal(look(), NM_FEEDBACK_KEEP);
	assert_true(isnan(result.figure));
}

/* ---- postponing ---- */

static void add_threads(unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		machine_thread(machine, 30, 4, 1);
		speed(machine->count - 1, 100);
	}
}

TEST(a_changed_thread_count_postpones_the_verdict_twice)
{
	machine->config.rules.paper = false;
	look();
	move(7, 20);
	speed(2, 50);
	add_threads(1);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(look(), NM_FEEDBACK_POSTPONED);
		assert_false(result.may_propose);
		assert_int_equal(result.nr_judgements, 0);
		assert_true(result.interval_s == 1);
	}
	assert_int_equal(look(), NM_FEEDBACK_ROLL_BACK);
	assert_true(near(result.figure, 0.5));
	assert_int_equal(result.judgements[0].decision, 7);
	assert_int_equal(look(), NM_FEEDBACK_NONE);
}

TEST(a_quarter_is_within_the_limit)
{
	machine->config.rules.paper = false;
	add_threads(1);
	look();
	move(7, 20);
	add_threads(1);
	assert_int_equal(look(), NM_FEEDBACK_KEEP);
	look();
	move(8, 20);
	machine->figures[4].run_share = 0;
	assert_int_equal(look(), NM_FEEDBACK_KEEP);
	look();
	move(9, 20);
	machine->figures[3].run_share = 0;
	machine->figures[0].run_share = 0;
	assert_int_equal(look(), NM_FEEDBACK_POSTPONED);
	machine->figures[0].run_share = 1;
	assert_int_equal(look(), NM_FEEDBACK_KEEP);
}

TEST(the_paper_never_postpones)
{
	look();
	move(7, 20);
	add_threads(9);
	assert_int_equal(look(), NM_FEEDBACK_KEEP);
}

/* ---- small losses ---- */

TEST(small_losses_multiply)
{
	machine->config.rules.paper = false;
	assert_int_equal(after_move(100, 96), NM_FEEDBACK_KEEP);
	assert_true(near(result.losses, 0.96));
	assert_int_equal(after_move(100, 96), NM_FEEDBACK_KEEP);
	assert_int_equal(after_move(100, 96), NM_FEEDBACK_ROLL_BACK);
	assert_true(near(result.losses, 0.96 * 0.96 * 0.96));
	/* The third move is rolled back and no longer counts; the next loss exceeds the limit
	 * again. */
	assert_int_equal(after_move(100, 99), NM_FEEDBACK_KEEP);
	assert_int_equal(after_move(100, 96), NM_FEEDBACK_ROLL_BACK);
}

TEST(a_gain_forgives_losses)
{
	machine->config.rules.paper = false;
	after_move(100, 92);
	assert_int_equal(after_move(100, 101), NM_FEEDBACK_GAIN);
	assert_int_equal(after_move(100, 92), NM_FEEDBACK_KEEP);
	assert_true(near(result.losses, 0.92));
	assert_int_equal(after_move(100, 92), NM_FEEDBACK_ROLL_BACK);
}

TEST(the_paper_keeps_repeated_losses)
{
	for (int i = 0; i < 20; i++)
		assert_int_equal(after_move(100, 91), NM_FEEDBACK_KEEP);
}

/* ---- several tenants ---- */

/* A thread of processes 10 and 20 each was moved by decisions 7 and 8; then the processes have
 * these speeds. */
static enum nm_feedback_outcome after_two_moves(double first, double second)
{
	speed(0, 100);
	speed(2, 100);
	look();
	move(7, 10);
	move(8, 20);
	speed(0, first);
	speed(2, second);
	return look();
}

static bool rolls_back(size_t judgement)
{
	return nm_change_kind(&result.judgements[judgement].change) == NM_VERDICT_ROLLED_BACK;
}

TEST(losses_are_attributed_to_their_tenant)
{
	assert_int_equal(after_two_moves(10, 101), NM_FEEDBACK_ROLL_BACK);
	assert_int_equal(result.nr_judgements, 2);
	assert_true(rolls_back(0) && near(result.judgements[0].figure, 0.55));
	assert_false(rolls_back(1));
	assert_true(near(result.judgements[1].figure, 1.01));
	assert_true(result.interval_s == 2 && !result.may_propose);
}

/* A gain of another process does not hide it. */
TEST(a_gain_of_one_tenant_does_not_hide_a_loss)
{
	assert_int_equal(after_two_moves(900, 60), NM_FEEDBACK_ROLL_BACK);
	assert_false(rolls_back(0));
	assert_true(rolls_back(1));
	machine->config.rules.feedback = NM_FEEDBACK_GLOBAL;
	assert_int_equal(after_two_moves(900, 60), NM_FEEDBACK_GAIN);
	assert_false(rolls_back(1));
	assert_int_equal(after_two_moves(10, 100), NM_FEEDBACK_ROLL_BACK);
	assert_true(rolls_back(0) && rolls_back(1));
}

TEST(small_losses_are_counted_per_tenant)
{
	machine->config.rules.paper = false;
	for (int i = 0; i < 2; i++)
		assert_int_equal(after_two_moves(92, 100), NM_FEEDBACK_KEEP);
	assert_int_equal(after_two_moves(80, 99), NM_FEEDBACK_ROLL_BACK);
	assert_true(rolls_back(0) && !rolls_back(1));
	assert_true(near(result.judgements[0].figure, 0.9));
	assert_true(near(result.judgements[0].losses, 0.96 * 0.96 * 0.9));
	assert_true(near(result.judgements[1].losses, 0.99));
}

TEST(an_idle_tenants_losses_are_remembered)
{
	machine->config.rules.paper = false;
	assert_int_equal(after_move(100, 92), NM_FEEDBACK_KEEP);
	machine->figures[2].run_share = 0;
	look();
	look();
	machine->figures[2].run_share = 0.9;
	look();
	assert_int_equal(after_move(100, 92), NM_FEEDBACK_ROLL_BACK);
	assert_true(near(result.losses, 0.92 * 0.92));
}

TEST(a_reused_number_begins_without_losses)
{
	machine->config.rules.paper = false;
	assert_int_equal(after_move(100, 92), NM_FEEDBACK_KEEP);
	assert_int_equal(machine->processes[1].pid, 20);
	machine->processes[1].start_ticks++;
	look();
	assert_int_equal(after_move(100, 92), NM_FEEDBACK_KEEP);
	assert_true(near(result.losses, 0.92));
}

TEST(a_new_program_is_not_compared_with_its_predecessor)
{
	speed(2, 100);
	look();
	move(7, 20);
	machine->members[2].adopted_ns++;
	speed(2, 10);
	assert_int_equal(look(), NM_FEEDBACK_KEEP);
	assert_true(isnan(result.figure));
}

RUN_TESTS()
