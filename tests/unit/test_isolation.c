/* SPDX-License-Identifier: MIT */
/* Isolated CPUs are noticed when they change, with bounded work. */
#define SET_UP set_up
#define TEAR_DOWN tear_down
#include "../support/test.h"

#include "fixture.h"
#include "platform/isolation.h"
#include "numa-migrd/topology.h"

enum { MOST_PATH = 256 };

static char root[MOST_PATH];
static struct nm_platform *platform;
static struct nm_platform_ops counted;
static const struct nm_platform_ops *real;
static struct nm_isolation isolation;
static unsigned reads, lists;
static uint64_t now_ns;

static ssize_t count_read(struct nm_platform *self, int directory, const char *path, char *buffer,
			  size_t size)
{
	reads++;
	return real->read_file(self, directory, path, buffer, size);
}

static int count_list(struct nm_platform *self, int directory, const char *path, nm_name_fn each,
		      void *context)
{
	lists++;
	return real->list_directory(self, directory, path, each, context);
}

static int set_up(void **state)
{
	struct nm_platform_options options = {.root_path = root};
	(void)state;
	fixture_make(root, sizeof(root));
	fixture_directory(root, "proc");
	fixture_directory(root, "sys");
	fixture_directory(root, "sys/devices");
	fixture_directory(root, "sys/devices/system");
	fixture_directory(root, "sys/devices/system/cpu");
	fixture_directory(root, "sys/fs");
	fixture_directory(root, "sys/fs/cgroup");
	fixture_file(root, "sys/devices/system/cpu/online", "0-7\n");
	fixture_file(root, "sys/devices/system/cpu/isolated", "\n");
	fixture_file(root, "sys/fs/cgroup/cpuset.cpus.effective", "0-7\n");
	assert_int_equal(nm_platform_linux_new(&options, &platform), 0);
	real = platform->ops;
	counted = *real;
	counted.read_file = count_read;
	counted.list_directory = count_list;
	platform->ops = &counted;
	isolation = (struct nm_isolation){0};
	now_ns = NM_NSEC_PER_SEC;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	platform->ops = real;
	nm_platform_free(platform);
	fixture_remove(root);
	return 0;
}

static int follow(unsigned seconds)
{
	now_ns += seconds * NM_NSEC_PER_SEC;
	reads = lists = 0;
	return nm_isolation_follow(&isolation, platform, now_ns);
}

static void partition(const char *name, const char *kind, const char *cpus)
{
	char path[MOST_PATH];
	(void)snprintf(path, sizeof(path), "sys/fs/cgroup/%s", name);
	fixture_directory(root, path);
	(void)snprintf(path, sizeof(path), "sys/fs/cgroup/%s/cpuset.cpus.partition", name);
	fixture_file(root, path, kind);
	(void)snprintf(path, sizeof(path), "sys/fs/cgroup/%s/cpuset.cpus.effective", name);
	fixture_file(root, path, cpus);
}

TEST(nothing_is_searched_without_partitions)
{
	partition("system.slice", "member\n", "0-7\n");
	assert_int_equal(follow(0), 1);
	assert_int_equal(follow(60), 0);
	assert_in_range(reads, 1, 4);
	assert_int_equal(lists, 0);
}

/* Noticed by the next call. */
TEST(lists_of_the_kernel_are_followed)
{
	assert_int_equal(follow(0), 1);
	fixture_file(root, "sys/fs/cgroup/cpuset.cpus.isolated", "6-7\n");
	fixture_file(root, "sys/fs/cgroup/cpuset.cpus.effective", "0-5\n");
	assert_int_equal(follow(1), 1);
	assert_string_equal(isolation.isolated, "6-7");
	assert_int_equal(follow(1), 0);
	assert_int_equal(lists, 0);
	fixture_file(root, "sys/devices/system/cpu/isolated", "1\n");
	assert_int_equal(follow(1), 1);
	assert_string_equal(isolation.isolated, "1,6-7");
	fixture_file(root, "sys/devices/system/cpu/isolated", "\n");
	fixture_file(root, "sys/fs/cgroup/cpuset.cpus.isolated", "\n");
	fixture_file(root, "sys/fs/cgroup/cpuset.cpus.effective", "0-7\n");
	assert_int_equal(follow(1), 1);
}

/* Before Linux 6.7. */
TEST(partitions_are_found_among_the_cgroups)
{
	assert_int_equal(follow(0), 1);
	partition("a", "isolated\n", "6-7\n");
	partition("b", "isolated invalid (Cpu list in cpuset.cpus not exclusive)\n", "0-1\n");
	fixture_file(root, "sys/fs/cgroup/cpuset.cpus.effective", "0-5\n");
	assert_int_equal(follow(1), 1);
	assert_string_equal(isolation.isolated, "6-7");
	assert_int_equal(follow(1), 0);
	assert_int_equal(lists, 0);
	/* Its kind changes, not its CPUs. */
	partition("a", "root\n", "6-7\n");
	assert_true(follow(4) + follow(5) == 1);
	assert_string_equal(isolation.isolated, "");
	/* One inside of another. */
	partition("a/inner", "isolated\n", "7\n");
	partition("a", "root\n", "6\n");
	assert_int_equal(follow(9), 1);
	assert_string_equal(isolation.isolated, "7");
	partition("a", "member\n", "0-7\n");
	fixture_file(root, "sys/fs/cgroup/cpuset.cpus.effective", "0-7\n");
	assert_int_equal(follow(1), 1);
	assert_string_equal(isolation.isolated, "");
}

/* A partition of ordinary CPUs changes what others may use. */
TEST(partitions_that_are_not_isolated_are_changes)
{
	assert_int_equal(follow(0), 1);
	partition("a", "root\n", "4-7\n");
	fixture_file(root, "sys/fs/cgroup/cpuset.cpus.effective", "0-3\n");
	assert_int_equal(follow(1), 1);
	assert_string_equal(isolation.isolated, "");
}

TEST(work_is_bounded)
{
	char name[32];
	for (unsigned i = 0; i < 1500; i++) {
		(void)snprintf(name, sizeof(name), "sys/fs/cgroup/g%u", i);
		fixture_directory(root, name);
	}
	fixture_file(root, "sys/fs/cgroup/cpuset.cpus.effective", "0-5\n");
	/* The last one by its number, wherever the directory lists it. */
	partition("g1499", "isolated\n", "6-7\n");
	partition("g0", "root\n", "0-5\n");
	for (unsigned i = 0; i < 600; i++) {
		(void)snprintf(name, sizeof(name), "sys/fs/cgroup/g0/h%u", i);
		fixture_directory(root, name);
	}
	for (unsigned second = 1; second <= 10; second++) {
		(void)follow(1);
		assert_in_range(reads, 1, 600);
		assert_in_range(lists, 0, 3);
	}
	assert_string_equal(isolation.isolated, "6-7");
	unsigned most = 0;
	for (unsigned second = 1; second <= 10; second++) {
		assert_int_equal(follow(1), 0);
		most = reads > most ? reads : most;
	}
	assert_in_range(most, 500, 600);
}

RUN_TESTS()
