// SPDX-License-Identifier: MIT
/* The lock of the runtime directory, and when its holder counts as dead. */
#include "numa-migrd/platform.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "numa-migrd/file.h"
#include "numa-migrd/proc.h"

#define TRIES 4
#define TEXT_BYTES 128
#define STATUS_BYTES 16384
#define WAIT_US 20000
#define WAITS 50
#define PF_EXITING 0x00000004U /* <linux/sched.h> */
#define PASSES 2	       /* the second pass finds a thread created during the first one */

/* ---- processes that never run again ---- */

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
	r = nm_read_text(tasks, path, text, STATUS_BYTES);
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

/*
 * Returns whether no thread of this process can run in user space again. Each of them has exited,
 * is exiting (PF_EXITING), or has SIGKILL pending for itself, which can be neither blocked nor
 * revoked; a killed process gets no new threads. Returns false if the process does not exist or its
 * PID was reused.
 */
static bool process_is_over(int proc_fd, pid_t pid, uint64_t start_ticks)
{
	nm_autofree char *text = nm_must(malloc(STATUS_BYTES));
	struct nm_proc_stat stat;
	char name[16];

	snprintf(name, sizeof(name), "%d", pid);
	nm_auto(nm_closep) int process = openat(proc_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (process < 0 || nm_proc_stat_at(process, "stat", &stat) < 0 ||
	    stat.start_ticks != start_ticks)
		return false;
	for (int pass = 0; pass < PASSES; pass++)
		if (!threads_are_over(process, text))
			return false;
	return true;
}

/* ---- the file ---- */

static int try_lock(int fd)
{
	if (flock(fd, LOCK_EX | LOCK_NB) == 0)
		return 0;
	return errno == EWOULDBLOCK ? -EBUSY : -errno;
}

/* Whether the holder that the file names will never run again; false if it names none. */
static bool holder_is_over(int fd, int proc_fd)
{
	char text[TEXT_BYTES] = "";
	uint64_t start_ticks;
	pid_t pid;
	char end;

	return pread(fd, text, sizeof(text) - 1, 0) > 0 &&
	       sscanf(text, "%d %" SCNu64 "%c", &pid, &start_ticks, &end) == 3 && end == '\n' &&
	       process_is_over(proc_fd, pid, start_ticks);
}

/* Waits for up to 1 s for a killed holder to end, so that its operation in progress ends first.
 * Returns 0 with the lock; -EBUSY if the holder may still run; 1 if it never will. */
static int wait_for_lock(int fd, int proc_fd)
{
	int r = try_lock(fd);

	for (int i = 0; r == -EBUSY && i < WAITS; i++) {
		if (!holder_is_over(fd, proc_fd))
			return -EBUSY;
		usleep(WAIT_US);
		r = try_lock(fd);
	}
	return r == -EBUSY ? 1 : r;
}

/* Another process may have removed or replaced the file since it was opened. */
static bool is_in_place(int directory, int fd)
{
	struct stat ours, there;

	return fstat(fd, &ours) == 0 &&
	       fstatat(directory, NM_LOCK_NAME, &there, AT_SYMLINK_NOFOLLOW) == 0 &&
	       ours.st_ino == there.st_ino && ours.st_dev == there.st_dev;
}

/* Removes the file whose holder never unlocks it. A record lock, which is independent of
 * flock(2), admits one successor, so that no other removes the file that this one creates. */
static int remove_stuck(int directory, int fd)
{
	struct flock all = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

	if (fcntl(fd, F_OFD_SETLK, &all) < 0)
		return errno == EAGAIN || errno == EACCES ? -EBUSY : -errno;
	if (is_in_place(directory, fd) && unlinkat(directory, NM_LOCK_NAME, 0) < 0)
		return -errno;
	return 0;
}

static int write_holder(int fd, int proc_fd)
{
	struct nm_proc_stat stat;
	char text[TEXT_BYTES];
	int r = nm_proc_stat_at(proc_fd, "self/stat", &stat);

	if (r < 0)
		return r == -ESRCH ? -ENOENT : r; /* /proc is not mounted */
	int length = snprintf(text, sizeof(text), "%d %" PRIu64 "\n", getpid(), stat.start_ticks);
	if (ftruncate(fd, 0) < 0)
		return -errno;
	return nm_write_all(fd, text, (size_t)length);
}

/* Returns 0, or 1 if the file was replaced, so that the next try may succeed. */
static int lock_once(int directory, int proc_fd, int *ret)
{
	nm_auto(nm_closep) int fd = nm_open_own(directory, NM_LOCK_NAME, O_RDWR | O_CREAT);

	if (fd == -EPERM) /* it is not ours, as after a change of the service's user */
		return unlinkat(directory, NM_LOCK_NAME, 0) < 0 ? -errno : 1;
	if (fd < 0)
		return fd;
	int r = wait_for_lock(fd, proc_fd);
	if (r == 1)
		r = remove_stuck(directory, fd) ?: 1;
	else if (r == 0 && !is_in_place(directory, fd))
		r = 1;
	if (r != 0)
		return r;
	r = write_holder(fd, proc_fd);
	if (r == 0)
		*ret = nm_take_fd(&fd);
	return r;
}

int nm_lock_take(int directory, int proc_fd, int *ret)
{
	int r = 1;

	for (int i = 0; r == 1 && i < TRIES; i++)
		r = lock_once(directory, proc_fd, ret);
	return r == 1 ? -EBUSY : r;
}
