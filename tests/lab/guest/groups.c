/* SPDX-License-Identifier: MIT */
/*
 * groups deep LEVELS COUNT: COUNT processes, LEVELS below the own cgroup, that are pinned to node 2
 * and sleep. Prints their ids, one a line. SIGTERM ends all of them.
 *
 * groups attributes COUNT: creates COUNT cgroups below its own, with valid and unknown values of
 * the attribute user.numa-migrd, changes each value, and removes them, again and again. Prints a
 * line after the first time.
 */
#include "lab.h"

#include <errno.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>

enum { PINNED_NODE = 2 };

/* The working directory becomes the directory of the own cgroup. */
static void enter_own(void)
{
	char path[512] = "/sys/fs/cgroup";
	size_t length = strlen(path);
	FILE *file = fopen("/proc/self/cgroup", "re");

	if (!file || fscanf(file, "0::%400s", path + length) != 1)
		errx(1, "no cgroup in the unified hierarchy");
	fclose(file);
	if (chdir(path) < 0)
		err(1, "%s", path);
}

static void move_here(void)
{
	int fd = open("cgroup.procs", O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, "0", 1) != 1)
		err(1, "cgroup.procs");
	close(fd);
}

static pid_t start_sleeper(void)
{
	pid_t pid = fork();

	if (pid < 0)
		err(1, "fork");
	if (pid > 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;)
		pause();
}

static void deep(unsigned long levels, unsigned long count)
{
	pid_t *pids = calloc(count, sizeof(*pids));
	int signal_number;
	sigset_t end;

	enter_own();
	for (unsigned long i = 0; i < levels; i++)
		if ((mkdir("x", 0755) < 0 && errno != EEXIST) || chdir("x") < 0)
			err(1, "level %lu", i);
	move_here();
	lab_run_on_node(PINNED_NODE);
	for (unsigned long i = 0; pids && i < count; i++)
		printf("%d\n", pids[i] = start_sleeper());
	fflush(stdout);
	sigemptyset(&end);
	sigaddset(&end, SIGTERM);
	sigprocmask(SIG_BLOCK, &end, NULL);
	sigwait(&end, &signal_number);
	for (unsigned long i = 0; pids && i < count; i++)
		kill(pids[i], SIGKILL);
	while (wait(NULL) > 0)
		;
	exit(0);
}

static void set_attribute(const char *path, unsigned long number)
{
	static const char *const known[] = {"on", "off", "observe"};
	char value[32];

	snprintf(value, sizeof(value), "unknown-%lu", number);
	if (number % 4 < 3)
		snprintf(value, sizeof(value), "%s", known[number % 4]);
	if (setxattr(path, "user.numa-migrd", value, strlen(value), 0) < 0)
		err(1, "setxattr of %s", path);
}

static void attributes(unsigned long count)
{
	char path[32];

	enter_own();
	for (unsigned long turn = 0;; turn++) {
		for (unsigned long i = 0; i < count; i++) {
			snprintf(path, sizeof(path), "y%lu", i);
			if (mkdir(path, 0755) < 0)
				err(1, "%s", path);
			set_attribute(path, turn + i);
			set_attribute(path, turn + i + 1);
			set_attribute(".", turn + i);
		}
		for (unsigned long i = 0; i < count; i++) {
			snprintf(path, sizeof(path), "y%lu", i);
			rmdir(path);
		}
		if (turn == 0) {
			printf("%lu cgroups\n", count);
			fflush(stdout);
		}
	}
}

int main(int argc, char **argv)
{
	if (argc == 4 && strcmp(argv[1], "deep") == 0)
		deep(lab_number(argv[2]), lab_number(argv[3]));
	if (argc == 3 && strcmp(argv[1], "attributes") == 0)
		attributes(lab_number(argv[2]));
	errx(64, "usage: groups deep LEVELS COUNT | attributes COUNT");
}
