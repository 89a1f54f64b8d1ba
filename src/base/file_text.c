/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <string.h>

#include "numa-migrd/file.h"

int nm_open_listing(int directory, const char *path, DIR **ret)
{
	nm_auto(nm_closep) int fd = openat(directory, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *opened = fd < 0 ? NULL : fdopendir(fd);

	if (!opened)
		return fd < 0 ? -errno : -ENOMEM;
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
