/* SPDX-License-Identifier: MIT */
/*
 * The words of script.h for the feedback: process 10 has the threads 0 and 1, process 20 thread 2,
 * each with P = 100.
 *
 *	speed 2 50; move 7 20		of a thread; decision 7 moves process 20
 *	look = keep			an interval, and its outcome
 *	after 100 92 = keep		an interval at this speed of process 20, a move of it, and
 *an interval at the other speed tremble 1.1 42			intervals in which its speed changes
 *by this factor
 */
#ifndef NM_TEST_FEEDBACK_WORDS_H
#define NM_TEST_FEEDBACK_WORDS_H

#include "feedback_fixture.h"

#include "../support/script.h"

static inline void move(uint64_t decision, uint32_t pid)
{
	nm_feedback_moved(feedback, snapshot, decision, pid, false);
}

static inline enum nm_feedback_outcome after_move(double before, double after)
{
	speed(2, before);
	look();
	move(7, 20);
	speed(2, after);
	return look();
}

/* Threads of processes 10 and 20 were moved by decisions 7 and 8; then they have these speeds. */
static inline enum nm_feedback_outcome after_two_moves(double first, double second)
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

static inline bool rolls_back(unsigned judgement)
{
	return nm_change_kind(&result.judgements[judgement].change) == NM_VERDICT_ROLLED_BACK;
}

WORD(tremble)
{
	for (int i = 0; i < (int)N(1); i++) {
		speed(2, i % 2 ? 100 * N(0) : 100);
		look();
	}
}

WORD(add_threads)
{
	for (unsigned i = 0; i < U(0); i++) {
		machine_thread(machine, 30, 4, 1);
		speed(machine->count - 1, 100);
	}
}

#define OUTCOMES                                                                                   \
	{"none", NM_FEEDBACK_NONE}, {"gain", NM_FEEDBACK_GAIN}, {"keep", NM_FEEDBACK_KEEP},        \
		{"roll-back", NM_FEEDBACK_ROLL_BACK},                                              \
	{                                                                                          \
		"postponed", NM_FEEDBACK_POSTPONED                                                 \
	}

ACTION(speed, speed((size_t)N(0), N(1)))
ACTION(move, move(U(0), U(1)))
QUANTITY(look, look())
NAMES(look, OUTCOMES)
QUANTITY(after, after_move(N(0), N(1)))
NAMES(after, OUTCOMES)
QUANTITY(after_two, after_two_moves(N(0), N(1)))
NAMES(after_two, OUTCOMES)
QUANTITY(may_propose, result.may_propose)
QUANTITY(t, result.interval_s)
QUANTITY(figure, result.figure)
QUANTITY(before, result.before)
QUANTITY(after_sum, result.after)
QUANTITY(losses, result.losses)
QUANTITY(noise, result.noise)
QUANTITY(judgements, result.nr_judgements)
QUANTITY(decision, result.judgements[U(0)].decision)
QUANTITY(rolls_back, rolls_back(U(0)))
QUANTITY(figure_of, result.judgements[U(0)].figure)
QUANTITY(losses_of, result.judgements[U(0)].losses)
QUANTITY(noise_of, result.judgements[U(0)].noise)
QUANTITY(next_t, nm_feedback_interval_s(feedback, &machine->config))
KNOB(interval_s, machine->config.general.interval_s)
KNOB(paper, machine->config.rules.paper)
KNOB(noise_gate, machine->config.rules.noise_gate)
KNOB(scope, machine->config.rules.feedback)
NAMES(scope, {"global", NM_FEEDBACK_GLOBAL})
KNOB(performance, machine->config.threads.performance)
NAMES(performance, {"latency", NM_PERFORMANCE_LATENCY}, {"intensity", NM_PERFORMANCE_INTENSITY})
KNOB(run_share, machine->sampled[U(0)].stats.run_share)
KNOB(recent_samples, machine->sampled[U(0)].stats.recent_latency_samples)
KNOB(latency_samples, machine->sampled[U(0)].stats.latency_samples)
KNOB(sampled_kinds, machine->kinds)
ACTION(reuse_thread, machine->managed[U(0)].start_ticks++)
ACTION(reuse_process, machine->processes[U(0)].start_ticks++)
ACTION(new_program, machine->managed[U(0)].adopted_ns++)

#endif
