/* SPDX-License-Identifier: MIT */
/* Limits of cgroups: bounded at any depth, and read once per tick. */
#define SET_UP set_up
#define TEAR_DOWN tear_down
#include "../support/test.h"

#include <math.h>

#include "fake_platform.h"
#include "numa-migrd/proc.h"

static struct fake *fake;
static struct nm_cgroups *cgroups;
static hwloc_bitmap_t cpus;

static int set_up(void **state)
{
	(void)state;
	fake = fake_new(8);
	cpus = hwloc_bitmap_alloc();
	cgroups = nm_cgroups_new(&fake->platform);
	return 0;
}

static int tear_down(void **state)
{
	unsigned open_fds = fake_open_fds(fake);
	(void)state;
	nm_cgroups_free(cgroups);
	hwloc_bitmap_free(cpus);
	nm_platform_free(&fake->platform);
	assert_int_equal(open_fds, 0);
	return 0;
}

static void assert_cpus(const char *cgroup, uint64_t wanted, bool wanted_root)
{
	bool root = !wanted_root;
	assert_int_equal(nm_cgroups_cpus(cgroups, cgroup, cpus, &root), 0);
	assert_int_equal(fake_from_bitmap(cpus), wanted);
	assert_int_equal(root, wanted_root);
}

static unsigned reads(void)
{
	return fake->calls[FAKE_READ];
}

static char *deep_path(unsigned levels)
{
	static char path[8000];
	path[0] = '\0';
	for (unsigned i = 0; i < levels; i++)
		strcat(path, "/x");
	return path;
}

TEST(test_nearest_ancestor_with_a_cpuset)
{
	fake_cpuset(fake, "/a", 0x0f);
	fake_cpuset(fake, "/a/b", 0x03);
	assert_cpus("/a/b", 0x03, false);
	assert_cpus("/a/b/c/d", 0x03, false);
	assert_cpus("/a/d/e", 0x0f, false);
	assert_cpus("/d", 0xff, true);
	assert_cpus("/", 0xff, true);
	assert_cpus("", 0xff, true);
}

TEST(test_unknown)
{
	bool root = true;
	/* Outside of our cgroup namespace. */
	assert_int_equal(nm_cgroups_cpus(cgroups, "/../a", cpus, &root), -ENODATA);
	assert_int_equal(nm_cgroups_cpus(cgroups, "a", cpus, &root), -ENODATA);
	assert_int_equal(reads(), 0);
	fake->no_cpusets = true;
	assert_int_equal(nm_cgroups_cpus(cgroups, "/a/b", cpus, &root), -ENODATA);
	assert_int_equal(reads(), 1);
	assert_true(root);
}

/* A failure due to a lack of resources is an error, and is retried. */
TEST(test_passing_error)
{
	fake_cpuset(fake, "/a", 0x0f);
	fake_fail(fake, FAKE_READ, 2, 1, EMFILE);
	assert_int_equal(nm_cgroups_cpus(cgroups, "/a", cpus, NULL), -EMFILE);
	assert_cpus("/a", 0x0f, false);
}

/* Any user of systemd can nest thousands of cgroups. */
TEST(test_depth)
{
	/* SECURITY: many-groups */
	assert_cpus(deep_path(32), 0xff, true);
	assert_int_equal(reads(), 2);
	assert_int_equal(nm_cgroups_cpus(cgroups, deep_path(33), cpus, NULL), -ENODATA);
	assert_int_equal(nm_cgroups_cpus(cgroups, deep_path(1900), cpus, NULL), -ENODATA);
	assert_int_equal(reads(), 2);
	for (unsigned levels = 1; levels <= 40; levels++)
		fake_cpuset(fake, deep_path(levels), 0xff);
	nm_cgroups_forget(cgroups);
	assert_cpus(deep_path(32), 0xff, false);
	assert_int_equal(reads(), 2 + 33);
	assert_int_equal(nm_cgroups_calls(cgroups), reads());
}

TEST(test_read_once_in_a_tick)
{
	fake_cpuset(fake, "/a", 0x0f);
	nm_cgroups_begin(cgroups, 1000);
	for (unsigned i = 0; i < 100; i++) {
		nm_cgroups_begin(cgroups, 1000);
		assert_cpus("/a/b", 0x0f, false);
	}
	assert_int_equal(reads(), 3);
	fake_cpuset(fake, "/a", 0x03);
	assert_cpus("/a/b", 0x0f, false);
	nm_cgroups_begin(cgroups, 2000);
	assert_cpus("/a/b", 0x03, false);
}

