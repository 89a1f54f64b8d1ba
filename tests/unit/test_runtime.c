/* SPDX-License-Identifier: MIT */
/* The runtime directory: its required owner, and files that others may have put there. */
#define SET_UP set_up
#define TEAR_DOWN tear_down
#include "../support/test.h"

#include "ticks_fixture.h"

#define BEYOND 1000000U /* an unused uid */

static char root[FIXTURE_PATH / 4];
static char path[FIXTURE_PATH];

static int set_up(void **state)
{
	(void)state;
	fixture_make(root, sizeof(root));
	snprintf(path, sizeof(path), "%s/run", root);
	assert_int_equal(mkdir(path, 0700), 0);
	setenv("RUNTIME_DIRECTORY", path, 1);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	fixture_remove(root);
	return 0;
}

static int try_open(void)
{
	struct nm_daemon daemon = {.runtime.directory = -1};
	int r = nm_runtime_open(&daemon.runtime);
	assert_true((r == 0) == (daemon.runtime.directory >= 0));
	nm_runtime_close(&daemon.runtime, true);
	return r;
}

TEST(our_own_directory_is_accepted)
{
	assert_int_equal(try_open(), 0);
}

/* SECURITY: runtime-directory */
TEST(a_directory_writable_by_others_is_refused)
{
	static const mode_t modes[] = {0770, 0720, 0707, 0702, 01777};
	for (size_t i = 0; i < NM_ARRAY_SIZE(modes); i++) {
		assert_int_equal(chmod(path, modes[i]), 0);
		assert_int_equal(try_open(), -EPERM);
	}
}

/* SECURITY: runtime-directory */
TEST(a_link_is_refused)
{
	char link[FIXTURE_PATH];
	snprintf(link, sizeof(link), "%s/link", root);
	assert_int_equal(symlink(path, link), 0);
	setenv("RUNTIME_DIRECTORY", link, 1);
	assert_true(try_open() < 0);
}

TEST(a_file_is_refused)
{
	char file[FIXTURE_PATH];
	fixture_file(root, "file", "");
	snprintf(file, sizeof(file), "%s/file", root);
	setenv("RUNTIME_DIRECTORY", file, 1);
	assert_int_equal(try_open(), -ENOTDIR);
}

/* In a process that is not root, like the service. */
/* SECURITY: runtime-directory */
TEST(a_directory_of_another_user_is_refused)
{
	int status;
	if (geteuid() != 0) {
		print_message("needs root to change the owner of a directory: skipped\n");
		skip();
	}
	assert_int_equal(chmod(root, 0755), 0);
	assert_int_equal(chown(path, BEYOND, BEYOND), 0);
	assert_int_equal(chmod(path, 0755), 0);
	pid_t child = fork();
	if (child == 0)
		_exit(setresuid(BEYOND + 1, BEYOND + 1, BEYOND + 1) == 0 && try_open() == -EPERM
			      ? 0
			      : 1);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* ---- existing entries with the names of our files ---- */

static struct world *world;

/* The daemon starts, moves the worker and restores it; `kept` is unchanged. */
static void assert_it_works(const char *kept)
{
	int stderr_fd = world_mute(world);
	struct nm_daemon *service = service_open(world);
	for (unsigned i = 0; i < 30 && !world_moved(world, 100); i++)
		assert_int_equal(nm_tick(service), 0);
	bool moved = world_moved(world, 100);
	service_close(service);
	world_unmute(stderr_fd);
	assert_true(moved);
	assert_null(fake_trace(world->fake));
	assert_string_equal(fixture_read(root, kept), "precious\n");
}

static void with_link(const char *name)
{
	char target[FIXTURE_PATH], link[FIXTURE_PATH + 64];
	world = world_new();
	world_worker(world, 100, 1);
	fake_sleep(world->fake, 60000);
	fixture_file(root, "precious", "precious\n");
	snprintf(target, sizeof(target), "%s/precious", root);
	snprintf(link, sizeof(link), "%s/%s", world->root, name);
	assert_int_equal(symlink(target, link), 0);
	assert_it_works("precious");
	world_free(world);
}

/* SECURITY: ledger */
TEST(a_link_instead_of_the_record_is_set_aside)
{
	with_link("moves");
	with_link("ledger");
}

/* SECURITY: new-files */
TEST(links_in_the_place_of_new_files_are_replaced)
{
	with_link("moves.damaged");
	with_link("given-back");
	with_link("given-back.new");
	with_link("unanswered");
	with_link("ledger.damaged");
}

RUN_TESTS()
