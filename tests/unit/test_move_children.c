/* SPDX-License-Identifier: MIT */
/*
 * Tasks that inherit a narrowed affinity get the original one, also if the service is killed at any
 * call; and an affinity set by its owner stays, even if it is on the same CPUs.
 */
#define SET_UP set_up
#define TEAR_DOWN tear_down
#include "../support/test.h"

#include <sys/wait.h>

#include "move_words.h"
#include "numa-migrd/base.h"

/* ---- by their records ---- */

SCRIPT(a_child_of_the_window_is_restored,
       "narrow 101 node2; fork 101 300; clone 101 110; poll 20; drain; no_trace")

/* The kernel copies the affinity when fork(2) begins; the child gets its start time later. */
SCRIPT(a_child_whose_creation_began_in_the_window_is_restored,
       "narrow 101 node2; keep narrow = affinity 101; poll 20; tick; fork 101 300",
       "set rss_kb 300 = 2M; set affinity 300 = narrow; drain; is 300 all")

/* Only the first one can have begun before. */
SCRIPT(a_later_child_keeps_its_affinity,
       "narrow 101 node2; poll 20; sleep_ms 100; fork 101 300; fork 101 301; pin 301 node2; drain",
       "no_trace")

SCRIPT(a_child_of_a_child_that_exited_is_restored,
       "narrow 101 node2; fork 101 300; fork 300 301; kill 300; fork 301 302; poll 20; drain",
       "no_trace")

/* SECURITY: others-pins */
SCRIPT(a_restored_child_may_be_pinned_to_the_same_cpus,
       "narrow 101 node2; fork 101 300; is 300 node2; poll 20; drain; pin 300 node2",
       "each 12: tick; is 300 node2")

SCRIPT(a_program_of_another_thread_is_restored,
       "narrow 101 node2; exec 101; poll 20; is 100 all; drain; tick; no_trace")

SCRIPT(a_pinned_leader_is_not_taken_for_a_program,
       "pin 100 node2; narrow 101 node2; set own 101 = 255; pin 100 3-5; exit 101; poll 20; tick",
       "no_trace")

SCRIPT(a_reused_number_is_not_followed,
       "narrow 101 node2; poll 20; exit 101; sleep_ms 100; clone 200 101; fork 101 300",
       "pin 300 node2; drain; no_trace")

/* Each process creates the next one, and exits. */
WORD(chain)
{
	for (uint32_t i = 0; i < U(0); i++) {
		fake_fork(fake, i == 0 ? 101 : 1000 + i - 1, 1000 + i);
		if (i > 0)
			fake_kill(fake, 1000 + i - 1);
	}
}

/* A walk finds the end of it. */
/* SECURITY: forks */
SCRIPT(an_endless_chain_is_given_up,
       "narrow 101 node2; chain 100; poll 20; drain; given_up = 1; move 102 node2 = EAGAIN; tick",
       "no_trace")

/* ---- without records ---- */

SCRIPT(a_walk_finds_children_if_records_are_lost,
       "narrow 101 node2; fork 101 300; fork 300 301; kill 300; poll 20; lose; tick; no_trace")

/* SECURITY: others-pins */
SCRIPT(neighbours_keep_their_affinity_if_records_are_lost,
       "narrow 101 node2; pin 200 node2; pin 102 node2; fork 50 201; pin 201 node2",
       "process 400 400; set uid 400 = 1001; pin 400 node2; poll 20; lose", "each 12: tick",
       "no_trace")

SCRIPT(a_walk_ends, "narrow 101 node2; poll 20; lose", "each 24: tick",
       "keep n = lists; tick; lists = n")

/* ---- after a crash ---- */

static struct nm_restoration restoration;

QUANTITY(restored, world_restore(&restoration))
QUANTITY(failed, restoration.failed)

SCRIPT(a_child_is_restored_after_a_crash,
       "narrow 101 node2; sleep_ms 50; fork 101 300; clone 101 110; fork 50 201; pin 201 node2",
       "close; restored = 3; failed = 0; no_trace; open")

SCRIPT(a_refusal_is_taken_over,
       "narrow 101 node2; close; fail_set 1 1; restored = 0; failed = 1; open; tick; no_trace")

/* ---- any sequence, and a kill at any call ---- */

#define LIVES 1000
#define ACTIONS 40

static struct nm_rng rng;

