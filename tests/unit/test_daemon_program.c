/* SPDX-License-Identifier: MIT */
/* The program numa-migrd as an administrator runs it. */
#define SET_UP set_up
#define TEAR_DOWN tear_down
#include "../support/test.h"

#include <stdint.h>
#include <sysexits.h>

#include "../support/run_program.h"
#include "fixture.h"

#define DAEMON "src/daemon/numa-migrd"
#define NOBODY 65534U

static char root[FIXTURE_PATH];

static int set_up(void **state)
{
	(void)state;
	fixture_make(root, sizeof(root));
	fixture_file(root, "good", "general: { dry_run = true; };\n");
	fixture_file(root, "bad", "general: { dry_run = 7; };\n");
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	fixture_remove(root);
	return 0;
}

/* The path of a file in the folder that everyone can write and another user owns. */
static const char *another_users(const char *name)
{
	static char path[FIXTURE_PATH + 16];
	(void)snprintf(path, sizeof(path), "%s/%s", root, name);
	assert_int_equal(chmod(path, 0666), 0);
	if (geteuid() == 0)
		assert_int_equal(chown(path, NOBODY, NOBODY), 0);
	return path;
}

static void assert_daemon(const char *before, const char *file, int status, const char *says)
{
	char arguments[2 * FIXTURE_PATH];
	(void)snprintf(arguments, sizeof(arguments), "%s %s", before, file);
	assert_program(DAEMON, arguments, status, says);
}

/* As "validate" of Ansible: the file is not in its place yet. */
TEST(a_file_to_be_checked_may_belong_to_anyone)
{
	assert_daemon("--check-config", another_users("good"), EXIT_SUCCESS, "");
	assert_daemon("--check-config --config", another_users("good"), EXIT_SUCCESS, "");
	assert_daemon("--check-config", another_users("bad"), EX_CONFIG, "bad:1: ");
	assert_daemon("--check-config", "/nonexistent/a", EX_CONFIG, "No such file");
	assert_daemon("--check-config /a", another_users("good"), EX_USAGE, "unexpected argument");
	assert_daemon("--dry-run", another_users("good"), EX_USAGE, "unexpected argument");
}

/* Anyone may have made what root is asked to check. */
/* SECURITY: checked-file */
TEST(odd_files_to_be_checked_end_nothing)
{
	char path[FIXTURE_PATH + 16];
	(void)snprintf(path, sizeof(path), "%s/pipe", root);
	assert_int_equal(mkfifo(path, 0666), 0);
	assert_daemon("--check-config", path, EX_CONFIG, "is not a regular file");
	assert_daemon("--check-config", "/dev/zero", EX_CONFIG, "is not a regular file");
	assert_daemon("--check-config", "/", EX_CONFIG, "is not a regular file");
	(void)snprintf(path, sizeof(path), "%s/link", root);
	assert_int_equal(symlink("/etc/shadow", path), 0);
	assert_daemon("--check-config", path, EX_CONFIG, "is a symbolic link");
	(void)snprintf(path, sizeof(path), "%s/good", root);
	assert_int_equal(truncate(path, (off_t)1 << 40), 0);
	assert_daemon("--check-config", path, EX_CONFIG, "at most 1 MiB");
}

/* SECURITY: configuration */
TEST(a_file_in_use_may_not)
{
	assert_daemon("--config", another_users("good"), EX_CONFIG, "must belong to root");
}

TEST(a_runtime_directory_that_does_not_exist_is_named)
{
	char path[FIXTURE_PATH + 16], says[2 * FIXTURE_PATH];
	(void)snprintf(path, sizeof(path), "%s/none", root);
	assert_int_equal(setenv("RUNTIME_DIRECTORY", path, 1), 0);
	(void)snprintf(says, sizeof(says), "RUNTIME_DIRECTORY=%s does not exist", path);
	assert_program(DAEMON, "--restore", EXIT_FAILURE, says);
	/* Others of its kind are named, too. */
	fixture_file(root, "none", "");
	assert_program(DAEMON, "--restore", EXIT_FAILURE, path);
	assert_int_equal(unsetenv("RUNTIME_DIRECTORY"), 0);
}

RUN_TESTS()
