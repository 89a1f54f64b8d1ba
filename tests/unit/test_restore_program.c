/* SPDX-License-Identifier: MIT */
/* numa-migrd --restore as a program, with little memory: it restores the affinities that an earlier
 * version has left, or it fails and keeps the ledger. Needs two CPUs. */
#define SET_UP set_up
#define TEAR_DOWN tear_down
#include "../support/test.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <unistd.h>

#include "fixture.h"
#include "affinity/move.h"
#include "numa-migrd/proc.h"

#define MIB (UINT64_C(1) << 20)
#define FIRST (8 * MIB) /* below, the kernel cannot map the program */
#define STEP (64 * 1024)
#define MOST (512 * MIB)
#define NO_PID 5000000U /* beyond the kernel's largest number */
#define MORE 4000U	/* entries of threads that have ended: more than the first heap holds */
#define NOT_LOADED 127	/* the dynamic linker lacks memory */

static char root[FIXTURE_PATH];
static pid_t victim;
static unsigned cpus[2];

static void find_cpus(void)
{
	cpu_set_t own;
	unsigned found = 0;
	assert_int_equal(sched_getaffinity(0, sizeof(own), &own), 0);
	for (unsigned cpu = 0; cpu < CPU_SETSIZE && found < 2; cpu++)
		if (CPU_ISSET(cpu, &own))
			cpus[found++] = cpu;
	if (found < 2)
		skip();
}

static int count_cpus_of_victim(void)
{
	cpu_set_t set;
	assert_int_equal(sched_getaffinity(victim, sizeof(set), &set), 0);
	return CPU_COUNT(&set);
}

static int set_up(void **state)
{
	(void)state;
	fixture_make(root, sizeof(root));
	victim = fork();
	if (victim == 0)
		for (;;)
			pause();
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	(void)kill(victim, SIGKILL);
	(void)waitpid(victim, NULL, 0);
	fixture_remove(root);
	return 0;
}

static void write_line(FILE *file, uint32_t tid, uint64_t start_ticks)
{
	(void)fprintf(file, "give %u %u %lu %lu 1 0 0 0 0 0 0 %u,%u %u .\n", tid, tid,
		      (unsigned long)start_ticks, (unsigned long)start_ticks + 1, cpus[0], cpus[1],
		      cpus[0]);
}

/* As after a crash: the victim is narrowed, and the ledger contains that. */
static void narrow(void)
{
	nm_auto(nm_platform_freep) struct nm_platform *platform = NULL;
	const struct nm_platform_options options = {.root_path = "/"};
	struct nm_proc_stat stat;
	char boot_id[64], path[FIXTURE_PATH + 16];
	cpu_set_t one;
	assert_int_equal(nm_platform_linux_new(&options, &platform), 0);
	assert_int_equal(nm_proc_stat_of(platform, (uint32_t)victim, (uint32_t)victim, &stat), 0);
	assert_int_equal(nm_proc_read_boot_id(platform, boot_id, sizeof(boot_id)), 0);
	snprintf(path, sizeof(path), "%s/%s", root, NM_LEDGER_NAME);
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	(void)fprintf(file, "numa-migrd-ledger 1 %s\n", boot_id);
	write_line(file, (uint32_t)victim, stat.start_ticks);
	for (uint32_t tid = NO_PID; tid < NO_PID + MORE; tid++)
		write_line(file, tid, stat.start_ticks);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(chmod(path, 0600), 0);
	CPU_ZERO(&one);
	CPU_SET(cpus[0], &one);
	assert_int_equal(sched_setaffinity(victim, sizeof(one), &one), 0);
}

static off_t ledger_bytes(void)
{
	char path[FIXTURE_PATH + 16];
	struct stat status;
	snprintf(path, sizeof(path), "%s/%s", root, NM_LEDGER_NAME);
	return stat(path, &status) == 0 ? status.st_size : -1;
}

/* Returns the exit status of --restore with this address space; -1: a signal. */
static int restore_within(uint64_t bytes)
{
	const struct rlimit limit = {bytes, bytes};
	int status;
	pid_t pid = fork();
	if (pid == 0) {
		int null = open("/dev/null", O_RDWR | O_CLOEXEC);
		(void)dup2(null, STDOUT_FILENO);
		(void)dup2(null, STDERR_FILENO);
		(void)setenv("RUNTIME_DIRECTORY", root, 1);
		if (setrlimit(RLIMIT_AS, &limit) == 0)
			(void)execl(NM_DAEMON_BUILT, "numa-migrd", "--restore", (char *)NULL);
		_exit(NOT_LOADED);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* SECURITY: killed */
TEST(it_restores_or_keeps_the_ledger)
{
	unsigned failed = 0;
	int r = NOT_LOADED;
	find_cpus();
	narrow();
	const off_t bytes = ledger_bytes();
	for (uint64_t limit = FIRST; r != EXIT_SUCCESS && limit < MOST; limit += STEP) {
		r = restore_within(limit);
		if (r == EXIT_SUCCESS)
			break;
		/* Lines of numbers that no thread can have are reported once all else is done. */
		assert_true(r == EX_TEMPFAIL || r == NOT_LOADED ||
			    (r == EXIT_FAILURE && count_cpus_of_victim() == 2));
		failed += r == EX_TEMPFAIL;
		/* It may also fail after it has restored everything. */
		assert_true(ledger_bytes() >= bytes || count_cpus_of_victim() == 2);
	}
	assert_int_equal(r, EXIT_SUCCESS);
	assert_true(failed > 0);
	assert_int_equal(count_cpus_of_victim(), 2);
	assert_int_equal(ledger_bytes(), -1);
}

int main(void)
{
	if (dlsym(RTLD_DEFAULT, "__asan_init")) {
		puts("skipped: the sanitizer needs terabytes of address space");
		return 77;
	}
	return RUN_REGISTERED(NULL, NULL);
}
