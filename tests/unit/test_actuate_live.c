/* SPDX-License-Identifier: MIT */
/*
 * Affinities leased and restored on the running kernel: checks the properties that the fake machine
 * of other tests assumes (start times, inheritance, exec). Needs two CPUs; node k is CPU k.
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
#include "numa-migrd/lease.h"
#include "numa-migrd/ledger.h"
#include "numa-migrd/proc.h"

#define BOOT "live"

static struct nm_platform *platform;
static struct nm_topology *topology;
static struct nm_actuator *actuator;
static hwloc_bitmap_t original;
static char root[128];
static int directory;
static pid_t victim;
static int orders[2]; /* to the victim: one letter each */
static int answers[2];

static void start_actuator(void)
{
	assert_int_equal(
		nm_actuator_new(platform, topology, directory, BOOT, NULL, NULL, &actuator), 0);
}

/* ---- the victim: obeys commands on its second thread ---- */

static void answer(uint32_t tid)
{
	if (write(answers[1], &tid, sizeof(tid)) != sizeof(tid))
		_exit(1);
}

static void *wait_for_ever(void *unused)
{
	answer((uint32_t)syscall(SYS_gettid));
	while (pause() < 0)
		continue;
	return unused;
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
	}
	return unused;
}

static uint32_t read_answer(void)
{
	uint32_t tid = 0;
	assert_int_equal(read(answers[0], &tid, sizeof(tid)), sizeof(tid));
	return tid;
}

static uint32_t order(char letter)
{
	assert_int_equal(write(orders[1], &letter, 1), 1);
	return letter == 'x' ? 0 : read_answer();
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
	start_actuator();
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
	nm_actuator_free(actuator);
	hwloc_bitmap_free(original);
	nm_topology_free(topology);
	nm_platform_free(platform);
	close(directory);
	fixture_remove(root);
	return 0;
}

static struct nm_proc_stat stat_of(uint32_t tid)
{
	struct nm_proc_stat stat = {0};
	int fd = nm_proc_open_thread(platform, (uint32_t)victim, tid);
	assert_true(fd >= 0);
	assert_int_equal(nm_proc_read_stat(platform, fd, &stat), 0);
	platform->ops->close(platform, fd);
	return stat;
}

static bool lease(uint32_t tid, unsigned node)
{
	struct nm_decision decision = {
		.id = 1,
		.nr_steps = 1,
		.steps = {{.tid = tid,
			   .pid = (uint32_t)victim,
			   .start_ticks = stat_of(tid).start_ticks,
			   .target = topology->nodes[node].cpus,
			   .original = original}},
	};
	struct nm_plan plan = {.decisions = &decision, .count = 1};
	struct nm_receipt receipt;
	nm_actuator_run(actuator, &plan, platform->ops->now_ns(platform), &receipt);
	return receipt.applied;
}

static void assert_mask(uint32_t tid, hwloc_const_bitmap_t wanted)
{
	hwloc_bitmap_t mask = hwloc_bitmap_alloc();
	assert_int_equal(platform->ops->affinity_get(platform, (pid_t)tid, mask), 0);
	assert_true(hwloc_bitmap_isequal(mask, wanted));
	hwloc_bitmap_free(mask);
}

/* An exec by its second thread; waits until it is done. */
static struct nm_proc_stat exec_victim(void)
{
	struct nm_proc_stat stat;
	order('x');
	do {
		usleep(1000);
		stat = stat_of((uint32_t)victim);
	} while (strcmp(stat.comm, "sleep") != 0);
	return stat;
}

static void test_lease(void **state)
{
	if (*state)
		skip();
	uint32_t tid = start_victim();
	assert_true(lease(tid, 1));
	assert_mask(tid, topology->nodes[1].cpus);
	assert_mask((uint32_t)victim, original);
	assert_true(lease(tid, 0));
	assert_mask(tid, topology->nodes[0].cpus);
	assert_int_equal(nm_actuator_return_all(actuator), 0);
	assert_mask(tid, original);
}

/* Inheritors without records: a thread, a child, and an orphan of the same session. */
static void test_inheritors(void **state)
{
	if (*state)
		skip();
	uint32_t tid = start_victim();
	assert_true(lease(tid, 1));
	uint32_t inheritors[] = {order('t'), order('f'), order('o')};
	for (size_t i = 0; i < NM_ARRAY_SIZE(inheritors); i++)
		assert_mask(inheritors[i], topology->nodes[1].cpus);
	assert_int_equal(nm_actuator_return_all(actuator), 0);
	for (size_t i = 0; i < NM_ARRAY_SIZE(inheritors); i++)
		assert_mask(inheritors[i], original);
	assert_mask(tid, original);
}

static void test_fork_record(void **state)
{
	if (*state)
		skip();
	uint32_t tid = start_victim();
	assert_true(lease(tid, 1));
	uint32_t child = order('f');
	struct nm_task_event event = {.kind = NM_TASK_FORK,
				      .pid = child,
				      .tid = child,
				      .parent_pid = (uint32_t)victim,
				      .parent_tid = tid};
	nm_actuator_task_event(actuator, &event);
	assert_mask(child, original);
	assert_mask(tid, topology->nodes[1].cpus);
}

/* The thread continues with the number and start time of its leader. */
static void test_exec_by_thread(void **state)
{
	if (*state)
		skip();
	uint32_t tid = start_victim();
	struct nm_proc_stat before = stat_of((uint32_t)victim);
	assert_true(lease(tid, 1));
	struct nm_proc_stat after = exec_victim();
	assert_int_equal(after.start_ticks, before.start_ticks);
	assert_mask((uint32_t)victim, topology->nodes[1].cpus);
	assert_int_equal(nm_actuator_return_all(actuator), 0);
	assert_mask((uint32_t)victim, original);
}

/* Exits with a lease on the second thread of the victim. */
static void die_with_lease(uint32_t tid)
{
	int status = 0;
	pid_t child = fork();
	if (child == 0)
		_exit(lease(tid, 1) ? 0 : 1);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_mask(tid, topology->nodes[1].cpus);
}

/* At least N: the parent of the orphan may not be reaped yet. */
static void assert_restored(int wanted)
{
	struct nm_restoration found = {0};
	int returned = nm_restore(platform, topology, directory, BOOT, NULL, NULL, &found);
	assert_true(returned >= wanted);
	assert_int_equal(found.failed, 0);
}

static void test_restore(void **state)
{
	if (*state)
		skip();
	uint32_t tid = start_victim();
	die_with_lease(tid);
	uint32_t inheritors[] = {order('t'), order('f'), order('o')};
	assert_restored(4);
	for (size_t i = 0; i < NM_ARRAY_SIZE(inheritors); i++)
		assert_mask(inheritors[i], original);
	assert_mask(tid, original);
}

static void test_restore_after_exec(void **state)
{
	if (*state)
		skip();
	uint32_t tid = start_victim();
	die_with_lease(tid);
	(void)exec_victim();
	assert_restored(1);
	assert_mask((uint32_t)victim, original);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_lease),	   TEST(test_inheritors), TEST(test_fork_record),
		TEST(test_exec_by_thread), TEST(test_restore),	  TEST(test_restore_after_exec),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
