/* SPDX-License-Identifier: MIT */
#include "../support/test.h"

#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "fake_platform.h"
#include "fixture.h"
#include "numa-migrd/proc.h"

TEST(kernels_before_6_1_are_too_old)
{
	static const struct {
		const char *name;
		bool too_old;
	} releases[] = {{"6.1.0-18-amd64", false}, {"6.1", false},     {"6.12.48", false},
			{"10.0.1", false},	   {"6.0.19", true},   {"5.14.0-503.el9", true},
			{"4.18.0", true},	   {"unknown", false}, {"", false}};

	EACH_ROW(row, releases)
	CHECK(row, nm_kernel_is_too_old(row->name) == row->too_old);
}

/* ---- texts ---- */

/* Each prints what is read from a text, or "error". */
static char printed[512];

#define PRINT(...) (snprintf(printed, sizeof(printed), __VA_ARGS__), printed)

static const char *print_stat(const char *text)
{
	struct nm_proc_stat stat;
	if (nm_proc_parse_stat(text, &stat) < 0)
		return "error";
	return PRINT("%u (%s) %c %u %u %u %" PRIu64 " %d %u %" PRIu64 " %" PRIu64 " %d %d %u",
		     stat.tid, stat.comm, stat.state, stat.ppid, stat.session, stat.flags,
		     stat.ran_ticks, stat.nice, stat.nr_threads, stat.start_ticks, stat.rss_pages,
		     stat.is_leader, stat.processor, stat.policy);
}

/* Its number, the one in its namespace; hugetlb, pinned and shared bytes; excluded nodes. */
static const char *print_status(const char *text)
{
	struct nm_proc_status status = {.ns_pid = 3};
	if (nm_proc_parse_status(text, &status) < 0)
		return status.ns_pid == 3 ? "error" : "error, changed";
	return PRINT("%u %u %" PRIu64 " %" PRIu64 " %" PRId64 " %" PRIx64, status.tgid,
		     status.ns_pid, status.hugetlb_bytes, status.pinned_bytes,
		     (int64_t)status.shared_bytes, status.excluded_mems);
}

static const char *print_cgroup(const char *text)
{
	const char *path;
	size_t length;
	int r = nm_proc_parse_cgroup(text, &path, &length);
	return r == -ENODATA ? "error" : PRINT("%.*s", (int)length, path);
}

/* Busy and all times of three CPUs, which were 7 and 8. */
static const char *print_cpu_times(const char *text)
{
	struct nm_cpu_times of[3] = {{7, 8}, {7, 8}, {7, 8}};
	if (nm_proc_parse_cpu_times(text, of, 3) < 0)
		return "error";
	return PRINT("%d/%d %d/%d %d/%d", (int)of[0].busy, (int)of[0].total, (int)of[1].busy,
		     (int)of[1].total, (int)of[2].busy, (int)of[2].total);
}

static void check_text(const char *(*print)(const char *text), const char *text,
		       const char *expected)
{
	const char *found = print(text);
	if (strcmp(found, expected) != 0)
		fail_msg("\"%s\": \"%s\" instead of \"%s\"", text, found, expected);
}

#define STAT(name, exit_signal)                                                                    \
	"4711 (" name ") R 17 18 19 0 -1 4194560 1 2 3 4 5 6 7 8 20 -4 3 0 366302 2400256 300 "    \
	"18446744073709551615 1 2 140735000000000 4 5 6 7 8 9 10 11 12 " exit_signal               \
	" 5 99 1 0 0 0 0 0 0 0 0 0 0 0\n"
#define READ(name, leader) "4711 (" name ") R 17 19 4194560 11 -4 3 366302 300 " leader " 5 1"
#define NAMED(name) check_text(print_stat, STAT(name, "17"), READ(name, "1"))
#define K20 "kkkkkkkkkkkkkkkkkkkk"

