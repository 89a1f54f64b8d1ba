/* SPDX-License-Identifier: MIT */
/*
 * Programs that read affinities while they are moved, on the running kernel. Needs two CPUs; node k
 * is CPU k. Without arguments the subjects run shortly. For measurements, in which a thread is
 * moved once a second:
 *
 * test_move_counts readings SECONDS              fails if more than one reading of a thousand is
 * narrow test_move_counts count TIMES COMMAND [ARG]…    the moved thread starts the command, which
 * prints how many CPUs it sees; fails if two of them see fewer
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <poll.h>
#include <stdio.h>

#include "move_live_fixture.h"

static unsigned readings_s = 2;
static unsigned times = 30;
static unsigned pause_us = 20000; /* between two moves */
static char *const nproc[] = {(char *)(uintptr_t) "nproc", NULL};
static char *const *command = nproc;
static uint32_t narrow_most = UINT32_MAX; /* in readings of a million, or in starts */

/* ---- the victim ---- */

/* Answers how many of its readings were narrow, in parts per million. */
static void read_own_affinity(void)
{
	uint64_t end_ns = nm_clock_ns() + readings_s * NM_NSEC_PER_SEC;
	uint64_t readings = 0, narrow = 0;
	cpu_set_t whole, now;
	(void)sched_getaffinity(0, sizeof(whole), &whole);
	while (nm_clock_ns() < end_ns) {
		(void)sched_getaffinity(0, sizeof(now), &now);
		readings++;
		narrow += CPU_COUNT(&now) < CPU_COUNT(&whole);
	}
	answer((uint32_t)(1e6 * (double)narrow / (double)readings));
}

/* Returns the number that the command prints; -1: none. */
static int run_command(void)
{
	int ends[2], number = -1;
	if (pipe(ends) < 0)
		return -1;
	pid_t child = fork();
	if (child == 0) {
		(void)dup2(ends[1], STDOUT_FILENO);
		(void)execvp(command[0], command);
		_exit(127);
	}
	close(ends[1]);
	FILE *output = fdopen(ends[0], "r");
	if (!output || fscanf(output, "%d", &number) != 1)
		number = -1;
	if (output)
		(void)fclose(output);
	(void)waitpid(child, NULL, 0);
	return number;
}

/* Answers how many of the commands saw other CPUs than the victim had at first. */
static void start_commands(void)
{
	cpu_set_t whole;
	uint32_t others = 0;
	(void)sched_getaffinity(getppid(), sizeof(whole), &whole);
	for (unsigned i = 0; i < times; i++)
		others += run_command() != CPU_COUNT(&whole);
	answer(others);
}

/* Answers the error of a request for SCHED_DEADLINE, which the thread gives up at once. */
static void ask_for_deadline(void)
{
	struct {
		uint32_t size, policy;
		uint64_t flags;
		int32_t nice;
		uint32_t priority;
		uint64_t runtime_ns, deadline_ns, period_ns;
	} attributes = {.size = sizeof(attributes),
			.policy = SCHED_DEADLINE,
			.runtime_ns = 1 * NM_NSEC_PER_MSEC,
			.deadline_ns = 100 * NM_NSEC_PER_MSEC,
			.period_ns = 100 * NM_NSEC_PER_MSEC};
	const struct sched_param none = {0};
	uint32_t error = syscall(SYS_sched_setattr, 0, &attributes, 0) < 0 ? (uint32_t)errno : 0;
	(void)sched_setscheduler(0, SCHED_OTHER, &none);
	answer(error);
}

/* As runtimes do that give each new thread the affinity of their first one. */
static void *copy_leader(void *unused)
{
	cpu_set_t mask;
	(void)sched_getaffinity(getpid(), sizeof(mask), &mask);
	(void)sched_setaffinity(0, sizeof(mask), &mask);
	answer((uint32_t)syscall(SYS_gettid));
	while (pause() < 0)
		continue;
	return unused;
}

