/* SPDX-License-Identifier: MIT */
/* The feedback of IMAR²: gain, neutral change, rollback, T, postponed verdicts, accumulated
 * losses. */
#define SET_UP set_up
#define TEAR_DOWN tear_down
#include "../support/test.h"

#include "feedback_words.h"

/* Noise margins are zero. */
static int set_up(void **state)
{
	(void)state;
	return set_up_with_noise_gate(0);
}

ACTION(free_nothing, nm_feedback_free(NULL))

SCRIPT(without_a_move_t_stays,
       "set interval_s = 2; look = none; speed 0 1; look = none; speed 0 1000; look = none",
       "may_propose = 1; t = 2; figure = nan; before = nan; judgements = 0; free_nothing")

SCRIPT(a_gain_halves_t,
       "set interval_s = 3; after 100 100.1 = gain; may_propose = 1; t = 1.5; figure = 1.001",
       "before = 300; after_sum = 300.1; judgements = 1; decision 0 = 7; after 100 101 = gain",
       "t = 1")

SCRIPT(a_heavy_loss_is_undone_and_doubles_t,
       "after 100 89.9 = roll-back; may_propose = 0; t = 2; decision 0 = 7",
       "after 100 10 = roll-back; t = 4; after 100 10 = roll-back; t = 4")

/* A changed interval takes effect at once. */
SCRIPT(a_changed_interval_resets_t,
       "after 100 50 = roll-back; next_t = 2; set interval_s = 3; next_t = 3; after 100 101 = gain",
       "t = 1.5")

ACTION(roll_back, nm_feedback_moved(feedback, snapshot, U(0), U(1), true))

/* The recovery would halve T and cancel the doubling. */
SCRIPT(the_interval_after_a_rollback_has_no_verdict,
       "after 100 50 = roll-back; roll_back 8 20; speed 2 100; look = none; may_propose = 1; t = 2")

SCRIPT(a_swap_is_one_decision,
       "look = none; move 7 10; move 7 20; move 8 10; look = keep; judgements = 2; decision 0 = 7",
       "decision 1 = 8")

/* ---- scope of the performance ---- */

SCRIPT(other_processes_do_not_affect_the_verdict,
       "look = none; move 7 20; speed 0 1; speed 2 101; look = gain; look = none; move 8 20",
       "speed 0 1000; speed 2 50; look = roll-back")

SCRIPT(global_is_the_sum_of_all,
       "set scope = global; after 100 71 = keep; after 100 69 = roll-back",
       "figure in 0.896666..0.896667; after 100 100.1 = gain; speed 2 100; look = none; move 9 20",
       "speed 2 101; speed 0 10; look = roll-back")

SCRIPT(moved_is_a_geometric_mean,
       "look = none; move 7 10; move 7 20; speed 0 300; speed 2 51; look = gain",
       "figure in 1.0099504..1.0099505; before = 300; after_sum = 451")

SCRIPT(only_threads_measured_twice_count,
       "look = none; move 7 10; set recent_samples 1 = 1; speed 0 100; look = keep; figure = 1",
       "before = 200; look = none; move 8 10; reuse_thread 0; speed 0 1; look = keep; figure = nan",
       "before = 100")

SCRIPT(no_common_thread_is_kept,
       "look = none; move 7 20; set recent_samples 0 = 1; set recent_samples 1 = 1",
       "set recent_samples 2 = 1; look = keep; figure = nan; before = nan; after_sum = nan",
       "may_propose = 1")

SCRIPT(earlier_events_are_dropped,
       "after 0 50 = keep; set scope = global; speed 0 0; speed 1 0; after 0 50 = keep")

#define NO_LATENCY(thread) "set latency_samples " thread " = 0; set recent_samples " thread " = 0; "

SCRIPT(a_different_metric_cannot_be_compared,
       "look = none; move 7 20; set performance = latency; look = keep; figure = nan; look = none",
       "move 8 20; set sampled_kinds = 0; " NO_LATENCY("0") NO_LATENCY("1") NO_LATENCY("2"),
       "look = keep; figure = nan")

/* ---- postponing ---- */

#define POSTPONED "look = postponed; may_propose = 0; judgements = 0; t = 1; "

SCRIPT(a_changed_thread_count_postpones_the_verdict_twice,
       "set paper = 0; look = none; move 7 20; speed 2 50; add_threads 1; " POSTPONED POSTPONED,
       "look = roll-back; figure = 0.5; decision 0 = 7; look = none")

SCRIPT(a_quarter_is_within_the_limit,
       "set paper = 0; add_threads 1; look = none; move 7 20; add_threads 1; look = keep",
       "look = none; move 8 20; set run_share 4 = 0; look = keep; look = none; move 9 20",
       "set run_share 3 = 0; set run_share 0 = 0; look = postponed; set run_share 0 = 1",
       "look = keep")

SCRIPT(the_paper_never_postpones, "look = none; move 7 20; add_threads 9; look = keep")

/* ---- small losses ---- */

/* The third move is rolled back and no longer counts; the next loss exceeds the limit again. */
SCRIPT(small_losses_multiply,
       "set paper = 0; after 100 96 = keep; losses = 0.96; after 100 96 = keep",
       "after 100 96 = roll-back; losses = 0.884736; after 100 99 = keep; after 100 96 = roll-back")

SCRIPT(a_gain_forgives_losses,
       "set paper = 0; after 100 92 = keep; after 100 101 = gain; after 100 92 = keep",
       "losses = 0.92; after 100 92 = roll-back")

SCRIPT(the_paper_keeps_repeated_losses, "each 20: after 100 91 = keep")

/* ---- several tenants ---- */

SCRIPT(losses_are_attributed_to_their_tenant,
       "after_two 10 101 = roll-back; judgements = 2; rolls_back 0 = 1; figure_of 0 = 0.55",
       "rolls_back 1 = 0; figure_of 1 = 1.01; t = 2; may_propose = 0")

/* A gain of another process does not hide it. */
SCRIPT(a_gain_of_one_tenant_does_not_hide_a_loss,
       "after_two 900 60 = roll-back; rolls_back 0 = 0; rolls_back 1 = 1; set scope = global",
       "after_two 900 60 = gain; rolls_back 1 = 0; after_two 10 100 = roll-back",
       "rolls_back 0 = 1; rolls_back 1 = 1")

SCRIPT(small_losses_are_counted_per_tenant,
       "set paper = 0; after_two 92 100 = keep; after_two 92 100 = keep",
       "after_two 80 99 = roll-back; rolls_back 0 = 1; rolls_back 1 = 0; figure_of 0 = 0.9",
       "losses_of 0 = 0.82944; losses_of 1 = 0.99")

SCRIPT(an_idle_tenants_losses_are_remembered,
       "set paper = 0; after 100 92 = keep; set run_share 2 = 0; look = none; look = none",
       "set run_share 2 = 0.9; look = none; after 100 92 = roll-back; losses = 0.8464")

SCRIPT(a_reused_number_begins_without_losses,
       "set paper = 0; after 100 92 = keep; reuse_process 1; look = none; after 100 92 = keep",
       "losses = 0.92")

SCRIPT(a_new_program_is_not_compared_with_its_predecessor,
       "speed 2 100; look = none; move 7 20; new_program 2; speed 2 10; look = keep; figure = nan")

RUN_TESTS()
