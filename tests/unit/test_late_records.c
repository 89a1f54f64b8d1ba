/* SPDX-License-Identifier: MIT */
/* Records are read some time after what they report. Leases that were given meanwhile are known
 * already, although the records speak of the time before. After each drain, only leased threads
 * have an affinity that is ours. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "family_fixture.h"
#include "numa-migrd/base.h"

/* Returns whether the affinity of the thread is its owner's choice, or leased to it. */
static bool is_explained(const struct fake_thread *thread)
{
	return thread->mask == thread->own || world_holds(world, thread->tid);
}

static const struct fake_thread *find_unexplained(void)
{
	for (size_t i = 0; i < FAKE_THREADS; i++) {
		const struct fake_thread *thread = &fake->threads[i];
		if (thread->alive && thread->state != 'Z' && !is_explained(thread))
			return thread;
	}
	return NULL;
}

/* Nothing stays narrow, and no owner's affinity is lifted. */
static void assert_explained(const char *what)
{
	const struct fake_thread *thread = find_unexplained();
	if (!thread)
		return;
	bool narrow = (thread->mask & ~thread->own) == 0;
	fail_msg("%s: thread %u of process %u has %#" PRIx64 ", not %#" PRIx64 "%s",
		 narrow ? "stays narrow" : "its owner's affinity was lifted", thread->tid,
		 thread->pid, thread->mask, thread->own, what);
}

static int restore_after_crash(void)
{
	struct nm_restoration found;
	nm_actuator_records_lost(world->actuator); /* so that the ledger stays */
	nm_actuator_free(world->actuator);
	int r = nm_restore(&fake->platform, world->topology, world->directory, WORLD_BOOT, NULL,
			   NULL, &found);
	world_start(world);
	return r;
}

/* ---- a lease of the leader's number after an exec ---- */

static void a_child_is_restored_at_its_record(void **state)
{
	(void)state;
	fake_exec(fake, 102);
	lease(100, 1);
	fake_fork(fake, 100, 300);
	world_drain(world);
	assert_int_equal(world_mask(world, 300), ALL);
	fake_exec(fake, 300);
	assert_explained("");
}

static void so_it_is_after_a_lease_that_was_followed(void **state)
{
	(void)state;
	lease(102, 1);
	fake_exec(fake, 102);
	assert_int_equal(nm_actuator_return_process(world->actuator, 100), 0);
	assert_int_equal(world_mask(world, 100), ALL);
	fake_exec(fake, 100);
	lease(100, 2);
	fake_fork(fake, 100, 300);
	world_drain(world);
	assert_explained("");
}

static void so_it_is_between_two_leases(void **state)
{
	(void)state;
	fake_clone(fake, 100, 300);
	fake_exec(fake, 300);
	lease(100, 1);
	fake_clone(fake, 100, 301);
	assert_int_equal(world_return(world, 100), 0);
	lease(100, 2);
	world_drain(world);
	assert_explained("");
}

/* The affinity that its owner chose after the exec is the original one of its lease. */
static void an_exec_is_followed_once(void **state)
{
	(void)state;
	lease(102, 1);
	fake_exec(fake, 102);
	assert_int_equal(nm_actuator_return_process(world->actuator, 100), 0);
	fake_pin(fake, 100, fake_cpus(0, 5));
	lease(100, 1);
	world_drain(world);
	assert_int_equal(world_mask(world, 100), fake_cpus(0, 5));
}

/* Later another thread takes the number over, which has not had that affinity. */
static void an_unread_leader_is_not_followed_at_the_next_exec(void **state)
{
	(void)state;
	lease(102, 1);
	fake_exec(fake, 102);
	world_drain(world);
	fake_pin(fake, 100, fake_cpus(0, 5));
	fake_clone(fake, 100, 300);
	world_drain(world);
	fake_exec(fake, 300);
	lease(100, 1);
	world_drain(world);
	assert_int_equal(world_mask(world, 100), fake_cpus(0, 5));
}

