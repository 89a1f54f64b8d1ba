/* SPDX-License-Identifier: MIT */
/* A task table on a synthetic machine: four nodes of two CPUs, process 100 with the threads 101 and
 * 102, and process 200. */
#ifndef NM_TEST_ROSTER_FIXTURE_H
#define NM_TEST_ROSTER_FIXTURE_H

#include "../support/machine.h"
#include "fake_platform.h"
#include "tasks/tasks.h"

#define ALL UINT64_C(0xff)
#define SECOND NM_NSEC_PER_SEC

static struct fake *fake;
static struct nm_topology *topology;
static struct nm_config *config;
static struct nm_released_list *memory;
static struct nm_task_table *tasks;

/* State of the fake module of moves. */
static uint32_t moving_tid;
static uint32_t narrowed_tid;
static uint64_t narrowed_original;
static hwloc_bitmap_t reported_original;

static inline bool many_original(void *context, uint32_t tid, uint64_t start_ticks,
				 hwloc_const_bitmap_t current, hwloc_const_bitmap_t *ret_original,
				 bool *ret_unrestricted)
{
	(void)context, (void)current;
	assert_int_equal(start_ticks, fake_get(fake, tid)->start_ticks);
	if (tid != narrowed_tid)
		return false;
	fake_to_bitmap(narrowed_original, reported_original);
	*ret_original = reported_original;
	*ret_unrestricted = true;
	return true;
}

static inline bool many_is_moving(void *context, uint32_t tid, uint64_t start_ticks)
{
	(void)context, (void)start_ticks;
	return tid == moving_tid;
}

/* 0: no such thread */
static inline uint64_t start_of(uint32_t tid)
{
	const struct fake_thread *thread = fake_find(fake, tid);
	return thread ? thread->start_ticks : 0;
}

static inline void open_tasks(void)
{
	struct nm_move_lookup moves = {.original = many_original, .is_moving = many_is_moving};
	nm_task_table_new(&fake->platform, topology, config, &moves, memory, &tasks);
}

static inline int set_up(void **state)
{
	(void)state;
	fake = fake_new(8);
	topology = machine_topology(4, 8);
	topology->llc_bytes = 16U << 20;
	reported_original = hwloc_bitmap_alloc();
	moving_tid = narrowed_tid = 0;
	assert_int_equal(nm_config_default(&config), 0);
	nm_released_list_new(&memory);
	open_tasks();
	fake_process(fake, 100, 1);
	fake_clone(fake, 100, 101);
	fake_clone(fake, 100, 102);
	fake_process(fake, 200, 1);
	fake_sleep(fake, 60000);
	fake->nr_events = 0;
	return 0;
}

static inline int tear_down(void **state)
{
	unsigned open_fds = fake_open_fds(fake);
	(void)state;
	nm_task_table_free(tasks);
	nm_released_list_free(memory);
	nm_config_free(config);
	nm_topology_free(topology);
	hwloc_bitmap_free(reported_original);
	nm_platform_free(&fake->platform);
	assert_int_equal(open_fds, 0);
	return 0;
}

static inline int compare_sampled(const void *a, const void *b)
{
	uint32_t left = ((const struct nm_sampled_thread *)a)->tid;
	uint32_t right = ((const struct nm_sampled_thread *)b)->tid;
	return (left > right) - (left < right);
}

/* An interval of 1 s in which all threads with numbers above 99 used this share of a CPU. */
static inline void run_all(double share)
{
	struct nm_sampled_thread sampled[FAKE_THREADS];
	size_t count = 0;
	fake_sleep(fake, 1000);
	for (size_t i = 0; i < FAKE_THREADS; i++) {
		const struct fake_thread *thread = &fake->threads[i];
		if (thread->alive && thread->tid >= 100)
			sampled[count++] = (struct nm_sampled_thread){.pid = thread->pid,
								      .tid = thread->tid,
								      .stats.run_samples = 10,
								      .stats.run_share = share};
	}
	qsort(sampled, count, sizeof(*sampled), compare_sampled);
	assert_int_equal(nm_tasks_update(tasks, sampled, count, fake->now_ns), 0);
}

static inline void run_one(uint32_t pid, uint32_t tid, double share)
{
	struct nm_sampled_thread sampled = {
		.pid = pid, .tid = tid, .stats.run_samples = 10, .stats.run_share = share};
	fake_sleep(fake, 1000);
	assert_int_equal(nm_tasks_update(tasks, &sampled, 1, fake->now_ns), 0);
}

static inline void run_none(unsigned seconds)
{
	for (unsigned i = 0; i < seconds; i++) {
		fake_sleep(fake, 1000);
		assert_int_equal(nm_tasks_update(tasks, NULL, 0, fake->now_ns), 0);
	}
}

static inline void drain(void)
{
	for (unsigned i = 0; i < fake->nr_events; i++)
		nm_tasks_task_event(tasks, &fake->events[i], fake->now_ns);
	fake->nr_events = 0;
}

static inline const struct nm_managed_thread *find_managed(uint32_t tid)
{
	const struct nm_managed_thread *managed;
	size_t count = nm_tasks_managed(tasks, &managed);
	for (size_t i = 1; i < count; i++)
		assert_true(managed[i - 1].tid < managed[i].tid);
	for (size_t i = 0; i < count; i++)
		if (managed[i].tid == tid)
			return &managed[i];
	return NULL;
}

/* A managed thread may be moved, unless its process is observed; others may be in the list, too. */
static inline void assert_managed(uint32_t tid, bool managed)
{
	enum nm_eligibility eligibility = NM_ELIGIBILITY_SMALL;
	(void)nm_tasks_thread_eligibility(tasks, tid, &eligibility);
	if ((find_managed(tid) && eligibility == NM_ELIGIBILITY_MANAGED) != managed)
		fail_msg("thread %u is%s managed", tid, managed ? " not" : "");
}

#endif
