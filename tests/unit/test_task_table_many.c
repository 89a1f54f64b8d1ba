/* SPDX-License-Identifier: MIT */
/* Any number of threads: all are examined in turn, and each interval takes bounded time. */
#include "../support/test.h"

#include <stdint.h>

#include <stdio.h>
#include <string.h>

#include "../../src/tasks/task_table.h"
#include "../support/fake_ask.h"
#include "../support/machine.h"

#define PID 1000U
#define THREADS (4 * NM_TASKS_LOOKS + 100)
#define SECOND NM_NSEC_PER_SEC

static unsigned looks;
static uint64_t now_ns = 1000 * SECOND;

/* ---- /proc of one process whose directories have the numbers of its threads ---- */

static uint64_t many_now_ns(struct nm_platform *platform)
{
	(void)platform;
	return now_ns;
}

static int many_open_directory(struct nm_platform *platform, int directory, const char *path)
{
	unsigned tid;
	(void)platform, (void)directory;
	if (sscanf(path, "proc/1000/task/%u", &tid) != 1)
		return sscanf(path, "proc/%u", &tid) == 1 ? (int)tid : -ENOENT;
	looks++;
	return (int)tid;
}

static void many_close(struct nm_platform *platform, int fd)
{
	(void)platform, (void)fd;
}

static ssize_t many_read_file(struct nm_platform *platform, int directory, const char *path,
			      char *buffer, size_t size)
{
	(void)platform;
	if (strcmp(path, "stat") == 0)
		return snprintf(buffer, size,
				"%d (x) R 1 %u %u 0 -1 0 11 0 12 0 13 14 0 0 20 0 1 0 5000 4096 25 "
				"1 1 1 140000000 0 0 0 0 0 0 0 0 0 %d 0 0 0 0 0 0 0 0 0 0 0 0 0 "
				"0\n",
				directory, PID, PID, directory == (int)PID ? 17 : -1);
	if (strcmp(path, "statm") == 0)
		return snprintf(buffer, size, "1048576 1048576 0 0 0 0 0\n");
	if (strcmp(path, "cgroup") == 0)
		return snprintf(buffer, size, "0::/\n");
	if (strstr(path, "cpuset.cpus.effective"))
		return snprintf(buffer, size, "0-7\n");
	return -ENOENT;
}

static int many_list_directory(struct nm_platform *platform, int directory, const char *path,
			       nm_name_fn each, void *context)
{
	(void)platform, (void)directory, (void)path, (void)each, (void)context;
	return 0;
}

static int many_owner(struct nm_platform *platform, int directory, struct nm_owner *ret)
{
	(void)platform, (void)directory;
	*ret = (struct nm_owner){.uid = 1};
	return 0;
}

static int many_affinity_get(struct nm_platform *platform, pid_t tid, hwloc_bitmap_t ret)
{
	(void)platform, (void)tid;
	return hwloc_bitmap_set_range(ret, 0, 7);
}

static const struct nm_platform_ops ops = {
	FAKE_ASK,
	.now_ns = many_now_ns,
	.open_directory = many_open_directory,
	.close = many_close,
	.read_file = many_read_file,
	.list_directory = many_list_directory,
	.owner = many_owner,
	.affinity_get = many_affinity_get,
};

/* ---- */

static struct nm_sampled_thread sampled[THREADS];

/* An interval in which all of them ran; returns how many were examined. */
static unsigned interval(struct nm_task_table *tasks)
{
	looks = 0;
	now_ns += SECOND;
	assert_int_equal(nm_tasks_update(tasks, sampled, THREADS, now_ns), 0);
	return looks;
}

/* SECURITY: managed, many-threads */
TEST(all_threads_are_examined_in_turn)
{
	struct nm_platform platform = {.ops = &ops};
	nm_auto(nm_topology_freep) struct nm_topology *topology = machine_topology(4, 8);
	nm_auto(nm_config_freep) struct nm_config *config = NULL;
	nm_auto(nm_released_list_freep) struct nm_released_list *memory = NULL;
	nm_auto(nm_task_table_freep) struct nm_task_table *tasks = NULL;
	assert_int_equal(nm_config_default(&config), 0);
	config->targets.min_cpu_percent = 0;
	config->targets.min_rss_mb = 1;
	nm_released_list_new(&memory);
	nm_task_table_new(&platform, topology, config, NULL, memory, &tasks);
	for (uint32_t i = 0; i < THREADS; i++)
		sampled[i] = (struct nm_sampled_thread){
			.tid = PID + i, .pid = PID, .stats.run_samples = 1, .stats.run_share = 0.1};

	for (unsigned round = 1; round <= 4; round++) {
		assert_true(interval(tasks) <= NM_TASKS_LOOKS);
		assert_int_equal(nm_tasks_counts(tasks).threads_managed, round * NM_TASKS_LOOKS);
	}
	assert_int_equal(interval(tasks), THREADS - 4 * NM_TASKS_LOOKS);
	assert_int_equal(nm_tasks_counts(tasks).threads_managed, THREADS);
	for (unsigned round = 0; round < 4; round++)
		assert_int_equal(interval(tasks), 0);

	/* Known data is at least ten seconds old now: as many again, in order. */
	unsigned again = 0;
	now_ns += 10 * SECOND;
	for (unsigned round = 0; round < 4; round++) {
		assert_int_equal(interval(tasks), NM_TASKS_LOOKS);
		again += looks;
	}
	assert_int_equal(interval(tasks), THREADS - again);
	assert_int_equal(nm_tasks_counts(tasks).threads_managed, THREADS);
}

RUN_TESTS()
