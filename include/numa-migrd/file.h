/* SPDX-License-Identifier: MIT */
/*
 * Small files: read and written as a whole, and those in a directory of ours that only we may have
 * written. For folders that touch the machine, and for config and topology while they load.
 */
#ifndef NUMA_MIGRD_FILE_H
#define NUMA_MIGRD_FILE_H

#include <unistd.h>

#include "numa-migrd/base.h"

static inline void nm_closep(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

/* Hands over a descriptor: returns it and leaves -1 behind. */
static inline int nm_take_fd(int *fd)
{
	int taken = *fd;

	*fd = -1;
	return taken;
}

/*
 * Reads from an open file until its end, as text of less than `size` bytes with a NUL behind it.
 * Returns its length, -EFBIG, or -errno.
 */
int nm_read_all(int fd, char *buffer, size_t size);

/* The same of a file below a directory (AT_FDCWD: where we are). */
int nm_read_text(int directory, const char *path, char *buffer, size_t size);

/* Writes all of it, over as many writes as it takes. Returns 0 or -errno. */
int nm_write_all(int fd, const char *text, size_t length);

/* Writes `text` to a file that is there, by one write as kernel files want it. 0 or -errno. */
int nm_write_text(int directory, const char *path, const char *text);

/*
 * Opens for reading a file that speaks for root, or for the user `owner`: nobody else can have
 * written it. It is judged by the descriptor, so that it cannot be exchanged between the check and
 * the reading. Returns the descriptor; -ELOOP for a link, -EMEDIUMTYPE for what is no plain file,
 * -EPERM where somebody else owns it or may write to it, -errno of open(2). For the configuration.
 */
int nm_open_trusted(const char *path, uid_t owner);

/* Reads one that speaks for root or for our own user, as nm_read_all() does. */
int nm_read_trusted(const char *path, char *buffer, size_t size);

/*
 * In place of a directory of ours, for runs that have nothing to leave (simulation, replay): what
 * is created in it is memory, gone once it is closed, and nothing else is there.
 */
#define NM_NOWHERE (-2)

/*
 * Opens (with O_CREAT: creates, mode 0600) a file of a directory of ours. -EPERM for anything but a
 * regular file with one name, of our own or the directory's owner (root reads what the service's
 * user wrote), not written by others. What root creates becomes the directory's
 * owner's.
 */
int nm_open_own(int directory, const char *name, int flags);

/*
 * Puts a file of ours with this text in place of what is there under the name, at once: a process
 * that reads finds the old one or the new one. 0, or -errno with the old one as it was.
 */
int nm_replace_own(int directory, const char *name, const char *text, size_t length);

/* The same for a file that everyone may read (mode 0644), whatever the umask. */
int nm_replace_public(int directory, const char *name, const char *text, size_t length);

#endif
