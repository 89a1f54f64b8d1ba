/* SPDX-License-Identifier: MIT */
/*
 * Moves on the running kernel: threads that run, sleep, are stopped, create tasks, execute programs
 * or read their own affinity. Afterwards no affinity is narrow. Needs two CPUs; node k is CPU k.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "../support/machine.h"
#include "fixture.h"
#include "numa-migrd/move.h"
#include "numa-migrd/proc.h"

#define BOOT "live"

static struct nm_platform *platform;
static struct nm_topology *topology;
static struct nm_moves *moves;
static hwloc_bitmap_t original;
static char root[128];
static int directory;
static pid_t victim;
static int orders[2]; /* to the victim: one letter each */
static int answers[2];

static void start_moves(void)
{
	assert_int_equal(nm_moves_new(platform, topology, directory, BOOT, NULL, NULL, &moves), 0);
}

/* ---- the victim: obeys orders on its second thread ---- */

static void answer(uint32_t number)
{
	if (write(answers[1], &number, sizeof(number)) != sizeof(number))
		_exit(1);
}

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

/* Answers how many of its readings were narrow, in parts per million. */
static void read_own_affinity(unsigned seconds)
{
	uint64_t end_ns = nm_clock_ns() + seconds * NM_NSEC_PER_SEC;
	unsigned readings = 0, narrow = 0;
	cpu_set_t whole, now;
	(void)sched_getaffinity(0, sizeof(whole), &whole);
	while (nm_clock_ns() < end_ns) {
		(void)sched_getaffinity(0, sizeof(now), &now);
		readings++;
		narrow += CPU_COUNT(&now) < CPU_COUNT(&whole);
	}
	answer((uint32_t)(1e6 * narrow / readings));
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
		if (order == 'r')
			read_own_affinity(3);
		if (order == 'c')
			create_children();
	}
	return unused;
}

static uint32_t read_answer(void)
{
	uint32_t number = 0;
	assert_int_equal(read(answers[0], &number, sizeof(number)), sizeof(number));
	return number;
}

static void give(char letter)
{
	assert_int_equal(write(orders[1], &letter, 1), 1);
}

static uint32_t order(char letter)
{
	give(letter);
	return read_answer();
}

/* Returns the number of its second thread. */
static uint32_t start_victim(void)
{
	pthread_t thread;
	assert_int_equal(pipe(orders), 0);
	assert_int_equal(pipe(answers), 0);
	victim = fork();
	if (victim == 0) {
		(void)setsid();
		if (pthread_create(&thread, NULL, obey, NULL) == 0)
			(void)pthread_join(thread, NULL);
		_exit(1);
	}
	return read_answer();
}

static int set_up(void **state)
{
	struct nm_platform_options options = {.root_path = "/"};
	hwloc_bitmap_t both = hwloc_bitmap_alloc();
	(void)state;
	fixture_make(root, sizeof(root));
	directory = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(nm_platform_linux_new(&options, &platform), 0);
	topology = machine_topology(2, 2);
	original = hwloc_bitmap_alloc();
	hwloc_bitmap_set_range(both, 0, 1);
	assert_int_equal(platform->ops->affinity_get(platform, getpid(), original), 0);
	bool fits = hwloc_bitmap_isincluded(both, original);
	hwloc_bitmap_free(both);
	victim = 0;
	start_moves();
	if (fits)
		return 0;
	print_message("needs CPUs 0 and 1: skipped\n");
	*state = topology;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	if (victim) {
		(void)kill(-victim, SIGKILL); /* its session includes children */
		(void)waitpid(victim, NULL, 0);
		for (int i = 0; i < 2; i++) {
			close(orders[i]);
			close(answers[i]);
		}
	}
	nm_moves_free(moves);
	hwloc_bitmap_free(original);
	nm_topology_free(topology);
	nm_platform_free(platform);
	close(directory);
	fixture_remove(root);
	return 0;
}

static uint64_t start_of(uint32_t tid)
{
	struct nm_proc_stat stat = {0};
	assert_int_equal(nm_proc_stat_of(platform, (uint32_t)victim, tid, &stat), 0);
	return stat.start_ticks;
}

static uint64_t now_ns(void)
{
	return platform->ops->now_ns(platform);
}

