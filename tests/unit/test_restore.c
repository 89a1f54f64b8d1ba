/* SPDX-License-Identifier: MIT */
/* Recovery from the ledger after an unclean exit: every affinity is as without the daemon. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <sys/wait.h>

#include "actuate_fixture.h"
#include "numa-migrd/base.h"

/* A shell (50), its jobs 100 (with the threads 101 to 103), 200 and 250. No actuator yet. */
static int set_up(void **state)
{
	(void)state;
	world = world_new();
	nm_actuator_free(world->actuator);
	world->actuator = NULL;
	fake = world->fake;
	fake_process(fake, 50, 1);
	fake_fork(fake, 50, 100);
	for (uint32_t tid = 101; tid < 104; tid++)
		fake_clone(fake, 100, tid);
	fake_fork(fake, 50, 200);
	fake_fork(fake, 50, 250);
	fake_move(fake, 50, "/session.scope");
	fake_move(fake, 100, "/job.scope");
	fake_move(fake, 200, "/session.scope");
	fake_move(fake, 250, "/session.scope");
	fake_pin(fake, 103, fake_cpus(1, 6));
	fake_pin(fake, 200, fake_cpus(0, 5));
	fake_sleep(fake, 5000);
	fake->nr_events = 0;
	return 0;
}

static int restore(unsigned *failed)
{
	struct nm_restoration found = {0};
	int r = nm_restore(&fake->platform, world->topology, world->directory, WORLD_BOOT,
			   world_on_event, world, &found);
	*failed = found.failed;
	return r;
}

static void assert_no_trace(const char *when, unsigned n)
{
	const struct fake_thread *thread = fake_trace(fake);
	if (thread)
		fail_msg("%s %u: thread %u of %u has %#" PRIx64 ", not %#" PRIx64, when, n,
			 thread->tid, thread->pid, thread->mask, thread->own);
}

/* Runs the part of the daemon in a separate process that exits at its nth call. Returns false if it
 * finished before. */
