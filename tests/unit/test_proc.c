/* SPDX-License-Identifier: MIT */
#include "../support/test.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "fake_platform.h"
#include "fixture.h"
#include "numa-migrd/proc.h"

#define TAIL                                                                                       \
	" R 17 18 19 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 3 0 366302 2400256 300 "                    \
	"18446744073709551615 "                                                                    \
	"1 2 140735000000000 4 5 6 7 8 9 10 11 12 17 5 99 1 0 0 0 0 0 0 0 0 0 0 0\n"

static void parse_named(const char *name, struct nm_proc_stat *ret)
{
	char text[512];
	snprintf(text, sizeof(text), "4711 (%s)" TAIL, name);
	assert_int_equal(nm_proc_parse_stat(text, ret), 0);
}

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

TEST(test_stat)
{
	struct nm_proc_stat stat;
	parse_named("prog", &stat);
	assert_string_equal(stat.comm, "prog");
	assert_int_equal(stat.state, 'R');
	assert_int_equal(stat.ppid, 17);
	assert_int_equal(stat.session, 19);
	assert_int_equal(stat.flags, 4194560);
	assert_int_equal(stat.start_ticks, 366302);
	assert_int_equal(stat.processor, 5);
	assert_int_equal(stat.policy, SCHED_FIFO);
}

/* SECURITY: stat-fields */
TEST(test_stat_hostile_names)
{
	static const char *const names[] = {
		") R 1", "(", ")", "))))", "", " ", "a\nb", "x) S 1 1 1 (y", "\xff\xfe", "%s%n",
	};
	struct nm_proc_stat stat;
	for (size_t i = 0; i < NM_ARRAY_SIZE(names); i++) {
		parse_named(names[i], &stat);
		assert_string_equal(stat.comm, names[i]);
		assert_int_equal(stat.ppid, 17);
		assert_int_equal(stat.start_ticks, 366302);
	}
}

/* Names of kernel threads may be long: they are truncated to the field. */
TEST(test_stat_long_name)
{
	char name[200];
	struct nm_proc_stat stat;
	memset(name, 'k', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	parse_named(name, &stat);
	assert_int_equal(strlen(stat.comm), sizeof(stat.comm) - 1);
	assert_int_equal(stat.policy, SCHED_FIFO);
}

TEST(test_stat_truncated)
{
	static const char whole[] = "4711 (prog)" TAIL;
	struct nm_proc_stat stat = {.ppid = 99};
	size_t needed = (size_t)(strstr(whole, " 99 1 0") - whole) + strlen(" 99 1");
	for (size_t length = 0; length < needed; length++) {
		char *text = strndup(whole, length);
		assert_int_equal(nm_proc_parse_stat(text, &stat), -EINVAL);
		free(text);
	}
	assert_int_equal(stat.ppid, 99);
	assert_int_equal(nm_proc_parse_stat(")(", &stat), -EINVAL);
}

TEST(test_status)
{
	struct nm_proc_status status;
	assert_int_equal(
		nm_proc_parse_status("Name:\tTgid:\\n7\nTgid:\t12\nNSpid:\t12\t3\t1\n", &status),
		0);
	assert_int_equal(status.tgid, 12);
	assert_int_equal(status.ns_pid, 1);
}

TEST(test_status_of_hugetlb)
{
	struct nm_proc_status status;
	assert_int_equal(nm_proc_parse_status("Tgid:\t2\nHugetlbPages:\t 4194304 kB\n", &status),
			 0);
	assert_true(status.hugetlb_bytes == UINT64_C(4194304) * 1024);
}

/* Memory that cannot follow its threads. */
TEST(test_status_movability)
{
	struct nm_proc_status status;
	assert_int_equal(nm_proc_parse_status("Tgid:\t2\nUid:\t0\nVmLck:\t 8 kB\nVmPin:\t 4 kB\n"
					      "Mems_allowed:\t1\nMems_allowed_list:\t0-2,5,70\n",
					      &status),
			 0);
	assert_int_equal(status.pinned_bytes, 12 * 1024);
	assert_true(status.excluded_mems == ~UINT64_C(0x27));
	/* Kernels without cpusets, and a line that is not a list. */
	assert_int_equal(nm_proc_parse_status("Tgid:\t2\nUid:\t0\n", &status), 0);
	assert_true(status.pinned_bytes == 0 && status.excluded_mems == 0);
	assert_int_equal(nm_proc_parse_status("Tgid:\t2\nUid:\t0\nMems_allowed_list:\t\n", &status),
			 0);
	assert_true(status.excluded_mems == 0);
}

TEST(test_status_incomplete)
{
	struct nm_proc_status status = {.ns_pid = 3};
	assert_int_equal(nm_proc_parse_status("Uid:\t5\n", &status), -EINVAL);
	assert_int_equal(nm_proc_parse_status("", &status), -EINVAL);
	assert_int_equal(nm_proc_parse_status("Tgid:\tx\nUid:\t5\n", &status), -EINVAL);
	assert_int_equal(status.ns_pid, 3);
	/* An old kernel has no namespaces. */
	assert_int_equal(nm_proc_parse_status("Tgid:\t2\nUid:\t0\t0\t0\t0\n", &status), 0);
	assert_int_equal(status.ns_pid, 0);
}

TEST(test_cgroup)
{
	const char *path;
	size_t length;
	assert_int_equal(nm_proc_parse_cgroup("9:cpu:/0::/no\n0::/a b/c.service\n", &path, &length),
			 0);
	assert_int_equal(length, strlen("/a b/c.service"));
	assert_memory_equal(path, "/a b/c.service", length);
	assert_int_equal(nm_proc_parse_cgroup("0::/end", &path, &length), 0);
	assert_int_equal(length, 4);
	assert_int_equal(nm_proc_parse_cgroup("9:cpu:/\n", &path, &length), -ENODATA);
	assert_int_equal(nm_proc_parse_cgroup("", &path, &length), -ENODATA);
}

TEST(test_cpu_times)
{
	struct nm_cpu_times times[3] = {{7, 8}, {7, 8}, {7, 8}};
	assert_int_equal(nm_proc_parse_cpu_times("cpu  1 1 1 1 1 1 1 1\n"
						 "cpu0 10 20 30 400 50 6 7 8 9 10\n"
						 "cpu2 1 2 3 4\ncpu9 1 1 1 1 1 1 1 1\nintr 5\n",
						 times, 3),
			 0);
	assert_int_equal(times[0].total, 531);
	assert_int_equal(times[0].busy, 81);
	assert_int_equal(times[1].busy, 7);
	assert_int_equal(times[2].total, 10);
	assert_int_equal(times[2].busy, 6);
	assert_int_equal(nm_proc_parse_cpu_times("intr 5\n", times, 3), -EINVAL);
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
