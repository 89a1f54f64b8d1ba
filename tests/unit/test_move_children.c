/* SPDX-License-Identifier: MIT */
/*
 * Tasks that inherit a narrowed affinity get the original one, also if the service is killed at any
 * call; and an affinity set by its owner stays, even if it is on the same CPUs.
 */
#define SET_UP set_up
#define TEAR_DOWN tear_down
#include "../support/test.h"

#include <sys/wait.h>

#include "move_fixture.h"
#include "numa-migrd/base.h"

/* ---- by their records ---- */

TEST(a_child_of_the_window_is_restored)
{
	world_narrow(101, 2);
	fake_fork(fake, 101, 300);
	fake_clone(fake, 101, 110);
	world_poll(20);
	world_drain();
	assert_no_trace();
}

/* The kernel copies the affinity when fork(2) begins; the child gets its start time later. */
TEST(a_child_whose_creation_began_in_the_window_is_restored)
{
	world_narrow(101, 2);
	uint64_t narrow = world_mask(101);
	world_poll(20);
	world_tick();
	struct fake_thread *child = fake_fork(fake, 101, 300);
	child->rss_kb = UINT64_C(2) << 20;
	child->mask = narrow;
	world_drain();
	assert_int_equal(world_mask(300), ALL);
}

/* Only the first one can have begun before. */
TEST(a_later_child_keeps_its_affinity)
{
	world_narrow(101, 2);
	uint64_t narrow = world_mask(101);
	world_poll(20);
	fake_sleep(fake, 100);
	fake_fork(fake, 101, 300);
	fake_fork(fake, 101, 301);
	fake_pin(fake, 301, narrow);
	world_drain();
	assert_no_trace();
}

TEST(a_child_of_a_child_that_exited_is_restored)
{
	world_narrow(101, 2);
	fake_fork(fake, 101, 300);
	fake_fork(fake, 300, 301);
	fake_kill(fake, 300);
	fake_fork(fake, 301, 302);
	world_poll(20);
	world_drain();
	assert_no_trace();
}

/* SECURITY: others-pins */
TEST(a_restored_child_may_be_pinned_to_the_same_cpus)
{
	world_narrow(101, 2);
	fake_fork(fake, 101, 300);
	uint64_t narrow = world_mask(300);
	world_poll(20);
	world_drain();
	fake_pin(fake, 300, narrow);
	for (int i = 0; i < 12; i++) {
		world_tick();
		assert_int_equal(world_mask(300), narrow);
	}
}

TEST(a_program_of_another_thread_is_restored)
{
	world_narrow(101, 2);
	fake_exec(fake, 101);
	world_poll(20);
	assert_int_equal(world_mask(100), ALL);
	world_drain();
	world_tick();
	assert_no_trace();
}

TEST(a_pinned_leader_is_not_taken_for_a_program)
{
	fake_pin(fake, 100, world_node(2));
	world_narrow(101, 2);
	fake_get(fake, 101)->own = ALL;
	fake_pin(fake, 100, fake_cpus(3, 5));
	fake_exit(fake, 101);
	world_poll(20);
	world_tick();
	assert_no_trace();
}

TEST(a_reused_number_is_not_followed)
{
	world_narrow(101, 2);
	uint64_t narrow = world_mask(101);
	world_poll(20);
	fake_exit(fake, 101);
	fake_sleep(fake, 100);
	fake_clone(fake, 200, 101);
	fake_fork(fake, 101, 300);
	fake_pin(fake, 300, narrow);
	world_drain();
	assert_no_trace();
}

/* Each process creates the next one, and exits. */
/* SECURITY: forks */
TEST(an_endless_chain_is_given_up)
{
	world_narrow(101, 2);
	for (uint32_t i = 0; i < 100; i++) {
		fake_fork(fake, i == 0 ? 101 : 1000 + i - 1, 1000 + i);
		if (i > 0)
			fake_kill(fake, 1000 + i - 1);
	}
	world_poll(20);
	world_drain();
	assert_int_equal(nm_moves_counts(world->moves).given_up, 1);
	struct nm_receipt receipt = world_move(102, 2);
	assert_int_equal(receipt.steps[0].error, -EAGAIN);
	world_tick(); /* a walk finds the end of it */
	assert_no_trace();
}

/* ---- without records ---- */

TEST(a_walk_finds_children_if_records_are_lost)
{
	world_narrow(101, 2);
	fake_fork(fake, 101, 300);
	fake_fork(fake, 300, 301);
	fake_kill(fake, 300);
	world_poll(20);
	world_lose_records();
	world_tick();
	assert_no_trace();
}

/* SECURITY: others-pins */
TEST(neighbours_keep_their_affinity_if_records_are_lost)
{
	world_narrow(101, 2);
	uint64_t narrow = world_mask(101);
	fake_pin(fake, 200, narrow);
	fake_pin(fake, 102, narrow);
	fake_fork(fake, 50, 201);
	fake_pin(fake, 201, narrow);
	fake_process(fake, 400, 1)->session = 400;
	fake_get(fake, 400)->uid = 1001;
	fake_pin(fake, 400, narrow);
	world_poll(20);
	world_lose_records();
	for (int i = 0; i < 12; i++)
		world_tick();
	assert_no_trace();
}

TEST(a_walk_ends)
{
	world_narrow(101, 2);
	world_poll(20);
	world_lose_records();
	for (int i = 0; i < 24; i++)
		world_tick();
	unsigned lists = fake->calls[FAKE_LIST];
	world_tick();
	assert_int_equal(fake->calls[FAKE_LIST], lists);
}

/* ---- after a crash ---- */

TEST(a_child_is_restored_after_a_crash)
{
	struct nm_restoration found;
	world_narrow(101, 2);
	uint64_t narrow = world_mask(101);
	fake_sleep(fake, 50);
	fake_fork(fake, 101, 300);
	fake_clone(fake, 101, 110);
	fake_fork(fake, 50, 201);
	fake_pin(fake, 201, narrow);
	nm_moves_free(NM_TAKE(world->moves));
	assert_int_equal(world_restore(&found), 3);
	assert_int_equal(found.failed, 0);
	assert_no_trace();
	world_start();
}

TEST(a_refusal_is_taken_over)
{
	struct nm_restoration found;
	world_narrow(101, 2);
	nm_moves_free(NM_TAKE(world->moves));
	fake_fail(fake, FAKE_SET, 1, 1, EPERM);
	assert_int_equal(world_restore(&found), 0);
	assert_int_equal(found.failed, 1);
	world_start();
	world_tick();
	assert_no_trace();
}

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
		struct nm_restoration found;
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
		assert_true(world_restore(&found) >= 0);
		const struct fake_thread *thread = fake_trace(fake);
		if (thread)
			fail_msg("life %u: thread %u has %#" PRIx64 ", not %#" PRIx64, i,
				 thread->tid, thread->mask, thread->own);
	}
	print_message("%u of %u kills left something to restore\n", outstanding, LIVES);
	assert_true(outstanding > LIVES / 20);
}

RUN_TESTS()
