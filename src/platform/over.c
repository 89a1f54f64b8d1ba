// SPDX-License-Identifier: MIT
/* Determines whether a process can never run again, from /proc/PID/task (proc_pid_stat(5),
 * proc_pid_status(5)). */
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "numa-migrd/file.h"
#include "numa-migrd/platform.h"
#include "numa-migrd/proc.h"

#define TEXT_BYTES 16384
#define PF_EXITING 0x00000004U /* <linux/sched.h> */
#define PASSES 2	       /* the second pass finds a thread created during the first one */

/* Reads the signals that are pending for this thread only; a kill of the process adds SIGKILL to
 * those of each thread. */
static bool has_sigkill(const char *status)
{
	uint64_t pending;
	const char *line = strstr(status, "\nSigPnd:\t");

	return line && sscanf(line, "\nSigPnd:\t%" SCNx64, &pending) == 1 &&
	       (pending & UINT64_C(1) << (SIGKILL - 1));
}

static bool has_ended(int r)
{
	return r == -ENOENT || r == -ESRCH;
}

static bool thread_is_over(int tasks, const char *tid, char *text)
{
	struct nm_proc_stat stat;
	char path[64];

	snprintf(path, sizeof(path), "%.32s/stat", tid);
	int r = nm_proc_stat_at(tasks, path, &stat);
	if (r < 0)
		return has_ended(r);
	if (strchr("ZXx", stat.state) || (stat.flags & PF_EXITING))
		return true;
	snprintf(path, sizeof(path), "%.32s/status", tid);
	r = nm_read_text(tasks, path, text, TEXT_BYTES);
	return r < 0 ? has_ended(r) : has_sigkill(text);
}

static bool threads_are_over(int process, char *text)
{
	nm_auto(nm_closedirp) DIR *tasks = NULL;
	const struct dirent *entry;

	int r = nm_open_listing(process, "task", &tasks);
	if (r < 0)
		return has_ended(r);
	while ((errno = 0, entry = readdir(tasks)))
		if (entry->d_name[0] != '.' && !thread_is_over(dirfd(tasks), entry->d_name, text))
			return false;
	return errno == 0 || has_ended(-errno);
}

bool nm_process_is_over(int proc_fd, pid_t pid, uint64_t start_ticks)
{
	nm_autofree char *text = malloc(TEXT_BYTES);
	struct nm_proc_stat stat;
	char name[16];

	snprintf(name, sizeof(name), "%d", pid);
	nm_auto(nm_closep) int process = openat(proc_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (!text || process < 0 || nm_proc_stat_at(process, "stat", &stat) < 0 ||
	    stat.start_ticks != start_ticks)
		return false;
	for (int pass = 0; pass < PASSES; pass++)
		if (!threads_are_over(process, text))
			return false;
	return true;
}
