/* SPDX-License-Identifier: MIT */
/* Moves on the running kernel, of a victim that obeys orders on its second thread. Needs two CPUs;
 * node k is CPU k. Include after cmocka.h. */
#ifndef NM_TEST_MOVE_LIVE_FIXTURE_H
#define NM_TEST_MOVE_LIVE_FIXTURE_H

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "../support/machine.h"
#include "fixture.h"
#include "affinity/move.h"
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

static inline void start_moves(void)
{
	assert_int_equal(nm_moves_new(platform, topology, directory, BOOT, NULL, NULL, &moves), 0);
}

static inline void answer(uint32_t number)
{
	if (write(answers[1], &number, sizeof(number)) != sizeof(number))
		_exit(1);
}

static inline uint32_t read_answer(void)
{
	uint32_t number = 0;
	assert_int_equal(read(answers[0], &number, sizeof(number)), sizeof(number));
	return number;
}

static inline void give(char letter)
{
	assert_int_equal(write(orders[1], &letter, 1), 1);
}

static inline uint32_t order(char letter)
{
	give(letter);
	return read_answer();
}

/* Returns the number of its second thread. */
static inline uint32_t live_start(void *(*obey)(void *))
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

static inline int set_up(void **state)
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

static inline int tear_down(void **state)
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

static inline uint64_t start_of(uint32_t tid)
{
	struct nm_proc_stat stat = {0};
	assert_int_equal(nm_proc_stat_of(platform, (uint32_t)victim, tid, &stat), 0);
	return stat.start_ticks;
}

static inline uint64_t now_ns(void)
{
	return platform->ops->now_ns(platform);
}

static inline bool move_task(uint32_t pid, uint32_t tid, uint64_t start_ticks, unsigned node)
{
	struct nm_decision decision = {
		.id = 1,
		.nr_steps = 1,
		.steps = {{.tid = tid,
			   .pid = pid,
			   .start_ticks = start_ticks,
			   .target = topology->nodes[node].cpus,
			   .original = original}},
	};
	struct nm_plan plan = {.decisions = &decision, .count = 1};
	struct nm_receipt receipt;
	nm_moves_run(moves, &plan, NULL, now_ns(), &receipt);
	return receipt.applied;
}

static inline bool move_to(uint32_t tid, unsigned node)
{
	return move_task((uint32_t)victim, tid, start_of(tid), node);
}

/* Until the window is over. */
static inline void wait_for_window(void)
{
	while (nm_moves_open(moves) > 0) {
		usleep(5000);
		nm_moves_poll(moves, now_ns());
	}
}

static inline void assert_mask(uint32_t tid, hwloc_const_bitmap_t wanted)
{
	nm_autobitmap mask = hwloc_bitmap_alloc();
	assert_int_equal(platform->ops->affinity_get(platform, (pid_t)tid, mask), 0);
	assert_true(hwloc_bitmap_isequal(mask, wanted));
}

static inline void print_counts(const char *of)
{
	struct nm_move_counts counts = nm_moves_counts(moves);
	print_message("%s: %lu narrowed, %lu moved, %lu not; longest call %.3f ms\n", of,
		      (unsigned long)counts.asked, (unsigned long)counts.arrived,
		      (unsigned long)counts.missed, (double)counts.longest_ns * 1e-6);
}

#endif