/* Names of kernel threads may be long: they are truncated to the field. */
TEST(test_stat)
{
	NAMED("prog");
	check_text(print_stat, STAT("prog", "-1"), READ("prog", "0"));
	check_text(print_stat, STAT(K20 K20 K20 K20, "17"), READ(K20 K20 K20 "kkk", "1"));
	check_text(print_stat, ")(", "error");
}

/* SECURITY: stat-fields */
TEST(test_stat_hostile_names)
{
	NAMED(") R 1");
	NAMED("(");
	NAMED(")");
	NAMED("))))");
	NAMED("");
	NAMED(" ");
	NAMED("a\nb");
	NAMED("x) S 1 1 1 (y");
	NAMED("\xff\xfe");
	NAMED("%s%n");
}

TEST(test_stat_truncated)
{
	static const char whole[] = STAT("prog", "17");
	struct nm_proc_stat stat = {.ppid = 99};
	size_t needed = (size_t)(strstr(whole, " 99 1 0") - whole) + strlen(" 99 1");
	for (size_t length = 0; length < needed; length++) {
		char *text = strndup(whole, length);
		assert_int_equal(nm_proc_parse_stat(text, &stat), -EINVAL);
		free(text);
	}
	assert_int_equal(stat.ppid, 99);
}

/* An old kernel has neither namespaces nor cpusets; a list of nodes may be empty. Memory that is
 * pinned, shared, or a file beyond the size of a program cannot follow its threads. */
TEST(test_status)
{
	static const char *const rows[][2] = {
		{"Name:\tTgid:\\n7\nTgid:\t12\nNSpid:\t12\t3\t1\n", "12 1 0 0 -1 0"},
		{"Tgid:\t2\nUid:\t0\t0\t0\t0\n", "2 0 0 0 -1 0"},
		{"Tgid:\t2\nHugetlbPages:\t 4194304 kB\n", "2 0 4294967296 0 -1 0"},
		{"Tgid:\t2\nVmLck:\t 8 kB\nVmPin:\t 4 kB\n", "2 0 0 12288 -1 0"},
		{"Tgid:\t2\nRssFile:\t65540 kB\nRssShmem:\t 4 kB\n", "2 0 0 0 8192 0"},
		{"Tgid:\t2\nMems_allowed:\t1\nMems_allowed_list:\t0-2,5,70\n",
		 "2 0 0 0 -1 ffffffffffffffd8"},
		{"Tgid:\t2\nMems_allowed_list:\t\n", "2 0 0 0 -1 0"},
		{"Uid:\t5\n", "error"},
		{"", "error"},
		{"Tgid:\tx\nUid:\t5\n", "error"},
	};
	for (size_t i = 0; i < NM_ARRAY_SIZE(rows); i++)
		check_text(print_status, rows[i][0], rows[i][1]);
}

TEST(test_cgroup)
{
	check_text(print_cgroup, "9:cpu:/0::/no\n0::/a b/c.service\n", "/a b/c.service");
	check_text(print_cgroup, "0::/end", "/end");
	check_text(print_cgroup, "9:cpu:/\n", "error");
	check_text(print_cgroup, "", "error");
}

TEST(test_cpu_times)
{
	check_text(print_cpu_times,
		   "cpu  1 1 1 1 1 1 1 1\ncpu0 10 20 30 400 50 6 7 8 9 10\ncpu2 1 2 3 4\n"
		   "cpu9 1 1 1 1 1 1 1 1\nintr 5\n",
		   "81/531 7/8 6/10");
	check_text(print_cpu_times, "intr 5\n", "error");
}

TEST(test_process_gone_before_its_read)
{
	struct fake *fake = fake_new(8);
	struct nm_proc_stat stat;
	char *cgroup;
	fake_process(fake, 100, 1);
	fake_process(fake, 200, 1);
	assert_int_equal(nm_proc_open_thread(&fake->platform, 100, 200), -ESRCH);
	assert_int_equal(nm_proc_open_thread(&fake->platform, 0, 300), -ESRCH);
	int directory = nm_proc_open_thread(&fake->platform, 100, 100);
	assert_true(directory >= 0);
	assert_int_equal(nm_proc_read_stat(&fake->platform, directory, &stat), 0);
	fake_kill(fake, 100);
	fake_process(fake, 100, 1);
	/* A new process with the number does not answer for the former one. */
	assert_int_equal(nm_proc_read_stat(&fake->platform, directory, &stat), -ESRCH);
	assert_int_equal(nm_proc_read_cgroup(&fake->platform, directory, &cgroup), -ESRCH);
	fake->platform.ops->close(&fake->platform, directory);
	assert_int_equal(fake_open_fds(fake), 0);
	nm_platform_free(&fake->platform);
}

