/* SPDX-License-Identifier: MIT */
/*
 * Functions for small files, which are read and written as a whole, and for files in the daemon's
 * own directories, which only it may write. For modules that access the machine, and for config and
 * topology while they load.
 */
#ifndef NUMA_MIGRD_FILE_H
#define NUMA_MIGRD_FILE_H

#include <dirent.h>
#include <unistd.h>

#include "numa-migrd/base.h"

static inline void nm_closep(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

static inline void nm_closedirp(DIR **directory)
{
	if (*directory)
		closedir(*directory);
}

/* Opens a directory below another one for readdir(3). The caller closes it. Returns 0 or a negative
 * errno. */
int nm_open_listing(int directory, const char *path, DIR **ret);

/* Transfers ownership of a descriptor: returns it and sets the variable to -1. */
static inline int nm_take_fd(int *fd)
{
	int taken = *fd;

	*fd = -1;
	return taken;
}

/* Reads from an open file until its end, as NUL-terminated text of less than `size` bytes. Returns
 * its length, -EFBIG if it is longer, or another negative errno. */
int nm_read_all(int fd, char *buffer, size_t size);

/* Reads a file below a directory like nm_read_all(). AT_FDCWD is the current directory. */
int nm_read_text(int directory, const char *path, char *buffer, size_t size);

/* Writes the whole text, with several calls if necessary. Returns 0 or a negative errno. */
int nm_write_all(int fd, const char *text, size_t length);

/* Writes `text` to an existing file with a single write(2), as kernel files require. Returns 0 or a
 * negative errno. */
int nm_write_text(int directory, const char *path, const char *text);

/*
 * Opens for reading a file (O_DIRECTORY in `flags`: a directory) below a directory that only root
 * or the user `owner` can have written. The check uses the descriptor, so that the file cannot be
 * replaced between check and reading. Returns the descriptor; -ELOOP for a symbolic link,
 * -EMEDIUMTYPE if it is not a regular file, -EPERM if another user owns it or may write to it, or
 * the negative errno of open(2). Used for the configuration.
 */
int nm_open_trusted(int directory, const char *path, int flags, uid_t owner);
/* As `owner`: the file is checked for its type only. */
#define NM_ANY_OWNER ((uid_t)-1)

/* Used instead of a directory by runs that leave no files (simulation). Files created in it
 * are in memory and disappear when closed; no other files exist. */
#define NM_NOWHERE (-2)

/*
 * Opens (with O_CREAT: creates, mode 0600) a file in one of the daemon's directories. Returns
 * -EPERM unless it is a regular file with one name, owned by this user or by the owner of the
 * directory (root reads files of the service's user), and not writable by others. A file that root
 * creates is given to the owner of the directory.
 */
int nm_open_own(int directory, const char *name, int flags);

/* Atomically replaces a file by one with this text: a reader gets the old file or the new one.
 * Returns 0, or a negative errno with the old file unchanged. */
int nm_replace_own(int directory, const char *name, const char *text, size_t length);

/* Same as nm_replace_own() for a file with an absolute path that all users may read (mode 0644),
 * regardless of the umask. */
int nm_replace_public(const char *path, const char *text, size_t length);

#endif