static void children_of_a_program_that_has_ended_are_restored(void **state)
{
	(void)state;
	lease(102, 1);
	fake_exec(fake, 102);
	fake_fork(fake, 100, 300);
	fake_exit(fake, 100);
	fake_fork(fake, 300, 301);
	world_drain(world);
	assert_explained("");
}

/* ---- a number that is used again before the records are read ---- */

static void the_end_of_another_thread_ends_no_descent(void **state)
{
	(void)state;
	fake_exit(fake, 102);
	fake_sleep(fake, 50);
	fake_clone(fake, 100, 102);
	lease(102, 1);
	fake_fork(fake, 102, 300);
	world_drain(world);
	assert_explained("");
}

/* ---- a leader that is taken for a thread that has called exec ---- */

/* The thread has a number below that of its leader, as after the numbers wrapped. */
static void set_up_equal_targets(void)
{
	fake_pin(fake, 100, fake_cpus(0, 5));
	fake_exit(fake, 101);
	fake_exit(fake, 102);
	fake_clone(fake, 50, 60)->pid = 100;
	world_drain(world);
	lease(60, 1);
	lease(100, 1);
	fake_exit(fake, 60);
}

static void it_gets_its_own_affinity(void **state)
{
	(void)state;
	set_up_equal_targets();
	world_lose_records(world);
	world_tick(world);
	assert_int_equal(nm_actuator_return_all(world->actuator), 0);
	assert_int_equal(world_mask(world, 100), fake_cpus(0, 5));
}

static void it_gets_it_after_a_crash(void **state)
{
	(void)state;
	set_up_equal_targets();
	assert_int_equal(restore_after_crash(), 1);
	assert_int_equal(world_mask(world, 100), fake_cpus(0, 5));
}

/* ---- an exec whose records are lost ---- */

/* The lease of its parent's number is from before the exec, and not the one that it inherited. */
static void a_child_is_found_although_its_record_was_read(void **state)
{
	(void)state;
	lease(102, 1);
	lease(100, 2);
	fake_exec(fake, 102);
	world_lose_records(world);
	fake_clone(fake, 100, 300);
	for (int i = 0; i < 3; i++)
		world_tick(world);
	assert_explained("");
}

/* It was restored once, although it did not carry the target of its parent's other lease. */
/* SECURITY: others-pins */
static void it_is_restored_once(void **state)
{
	(void)state;
	lease(100, 1);
	fake_fork(fake, 100, 300);
	lease(100, 2);
	world_drain(world);
	assert_int_equal(world_mask(world, 300), ALL);
	fake_pin(fake, 300, world_node(1));
	for (int i = 0; i < 3; i++) {
		world_lose_records(world);
		world_tick(world);
		assert_int_equal(world_mask(world, 300), world_node(1));
	}
}

/* ---- random sequences ---- */

#define LIVES 2000
#define MOST_ACTS 24

enum act {
	LEASE,
	RETURN,
	RETURN_PROCESS,
	FORK,
	CLONE,
	EXEC,
	EXIT,
	PIN,
	PIN_TO_TARGET,
	SIBLING,
	CHANGE_USER,
	PAUSE,
	DRAIN,
	TICK,
	ACTS
};

static const char *const act_names[ACTS] = {
	"lease", "return", "return process", "fork",	"clone",       "exec",	"exit",
	"pin",	 "pin to target", "sibling", "change user", "pause", "drain", "tick",
};

struct life {
	struct nm_rng rng;
	uint32_t next_tid;
	bool crashes;	  /* in the end */
	char story[2048]; /* what was done, for the message of a failure */
	size_t length;
};

static void note(struct life *life, enum act act, uint32_t tid, uint32_t number)
{
	life->length +=
		(size_t)snprintf(life->story + life->length, sizeof(life->story) - life->length,
				 "; %s %u %u", act_names[act], tid, number);
}

