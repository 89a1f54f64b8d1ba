// SPDX-License-Identifier: MIT
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

#define NEW_NAME NM_GENERATION_NAME ".new"
#define TEXT_BYTES 4096
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
	nm_autofree char *text = malloc(STATUS_BYTES);
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

/* ---- the file ---- */

struct nm_generation {
	int directory;
	int fd;
};

/* The contents: "numa-migrd-generation 1 NUMBER PID START", where START is in ticks since boot. */
struct holder {
	uint64_t number;
	pid_t pid;
	uint64_t start_ticks;
};

/* Returns number 0, and no process, if the file cannot be read. */
static struct holder read_holder(int fd)
{
	char text[TEXT_BYTES];
	struct holder holder;
	char end;

	if (nm_read_all(fd, text, sizeof(text)) < 0 ||
	    sscanf(text, "numa-migrd-generation 1 %" SCNu64 " %d %" SCNu64 "%c", &holder.number,
		   &holder.pid, &holder.start_ticks, &end) != 4 ||
	    end != '\n')
		return (struct holder){0};
	return holder;
}

static int write_holder(int fd, const struct holder *holder)
{
	char text[128];
	int length =
		snprintf(text, sizeof(text), "numa-migrd-generation 1 %" PRIu64 " %d %" PRIu64 "\n",
			 holder->number, holder->pid, holder->start_ticks);
	return nm_write_all(fd, text, (size_t)length);
}

static int try_lock(int fd)
{
	if (flock(fd, LOCK_EX | LOCK_NB) == 0)
		return 0;
	return errno == EWOULDBLOCK ? -EBUSY : -errno;
}

/*
 * Waits for a killed process to end, for up to 1 s, so that its operation in progress ends first.
 */
static int take_over(int fd, int proc_fd, const struct holder *holder)
{
	int r = try_lock(fd);
	for (int i = 0; r == -EBUSY && i < WAITS; i++) {
		if (!process_is_over(proc_fd, holder->pid, holder->start_ticks))
			return -EBUSY;
		usleep(WAIT_US);
		r = try_lock(fd);
	}
	return r == -EBUSY ? 0 : r;
}

/* Stores the number of the generation that is over now; *ret is unchanged if there was none. */
static int end_previous(int directory, int proc_fd, uint64_t *ret)
{
	nm_auto(nm_closep) int fd = nm_open_own(directory, NM_GENERATION_NAME, O_RDONLY);
	if (fd == -ENOENT || fd == -EPERM) /* there is none, or it is not ours: it is replaced */
		return 0;
	if (fd < 0)
		return fd;
	struct holder holder = read_holder(fd);
	int r = take_over(fd, proc_fd, &holder);
	if (r == 0)
		*ret = holder.number;
	return r;
}

static int read_self(int proc_fd, struct holder *ret)
{
	struct nm_proc_stat stat;
	int r = nm_proc_stat_at(proc_fd, "self/stat", &stat);
	if (r < 0)
		return r == -ESRCH ? -ENOENT : r; /* /proc is not mounted */
	ret->pid = getpid();
	ret->start_ticks = stat.start_ticks;
	return 0;
}

/* The file appears under its name with its whole text, and locked. */
static int put_in_place(int directory, const struct holder *holder, int *ret)
{
	if (unlinkat(directory, NEW_NAME, 0) < 0 && errno != ENOENT)
		return -errno;
	nm_auto(nm_closep) int fd = nm_open_own(directory, NEW_NAME, O_RDWR | O_CREAT | O_EXCL);
	if (fd < 0)
		return fd;
	int r = try_lock(fd);
	if (r == 0)
		r = write_holder(fd, holder);
	if (r == 0 && renameat(directory, NEW_NAME, directory, NM_GENERATION_NAME) < 0)
		r = -errno;
	if (r < 0)
		(void)unlinkat(directory, NEW_NAME, 0);
	else
		*ret = nm_take_fd(&fd);
	return r;
}

static int begin(int directory, int proc_fd, int *ret)
{
	struct holder self = {0};
	int r = end_previous(directory, proc_fd, &self.number);
	if (r < 0)
		return r;
	self.number++;
	r = read_self(proc_fd, &self);
	return r < 0 ? r : put_in_place(directory, &self, ret);
}

static int generation_new(int directory, int fd, struct nm_generation **ret)
{
	struct nm_generation *generation = malloc(sizeof(*generation));
	if (!generation)
		return -ENOMEM;
	*generation = (struct nm_generation){.directory = directory, .fd = fd};
	*ret = generation;
	return 0;
}

/* The lock of the directory ensures that only one process begins at a time. */
int nm_generation_take(int directory, int proc_fd, struct nm_generation **ret)
{
	nm_auto(nm_closep) int fd = -1;
	int r = try_lock(directory);
	if (r < 0)
		return r;
	r = begin(directory, proc_fd, &fd);
	(void)flock(directory, LOCK_UN);
	if (r == 0)
		r = generation_new(directory, fd, ret);
	if (r == 0)
		(void)nm_take_fd(&fd);
	return r;
}

int nm_generation_look(int directory, struct nm_generation **ret)
{
	nm_auto(nm_closep) int fd =
		directory == NM_NOWHERE
			? -1
			: openat(directory, NM_GENERATION_NAME, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 && directory != NM_NOWHERE && errno != ENOENT)
		return -errno;
	if (fd < 0) {
		*ret = NULL;
		return 0;
	}
	int r = generation_new(directory, fd, ret);
	if (r == 0)
		(void)nm_take_fd(&fd);
	return r;
}

/* The inode number is not reused while the file is open here. */
bool nm_generation_stands(const struct nm_generation *generation)
{
	struct stat ours, there;

	if (!generation)
		return true;
	return fstat(generation->fd, &ours) == 0 &&
	       fstatat(generation->directory, NM_GENERATION_NAME, &there, AT_SYMLINK_NOFOLLOW) ==
		       0 &&
	       ours.st_ino == there.st_ino && ours.st_dev == there.st_dev;
}

void nm_generation_remove(const struct nm_generation *generation)
{
	if (generation && nm_generation_stands(generation))
		(void)unlinkat(generation->directory, NM_GENERATION_NAME, 0);
}

void nm_generation_free(struct nm_generation *generation)
{
	if (!generation)
		return;
	close(generation->fd);
	free(generation);
}
