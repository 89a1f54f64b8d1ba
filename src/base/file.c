/* SPDX-License-Identifier: MIT */
#include "numa-migrd/file.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define OWN_MODE 0600
#define PUBLIC_MODE 0644

int nm_open_listing(int directory, const char *path, DIR **ret)
{
	nm_auto(nm_closep) int fd = openat(directory, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *opened = fd < 0 ? NULL : fdopendir(fd);

	if (!opened)
		return -errno;
	(void)nm_take_fd(&fd);
	*ret = opened;
	return 0;
}

int nm_read_all(int fd, char *buffer, size_t size)
{
	size_t length = 0;

	while (length < size) {
		ssize_t got = read(fd, buffer + length, size - length);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (got == 0)
			break;
		length += (size_t)got;
	}
	if (length == size)
		return -EFBIG;
	buffer[length] = '\0';
	return (int)length;
}

int nm_read_text(int directory, const char *path, char *buffer, size_t size)
{
	nm_auto(nm_closep) int fd = openat(directory, path, O_RDONLY | O_CLOEXEC | O_NOCTTY);

	return fd < 0 ? -errno : nm_read_all(fd, buffer, size);
}

int nm_write_all(int fd, const char *text, size_t length)
{
	while (length > 0) {
		ssize_t written = write(fd, text, length);
		if (written < 0 && errno == EINTR)
			continue;
		if (written < 0)
			return -errno;
		text += written;
		length -= (size_t)written;
	}
	return 0;
}

int nm_write_text(int directory, const char *path, const char *text)
{
	nm_auto(nm_closep) int fd = openat(directory, path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
	ssize_t length = (ssize_t)strlen(text), written;

	if (fd < 0)
		return -errno;
	do
		written = write(fd, text, (size_t)length);
	while (written < 0 && errno == EINTR);
	if (written < 0)
		return -errno;
	return written == length ? 0 : -EIO;
}

/* ---- our own files ---- */

static int check_own(int directory, int fd)
{
	struct stat file;
	struct stat parent;
	if (fstat(fd, &file) < 0 || fstat(directory, &parent) < 0)
		return -errno;
	if (!S_ISREG(file.st_mode) || (file.st_mode & 022) || file.st_nlink > 1)
		return -EPERM;
	if (file.st_uid != geteuid() && (geteuid() != 0 || file.st_uid != parent.st_uid))
		return -EPERM;
	return 0;
}

/* A file that root creates in the service's directory is given to the service's user, because its
 * next start could not read it otherwise. */
static int give_to_owner(int directory, int fd)
{
	struct stat parent;
	if (geteuid() != 0)
		return 0;
	if (fstat(directory, &parent) < 0)
		return -errno;
	if (parent.st_uid != 0 && fchown(fd, parent.st_uid, parent.st_gid) < 0)
		return -errno;
	return 0;
}

static int open_nowhere(const char *name, int flags)
{
	if (!(flags & O_CREAT))
		return -ENOENT;
	int fd = memfd_create(name, MFD_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int nm_open_own(int directory, const char *name, int flags)
{
	if (directory == NM_NOWHERE)
		return open_nowhere(name, flags);
	int fd = openat(directory, name, flags | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, OWN_MODE);
	if (fd < 0)
		return errno == ELOOP ? -EPERM : -errno;
	int r = check_own(directory, fd);
	if (r < 0) {
		close(fd);
		return r;
	}
	if (flags & O_CREAT)
		r = give_to_owner(directory, fd);
	if (r < 0) {
		close(fd);
		return r;
	}
	return fd;
}

/* With NM_ANY_OWNER only the type counts. */
static int check_trusted(int fd, mode_t type, uid_t owner)
{
	struct stat status;
	if (fstat(fd, &status) < 0)
		return -errno;
	if ((status.st_mode & S_IFMT) != type)
		return -EMEDIUMTYPE;
	if (owner == NM_ANY_OWNER)
		return 0;
	if ((status.st_uid != 0 && status.st_uid != owner) ||
	    (status.st_mode & (S_IWGRP | S_IWOTH)))
		return -EPERM;
	return 0;
}

int nm_open_trusted(int directory, const char *path, int flags, uid_t owner)
{
	nm_auto(nm_closep) int fd = openat(
		directory, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK | flags);
	if (fd < 0)
		return -errno;
	int r = check_trusted(fd, flags & O_DIRECTORY ? S_IFDIR : S_IFREG, owner);
	return r < 0 ? r : nm_take_fd(&fd);
}

static int write_own(int directory, const char *name, const char *text, size_t length, mode_t mode)
{
	if (unlinkat(directory, name, 0) < 0 && errno != ENOENT)
		return -errno;
	nm_auto(nm_closep) int fd = nm_open_own(directory, name, O_WRONLY | O_CREAT | O_EXCL);
	int r = fd < 0 ? fd : nm_write_all(fd, text, length);
	if (r == 0 && mode != OWN_MODE && fchmod(fd, mode) < 0)
		r = -errno;
	return r;
}

static int replace(int directory, const char *name, const char *text, size_t length, mode_t mode)
{
	char fresh[NAME_MAX + 1];
	if (directory == NM_NOWHERE)
		return 0;
	if (snprintf(fresh, sizeof(fresh), "%s.new", name) >= (int)sizeof(fresh))
		return -ENAMETOOLONG;
	int r = write_own(directory, fresh, text, length, mode);
	if (r == 0 && renameat(directory, fresh, directory, name) < 0)
		r = -errno;
	if (r < 0)
		(void)unlinkat(directory, fresh, 0);
	return r;
}

int nm_replace_own(int directory, const char *name, const char *text, size_t length)
{
	return replace(directory, name, text, length, OWN_MODE);
}

int nm_replace_public(const char *path, const char *text, size_t length)
{
	const char *name = strrchr(path, '/') + 1;
	nm_autofree char *folder = nm_must(strndup(path, (size_t)(name - path)));
	nm_auto(nm_closep) int directory = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return directory < 0 ? -errno : replace(directory, name, text, length, PUBLIC_MODE);
}
