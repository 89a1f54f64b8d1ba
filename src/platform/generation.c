// SPDX-License-Identifier: MIT
#include "numa-migrd/platform.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "numa-migrd/file.h"
#include "numa-migrd/proc.h"

#define NEW_NAME NM_GENERATION_NAME ".new"
#define TEXT_BYTES 4096
#define WAIT_US 20000
#define WAITS 50

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
		if (!nm_process_is_over(proc_fd, holder->pid, holder->start_ticks))
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