static void *obey(void *unused)
{
	char letter;
	pthread_t thread;
	answer((uint32_t)syscall(SYS_gettid));
	while (read(orders[0], &letter, 1) == 1) {
		if (letter == 'r')
			read_own_affinity();
		if (letter == 'e')
			start_commands();
		if (letter == 'd')
			ask_for_deadline();
		if (letter == 'l' && pthread_create(&thread, NULL, copy_leader, NULL) != 0)
			_exit(1);
	}
	return unused;
}

/* ---- subjects ---- */

/* Moves the thread until it answers. Without records, a walk restores what it created. Returns the
 * answer. */
static uint32_t move_until_answer(uint32_t tid)
{
	struct pollfd answers_wait = {.fd = answers[0], .events = POLLIN};
	for (unsigned i = 0; poll(&answers_wait, 1, 0) == 0; i++) {
		usleep(pause_us);
		(void)move_to(tid, i % 2);
		wait_for_window();
		nm_moves_records_lost(moves);
		nm_moves_update(moves, now_ns());
	}
	return read_answer();
}

static void a_thread_that_reads_its_affinity(void **state)
{
	if (*state)
		skip();
	uint32_t tid = live_start(obey);
	give('r');
	uint32_t narrow = move_until_answer(tid);
	print_counts("reading its affinity");
	print_message("%u of a million readings were narrow\n", narrow);
	assert_mask(tid, original);
	assert_true(narrow <= narrow_most);
}

static void programs_that_count_their_cpus(void **state)
{
	if (*state)
		skip();
	uint32_t tid = live_start(obey);
	give('e');
	uint32_t others = move_until_answer(tid);
	print_counts("starting programs");
	print_message("%u of %u saw other CPUs\n", others, times);
	assert_mask(tid, original);
	assert_true(others <= narrow_most);
	times = 1; /* not moved */
	assert_int_equal(order('e'), 0);
}

static void deadline_is_granted_after_the_move(void **state)
{
	if (*state)
		skip();
	struct nm_proc_stat stat;
	uint32_t tid = live_start(obey);
	uint32_t error = order('d');
	if (error) {
		print_message("SCHED_DEADLINE: %s: skipped\n", strerror((int)error));
		skip();
	}
	usleep(20000); /* until it waits for an order */
	assert_int_equal(nm_proc_stat_of(platform, (uint32_t)victim, tid, &stat), 0);
	assert_true(move_to(tid, stat.processor == 0));
	assert_int_equal(nm_moves_open(moves), 1);
	/* The kernel may refuse an affinity that is smaller than the root domain. */
	error = order('d');
	assert_true(error == 0 || error == EPERM);
	wait_for_window();
	assert_int_equal(order('d'), 0);
	assert_mask(tid, original);
}

static void a_thread_that_copies_the_affinity_of_the_leader(void **state)
{
	if (*state)
		skip();
	(void)live_start(obey);
	for (unsigned i = 0; i < 10; i++) {
		assert_true(move_to((uint32_t)victim, i % 2));
		wait_for_window();
		assert_mask(order('l'), original);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(int argc, char **argv)
{
	const struct CMUnitTest readings[] = {TEST(a_thread_that_reads_its_affinity)};
	const struct CMUnitTest counts[] = {TEST(programs_that_count_their_cpus)};
	const struct CMUnitTest tests[] = {
		TEST(a_thread_that_reads_its_affinity),
		TEST(programs_that_count_their_cpus),
		TEST(deadline_is_granted_after_the_move),
		TEST(a_thread_that_copies_the_affinity_of_the_leader),
	};
	if (argc > 1)
		pause_us = 1000000;
	if (argc == 3 && strcmp(argv[1], "readings") == 0) {
		readings_s = (unsigned)atoi(argv[2]);
		narrow_most = 1000;
		return cmocka_run_group_tests(readings, NULL, NULL);
	}
	if (argc > 3 && strcmp(argv[1], "count") == 0) {
		times = (unsigned)atoi(argv[2]);
		command = argv + 3;
		narrow_most = 1;
		return cmocka_run_group_tests(counts, NULL, NULL);
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