/* ---- the machine this runs on ---- */

static int open_self(struct nm_platform **ret)
{
	struct nm_platform_options options = {.root_path = "/", .dry_run = true};
	assert_int_equal(nm_platform_linux_new(&options, ret), 0);
	int directory = nm_proc_open_thread(*ret, (uint32_t)getpid(), (uint32_t)getpid());
	assert_true(directory >= 0);
	return directory;
}

TEST(test_self)
{
	struct nm_platform *platform;
	int directory = open_self(&platform);
	struct nm_proc_stat stat;
	struct nm_proc_status status;
	struct nm_proc_memory memory;
	uint32_t uid;
	uint64_t now_ticks = nm_proc_ticks_now(platform);

	assert_int_equal(prctl(PR_SET_NAME, ") R 1\n\xff 7"), 0);
	assert_int_equal(nm_proc_read_stat(platform, directory, &stat), 0);
	assert_string_equal(stat.comm, ") R 1\n\xff 7");
	assert_int_equal(stat.ppid, getppid());
	assert_int_equal(stat.session, getsid(0));
	assert_int_equal(stat.policy, sched_getscheduler(0));
	assert_int_equal(stat.flags & NM_PROC_KTHREAD, 0);
	assert_true(stat.processor >= 0);
	assert_true(stat.start_ticks > 0 && stat.start_ticks <= now_ticks);
	assert_true(stat.is_leader);

	assert_int_equal(nm_proc_read_status(platform, directory, &status), 0);
	assert_int_equal(status.tgid, getpid());
	assert_int_equal(nm_proc_read_owner(platform, directory, &uid), 0);
	assert_int_equal(uid, geteuid());
	assert_int_equal(nm_proc_read_memory(platform, directory, &memory), 0);
	assert_in_range(memory.rss_bytes, 65536, 1 << 30);
	assert_in_range(memory.anon_bytes, 4096, memory.rss_bytes - 4096);
	platform->ops->close(platform, directory);
	nm_platform_free(platform);
}

static void *read_own_stat(void *context)
{
	struct nm_proc_stat *stat = context;
	char path[64];
	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)syscall(SYS_gettid));
	assert_int_equal(nm_proc_stat_at(AT_FDCWD, path, stat), 0);
	return NULL;
}

/* The number of a thread can be opened like that of a process. */
TEST(a_thread_is_no_leader)
{
	struct nm_proc_stat stat;
	pthread_t thread;
	assert_int_equal(pthread_create(&thread, NULL, read_own_stat, &stat), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_false(stat.is_leader);
}

/* A child forked after the clock was read never seems older than that. */
TEST(test_clock_and_start)
{
	struct nm_platform *platform;
	int directory = open_self(&platform);
	struct nm_proc_stat stat;
	platform->ops->close(platform, directory);
	for (int i = 0; i < 50; i++) {
		uint64_t before = nm_proc_ticks_now(platform);
		pid_t child = fork();
		if (child == 0)
			_exit(0);
		directory = nm_proc_open_thread(platform, 0, (uint32_t)child);
		assert_true(directory >= 0);
		assert_int_equal(nm_proc_read_stat(platform, directory, &stat), 0);
		assert_true(stat.start_ticks >= before);
		assert_true(stat.start_ticks <= nm_proc_ticks_now(platform));
		platform->ops->close(platform, directory);
		assert_int_equal(waitpid(child, NULL, 0), child);
	}
	nm_platform_free(platform);
}

RUN_TESTS()
