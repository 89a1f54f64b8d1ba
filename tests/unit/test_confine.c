/* SPDX-License-Identifier: MIT */
/* A confined daemon can open only its own files, even as root. */
#define SET_UP set_up
#define TEAR_DOWN tear_down
#include "../support/test.h"

#include <signal.h>
#include <sys/wait.h>

#include "../../src/daemon/daemon.h"
#include "../../src/daemon/loop.h"
#include "../../src/daemon/pipeline_build.h"
#include "../../src/daemon/report.h"
#include "../../src/daemon/stages.h"
#include "fixture.h"
#include "platform/event.h"
#include "numa-migrd/file.h"

enum { NO_LANDLOCK = 100, NOT_CONFINED };

static char root[FIXTURE_PATH / 4];
static struct nm_config config;
static struct nm_daemon daemon_of_test;
static pid_t other;

static int set_up(void **state)
{
	static char path[FIXTURE_PATH];
	(void)state;
	fixture_make(root, sizeof(root));
	fixture_directory(root, "run");
	fixture_file(root, "etc/numa-migrd.conf", "first");
	fixture_file(root, "elsewhere/secret", "secret");
	fixture_file(root, "cache/old", "");
	snprintf(path, sizeof(path), "%s/etc/numa-migrd.conf", root);
	snprintf(config.metrics.file, sizeof(config.metrics.file), "%s/metrics/numa.prom", root);
	fixture_directory(root, "metrics");
	daemon_of_test =
		(struct nm_daemon){.options = {.config = {.path = path}}, .config = &config};
	char run[FIXTURE_PATH];
	snprintf(run, sizeof(run), "%s/run", root);
	daemon_of_test.runtime.directory = open(run, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	snprintf(run, sizeof(run), "%s/cache", root);
	setenv("CACHE_DIRECTORY", run, 1);
	other = fork();
	if (other == 0)
		for (;;)
			pause();
	return daemon_of_test.runtime.directory < 0 || other < 0;
}

static int tear_down(void **state)
{
	(void)state;
	kill(other, SIGKILL);
	waitpid(other, NULL, 0);
	close(daemon_of_test.runtime.directory);
	fixture_remove(root);
	return 0;
}

/* Returns 0 or -errno of opening root/path, or /proc/PID/path of the other process. */
static int try_open(const char *base, const char *path, int flags)
{
	char whole[FIXTURE_PATH];
	snprintf(whole, sizeof(whole), "%s/%s", base, path);
	int fd = open(whole, flags | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

static int try_other(const char *path, int flags)
{
	char base[64];
	snprintf(base, sizeof(base), "/proc/%d", other);
	return try_open(base, path, flags);
}

/* Runs `run` in a confined process; it must return 0. */
static void confined(int (*run)(void))
{
	int status;
	pid_t child = fork();
	if (child == 0) {
		int r = nm_confine(&daemon_of_test.options, daemon_of_test.config, daemon_of_test.runtime.directory);
		if (r < 0)
			_exit(r == -EOPNOTSUPP ? NO_LANDLOCK : NOT_CONFINED);
		_exit(run());
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == NO_LANDLOCK) {
		print_message("this kernel has no Landlock: skipped\n");
		skip();
	}
	assert_int_equal(WEXITSTATUS(status), 0);
}

static int try_roots(void)
{
	static const char *const links[] = {"root", "cwd", "exe", "root/etc/passwd"};
	for (size_t i = 0; i < NM_ARRAY_SIZE(links); i++)
		if (try_other(links[i], O_RDONLY) != -EACCES)
			return 1 + (int)i;
	return 0;
}

/* SECURITY: confined */
TEST(the_root_directory_of_others_stays_closed)
{
	assert_int_equal(try_other("root", O_RDONLY), 0);
	assert_int_equal(try_other("cwd", O_RDONLY), 0);
	confined(try_roots);
}

static int try_memory(void)
{
	return try_other("mem", O_RDONLY) == 0 || try_other("mem", O_RDWR) == 0;
}

TEST(their_memory_moves_too)
{
	if (geteuid() == 0)
		assert_int_equal(try_other("mem", O_RDWR), 0);
	confined(try_memory);
}

static int try_elsewhere(void)
{
	if (try_open(root, "elsewhere/secret", O_RDONLY) != -EACCES ||
	    try_open(root, "elsewhere/new", O_WRONLY | O_CREAT) != -EACCES)
		return 1;
	if (try_open(root, "etc/numa-migrd.conf", O_WRONLY) != -EACCES ||
	    try_open(root, "etc/new", O_WRONLY | O_CREAT) != -EACCES)
		return 2;
	return 0;
}

/* SECURITY: confined */
TEST(other_files_stay_closed)
{
	confined(try_elsewhere);
}

static int replace_in_runtime(void)
{
	return nm_replace_own(daemon_of_test.runtime.directory, "ledger", "1", 1) == 0 &&
	       nm_replace_own(daemon_of_test.runtime.directory, "ledger", "2", 1) == 0 &&
	       unlinkat(daemon_of_test.runtime.directory, "ledger", 0) == 0;
}

/* The first call initializes libpfm4, which reads /sys and /proc. */
static bool encodes_events(void)
{
	const struct nm_event_table *table = nm_event_table_find("skx");
	struct nm_event_word word;

	return access("/proc/sys/kernel/perf_event_paranoid", F_OK) < 0 ||
	       nm_event_row_encode(table, &table->rows[0], 30, &word) == 0;
}

static int try_own(void)
{
	if (try_other("stat", O_RDONLY) < 0 || try_other("status", O_RDONLY) < 0 ||
	    try_other("task", O_RDONLY | O_DIRECTORY) < 0 ||
	    try_open("/proc", "stat", O_RDONLY) < 0)
		return 1;
	if (try_open("/sys/devices/system/node", ".", O_RDONLY | O_DIRECTORY) < 0 ||
	    try_open("/etc", "passwd", O_RDONLY) < 0)
		return 2;
	if (!replace_in_runtime())
		return 3;
	if (try_open(root, "metrics/numa.prom.new", O_WRONLY | O_CREAT) < 0 ||
	    try_open(root, "cache/new", O_WRONLY | O_CREAT | O_TRUNC) < 0)
		return 4;
	return encodes_events() ? 0 : 5;
}

/* SECURITY: confined */
TEST(required_files_stay_accessible)
{
	confined(try_own);
}

/* As an editor saves it: written under another name and renamed. */
static int try_reload(void)
{
	char text[16];
	kill(getppid(), SIGUSR1);
	for (int i = 0; i < 1000; i++) {
		if (nm_read_text(AT_FDCWD, daemon_of_test.options.config.path, text, sizeof(text)) >
			    0 &&
		    strcmp(text, "second") == 0)
			return 0;
		usleep(10000);
	}
	return 1;
}

static void replace_config(int number)
{
	char from[FIXTURE_PATH];
	(void)number;
	fixture_file(root, "etc/new", "second");
	snprintf(from, sizeof(from), "%s/etc/new", root);
	(void)rename(from, daemon_of_test.options.config.path);
}

TEST(a_configuration_put_in_its_place_can_be_read)
{
	signal(SIGUSR1, replace_config);
	confined(try_reload);
	signal(SIGUSR1, SIG_DFL);
}

RUN_TESTS()
