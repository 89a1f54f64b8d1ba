/* SPDX-License-Identifier: MIT */
/* The same on real directories: the kernel's attributes, owners and inotify. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cmocka.h>

#include "fixture.h"
#include "numa-migrd/steer.h"

static struct {
	char root[FIXTURE_PATH];
	struct nm_platform *platform;
	struct nm_config *config;
	struct nm_steer *steer;
	unsigned changes, gone, troubles[8];
} world;

static void keep_news(void *context, const struct nm_steer_news *news)
{
	(void)context;
	world.troubles[news->trouble]++;
}

static void keep_change(void *context, const char *directory, const struct nm_steering *said)
{
	(void)context, (void)directory;
	world.changes++;
	world.gone += said == NULL;
}

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

static int say(const char *group, const char *word)
{
	char path[256];
	group_path(group, path, sizeof(path));
	return setxattr(path, NM_STEER_ATTRIBUTE, word, strlen(word), 0) < 0 ? -errno : 0;
}

static int set_up(void **state)
{
	static const struct nm_steer_ops ops = {.tell = keep_news, .changed = keep_change};
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
	assert_int_equal(nm_platform_linux_new(&options, &world.platform), 0);
	assert_int_equal(nm_config_default(&world.config), 0);
	return nm_steer_new(world.platform, world.config, &ops, &world.steer);
}

static int tear_down(void **state)
{
	(void)state;
	nm_steer_free(world.steer);
	nm_config_free(world.config);
	nm_platform_free(world.platform);
	fixture_remove(world.root);
	return 0;
}

static void need_attributes(void)
{
	int r = say("/a/b", "off");
	if (r == 0)
		return;
	print_message("no user attributes below %s: %s\n", world.root, strerror(-r));
	skip();
}

static void assert_word(const char *cgroup, enum nm_steer_word word)
{
	struct nm_steering steering;
	assert_int_equal(nm_steer_look(world.steer, cgroup, 0, &steering), 0);
	assert_int_equal(steering.word, word);
}

static void test_change(void **state)
{
	(void)state;
	need_attributes();
	assert_word("/a/b", NM_STEER_OFF);
	assert_int_equal(nm_steer_counts(world.steer).watched, 3);
	assert_int_equal(say("/a/b", "observe"), 0);
	nm_steer_drain(world.steer);
	assert_int_equal(world.changes, 1);
	assert_word("/a/b", NM_STEER_OBSERVE);
	nm_steer_drain(world.steer);
	assert_int_equal(world.changes, 1);
	char path[256];
	group_path("/a/b", path, sizeof(path));
	assert_int_equal(removexattr(path, NM_STEER_ATTRIBUTE), 0);
	nm_steer_drain(world.steer);
	assert_word("/a/b", NM_STEER_NONE);
	assert_int_equal(world.troubles[NM_STEER_UNWATCHED], 0);
}

static void test_only_root_asks(void **state)
{
	bool root = geteuid() == 0;
	char path[256];
	(void)state;
	need_attributes();
	assert_int_equal(say("/a/b", "on"), 0);
	assert_word("/a/b", root ? NM_STEER_ON : NM_STEER_NONE);
	assert_int_equal(world.troubles[NM_STEER_NOT_ROOTS], root ? 0 : 1);
	group_path("/a/b", path, sizeof(path));
	assert_int_equal(chmod(path, 0775), 0);
	nm_steer_drain(world.steer);
	assert_word("/a/b", NM_STEER_NONE);
	assert_int_equal(world.troubles[NM_STEER_NOT_ROOTS], 1);
}

static void test_made_anew(void **state)
{
	char path[256];
	(void)state;
	need_attributes();
	assert_word("/a/b", NM_STEER_OFF);
	group_path("/a/b", path, sizeof(path));
	assert_int_equal(rmdir(path), 0);
	make_group("/a/b");
	nm_steer_drain(world.steer);
	assert_true(world.gone > 0);
	assert_word("/a/b", NM_STEER_NONE);
	assert_int_equal(say("/a/b", "off"), 0);
	nm_steer_drain(world.steer);
	assert_word("/a/b", NM_STEER_OFF);
}

/* Forgotten directories leave no watch behind, whose events would be another's. */
static void test_forgotten(void **state)
{
	(void)state;
	need_attributes();
	assert_word("/a/b", NM_STEER_OFF);
	nm_steer_tend(world.steer, 1000 * NM_NSEC_PER_SEC);
	assert_int_equal(nm_steer_counts(world.steer).directories, 0);
	assert_int_equal(say("/a/b", "observe"), 0);
	nm_steer_drain(world.steer);
	assert_int_equal(world.changes, 0);
	assert_word("/a/b", NM_STEER_OBSERVE);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_change),
		TEST(test_only_root_asks),
		TEST(test_made_anew),
		TEST(test_forgotten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
