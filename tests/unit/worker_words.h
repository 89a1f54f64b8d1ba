/* SPDX-License-Identifier: MIT */
/*
 * The words of script.h for a client of workers. Include cmocka.h first.
 *
 *	client; client short		with a deadline that is not missed, or one that is
 *	answers				skipped if this kernel does not answer
 *	where loop self = 0		asks for the loop, or the mover, about this process, the
 *other one, or nobody; "node" is the answer
 *	stop				the next answer of the last worker never arrives, until
 *	continue_it; kill_it		it continues or is killed
 */
#ifndef NM_TEST_WORKER_WORDS_H
#define NM_TEST_WORKER_WORDS_H

#include "worker_fixture.h"

#include "../support/script.h"

static struct fixture *f;
static int asked_node;
static pid_t stopped;

static inline int open_fixture(void **state)
{
	int r = set_up(state);
	f = *state;
	return r;
}

static inline enum nm_worker_caller caller_of(const struct step *step)
{
	return step_has(step, "loop") ? NM_WORKER_LOOP : NM_WORKER_MOVER;
}

static inline pid_t pid_of(const struct step *step)
{
	return step_has(step, "self") ? getpid() : step_has(step, "other") ? f->other : INT32_MAX;
}

ACTION(client, open_client(f, step_has(step, "short") ? SHORT_NS : LONG_NS))
ACTION(answers, require_answers_of(f, step_has(step, "other") ? f->other : getpid()))
ACTION(stop, stopped = stop_worker())
ACTION(continue_it, assert_int_equal(kill(stopped, SIGCONT), 0))
ACTION(kill_it, assert_int_equal(kill(stopped, SIGKILL), 0))
ACTION(await_stuck, await_stuck(f, U(0)))
QUANTITY(where, where(f, caller_of(step), pid_of(step), &asked_node))
QUANTITY(node, asked_node)
QUANTITY(workers, workers())
QUANTITY(stuck, nm_worker_client_counts(f->client).stuck)
QUANTITY(given_up, nm_worker_client_counts(f->client).given_up)

#endif