static bool move_to(uint32_t tid, unsigned node)
{
	struct nm_decision decision = {
		.id = 1,
		.nr_steps = 1,
		.steps = {{.tid = tid,
			   .pid = (uint32_t)victim,
			   .start_ticks = start_of(tid),
			   .target = topology->nodes[node].cpus,
			   .original = original}},
	};
	struct nm_plan plan = {.decisions = &decision, .count = 1};
	struct nm_receipt receipt;
	nm_moves_run(moves, &plan, NULL, now_ns(), &receipt);
	return receipt.applied;
}

/* Until the window is over. */
static void wait_for_window(void)
{
	while (nm_moves_open(moves) > 0) {
		usleep(5000);
		nm_moves_poll(moves, now_ns());
	}
}

static void assert_mask(uint32_t tid, hwloc_const_bitmap_t wanted)
{
	nm_autobitmap mask = hwloc_bitmap_alloc();
	assert_int_equal(platform->ops->affinity_get(platform, (pid_t)tid, mask), 0);
	assert_true(hwloc_bitmap_isequal(mask, wanted));
}

static bool is_narrow(uint32_t tid)
{
	nm_autobitmap mask = hwloc_bitmap_alloc();
	return platform->ops->affinity_get(platform, (pid_t)tid, mask) == 0 &&
	       !hwloc_bitmap_isequal(mask, original);
}

/* Moves the thread from one node to the other; updates free the slots. */
static void move_often(uint32_t tid, unsigned times)
{
	for (unsigned i = 0; i < times; i++) {
		assert_true(move_to(tid, i % 2));
		wait_for_window();
		if (i % 8 == 7)
			nm_moves_update(moves, now_ns());
	}
	assert_mask(tid, original);
}

static void print_counts(const char *of)
{
	struct nm_move_counts counts = nm_moves_counts(moves);
	print_message("%s: %lu narrowed, %lu moved, %lu not; longest call %.3f ms\n", of,
		      (unsigned long)counts.asked, (unsigned long)counts.arrived,
		      (unsigned long)counts.missed, (double)counts.longest_ns * 1e-6);
}

/* ---- threads ---- */

static void a_thread_that_computes(void **state)
{
	if (*state)
		skip();
	uint32_t tid = start_victim();
	give('s');
	usleep(10000);
	move_often(tid, 100);
	print_counts("computing");
}

static void a_thread_that_sleeps_a_millisecond_at_a_time(void **state)
{
	if (*state)
		skip();
	uint32_t tid = start_victim();
	give('n');
	usleep(10000);
	move_often(tid, 100);
	print_counts("sleeping 1 ms at a time");
}

static void a_thread_that_is_stopped(void **state)
{
	if (*state)
		skip();
	uint32_t tid = start_victim();
	give('s');
	usleep(10000);
	(void)kill(victim, SIGSTOP);
	usleep(10000);
	move_often(tid, 4);
	(void)kill(victim, SIGCONT);
	assert_mask(tid, original);
}

static void a_thread_that_reads_its_affinity(void **state)
{
	if (*state)
		skip();
	uint32_t tid = start_victim();
	give('r');
	for (unsigned i = 0; i < 6; i++) {
		usleep(500000);
		(void)move_to(tid, i % 2);
		wait_for_window();
	}
	print_message("%u of a million readings were narrow\n", read_answer());
	assert_mask(tid, original);
}

/* ---- tasks that inherit ---- */

/* Its thread waits for an order, so that it is narrow until the window ends. */
static uint32_t narrow_victim(void)
{
	struct nm_proc_stat stat;
	uint32_t tid = start_victim();
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

static void tasks_created_within_the_window(void **state)
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

static void a_program_executed_within_the_window(void **state)
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

static void tasks_are_restored_after_a_kill(void **state)
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
static void children_created_while_moved(void **state)
{
	if (*state)
		skip();
	uint32_t tid = start_victim();
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

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_thread_that_computes),
		TEST(a_thread_that_sleeps_a_millisecond_at_a_time),
		TEST(a_thread_that_is_stopped),
		TEST(a_thread_that_reads_its_affinity),
		TEST(tasks_created_within_the_window),
		TEST(a_program_executed_within_the_window),
		TEST(tasks_are_restored_after_a_kill),
		TEST(children_created_while_moved),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
