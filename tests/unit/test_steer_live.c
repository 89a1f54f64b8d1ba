/* SPDX-License-Identifier: MIT */
/* The attribute of real directories: values and owners from the kernel. */
#define SET_UP set_up
#define TEAR_DOWN tear_down
#include "../support/test.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "fixture.h"
#include "tasks/tasks.h"

static struct {
	char root[FIXTURE_PATH];
	struct nm_platform *platform;
} world;

static void group_path(const char *group, char *path, size_t size)
{
	(void)snprintf(path, size, "%s/sys/fs/cgroup%s", world.root, group);
}

static void make_group(const char *group)
{
	char path[256];
	group_path(group, path, sizeof(path));
	assert_int_equal(mkdir(path, 0755), 0);
	assert_int_equal(chmod(path, 0755), 0);
}

static int set_attribute(const char *group, const char *word)
{
	char path[256];
	group_path(group, path, sizeof(path));
	return setxattr(path, NM_STEER_ATTRIBUTE, word, strlen(word), 0) < 0 ? -errno : 0;
}

static int set_up(void **state)
{
	char path[256];
	(void)state;
	memset(&world, 0, sizeof(world));
	fixture_make(world.root, sizeof(world.root));
	static const char *const directories[] = {"proc", "sys", "sys/fs"};
	for (size_t i = 0; i < NM_ARRAY_SIZE(directories); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", world.root, directories[i]);
		assert_int_equal(mkdir(path, 0755), 0);
	}
	make_group("");
	make_group("/a");
	make_group("/a/b");
	struct nm_platform_options options = {.root_path = world.root};
	return nm_platform_linux_new(&options, &world.platform);
}

static int tear_down(void **state)
{
	(void)state;
	nm_platform_free(world.platform);
	fixture_remove(world.root);
	return 0;
}

static void need_attributes(void)
{
	int r = set_attribute("/a/b", "off");
	if (r == 0)
		return;
	print_message("no user attributes below %s: %s\n", world.root, strerror(-r));
	skip();
}

static void assert_value(const char *cgroup, enum nm_steer_value value)
{
	struct nm_steering steering;
	assert_int_equal(nm_steer_read(world.platform, cgroup, &steering), 0);
	assert_int_equal(steering.value, value);
}

TEST(test_change)
{
	char path[256];
	need_attributes();
	assert_value("/a/b", NM_STEER_OFF);
	assert_int_equal(set_attribute("/a/b", "observe"), 0);
	assert_value("/a/b", NM_STEER_OBSERVE);
	group_path("/a/b", path, sizeof(path));
	assert_int_equal(removexattr(path, NM_STEER_ATTRIBUTE), 0);
	assert_value("/a/b", NM_STEER_NONE);
	assert_value("/a/b/c", NM_STEER_NONE);
}

TEST(test_only_root_asks)
{
	bool root = geteuid() == 0;
	char path[256];
	need_attributes();
	assert_int_equal(set_attribute("/a/b", "on"), 0);
	assert_value("/a/b", root ? NM_STEER_ON : NM_STEER_NONE);
	group_path("/a/b", path, sizeof(path));
	assert_int_equal(chmod(path, 0775), 0);
	assert_value("/a/b", NM_STEER_NONE);
}

/* The kernel allows values of 64 KiB and more. */
TEST(test_long_value)
{
	static char value[1000];
	need_attributes();
	memset(value, 'x', sizeof(value) - 1);
	assert_int_equal(set_attribute("/a/b", value), 0);
	assert_value("/a/b", NM_STEER_OBSERVE);
}

RUN_TESTS()