static unsigned any_of(unsigned count)
{
	return (unsigned)nm_rng_below(&rng, count);
}

static uint32_t any_task(void)
{
	const struct fake_thread *found = NULL;
	unsigned count = 0;
	for (size_t i = 0; i < FAKE_THREADS; i++) {
		const struct fake_thread *thread = &fake->threads[i];
		if (thread->alive && thread->tid > 50 && thread->state != 'Z' &&
		    any_of(++count) == 0)
			found = thread;
	}
	return found ? found->tid : 0;
}

/* A choice of its own, never equal to a narrowed affinity. */
static void pin_somewhere(uint32_t tid)
{
	unsigned first = any_of(3);
	fake_pin(fake, tid, fake_cpus(2 * first + 1, 2 * first + 3));
}

static uint32_t next_tid;

static void act(void)
{
	uint32_t tid = any_task();
	if (!tid)
		return;
	switch (any_of(9)) {
	case 0:
		fake_fork(fake, tid, next_tid++);
		break;
	case 1:
		fake_clone(fake, tid, next_tid++);
		break;
	case 2:
		if (fake_get(fake, tid)->pid != 100 || any_of(3) == 0)
			fake_exit(fake, tid);
		break;
	case 3:
		if (any_of(4) == 0 && fake_find(fake, fake_get(fake, tid)->pid))
			fake_exec(fake, tid);
		break;
	case 4:
		if (any_of(3) == 0)
			pin_somewhere(tid);
		break;
	case 5:
		fake_get(fake, tid)->stuck = any_of(2) == 0;
		fake_settle(fake_get(fake, tid));
		break;
	case 6:
		world_drain();
		break;
	default:
		fake_sleep(fake, any_of(30));
		break;
	}
}

/* The task table knows a task only after its record, and does not take an inherited affinity for
 * the task's own. */
static void move_something(void)
{
	uint32_t tid = any_task();
	if (tid && fake_get(fake, tid)->mask == fake_get(fake, tid)->own)
		(void)world_move(tid, any_of(4));
}

static void live_for_a_while(void)
{
	for (unsigned i = 0; i < ACTIONS; i++) {
		if (any_of(2) == 0)
			move_something();
		act();
		if (any_of(2) == 0)
			world_poll(any_of(25));
		if (any_of(8) == 0)
			world_tick();
	}
}

/* SECURITY: killed */
TEST(any_sequence_leaves_nothing)
{
	nm_rng_seed(&rng, 20261127);
	for (unsigned i = 0; i < LIVES; i++) {
		(void)tear_down(NULL);
		(void)set_up(NULL);
		fake->remembers = any_of(2) == 0;
		next_tid = 1000;
		live_for_a_while();
		world_poll(20);
		for (int t = 0; t < 2; t++)
			world_tick();
		const struct fake_thread *thread = fake_trace(fake);
		if (thread)
			fail_msg("life %u: thread %u has %#" PRIx64 ", not %#" PRIx64, i,
				 thread->tid, thread->mask, thread->own);
	}
}

/* SECURITY: killed */
TEST(a_kill_at_any_call_leaves_nothing)
{
	unsigned outstanding = 0;
	nm_rng_seed(&rng, 20261128);
	for (unsigned i = 0; i < LIVES; i++) {
		int status;
		(void)tear_down(NULL);
		(void)set_up(NULL);
		next_tid = 1000;
		unsigned die_at = fake->calls[FAKE_OPS] + 1 + any_of(600);
		(void)nm_rng_next(&rng);
		fflush(NULL);
		pid_t child = fork();
		assert_true(child >= 0);
		if (child == 0) {
			fake->die_at = die_at;
			live_for_a_while();
			_exit(0);
		}
		assert_int_equal(waitpid(child, &status, 0), child);
		fake->die_at = 0;
		memset(fake->open, 0, sizeof(fake->open));
		outstanding += fake_trace(fake) != NULL;
		assert_true(world_restore(&restoration) >= 0);
		const struct fake_thread *thread = fake_trace(fake);
		if (thread)
			fail_msg("life %u: thread %u has %#" PRIx64 ", not %#" PRIx64, i,
				 thread->tid, thread->mask, thread->own);
	}
	print_message("%u of %u kills left something to restore\n", outstanding, LIVES);
	assert_true(outstanding > LIVES / 20);
}

RUN_TESTS()