static struct fake_thread *pick(struct nm_rng *rng)
{
	struct fake_thread *alive[FAKE_THREADS];
	size_t count = 0;
	for (size_t i = 0; i < FAKE_THREADS; i++)
		if (fake->threads[i].alive && fake->threads[i].tid >= 100 &&
		    fake->threads[i].state != 'Z')
			alive[count++] = &fake->threads[i];
	return count ? alive[nm_rng_below(rng, count)] : NULL;
}

/* Adopts the thread as the task table would: an inherited affinity is no original one. */
static void give(uint32_t tid, unsigned node)
{
	struct fake_thread *thread = fake_get(fake, tid);
	const uint64_t mask = thread->mask;
	if (!is_explained(thread))
		return;
	for (size_t i = 0; i < world->nr_members; i++)
		if (world->members[i].tid == tid) {
			world_drop(world, tid);
			break;
		}
	thread->mask = thread->own;
	world_adopt_thread(world, tid);
	thread->mask = mask;
	(void)world_lease(world, tid, node);
}

static void end(uint32_t tid, bool process)
{
	uint32_t pid = fake_get(fake, tid)->pid;
	if (process && fake_get(fake, pid)->state != 'Z')
		fake_kill(fake, pid);
	else
		fake_exit(fake, tid);
}

/* As taskset -a does, to no target, nor to a part of one. If threads of one process have
 * affinities of their own, only records show which of them called exec; and of two affinities that
 * one thread had in the meantime, the former one is restored. */
static void pin_process(uint32_t pid, unsigned number)
{
	for (size_t i = 0; i < FAKE_THREADS; i++)
		if (fake->threads[i].alive && fake->threads[i].pid == pid)
			fake_pin(fake, fake->threads[i].tid, fake_cpus(number, 4 + number));
	world_tick(world);
}

/* A program that its owner, once it has its affinity back, binds to the node of a lease. */
static void pin_to_target(uint32_t pid, unsigned node)
{
	(void)nm_actuator_return_process(world->actuator, pid);
	for (int i = 0; i < 3; i++)
		world_tick(world);
	for (size_t i = 0; i < FAKE_THREADS; i++)
		if (fake->threads[i].alive && fake->threads[i].pid == pid)
			fake_pin(fake, fake->threads[i].tid, world_node(node));
}

/* The shell, which is in the same session and cgroup, runs numactl -N. */
static void start_sibling(uint32_t beside, uint32_t pid, unsigned node)
{
	fake_fork(fake, 50, pid);
	fake_get(fake, pid)->session = fake_get(fake, beside)->session;
	fake_move(fake, pid, fake_get(fake, beside)->cgroup);
	fake_pin(fake, pid, world_node(node));
}

/* As sshd(8), cron(8) and container runtimes do in a child. */
static void change_user(uint32_t pid)
{
	for (size_t i = 0; i < FAKE_THREADS; i++)
		if (fake->threads[i].alive && fake->threads[i].pid == pid) {
			fake->threads[i].uid = 1001;
			fake->threads[i].session = pid;
		}
	fake_move(fake, pid, "/user.slice/session-5.scope");
}

/* Does something as the owner of the thread. */
static void do_as_owner(enum act act, uint32_t tid, uint32_t number, uint32_t next_tid)
{
	if (act == FORK)
		fake_fork(fake, tid, next_tid);
	else if (act == CLONE)
		fake_clone(fake, tid, next_tid);
	else if (act == EXEC && fake_get(fake, fake_get(fake, tid)->pid)->state != 'Z')
		fake_exec(fake, tid);
	else if (act == EXIT)
		end(tid, number == 0);
	else if (act == PIN)
		pin_process(fake_get(fake, tid)->pid, number);
	else if (act == PIN_TO_TARGET)
		pin_to_target(fake_get(fake, tid)->pid, number % 2);
	else if (act == SIBLING)
		start_sibling(tid, next_tid, number % 2);
	else if (act == CHANGE_USER)
		change_user(fake_get(fake, tid)->pid);
	else if (act == PAUSE)
		fake_sleep(fake, 5U << (2 * number));
}

/* Returns whether only records can show what follows: which affinity an inheritor had before, that
 * an orphan of another user descends from a leased process, that one of a pinned program does not,
 * and that a thread has taken over the number of a leader whose lease has ended. */