static bool die_at(fake_fn part, unsigned n)
{
	int status = 0;
	pid_t child = fork();
	if (child == 0) {
		world_start(world);
		fake->die_at = fake->calls[FAKE_OPS] + n;
		part(fake);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_true(WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == FAKE_DIED);
	fake->die_at = 0;
	fake_calm(fake);
	memset(fake->open, 0,
	       sizeof(fake->open)); /* the kernel closes the files of an exited process */
	return WEXITSTATUS(status) == FAKE_DIED;
}

/* For every n: the daemon exits at its nth call, programs of the owner continue, and everything is
 * restored. */
static void check_death(fake_fn part, fake_fn meanwhile)
{
	unsigned n = 1;
	for (bool died = true; died; n++) {
		unsigned failed = 0;
		died = die_at(part, n);
		fake_sleep(fake, 50);
		if (meanwhile)
			meanwhile(fake);
		assert_true(restore(&failed) >= 0);
		assert_int_equal(failed, 0);
		assert_no_trace("after a death at call", n);
		assert_int_equal(faccessat(world->directory, NM_LEDGER_NAME, F_OK, 0), -1);
		/* Repeating it changes nothing. */
		assert_int_equal(restore(&failed), 0);
		if (died) {
			(void)tear_down(NULL);
			(void)set_up(NULL);
		}
	}
	assert_true(n > 10); /* it made calls */
}

/* ---- actions of the daemon ---- */

static void lease_and_restore(struct fake *f)
{
	(void)f;
	world_lease(world, 101, 1);
	world_lease(world, 103, 2);
	world_lease(world, 101, 3);
	world_adopt_thread(world, 102);
	world_swap(world, 102, 0, 101, 1);
	world_tick(world);
	(void)world_return(world, 103);
	world_lease(world, 250, 2);
	world_tick(world);
	(void)nm_actuator_return_process(world->actuator, 100);
	(void)nm_actuator_return_all(world->actuator);
}

static void refused(struct fake *f)
{
	world_lease(world, 101, 1);
	fake_fail(f, FAKE_SET, 2, 2, EPERM);
	world_adopt_thread(world, 102);
	world_swap(world, 101, 2, 102, 3);
	nm_actuator_poll_nudges(world->actuator, f->now_ns + NM_NSEC_PER_SEC);
	(void)nm_actuator_return_all(world->actuator);
}

/* Inheritors of every kind are forked while leases change; records are not drained in between. */
static void lease_and_fork(struct fake *f)
{
	world_lease(world, 101, 1);
	world_lease(world, 250, 3);
	fake_sleep(f, 30);
	fake_clone(f, 101, 110);
	fake_fork(f, 101, 300);
	fake_fork(f, 300, 301);
	fake_kill(f, 300);
	world_lease(world, 101, 2);
	fake_clone(f, 101, 111);
	fake_fork(f, 250, 310);
	fake_get(f, 310)->session = 310;
	fake_exec(f, 310);
	world_tick(world);
	fake_sleep(f, 30);
	fake_clone(f, 101, 112);
	(void)world_return(world, 101);
	world_tick(world);
	(void)nm_actuator_return_all(world->actuator);
}

static void compact(struct fake *f)
{
	unsigned n = f->die_at - f->calls[FAKE_OPS];
	f->die_at = 0;
	world_lease(world, 103, 2);
	for (int i = 0; i < 140; i++) {
		world_lease(world, 101, (unsigned)i % 4);
		(void)world_return(world, 101);
	}
	f->die_at = f->calls[FAKE_OPS] + n;
	fake_clone(f, 103, 110);
	world_lease(world, 101, 1);
	world_tick(world);
	(void)nm_actuator_return_all(world->actuator);
}

/* ---- actions of programs of the owner ---- */

static void fork_children(struct fake *f)
{
	static const uint32_t parents[] = {101, 103, 250, 301, 310};
	for (uint32_t i = 0; i < NM_ARRAY_SIZE(parents); i++) {
		if (!fake_find(f, parents[i]))
			continue;
		fake_fork(f, parents[i], 400 + 10 * i);
		fake_clone(f, 400 + 10 * i, 401 + 10 * i);
		fake_clone(f, parents[i], 402 + 10 * i);
		fake_fork(f, 401 + 10 * i, 403 + 10 * i);
		fake_kill(f, 400 + 10 * i);
	}
}

static void exec_from_thread(struct fake *f)
{
	if (fake_find(f, 101))
		fake_exec(f, 101);
	fake_exec(f, 250);
	fork_children(f);
}

static void end_all(struct fake *f)
{
	fork_children(f);
	fake_kill(f, 100);
	fake_kill(f, 250);
}

/* The numbers are reused by other threads, pinned to the same CPUs by their owner. */
static void reuse_numbers(struct fake *f)
{
	fake_kill(f, 100);
	fake_kill(f, 250);
	for (uint32_t tid = 100; tid < 104; tid++) {
		fake_fork(f, 50, tid);
		fake_pin(f, tid, world_node(tid % 4));
	}
	fake_fork(f, 50, 250);
	fake_pin(f, 250, world_node(3));
}

/* All threads are pinned externally. */
static void pin_all(struct fake *f)
{
	for (size_t i = 0; i < FAKE_THREADS; i++)
		if (f->threads[i].alive && f->threads[i].tid > 1)
			fake_pin(f, f->threads[i].tid, fake_cpus(2, 4));
}

static void test_death(void **state)
{
	(void)state;
	check_death(lease_and_restore, NULL);
}

static void test_death_when_refused(void **state)
{
	(void)state;
	check_death(refused, NULL);
}

static void test_death_with_inheritors(void **state)
{
	(void)state;
	check_death(lease_and_fork, NULL);
}

static void test_death_and_forks(void **state)
{
	(void)state;
	check_death(lease_and_restore, fork_children);
}

static void test_death_with_inheritors_and_forks(void **state)
{
	(void)state;
	check_death(lease_and_fork, fork_children);
}

static void test_death_and_exec(void **state)
{
	(void)state;
	check_death(lease_and_restore, exec_from_thread);
}

static void test_death_and_ends(void **state)
{
	(void)state;
	check_death(lease_and_fork, end_all);
}

static void test_death_and_reuse(void **state)
{
	(void)state;
	check_death(lease_and_restore, reuse_numbers);
}

static void test_death_and_pins(void **state)
{
	(void)state;
	check_death(lease_and_fork, pin_all);
}

static void test_death_around_compaction(void **state)
{
	(void)state;
	check_death(compact, fork_children);
}

/* ---- special cases ---- */

static void lease_two(struct fake *f)
{
	(void)f;
	world_lease(world, 101, 1);
	world_lease(world, 250, 3);
	_exit(FAKE_DIED);
}

static void test_neighbours(void **state)
{
	unsigned failed = 0;
	(void)state;
	fake_pin(fake, 102, world_node(1));
	fake_pin(fake, 100, world_node(1));
	assert_true(die_at(lease_two, 10000));
	fake_sleep(fake, 50);
	fake_fork(fake, 50, 300);
	fake_pin(fake, 300, world_node(1));
	fake_fork(fake, 50, 301);
	fake_pin(fake, 301, world_node(3));
	fake_process(fake, 310, 1);
	fake_pin(fake, 310, world_node(3));
	fake_exit(fake, 101);
	assert_int_equal(restore(&failed), 1);
	assert_no_trace("neighbours", 0);
}

static void lease_and_return(struct fake *f)
{
	(void)f;
	world_lease(world, 250, 3); /* in force, so that the ledger stays */
	world_lease(world, 101, 1);
	(void)world_return(world, 101);
	_exit(FAKE_DIED);
}

/* An affinity that was restored, and later set by the owner to the same CPUs. */
static void test_returned_before(void **state)
{
	unsigned failed = 0;
	(void)state;
	assert_true(die_at(lease_and_return, 10000));
	fake_pin(fake, 101, world_node(1));
	assert_int_equal(restore(&failed), 1);
	assert_no_trace("an affinity set later by the owner", 0);
}

static void test_cpuset_widens_afterwards(void **state)
{
	(void)state;
	for (int remembers = 0; remembers < 2; remembers++) {
		unsigned failed = 0;
		fake->remembers = remembers;
		fake_cpuset(fake, "/job.scope", fake_cpus(0, 5));
		assert_true(die_at(lease_two, 10000));
		fake_cpuset(fake, "/job.scope", fake_cpus(0, 2));
		assert_true(restore(&failed) >= 1);
		assert_no_trace("narrowed", (unsigned)remembers);
		fake_cpuset(fake, "/job.scope", fake->all);
		assert_no_trace("widened", (unsigned)remembers);
		(void)tear_down(NULL);
		(void)set_up(NULL);
	}
}

static void test_refused(void **state)
{
	unsigned failed = 0;
	(void)state;
	assert_true(die_at(lease_two, 10000));
	fake_fail(fake, FAKE_SET, 1, 1, EPERM);
	assert_int_equal(restore(&failed), 1);
	assert_int_equal(failed, 1);
	assert_int_equal(world_reported(world, NM_LEASE_FAILED, 101), 1);
	assert_non_null(fake_trace(fake));
	failed = 0;
	assert_int_equal(restore(&failed), 1);
	assert_int_equal(failed, 0);
	assert_no_trace("at the second try", 0);
}

/* Restoration of the thread of the first lease is refused; the inheritor of the second one is
 * restored. */
static void test_a_refusal_affects_one_thread_only(void **state)
{
	unsigned failed = 0;
	(void)state;
	assert_true(die_at(lease_two, 10000));
	fake_sleep(fake, 50);
	fake_fork(fake, 250, 300);
	fake_fail(fake, FAKE_SET, 1, 1, EPERM);
	assert_int_equal(restore(&failed), 2);
	assert_int_equal(failed, 1);
	assert_int_equal(world_reported(world, NM_LEASE_FAILED, 101), 1);
	assert_int_equal(world_mask(world, 300), fake->all);
	assert_int_equal(restore(&failed), 1);
	assert_no_trace("at the second try", 0);
}

static void test_unreadable_proc(void **state)
{
	unsigned failed = 0;
	(void)state;
	assert_true(die_at(lease_two, 10000));
	fake_fail(fake, FAKE_LIST, 1, 1, EIO);
	assert_int_equal(restore(&failed), -EIO);
	assert_int_equal(faccessat(world->directory, NM_LEDGER_NAME, F_OK, 0), 0);
	assert_int_equal(restore(&failed), 0);
	assert_no_trace("at the second try", 0);
}

static void test_other_boot(void **state)
{
	struct nm_restoration found;
	(void)state;
	assert_true(die_at(lease_two, 10000));
	assert_int_equal(nm_restore(&fake->platform, world->topology, world->directory, "another",
				    NULL, NULL, &found),
			 0);
	assert_int_equal(faccessat(world->directory, NM_LEDGER_NAME, F_OK, 0), -1);
}

static void test_not_a_ledger(void **state)
{
	unsigned failed = 0;
	(void)state;
	fixture_file(world->root, NM_LEDGER_NAME, "rubbish\n");
	assert_int_equal(restore(&failed), -EBADMSG);
	assert_string_equal(fixture_read(world->root, NM_LEDGER_NAME), "rubbish\n");
}

/* A daemon that starts without a replay adopts the leases in force. */
static void test_start_without_restore(void **state)
{
	(void)state;
	assert_true(die_at(lease_two, 10000));
	world_start(world);
	assert_int_equal(nm_actuator_leases(world->actuator), 2);
	assert_true(world_holds(world, 101));
	world_tick(world);
	assert_no_trace("after a round", 0);
}

/* ---- random histories ---- */

static uint32_t next_number;
/* If threads of a family have different affinities, only records identify inheritors. */
static bool owner_pins;

static struct fake_thread *pick(struct nm_rng *rng)
{
	for (;;) {
		struct fake_thread *thread =
			&fake->threads[nm_rng_below(rng, (uint64_t)FAKE_THREADS)];
		if (thread->alive && thread->tid >= 100 && thread->state != 'Z')
			return thread;
	}
}

static unsigned running(void)
{
	unsigned count = 0;
	for (size_t i = 0; i < FAKE_THREADS; i++)
		count += fake->threads[i].alive && fake->threads[i].tid >= 100 &&
			 fake->threads[i].state != 'Z';
	return count;
}

/* Programs of the owner take a step. They set no affinities that equal a node. */
static void owner_acts(struct nm_rng *rng)
{
	struct fake_thread *thread = pick(rng);
	bool crowded = running() > FAKE_THREADS / 2;
	switch (nm_rng_below(rng, 8)) {
	case 0:
	case 1:
		if (!crowded)
			fake_clone(fake, thread->tid, next_number++);
		break;
	case 2:
	case 3:
		if (!crowded)
			fake_fork(fake, thread->tid, next_number++);
		break;
	case 4:
		if (running() > 5)
			fake_exit(fake, thread->tid);
		break;
	case 5:
		if (fake_get(fake, thread->pid)->state != 'Z')
			fake_exec(fake, thread->tid);
		break;
	case 6:
		if (owner_pins)
			fake_pin(fake, thread->tid, fake_cpus((unsigned)nm_rng_below(rng, 3), 5));
		break;
	default:
		if (thread->tid == thread->pid)
			thread->session = thread->pid;
	}
}

/* A tick of the daemon: members are running threads with wide affinities. */
static void daemon_acts(struct nm_rng *rng)
{
	if (!owner_pins && nm_rng_below(rng, 4) == 0)
		world_lose_records(world);
	world_drain(world);
	for (size_t i = world->nr_members; i-- > 0;) {
		const struct fake_thread *thread = fake_find(fake, world->members[i].tid);
		if (!thread || thread->start_ticks != world->members[i].start_ticks ||
		    nm_rng_below(rng, 10) == 0)
			world_drop(world, world->members[i].tid);
	}
	struct fake_thread *thread = pick(rng);
	bool known = world_holds(world, thread->tid);
	for (size_t i = 0; i < world->nr_members; i++)
		known = known || world->members[i].tid == thread->tid;
	if (!known && thread->mask == thread->own && world->nr_members < 60)
		world_adopt_thread(world, thread->tid);
	for (size_t i = 0; i < world->nr_members; i++)
		if (nm_rng_below(rng, 3) == 0)
			world_move(world, world->members[i].tid, (unsigned)nm_rng_below(rng, 3),
				   nm_rng_below(rng, 4) ? NM_STEP_LEASE : NM_STEP_NUDGE);
	world_tick(world);
	nm_actuator_poll_nudges(world->actuator, fake->now_ns);
}

static struct nm_rng history;

static void live(struct fake *f)
{
	world_start(world);
	for (int step = 0; step < 60; step++) {
		unsigned acts = (unsigned)nm_rng_below(&history, 6);
		for (unsigned i = 0; i < acts; i++) {
			owner_acts(&history);
			fake_sleep(f, 20);
		}
		daemon_acts(&history);
	}
}

static void begin_history(unsigned seed)
{
	nm_rng_seed(&history, seed);
	next_number = 1000;
	fake->remembers = seed % 2;
	if (!owner_pins) {
		fake_pin(fake, 103, fake->all);
		fake_pin(fake, 200, fake->all);
	}
}

static void test_random_stop(void **state)
{
	(void)state;
	for (unsigned seed = 1; seed <= 300; seed++) {
		owner_pins = seed % 4 < 2;
		begin_history(seed);
		live(fake);
		world_drain(world);
		assert_int_equal(nm_actuator_return_all(world->actuator), 0);
		assert_no_trace("stop of history", seed);
		(void)tear_down(NULL);
		(void)set_up(NULL);
	}
}

static void die_in_history(struct fake *f)
{
	nm_actuator_free(world->actuator);
	live(f);
	_exit(FAKE_DIED);
}

static void test_random_death(void **state)
{
	(void)state;
	for (unsigned seed = 1; seed <= 300; seed++) {
		unsigned failed = 0;
		struct nm_rng after;
		owner_pins = false;
		begin_history(seed);
		nm_rng_seed(&after, seed + 1000000);
		assert_true(die_at(die_in_history, 200 + 37 * seed % 3000));
		next_number = 3000;
		for (int i = 0; i < 5; i++) {
			fake_sleep(fake, 20);
			owner_acts(&after);
		}
		assert_true(restore(&failed) >= 0);
		assert_no_trace("death in history", seed);
		(void)tear_down(NULL);
		(void)set_up(NULL);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_death),
		TEST(test_death_when_refused),
		TEST(test_death_with_inheritors),
		TEST(test_death_and_forks),
		TEST(test_death_with_inheritors_and_forks),
		TEST(test_death_and_exec),
		TEST(test_death_and_ends),
		TEST(test_death_and_reuse),
		TEST(test_death_and_pins),
		TEST(test_death_around_compaction),
		TEST(test_neighbours),
		TEST(test_returned_before),
		TEST(test_cpuset_widens_afterwards),
		TEST(test_refused),
		TEST(test_a_refusal_affects_one_thread_only),
		TEST(test_unreadable_proc),
		TEST(test_other_boot),
		TEST(test_not_a_ledger),
		TEST(test_start_without_restore),
		TEST(test_random_stop),
		TEST(test_random_death),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
