/* SPDX-License-Identifier: MIT */
/*
 * Moves on the running kernel: threads that run, sleep, are stopped, create tasks, or execute
 * programs. Afterwards no affinity is narrow. Needs two CPUs; node k is CPU k.
 */
#define SET_UP set_up
#define TEAR_DOWN tear_down
#include "../support/test.h"

#include "move_live_fixture.h"

/* ---- the victim: obeys orders on its second thread ---- */

static void *wait_for_ever(void *unused)
{
	answer((uint32_t)syscall(SYS_gettid));
	while (pause() < 0)
		continue;
	return unused;
}

static void spin(bool sleeps)
{
	for (;;) {
		for (volatile unsigned i = 0; i < 20000; i++)
			continue;
		if (sleeps)
			usleep(1000);
	}
}

/* A thousand children, one after the other, of which the last ones live. */
static void create_children(void)
{
	for (unsigned i = 0; i < 1000; i++) {
		pid_t child = fork();
		if (child == 0) {
			while (i >= 980)
				(void)pause();
			_exit(0);
		}
		if (i < 980)
			(void)waitpid(child, NULL, 0);
	}
	answer(1);
}

static void *obey(void *unused)
{
	char order;
	pthread_t thread;
	answer((uint32_t)syscall(SYS_gettid));
	while (read(orders[0], &order, 1) == 1) {
		if (order == 't' && pthread_create(&thread, NULL, wait_for_ever, NULL) != 0)
			_exit(1);
		if (order == 'f' && fork() == 0)
			(void)wait_for_ever(NULL);
		if (order == 'o' && fork() == 0) {
			if (fork() == 0)
				(void)wait_for_ever(NULL);
			_exit(0);
		}
		if (order == 'x')
			(void)execlp("sleep", "sleep", "1000", (char *)NULL);
		if (order == 's' || order == 'n')
			spin(order == 'n');
		if (order == 'c')
			create_children();
	}
	return unused;
}

static bool is_narrow(uint32_t tid)
{
	nm_autobitmap mask = hwloc_bitmap_alloc();
	return platform->ops->affinity_get(platform, (pid_t)tid, mask) == 0 &&
	       !hwloc_bitmap_isequal(mask, original);
}

/* Moves the thread from one node to the other; updates free the slots. It is moved each time,
 * unless it rests, because a call took long on a busy machine. */
static void move_often(uint32_t tid, unsigned times)
{
	for (unsigned i = 0; i < times; i++) {
		if (!move_to(tid, i % 2))
			assert_true(nm_moves_counts(moves).longest_ns > NM_MOVE_WINDOW_NS);
		wait_for_window();
		if (i % 8 == 7)
			nm_moves_update(moves, now_ns());
	}
	assert_mask(tid, original);
}

/* ---- threads ---- */

TEST(a_thread_that_computes)
{
	if (*state)
		skip();
	uint32_t tid = live_start(obey);
	give('s');
	usleep(10000);
	move_often(tid, 100);
	print_counts("computing");
}

TEST(a_thread_that_sleeps_a_millisecond_at_a_time)
{
	if (*state)
		skip();
	uint32_t tid = live_start(obey);
	give('n');
	usleep(10000);
	move_often(tid, 100);
	print_counts("sleeping 1 ms at a time");
}

TEST(a_thread_that_is_stopped)
{
	if (*state)
		skip();
	uint32_t tid = live_start(obey);
	give('s');
	usleep(10000);
	(void)kill(victim, SIGSTOP);
	usleep(10000);
	move_often(tid, 4);
	(void)kill(victim, SIGCONT);
	assert_mask(tid, original);
}

/* ---- tasks that inherit ---- */

/* Its thread waits for an order, so that it is narrow until the window ends. */
static uint32_t narrow_victim(void)
{
	struct nm_proc_stat stat;
	uint32_t tid = live_start(obey);
	usleep(20000);
	assert_int_equal(nm_proc_stat_of(platform, (uint32_t)victim, tid, &stat), 0);
	assert_true(move_to(tid, stat.processor == 0));
	return tid;
}

static void assert_all_original(uint32_t tid, const uint32_t *others, size_t count)
{
	assert_mask(tid, original);
	for (size_t i = 0; i < count; i++)
		assert_mask(others[i], original);
}

TEST(tasks_created_within_the_window)
{
	if (*state)
		skip();
	uint32_t tid = narrow_victim();
	uint32_t inheritors[] = {order('t'), order('f'), order('o')};
	for (size_t i = 0; i < 2; i++) {
		const struct nm_task_event event = {.kind = NM_TASK_FORK,
						    .pid = i == 0 ? (uint32_t)victim
								  : inheritors[i],
						    .tid = inheritors[i],
						    .parent_pid = (uint32_t)victim,
						    .parent_tid = tid};
		nm_moves_task_event(moves, &event);
	}
	wait_for_window();
	assert_all_original(tid, inheritors, 2);
	nm_moves_records_lost(moves); /* of the orphan */
	nm_moves_update(moves, now_ns());
	assert_all_original(tid, inheritors, 3);
}

TEST(a_program_executed_within_the_window)
{
	if (*state)
		skip();
	struct nm_proc_stat stat;
	(void)narrow_victim();
	give('x');
	do {
		usleep(1000);
		assert_int_equal(
			nm_proc_stat_of(platform, (uint32_t)victim, (uint32_t)victim, &stat), 0);
	} while (strcmp(stat.comm, "sleep") != 0);
	wait_for_window();
	assert_mask((uint32_t)victim, original);
}

/* ---- after a kill ---- */

static void restore(void)
{
	struct nm_restoration found = {0};
	const struct nm_restore_input input = {.platform = platform,
					       .topology = topology,
					       .directory = directory,
					       .boot_id = BOOT};
	assert_true(nm_moves_restore(&input, &found) >= 0);
	assert_int_equal(found.failed, 0);
}

TEST(tasks_are_restored_after_a_kill)
{
	if (*state)
		skip();
	uint32_t tid = narrow_victim();
	nm_moves_free(NM_TAKE(moves)); /* as a kill leaves the file */
	uint32_t inheritors[] = {order('t'), order('f'), order('o')};
	restore();
	assert_all_original(tid, inheritors, NM_ARRAY_SIZE(inheritors));
	start_moves();
}

/* A thread that creates a thousand children while it is moved; then the service is killed. */
TEST(children_created_while_moved)
{
	if (*state)
		skip();
	uint32_t tid = live_start(obey);
	unsigned narrow = 0;
	give('c');
	for (unsigned i = 0; i < 20; i++) {
		(void)move_to(tid, i % 2);
		usleep(i % 5 * 1000);
		nm_moves_free(NM_TAKE(moves));
		restore();
		start_moves();
	}
	(void)read_answer();
	for (uint32_t child = (uint32_t)victim + 1; child < (uint32_t)victim + 5000; child++) {
		struct nm_proc_stat stat;
		if (nm_proc_stat_of(platform, child, child, &stat) == 0 &&
		    stat.session == (uint32_t)victim)
			narrow += is_narrow(child);
	}
	assert_int_equal(narrow, 0);
	assert_mask(tid, original);
}

RUN_TESTS()
