/* SPDX-License-Identifier: MIT */
/* The noise gate: changes of a process without a move are no verdict. */
#define SET_UP set_up
#define TEAR_DOWN tear_down
#include "../support/test.h"

#include "feedback_words.h"
#include "numa-migrd/base.h"

static int set_up(void **state)
{
	(void)state;
	return set_up_with_noise_gate(2);
}

/* With 32 changes: 2 * 1.4826 * ln 1.1 * 1.25 = 0.353. */
SCRIPT(changes_within_the_noise_are_kept,
       "tremble 1.1 42; after 110 80 = keep; noise in 0.353267..0.353268; keep n = noise",
       "noise_of 0 = n; after 100 140 = keep; after 100 145 = gain; after 100 69 = roll-back")

/* With up to 8 changes it is twice as wide. */
SCRIPT(few_changes_widen_the_noise_estimate,
       "tremble 1.1 7; after 110 64 = keep; noise in 0.565227..0.565228")

SCRIPT(without_the_gate_noise_counts,
       "set noise_gate = 0; tremble 1.1 8; after 110 85 = roll-back; noise = 0",
       "after 100 101 = gain")

SCRIPT(a_steady_machine_is_judged_sharply,
       "tremble 1 8; after 100 100.5 = gain; after 100 89 = roll-back")

/* Then the spread is assumed to be 5 %. */
SCRIPT(two_changes_give_no_noise_estimate,
       "tremble 1.01 3; move 7 20; speed 2 109; look = keep; noise = 0.1; look = none; move 8 20",
       "speed 2 141.7; look = gain")

SCRIPT(a_phase_change_does_not_blur_the_record,
       "tremble 1 4; speed 2 900; look = none; look = none; look = none; move 7 20; speed 2 700",
       "look = roll-back")

/* Changes caused by our own moves are not noise. */
SCRIPT(intervals_with_moves_do_not_count_as_noise, "tremble 1 6",
       "each 5: move 7 20; speed 2 1000; look != none; noise = 0; move 8 20; speed 2 100; "
       "look != postponed; noise = 0")

SCRIPT(the_noise_of_another_metric_is_dropped,
       "tremble 1.5 40; set performance = intensity; look = none; tremble 1 4",
       "after 100 80 = roll-back; noise = 0")

SCRIPT(global_noise_is_of_the_sum,
       "set scope = global; tremble 2 43; after 100 40 = keep; noise in 1.06629..1.06630")

SCRIPT(noise_does_not_accumulate_to_losses, "set paper = 0; tremble 1.04 40",
       "each 2: tremble 1.04 8; move 7 20; speed 2 97; look = keep; tremble 1.04 8; move 7 20; "
       "speed 2 103; look = keep")

/* ---- many seeds ---- */

enum { WHITE, WALK, BURSTS, KINDS };

/* Approximately normal: the sum of twelve uniform draws. */
static double normal(struct nm_rng *dice)
{
	double sum = -6;
	for (int i = 0; i < 12; i++)
		sum += nm_rng_unit(dice);
	return sum;
}

/* The next P of a process that is not moved: noise around a level, a mean-reverting random walk, or
 * noise with occasional bursts. */
struct course {
	struct nm_rng dice;
	int kind;
	double sigma, level, log;
};

static double next_of(struct course *course)
{
	double noise = course->sigma * normal(&course->dice);
	if (course->kind == WALK)
		return course->level * exp(course->log = 0.98 * course->log + noise);
	if (course->kind == BURSTS && nm_rng_below(&course->dice, 10) == 0)
		noise *= 3;
	return course->level * exp(noise);
}

struct tally {
	unsigned verdicts, gains, undone;
};

/* Every fifth interval has a move that changes P by this factor and is rolled back before the
 * next. */
static void live(struct course *course, int intervals, double factor, struct tally *tally)
{
	for (int i = 0; i < intervals; i++) {
		bool moved = i >= 10 && i % 5 == 0;
		if (moved)
			move(7 + (uint64_t)i, 20);
		speed(2, next_of(course) * (moved ? factor : 1));
		enum nm_feedback_outcome outcome = look();
		tally->verdicts += moved;
		tally->gains += outcome == NM_FEEDBACK_GAIN;
		tally->undone += outcome == NM_FEEDBACK_ROLL_BACK;
		/* The rollback is our own change too. */
		if (moved)
			nm_feedback_moved(feedback, snapshot, 1, 20, true);
	}
}

static struct tally live_many(int kind, double sigma, double factor)
{
	struct tally tally = {0};
	for (uint64_t seed = 1; seed <= 100; seed++) {
		struct course course = {.kind = kind, .sigma = sigma, .level = 100};
		nm_rng_seed(&course.dice, seed);
		nm_feedback_free(feedback);
		feedback = NULL;
		feedback = nm_feedback_new();
		live(&course, 150, factor, &tally);
	}
	return tally;
}

/* The shipped rules, with moves without effect: of 2,800 verdicts each, almost none is a gain or
 * loss. */
TEST(noise_does_not_accelerate_or_roll_back)
{
	const double sigmas[] = {0.01, 0.03, 0.1};
	static const char *const names[] = {"white noise", "random walk", "bursts"};
	machine->config.rules.noise_gate = 3;
	machine->config.rules.paper = false;
	for (int kind = 0; kind < KINDS; kind++)
		for (size_t i = 0; i < NM_ARRAY_SIZE(sigmas); i++) {
			struct tally tally = live_many(kind, sigmas[i], 1);
			print_message("%s of %g %%: of %u verdicts %u gains, %u undone\n",
				      names[kind], 100 * sigmas[i], tally.verdicts, tally.gains,
				      tally.undone);
			assert_true(tally.gains * 100 <= tally.verdicts);
			assert_true(tally.undone * 100 <= tally.verdicts);
		}
}

/* Shows that the test above can fail: with the published rules every other verdict is a gain. */
TEST(without_the_gate_noise_accelerates_and_rolls_back)
{
	machine->config.rules.noise_gate = 0;
	struct tally tally = live_many(WHITE, 0.1, 1);
	assert_true(tally.gains * 3 > tally.verdicts);
	assert_true(tally.undone * 5 > tally.verdicts);
}

TEST(a_real_fall_is_found)
{
	machine->config.rules.noise_gate = 3;
	for (int kind = 0; kind < KINDS; kind++) {
		struct tally tally = live_many(kind, 0.005, 0.88);
		print_message("a fall by 12 %%: %u of %u found\n", tally.undone, tally.verdicts);
		assert_true(tally.undone * 100 >= tally.verdicts * 95);
		tally = live_many(kind, 0.03, 0.6);
		assert_true(tally.undone * 100 >= tally.verdicts * 95);
		tally = live_many(kind, 0.005, 1.1);
		assert_true(tally.gains * 100 >= tally.verdicts * 95);
	}
}

/* An improvement must exceed the noise, and at least 1 %. */
TEST(a_gain_must_exceed_the_noise)
{
	static const struct {
		double gate, after;
		bool gain;
	} cases[] = {{2, 104, false}, {2, 140, true}, {0, 100.5, false}, {0, 102, true}};
	for (size_t i = 0; i < NM_ARRAY_SIZE(cases); i++) {
		machine->config.rules.noise_gate = cases[i].gate;
		(void)after_move(100, cases[i].after);
		assert_int_equal(result.nr_judgements, 1);
		assert_int_equal(nm_change_kind(&result.judgements[0].change),
				 cases[i].gain ? NM_VERDICT_IMPROVED : NM_VERDICT_NEUTRAL);
		speed(2, 100);
		(void)look();
	}
}

RUN_TESTS()
