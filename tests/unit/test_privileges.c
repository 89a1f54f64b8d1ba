/* SPDX-License-Identifier: MIT */
/* Privileges granted by the units, and operations that the capability of the worker does not permit
 * although it might seem to. */
#include "../support/test.h"

#include <linux/capability.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "../support/unit_file.h"
#include "fixture.h"
#include "numa-migrd/file.h"

#define USER_NOBODY 65534U
#define DAEMON_UNIT NM_SOURCE_DIR "/systemd/numa-migrd.service"
#define WORKER_UNIT NM_SOURCE_DIR "/systemd/numa-migrd-worker@.service"
#define HELPER_UNIT NM_SOURCE_DIR "/systemd/numa-migrd-helper.service"
#define RESTORE_UNIT NM_SOURCE_DIR "/systemd/numa-migrd-restore.service"

static void assert_value(const struct unit_file *unit, const char *key, const char *value)
{
	const char *found = unit_value(unit, key);
	if (!found || strcmp(found, value) != 0)
		fail_msg("%s=%s, not %s", key, found ? found : "", value);
}

static bool has_word(const char *words, const char *word)
{
	size_t length = strlen(word);
	for (const char *at = strstr(words, word); at; at = strstr(at + 1, word))
		if ((at == words || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0'))
			return true;
	return false;
}

static bool denies(const struct unit_file *unit, const char *call)
{
	for (size_t i = 0; i < unit->count; i++)
		if (strcmp(unit->settings[i].key, "SystemCallFilter") == 0 &&
		    unit->settings[i].value[0] == '~' &&
		    has_word(unit->settings[i].value + 1, call))
			return true;
	return false;
}

static void assert_denies(const struct unit_file *unit, const char *call)
{
	if (!denies(unit, call))
		fail_msg("%s is not denied", call);
}

#define WORKER_SLICE NM_SOURCE_DIR "/systemd/system-numamigrd.slice"

/* SECURITY: no-more */
TEST(memory_and_cpu_time_are_limited)
{
	struct unit_file daemon = {0}, worker = {0};
	char slice[1024];
	unit_read(DAEMON_UNIT, &daemon);
	assert_value(&daemon, "LimitMEMLOCK", "1G");
	unit_read(WORKER_UNIT, &worker);
	assert_value(&worker, "Slice", strrchr(WORKER_SLICE, '/') + 1);
	assert_true(nm_read_text(AT_FDCWD, WORKER_SLICE, slice, sizeof(slice)) > 0);
	assert_non_null(strstr(slice, "\nCPUWeight=100\n"));
	assert_non_null(strstr(slice, "\nMemoryMax=288M\n"));
}

static unsigned long number_in(const char *path, const char *key)
{
	char text[4096];
	assert_true(nm_read_text(AT_FDCWD, path, text, sizeof(text)) > 0);
	const char *found = strstr(text, key);
	assert_non_null(found);
	return strtoul(found + strlen(key), NULL, 10);
}

/* A worker at its limit is killed alone. If all of them reached that of the slice first, the kernel
 * could choose one that cannot die, for which the others wait. */
/* SECURITY: workers-memory */
TEST(workers_fit_into_their_slice)
{
	const char *socket = NM_SOURCE_DIR "/systemd/numa-migrd-worker.socket";
	assert_true(number_in(socket, "\nMaxConnections=") *
			    number_in(WORKER_UNIT, "\nMemoryMax=") <
		    number_in(WORKER_SLICE, "\nMemoryMax="));
}

static void assert_line(const char *path, const char *line)
{
	char text[8192];
	assert_true(nm_read_text(AT_FDCWD, path, text, sizeof(text)) > 0);
	assert_non_null(strstr(text, line));
}

/* At a stop nothing else would do it. */
/* SECURITY: killed */
TEST(a_restoration_without_memory_is_tried_again)
{
	struct unit_file daemon = {0}, restore = {0};
	assert_line(DAEMON_UNIT, "\nOnFailure=numa-migrd-restore.service\n");
	assert_line(RESTORE_UNIT, "\nStartLimitIntervalSec=0\n");
	assert_line(RESTORE_UNIT, "\nConflicts=numa-migrd.service\n");
	unit_read(DAEMON_UNIT, &daemon);
	unit_read(RESTORE_UNIT, &restore);
	assert_value(&restore, "ExecStart", unit_value(&daemon, "ExecStopPost"));
	assert_value(&restore, "Restart", "on-failure");
	assert_value(&restore, "RuntimeDirectory", unit_value(&daemon, "RuntimeDirectory"));
	assert_value(&restore, "RuntimeDirectoryPreserve", "yes");
	assert_value(&restore, "User", unit_value(&daemon, "User"));
	assert_value(&restore, "CapabilityBoundingSet", "CAP_SYS_NICE");
}

/* Its directory is the unit's. */
TEST(the_example_of_metrics_can_be_written)
{
	struct unit_file unit = {0};
	char text[8192], cache[256];
	unit_read(DAEMON_UNIT, &unit);
	(void)snprintf(cache, sizeof(cache), "\"/var/cache/%s/",
		       unit_value(&unit, "CacheDirectory"));
	assert_true(nm_read_text(AT_FDCWD, NM_SOURCE_DIR "/conf/numa-migrd.conf", text,
				 sizeof(text)) > 0);
	const char *example = strstr(text, "# metrics: { file = ");
	assert_non_null(example);
	assert_memory_equal(example + strlen("# metrics: { file = "), cache, strlen(cache));
}

/* SECURITY: cap-nice */
TEST(the_daemon_gets_two_capabilities)
{
	static const char two[] = "CAP_SYS_NICE CAP_PERFMON";
	struct unit_file unit = {0};
	unit_read(DAEMON_UNIT, &unit);
	assert_value(&unit, "CapabilityBoundingSet", two);
	assert_value(&unit, "AmbientCapabilities", two);
	assert_value(&unit, "User", "numa-migrd");
	assert_value(&unit, "NoNewPrivileges", "yes");
	assert_value(&unit, "RestrictRealtime", "yes");
	assert_value(&unit, "RestrictAddressFamilies", "AF_UNIX");
	assert_denies(&unit, "@resources");
}

/* These access other processes. */
TEST(the_daemon_may_not_trace)
{
	static const char *const calls[] = {"ptrace",	   "process_vm_readv", "process_vm_writev",
					    "pidfd_getfd", "process_madvise",  "@privileged"};
	struct unit_file unit = {0};
	unit_read(DAEMON_UNIT, &unit);
	for (size_t i = 0; i < NM_ARRAY_SIZE(calls); i++)
		assert_denies(&unit, calls[i]);
}

/* A compromised daemon would use these. */
/* SECURITY: no-more */
TEST(the_daemon_cannot_execute_or_dump_core)
{
	struct unit_file unit = {0};
	unit_read(DAEMON_UNIT, &unit);
	assert_value(&unit, "NoExecPaths", "/");
	assert_value(
		&unit, "ExecPaths",
		"/usr/sbin/numa-migrd /usr/bin/kill -/bin/kill /usr/lib -/usr/lib32 -/usr/lib64 "
		"-/lib -/lib64");
	assert_value(&unit, "MemoryDenyWriteExecute", "yes");
	assert_value(&unit, "MemoryMax", "2G");
	assert_value(&unit, "LimitCORE", "0");
	assert_denies(&unit, "@aio");
	assert_denies(&unit, "@keyring");
	assert_denies(&unit, "userfaultfd");
}

/* Restoration after the stop may extend its timeout like that at start and stop. */
/* SECURITY: slow-restore */
TEST(a_restoration_may_ask_for_time)
{
	struct unit_file unit = {0};
	unit_read(DAEMON_UNIT, &unit);
	assert_value(&unit, "NotifyAccess", "exec");
	assert_value(&unit, "ExecStopPost", "/usr/sbin/numa-migrd --restore");
}

/* It is kept until the next start, or --restore, has read it. */
TEST(the_ledger_survives_an_incomplete_stop)
{
	struct unit_file unit = {0};
	unit_read(DAEMON_UNIT, &unit);
	assert_value(&unit, "RuntimeDirectory", "numa-migrd");
	assert_value(&unit, "RuntimeDirectoryMode", "0700");
	assert_value(&unit, "RuntimeDirectoryPreserve", "yes");
}

/* It keeps only the first: test_worker. */
/* SECURITY: cap-ptrace */
TEST(the_worker_gets_ptrace_only)
{
	static const char two[] = "CAP_SYS_PTRACE CAP_SYS_ADMIN";
	struct unit_file unit = {0};
	unit_read(WORKER_UNIT, &unit);
	assert_value(&unit, "CapabilityBoundingSet", two);
	assert_value(&unit, "AmbientCapabilities", two);
	assert_value(&unit, "User", "numa-migrd");
	assert_value(&unit, "NoNewPrivileges", "yes");
	assert_value(&unit, "TasksMax", "1");
	assert_value(&unit, "LimitCORE", "0");
	assert_value(&unit, "NoExecPaths", "/");
	assert_value(&unit, "RestrictAddressFamilies", "none");
	for (size_t i = 0; i < unit.count; i++)
		assert_null(strcmp(unit.settings[i].key, "SystemCallFilter") == 0
				    ? strpbrk(unit.settings[i].value, "@~")
				    : NULL);
}

/* SECURITY: helper-itself */
TEST(the_helper_gets_two_others)
{
	struct unit_file unit = {0};
	unit_read(HELPER_UNIT, &unit);
	assert_value(&unit, "CapabilityBoundingSet", "CAP_SYS_ADMIN");
	assert_value(&unit, "NoNewPrivileges", "yes");
	assert_value(&unit, "PrivateNetwork", "yes");
	assert_value(&unit, "MemoryMax", "32M");
	assert_value(&unit, "ProtectHome", "yes");
	assert_value(&unit, "RestrictNamespaces", "yes");
	assert_value(&unit, "LimitCORE", "0");
	assert_denies(&unit, "@mount");
	assert_denies(&unit, "kill");
	assert_denies(&unit, "pidfd_send_signal");
	assert_value(&unit, "ReadOnlyPaths", "/run");
	for (size_t i = 0; i < unit.count; i++)
		if (strcmp(unit.settings[i].key, "SystemCallFilter") == 0)
			assert_false(has_word(unit.settings[i].value, "ptrace") ||
				     has_word(unit.settings[i].value, "@debug"));
}

/* Files are written in separate directories; of /proc/sys, the helper writes one file. */
/* SECURITY: no-more */
TEST(units_are_confined)
{
	static const char *const paths[] = {DAEMON_UNIT, WORKER_UNIT, HELPER_UNIT, RESTORE_UNIT};
	static const char *const keys[][2] = {{"NoNewPrivileges", "yes"},
					      {"ProtectSystem", "strict"},
					      {"PrivateNetwork", "yes"},
					      {"PrivateTmp", "yes"},
					      {"ProtectKernelTunables", "yes"},
					      {"ProtectControlGroups", "yes"},
					      {"NoExecPaths", "/"},
					      {"LimitCORE", "0"}};
	for (size_t i = 0; i < NM_ARRAY_SIZE(paths); i++) {
		struct unit_file unit = {0};
		unit_read(paths[i], &unit);
		for (size_t k = 0; k < NM_ARRAY_SIZE(keys); k++)
			assert_value(&unit, keys[k][0], keys[k][1]);
		assert_non_null(unit_value(&unit, "CapabilityBoundingSet"));
		assert_non_null(unit_value(&unit, "MemoryMax"));
		const char *writable = unit_value(&unit, "ReadWritePaths");
		assert_string_equal(writable ? writable : "",
				    i == 2 ? "-/proc/sys/kernel/numa_balancing" : "");
	}
}

/* ---- operations that CAP_SYS_PTRACE does not permit ---- */

/* Another user with only this capability, like the worker. */
static int become_worker(void)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {0};
	data[0].permitted = data[0].effective = 1U << CAP_SYS_PTRACE;
	if (prctl(PR_SET_KEEPCAPS, 1L) < 0 ||
	    setresgid(USER_NOBODY, USER_NOBODY, USER_NOBODY) < 0 ||
	    setresuid(USER_NOBODY, USER_NOBODY, USER_NOBODY) < 0)
		return -errno;
	return syscall(SYS_capset, &head, data) < 0 ? -errno : 0;
}

/* Returns 0 if access is denied, although the process may be inspected. */
static int try_process(pid_t pid)
{
	static const char *const names[] = {"mem", "environ", "pagemap", "clear_refs"};
	char path[64], text[512];
	if (become_worker() < 0)
		return 2;
	snprintf(path, sizeof(path), "/proc/%d", pid);
	nm_auto(nm_closep) int directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (nm_read_text(directory, "stat", text, sizeof(text)) <= 0)
		return 3;
	for (size_t i = 0; i < NM_ARRAY_SIZE(names); i++) {
		int writable = openat(directory, names[i], O_WRONLY | O_CLOEXEC);
		if (writable >= 0)
			return 4 + (int)i;
	}
	return openat(directory, "mem", O_RDONLY | O_CLOEXEC) >= 0 ||
	       openat(directory, "environ", O_RDONLY | O_CLOEXEC) >= 0;
}

/* SECURITY: service, cap-ptrace */
TEST(memory_of_others_stays_closed)
{
	int status;
	if (geteuid() != 0) {
		print_message("needs root to become a user with capabilities: skipped\n");
		skip();
	}
	pid_t child = fork();
	if (child == 0)
		_exit(try_process(getppid()));
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 2) {
		print_message("capabilities cannot be kept here: skipped\n");
		skip();
	}
	assert_int_equal(WEXITSTATUS(status), 0);
}

RUN_TESTS()
