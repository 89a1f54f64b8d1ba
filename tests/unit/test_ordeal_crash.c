/* SPDX-License-Identifier: MIT */
/*
 * A sudden exit at any call of a whole life, as with kill -9, also with an incomplete write of
 * a slot, and during the restoration: afterwards every affinity is as it would be without the
 * daemon.
 */
#include "../support/test.h"

#include <signal.h>
#include <sys/resource.h>

#include "ordeal_fixture.h"

#include "numa-migrd/base.h"

#define DEATHS 1000
#define SEED 20261121

static unsigned calls_in_a_life, calls_in_a_restoration;
static struct nm_rng rng;

static unsigned any_of(unsigned count)
{
	return 1 + (unsigned)nm_rng_below(&rng, count);
}

/* A process lives, or restores, until it is killed; the machine is in memory shared by both
 * processes. */
static bool die_at(unsigned call, bool torn, bool restoring)
{
	int status;
	fflush(NULL);
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		gate.die_at = call;
		gate.torn = torn;
		ordeal.world->options.restore = restoring;
		_exit(ordeal_live());
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	struct fake *fake = ordeal.world->fake;
	memset(fake->open, 0, sizeof(fake->open));
	gate.now_ns = fake->now_ns;
	return WEXITSTATUS(status) == GATE_DIED;
}

static void assert_no_trace(unsigned call, const char *after)
{
	const struct fake_thread *thread = fake_trace(ordeal.world->fake);
	if (thread)
		fail_msg("killed at call %u, %s: thread %u has %#" PRIx64 ", not %#" PRIx64, call,
			 after, thread->tid, thread->mask, thread->own);
}

/* Recovers with --restore, with --restore that is killed and repeated, or with the next start. */
static void come_back(unsigned call)
{
	unsigned way = any_of(3);
	if (way == 1) {
		(void)die_at(any_of(calls_in_a_restoration), any_of(2) == 1, true);
		gate.all = 0;
	}
	if (way < 3) {
		assert_int_equal(ordeal_restore(), EXIT_SUCCESS);
		assert_false(ordeal_there_is("ledger"));
		assert_false(ordeal_there_is("moves"));
		assert_no_trace(call, way == 1 ? "and again while restoring" : "then restored");
		return;
	}
	ordeal.short_life = any_of(6);
	assert_int_equal(ordeal_live(), EXIT_SUCCESS);
	ordeal.short_life = 0;
	assert_no_trace(call, "then started again");
}

static unsigned outstanding; /* exits that left an affinity to restore */

static void die_and_restore(void)
{
	unsigned call = any_of(calls_in_a_life);
	ordeal_anew();
	assert_true(die_at(call, any_of(2) == 1, false));
	outstanding += fake_trace(ordeal.world->fake) != NULL;
	come_back(call);
}

/* A thread that does not run is narrow until the next poll, so that many kills find it. */
static void hold_a_thread(void)
{
	struct fake_thread *thread = fake_find(ordeal.world->fake, 104);
	if (thread)
		thread->stuck = true;
}

static void learn_the_length(void)
{
	ordeal_anew();
	assert_int_equal(ordeal_live(), EXIT_SUCCESS);
	calls_in_a_life = gate.all;
	/* Killed when an affinity is narrow: the restoration has something to do. */
	for (unsigned call = calls_in_a_life / 8;; call += 50) {
		assert_true(call < calls_in_a_life);
		ordeal_anew();
		assert_true(die_at(call, false, false));
		if (fake_trace(ordeal.world->fake))
			break;
	}
	gate.all = 0;
	assert_int_equal(ordeal_restore(), EXIT_SUCCESS);
	calls_in_a_restoration = gate.all;
}

/* SECURITY: killed */
TEST(every_affinity_is_restored_after_a_kill)
{
	ordeal.in_each = hold_a_thread;
	nm_rng_seed(&rng, SEED);
	learn_the_length();
	for (unsigned i = 0; i < DEATHS; i++)
		die_and_restore();
	print_message("%u kills at %u calls, %u of them with affinities to restore\n", DEATHS,
		      calls_in_a_life, outstanding);
	assert_true(outstanding > 0);
}

/* ---- without memory ---- */

#define STARVED 1000
#define LIFE_OF_STARVED 8U /* intervals; the first moves are made in the second */

/* A process lives until its allocation with this number and all later ones fail. */
static void starve_at(unsigned allocation)
{
	const struct rlimit no_core = {0};
	int status;
	fflush(NULL);
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		(void)signal(SIGABRT, SIG_DFL); /* not cmocka's */
		(void)setrlimit(RLIMIT_CORE, &no_core);
		(void)close(STDERR_FILENO);
		gate.fail_op = GATE_MEMORY;
		gate.fail_at = allocation;
		gate.error = ENOMEM;
		gate.lasting = true;
		_exit(ordeal_live());
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGABRT)
		fail_msg("it survives a failure of allocation %u: status %#x", allocation,
			 (unsigned)status);
	memset(ordeal.world->fake->open, 0, sizeof(ordeal.world->fake->open));
	gate.now_ns = ordeal.world->fake->now_ns;
}

/* SECURITY: killed */
TEST(every_affinity_is_restored_after_a_failed_allocation)
{
	nm_rng_seed(&rng, SEED);
	ordeal_anew();
	ordeal.short_life = LIFE_OF_STARVED;
	assert_int_equal(ordeal_live(), EXIT_SUCCESS);
	unsigned allocations = gate.calls[GATE_MEMORY];
	outstanding = 0;
	for (unsigned i = 0; i < STARVED; i++) {
		unsigned allocation = any_of(allocations);
		ordeal_anew();
		starve_at(allocation);
		outstanding += fake_trace(ordeal.world->fake) != NULL;
		assert_int_equal(ordeal_restore(), EXIT_SUCCESS);
		assert_no_trace(allocation, "then restored");
	}
	ordeal.short_life = 0;
	print_message("%u failures of %u allocations, %u of them with affinities to restore\n",
		      STARVED, allocations, outstanding);
	assert_true(outstanding > 0);
}

int main(void)
{
	umask(022);
	ordeal_set_out();
	int failed = RUN_REGISTERED(NULL, NULL);
	ordeal_end();
	return failed;
}
