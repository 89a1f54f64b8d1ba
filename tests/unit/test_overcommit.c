/* SPDX-License-Identifier: MIT */
#define SET_UP set_up
#define TEAR_DOWN tear_down
#include "../support/test.h"

#include "../support/interval.h"

static struct machine *machine;
static bool refused[64];

/* Two nodes of two CPUs. */
static int set_up(void **state)
{
	(void)state;
	machine = machine_new(2, 2);
	for (size_t i = 0; i < NM_ARRAY_SIZE(refused); i++)
		refused[i] = true;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	machine_free(machine);
	return 0;
}

/* A thread of `share` CPUs whose accesses all go to the node. */
static void add(uint32_t pid, unsigned node, double accesses, double share)
{
	size_t i = machine_thread(machine, pid, 0, -1);
	machine_touch(machine, i, node, accesses);
	machine->sampled[i].stats.run_share = share;
}

static void judge(void)
{
	nm_auto(nm_snapshot_freep) struct nm_snapshot *snapshot = machine_snapshot(machine);
	assert_non_null(snapshot);
	nm_overcommit_refuse(snapshot, refused);
}

/* Two nodes of four CPUs, two per core; `others` CPUs have other load. */
static void judge_siblings(unsigned threads, unsigned others)
{
	machine_free(machine);
	machine = machine_of_size(2, 4, 2, 64);
	for (unsigned i = 0; i < threads; i++)
		add(10, 1, 100, 1);
	machine->busy[0] = 0;
	for (unsigned cpu = 0; cpu < 8; cpu++)
		machine->busy[cpu] = cpu < others ? 1 : 0;
	judge();
}

static unsigned count_refused(unsigned threads)
{
	unsigned count = 0;
	for (unsigned i = 0; i < threads; i++)
		count += refused[i];
	return count;
}

/* If all cores are busy, only siblings are available, on either node. */
TEST(siblings_count_if_all_cores_are_busy)
{
	judge_siblings(4, 8);
	assert_int_equal(count_refused(4), 0);
	judge_siblings(4, 6);
	assert_int_equal(count_refused(4), 1);
}

TEST(processes_with_more_accesses_come_first)
{
	add(10, 1, 100, 1);
	add(20, 1, 80, 1);
	add(20, 1, 80, 1);
	judge();
	assert_true(refused[0]);
	assert_false(refused[1]);
	assert_false(refused[2]);
}

TEST(within_a_process_threads_with_more_accesses_come_first)
{
	add(10, 1, 50, 1);
	add(10, 1, 70, 1);
	add(10, 1, 60, 1);
	judge();
	assert_true(refused[0]);
	assert_false(refused[1]);
	assert_false(refused[2]);
}

TEST(ties_go_to_the_lower_pid_and_tid)
{
	add(20, 1, 50, 1);
	add(10, 1, 25, 1);
	add(10, 1, 25, 1);
	judge();
	assert_true(refused[0]);
	add(10, 1, 25, 1);
	judge();
	assert_true(refused[0]);
	assert_false(refused[1]);
	assert_false(refused[2]);
	assert_true(refused[3]);
}

TEST(remaining_capacity_goes_to_threads_that_fit)
{
	add(10, 1, 100, 0.9);
	add(20, 1, 90, 0.9);
	add(30, 1, 80, 0.9);
	add(40, 1, 70, 0.2);
	judge();
	assert_false(refused[0]);
	assert_false(refused[1]);
	assert_true(refused[2]);
	assert_false(refused[3]);
}

TEST(unusable_cpus_are_no_capacity)
{
	add(10, 1, 100, 0.9);
	add(20, 1, 50, 0.9);
	judge();
	assert_false(refused[1]);
	hwloc_bitmap_clr(machine->topology->usable, 3);
	judge();
	assert_false(refused[0]);
	assert_true(refused[1]);
}

TEST(an_unknown_load_counts_as_a_whole_cpu)
{
	add(10, 1, 100, NAN);
	add(20, 1, 50, 1.4);
	judge();
	assert_false(refused[0]);
	assert_false(refused[1]);
	add(30, 1, 20, 0.01);
	judge();
	assert_true(refused[2]);
}

/* Restricts it to CPUs 2 and 3, those of the node. */
static void bound(size_t i, const char *list)
{
	machine_allow(machine, i, list);
}

TEST(threads_bound_to_one_cpu_share_that_one)
{
	add(10, 1, 100, 0.9);
	add(20, 1, 90, 0.9);
	bound(0, "0-2");
	bound(1, "0-2");
	judge();
	assert_false(refused[0]);
	assert_true(refused[1]);
	bound(1, "0-1,3");
	judge();
	assert_false(refused[1]);
}

TEST(free_threads_use_what_bound_threads_cannot)
{
	add(10, 1, 100, 0.9);
	add(20, 1, 90, 0.9);
	add(30, 1, 80, 0.9);
	bound(0, "0-2");
	bound(1, "0-2");
	judge();
	assert_false(refused[0]);
	assert_true(refused[1]);
	assert_false(refused[2]);
}

/* Beyond the limit of sets, threads count for the whole node. */
TEST(many_sets_are_bounded)
{
	char list[32];
	machine_free(machine);
	machine = machine_of_size(1, 80, 1, 80);
	for (size_t i = 0; i < 80; i++) {
		add(10 + (uint32_t)i, 0, 100, 1);
		snprintf(list, sizeof(list), "%zu", i);
		bound(i, list);
	}
	nm_auto(nm_snapshot_freep) struct nm_snapshot *snapshot = machine_snapshot(machine);
	bool outcome[80];
	nm_overcommit_refuse(snapshot, outcome);
	for (size_t i = 0; i < 80; i++)
		assert_false(outcome[i]);
}

RUN_TESTS()
