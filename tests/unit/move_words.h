/* SPDX-License-Identifier: MIT */
/*
 * The words of script.h for the moves of move_fixture.h: a shell (50), its job (process 100 with
 * the threads 100 to 102) and a neighbour (200), on four nodes of two CPUs.
 *
 *	move 101 node2 = 0		the error of a move
 *	narrow 101 node2		one whose affinity stays narrow until the window ends
 *	poll 20; tick; lose; drain	milliseconds; an interval; its records are lost, or read
 *	fork 101 300; pin 300 node1	what programs do; CPUs are all, node1 or 0-5
 *	is 300 all; no_trace		affinities
 */
#ifndef NM_TEST_MOVE_WORDS_H
#define NM_TEST_MOVE_WORDS_H

#include "move_fixture.h"

#include "../support/script.h"

/* The CPUs that the last words name. */
static inline uint64_t cpus_of(const struct step *step)
{
	const char *last = step->word[step->count - 1];
	if (strcmp(last, "all") == 0)
		return ALL;
	if (strncmp(last, "node", 4) == 0)
		return world_node((unsigned)step->number[step->nr_numbers - 1]);
	assert_true(step->nr_numbers >= 2);
	return fake_cpus((unsigned)step->number[step->nr_numbers - 2],
			 (unsigned)step->number[step->nr_numbers - 1]);
}

WORD(is)
{
	if (world_mask(U(0)) != cpus_of(step))
		script_fail(step, "found %#" PRIx64, world_mask(U(0)));
}

WORD(no_trace)
{
	const struct fake_thread *thread = fake_trace(fake);
	if (thread)
		script_fail(step, "found thread %u with %#" PRIx64 ", not %#" PRIx64, thread->tid,
			    thread->mask, thread->own);
}

static inline int move_error(uint32_t tid, unsigned node)
{
	struct nm_receipt receipt = world_move(tid, node);
	return receipt.applied ? 0 : receipt.steps[0].error;
}

/* reports of 10000 children of 101, of which nothing is left */
WORD(report_children)
{
	for (uint32_t i = 0; i < U(1); i++) {
		const struct nm_task_event event = {.kind = NM_TASK_FORK,
						    .pid = 10000 + i,
						    .tid = 10000 + i,
						    .parent_pid = U(0),
						    .parent_tid = U(0),
						    .time_ns = fake->now_ns};
		nm_moves_task_event(world->moves, &event);
	}
}

WORD(process)
{
	fake_process(fake, U(0), 1)->session = U(1);
}

/* fail SET 2 1: calls from the second on fail, one time */
ACTION(fail_set, fake_fail(fake, FAKE_SET, U(0), U(1), EPERM))
ACTION(narrow, world_narrow(U(0), U(1)))
ACTION(poll, world_poll(U(0)))
ACTION(tick, world_tick())
ACTION(drain, world_drain())
ACTION(lose, world_lose_records())
ACTION(sleep_ms, fake_sleep(fake, U(0)))
ACTION(fork, fake_fork(fake, U(0), U(1)))
ACTION(clone, fake_clone(fake, U(0), U(1)))
ACTION(exec, fake_exec(fake, U(0)))
ACTION(exit, fake_exit(fake, U(0)))
ACTION(kill, fake_kill(fake, U(0)))
ACTION(settle, fake_settle(fake_get(fake, U(0))))
ACTION(pin, fake_pin(fake, U(0), cpus_of(step)))
ACTION(cpuset, fake_cpuset(fake, step->word[0], cpus_of(step)))
ACTION(group, fake_move(fake, U(0), step->word[1]))
ACTION(close, nm_moves_free(NM_TAKE(world->moves)))
ACTION(open, world_start())
QUANTITY(move, move_error(U(0), U(1)))
QUANTITY(node, world_node_of(U(0)))
QUANTITY(open_moves, nm_moves_open(world->moves))
QUANTITY(end, nm_moves_end(world->moves))
QUANTITY(arrived, nm_moves_counts(world->moves).arrived)
QUANTITY(missed, nm_moves_counts(world->moves).missed)
QUANTITY(asked, nm_moves_counts(world->moves).asked)
QUANTITY(given_up, nm_moves_counts(world->moves).given_up)
QUANTITY(longest_ns, nm_moves_counts(world->moves).longest_ns)
QUANTITY(barred, nm_moves_bar(world->moves) != NULL)
QUANTITY(reported_missed, world_reported(NM_MOVE_MISSED, U(0)))
QUANTITY(reported_failed, world_reported(NM_MOVE_FAILED, U(0)))
QUANTITY(reported_foreign, world_reported(NM_MOVE_FOREIGN, U(0)))
QUANTITY(sets, fake->calls[FAKE_SET])
QUANTITY(lists, fake->calls[FAKE_LIST])
KNOB(affinity, fake_get(fake, U(0))->mask)
KNOB(own, fake_get(fake, U(0))->own)
KNOB(user, fake_get(fake, U(0))->user)
KNOB(stuck, fake_get(fake, U(0))->stuck)
KNOB(uid, fake_get(fake, U(0))->uid)
KNOB(rss_kb, fake_get(fake, U(0))->rss_kb)
KNOB(ran_ticks, fake_get(fake, U(0))->ran_ticks)
KNOB(processor, fake_get(fake, U(0))->processor)
KNOB(scheduler, fake_get(fake, U(0))->policy)
KNOB(sched_ext, fake->sched_ext)
KNOB(remembers, fake->remembers)

#endif
