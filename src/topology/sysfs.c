// SPDX-License-Identifier: MIT
#include "sysfs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "numa-migrd/file.h"

int nm_sysfs_root(const char *root_path)
{
	int fd = open(root_path ? root_path : "/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

int nm_sysfs_read(int root, char *buffer, size_t size, const char *format, ...)
{
	char path[128];
	va_list arguments;

	va_start(arguments, format);
	int length = vsnprintf(path, sizeof(path), format, arguments);
	va_end(arguments);
	if (length < 0 || (size_t)length >= sizeof(path))
		return -ENAMETOOLONG;

	return nm_read_text(root, path, buffer, size);
}

bool nm_sysfs_add_list(int root, const char *path, hwloc_bitmap_t set)
{
	nm_autofree char *text = nm_must(malloc(NM_SYSFS_TEXT_MAX));
	nm_autobitmap listed = nm_must(hwloc_bitmap_alloc());

	if (nm_sysfs_read(root, text, NM_SYSFS_TEXT_MAX, "%s", path) <= 0)
		return false;
	if (nm_list_parse(text, listed) < 0)
		return false;
	return hwloc_bitmap_or(set, set, listed) == 0;
}

void nm_sysfs_initiators(int root, unsigned node, unsigned class, hwloc_bitmap_t set)
{
	nm_auto(nm_closedirp) DIR *directory = NULL;
	char path[96];
	struct dirent *entry;

	hwloc_bitmap_zero(set);
	(void)snprintf(path, sizeof(path), "sys/devices/system/node/node%u/access%u/initiators",
		       node, class);
	if (nm_open_listing(root, path, &directory) < 0)
		return;
	while ((entry = readdir(directory))) {
		unsigned initiator;
		char rest;
		if (sscanf(entry->d_name, "node%5u%c", &initiator, &rest) == 1 &&
		    initiator <= NM_LIST_MAX)
			(void)hwloc_bitmap_set(set, initiator);
	}
}

int nm_sysfs_node_cpus(int root, unsigned node, hwloc_bitmap_t set)
{
	nm_autofree char *text = nm_must(malloc(NM_SYSFS_TEXT_MAX));

	int length = nm_sysfs_read(root, text, NM_SYSFS_TEXT_MAX,
				   "sys/devices/system/node/node%u/cpumap", node);
	if (length < 0)
		return length;
	return nm_map_parse(text, set);
}