/* Thousands of cgroups of a user: each costs its own reads only, and memory is bounded. */
TEST(test_many_siblings)
{
	/* SECURITY: many-groups */
	char path[64];
	fake_cpuset(fake, "/a", 0x0f);
	for (unsigned i = 0; i < 10000; i++) {
		snprintf(path, sizeof(path), "/a/%u/b/c/d", i);
		assert_cpus(path, 0x0f, false);
	}
	assert_in_range(reads(), 10000, 10100);
}

static void assert_cpus_of(uint32_t tid, uint64_t wanted)
{
	int directory = nm_proc_open_thread(&fake->platform, 0, tid);
	assert_true(directory >= 0);
	assert_int_equal(nm_cgroups_cpuset_of(cgroups, directory, cpus, NULL, NULL), 0);
	assert_int_equal(fake_from_bitmap(cpus), wanted);
	fake->platform.ops->close(&fake->platform, directory);
}

/* The kernel names the effective cgroup: three reads at any depth, then one. */
TEST(test_named_by_the_kernel)
{
	fake_process(fake, 100, 1);
	fake_cpuset(fake, "/a", 0x0f);
	fake_move(fake, 100, "/a/b/c/d/e/f/g/h");
	fake->names_cpusets = true;
	assert_cpus_of(100, 0x0f);
	assert_int_equal(reads(), 3);
	assert_cpus_of(100, 0x0f);
	assert_int_equal(reads(), 4);
	fake_move(fake, 100, "/other");
	assert_cpus_of(100, 0xff);
	fake->names_cpusets = false;
	fake_move(fake, 100, "/a/b");
	assert_cpus_of(100, 0x0f);
}

TEST(test_thread_that_ended)
{
	fake_process(fake, 100, 1);
	int directory = nm_proc_open_thread(&fake->platform, 0, 100);
	fake_kill(fake, 100);
	assert_int_equal(nm_cgroups_cpuset_of(cgroups, directory, cpus, NULL, NULL), -ESRCH);
	fake->platform.ops->close(&fake->platform, directory);
}

static void limit(const char *path, const char *text)
{
	unsigned i = fake->nr_limits++;
	snprintf(fake->limits[i].path, sizeof(fake->limits[i].path), "%s", path);
	snprintf(fake->limits[i].text, sizeof(fake->limits[i].text), "%s", text);
}

static double limit_of(const char *path)
{
	double found = -1;
	assert_int_equal(nm_cgroups_cpu_limit(cgroups, path, &found), 0);
	return found;
}

static bool yields(const char *path)
{
	bool found = false;
	assert_int_equal(nm_cgroups_yields(cgroups, path, &found), 0);
	return found;
}

/* cpu.idle shows as a weight of 0; the lowest weight that can be set is 1. */
TEST(test_cpu_weight)
{
	static const struct {
		const char *path, *weight;
	} groups[] = {{"/idle", "0"},	    {"/idle/below", "100"},  {"/lowest", "1"},
		      {"/low", "2"},	    {"/usual", "100"},	     {"/usual/idle", "0"},
		      {"/damaged", "none"}, {"/usual/high", "10000"}};
	for (size_t i = 0; i < NM_ARRAY_SIZE(groups); i++) {
		limit(groups[i].path, "");
		snprintf(fake->limits[i].weight, sizeof(fake->limits[i].weight), "%s",
			 groups[i].weight);
	}
	assert_true(yields("/idle") && yields("/idle/below") && yields("/idle/below/none"));
	assert_true(yields("/lowest") && yields("/usual/idle"));
	assert_false(yields("/low") || yields("/usual") || yields("/usual/high"));
	assert_false(yields("/damaged") || yields("/none") || yields("/"));
}

TEST(test_cpu_limit)
{
	double untouched = -1;
	limit("/a", "150000 100000");
	limit("/a/b", "max 100000");
	limit("/a/b/c", "400000 100000");
	limit("/a/b/d", "10000 100000");
	limit("/bad", "many");
	assert_true(limit_of("/a") == 1.5);
	/* The minimum of a cgroup and its ancestors. */
	assert_true(limit_of("/a/b/c") == 1.5);
	assert_true(limit_of("/a/b/d/e") == 0.1);
	assert_true(isinf(limit_of("/")));
	assert_true(isinf(limit_of("/none/at/all")));
	assert_true(isinf(limit_of("/bad")));
	assert_int_equal(nm_cgroups_cpu_limit(cgroups, deep_path(33), &untouched), -ENODATA);
	assert_true(untouched == -1);
}

RUN_TESTS()
