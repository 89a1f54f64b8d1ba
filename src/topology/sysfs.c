// SPDX-License-Identifier: MIT
#include "sysfs.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "numa-migrd/base.h"

int nm_sysfs_root(const char *root_path)
{
	int fd = open(root_path ? root_path : "/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static int read_text(int fd, char *buffer, size_t size)
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

int nm_sysfs_read(int root, char *buffer, size_t size, const char *format, ...)
{
	nm_auto(nm_sysfs_close) int fd = -1;
	char path[128];
	va_list arguments;

	va_start(arguments, format);
	int length = vsnprintf(path, sizeof(path), format, arguments);
	va_end(arguments);
	if (length < 0 || (size_t)length >= sizeof(path))
		return -ENAMETOOLONG;

	fd = openat(root, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	return read_text(fd, buffer, size);
}

bool nm_sysfs_add_list(int root, const char *path, hwloc_bitmap_t set)
{
	nm_autofree char *text = malloc(NM_SYSFS_TEXT_MAX);
	nm_autobitmap listed = hwloc_bitmap_alloc();

	if (!text || !listed || nm_sysfs_read(root, text, NM_SYSFS_TEXT_MAX, "%s", path) <= 0)
		return false;
	if (!isdigit((unsigned char)text[0]))
		return false;
	text[strcspn(text, "\n")] = '\0';
	if (hwloc_bitmap_list_sscanf(listed, text) < 0 || hwloc_bitmap_weight(listed) <= 0)
		return false;
	return hwloc_bitmap_or(set, set, listed) == 0;
}

int nm_sysfs_node_cpus(int root, unsigned node, hwloc_bitmap_t set)
{
	nm_autofree char *text = malloc(NM_SYSFS_TEXT_MAX);

	if (!text)
		return -ENOMEM;
	int length = nm_sysfs_read(root, text, NM_SYSFS_TEXT_MAX,
				   "sys/devices/system/node/node%u/cpumap", node);
	if (length < 0)
		return length;
	text[strcspn(text, "\n")] = '\0';
	return hwloc_bitmap_sscanf(set, text) < 0 ? -EINVAL : 0;
}
