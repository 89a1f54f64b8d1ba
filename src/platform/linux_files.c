// SPDX-License-Identifier: MIT
/* Reads files below the root descriptor, and attributes and owners of directories (xattr(7),
 * stat(2)). */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "linux.h"
#include "privileged.h"

static int base_of(struct nm_platform *platform, int directory)
{
	return directory == NM_ROOT ? nm_linux(platform)->root : directory;
}

int nm_linux_open_directory(struct nm_platform *platform, int directory, const char *path)
{
	int fd = openat(base_of(platform, directory), path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

ssize_t nm_linux_read_file(struct nm_platform *platform, int directory, const char *path,
			   char *buffer, size_t size)
{
	if (size == 0 || size > INT_MAX)
		return -EINVAL;
	return nm_read_text(base_of(platform, directory), path, buffer, size);
}

static int list(DIR *directory, nm_name_fn each, void *context)
{
	const struct dirent *entry;

	while ((errno = 0, entry = readdir(directory))) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		int r = each(context, entry->d_name);
		if (r < 0)
			return r;
	}
	return -errno;
}

int nm_linux_list_directory(struct nm_platform *platform, int directory, const char *path,
			    nm_name_fn each, void *context)
{
	int fd = nm_linux_open_directory(platform, directory, path);

	if (fd < 0)
		return fd;
	DIR *opened = fdopendir(fd);
	if (!opened) {
		close(fd);
		return -ENOMEM;
	}
	int r = list(opened, each, context);
	closedir(opened);
	return r;
}

void nm_linux_close(struct nm_platform *platform, int fd)
{
	(void)platform;
	if (fd >= 0)
		close(fd);
}

ssize_t nm_linux_read_attribute(struct nm_platform *platform, int directory, const char *name,
				void *buffer, size_t size)
{
	ssize_t length = fgetxattr(directory, name, buffer, size);

	(void)platform;
	return length < 0 ? -errno : length;
}

int nm_linux_owner(struct nm_platform *platform, int directory, struct nm_owner *ret)
{
	struct stat st;

	(void)platform;
	if (fstat(directory, &st) < 0)
		return -errno;
	*ret = (struct nm_owner){.uid = st.st_uid, .others_write = (st.st_mode & 022) != 0};
	return 0;
}