static bool needs_records(enum act act, const struct fake_thread *thread)
{
	return act == PIN || act == PIN_TO_TARGET || act == CHANGE_USER ||
	       (act == EXIT && thread->own != ALL) ||
	       (act == EXEC && thread->tid != thread->pid && !is_explained(thread));
}

static void do_once(struct life *life)
{
	enum act act = (enum act)nm_rng_below(&life->rng, ACTS);
	uint32_t number = (uint32_t)nm_rng_below(&life->rng, 4);
	const struct fake_thread *thread = pick(&life->rng);
	if (!thread || (life->crashes && needs_records(act, thread)))
		return;
	const uint32_t tid = thread->tid, pid = thread->pid;
	const bool is_pinned = thread->own != ALL;
	bool creates = act == FORK || act == CLONE || act == SIBLING;
	note(life, act, tid, creates ? life->next_tid : number);
	if (act == LEASE)
		give(tid, number % 2);
	else if (act == RETURN)
		(void)world_return(world, tid);
	else if (act == RETURN_PROCESS)
		(void)nm_actuator_return_process(world->actuator, pid);
	else if (act == DRAIN)
		world_drain(world);
	else if (act == TICK)
		world_tick(world);
	else
		do_as_owner(act, tid, number, life->next_tid);
	life->next_tid += creates;
	/* A walk examines the tasks of the last two intervals, and cannot distinguish what a pinned
	 * program created. */
	for (int i = 0; i < 2 && is_pinned && (creates || act == EXIT); i++)
		world_tick(world);
	if (act == DRAIN || act == TICK)
		assert_explained(life->story);
}

static void return_each(void)
{
	for (size_t i = 0; i < FAKE_THREADS; i++)
		if (fake->threads[i].alive)
			(void)world_return(world, fake->threads[i].tid);
	for (int i = 0; i < 3; i++)
		world_tick(world);
}

static void live(unsigned seed)
{
	struct life life = {.next_tid = 300, .crashes = seed % 4 == 0};
	nm_rng_seed(&life.rng, seed);
	unsigned acts = 4 + (unsigned)nm_rng_below(&life.rng, MOST_ACTS);
	life.length = (size_t)snprintf(life.story, sizeof(life.story), "; seed %u", seed);
	for (unsigned i = 0; i < acts; i++)
		do_once(&life);
	if (life.crashes)
		assert_true(restore_after_crash() >= 0);
	else
		return_each();
	assert_explained(life.story);
	assert_int_equal(nm_actuator_leases(world->actuator), 0);
}

static unsigned first_seed = 1, last_seed = LIVES;

/* SECURITY: forks, others-pins */
static void random_sequences_leave_nothing(void **state)
{
	(void)state;
	for (unsigned seed = first_seed; seed <= last_seed; seed++) {
		(void)set_up(NULL);
		live(seed);
		(void)tear_down(NULL);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

/* Arguments: the first and the last seed, to search for more. */
int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(a_child_is_restored_at_its_record),
		TEST(so_it_is_after_a_lease_that_was_followed),
		TEST(so_it_is_between_two_leases),
		TEST(an_exec_is_followed_once),
		TEST(an_unread_leader_is_not_followed_at_the_next_exec),
		TEST(children_of_a_program_that_has_ended_are_restored),
		TEST(the_end_of_another_thread_ends_no_descent),
		TEST(it_gets_its_own_affinity),
		TEST(it_gets_it_after_a_crash),
		TEST(a_child_is_found_although_its_record_was_read),
		TEST(it_is_restored_once),
		cmocka_unit_test(random_sequences_leave_nothing),
	};
	if (access("/dev/shm", W_OK) == 0) /* for the ledgers of all lives */
		(void)setenv("TMPDIR", "/dev/shm", 0);
	if (argc == 3) {
		first_seed = (unsigned)atoi(argv[1]);
		last_seed = (unsigned)atoi(argv[2]);
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
