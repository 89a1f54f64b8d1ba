// SPDX-License-Identifier: MIT
/* Extended attributes of directories, and word of their changes (xattr(7), inotify(7)). */
#include <errno.h>
#include <stdio.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "linux.h"

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

int nm_linux_watch_open(struct nm_platform *platform)
{
	int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);

	(void)platform;
	return fd < 0 ? -errno : fd;
}

/*
 * By descriptor: a path could lead elsewhere by now. A control group that goes tells its parent,
 * and on most kernels not itself.
 */
int nm_linux_watch_add(struct nm_platform *platform, int watch, int directory)
{
	char path[32];

	(void)platform;
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", directory);
	int descriptor =
		inotify_add_watch(watch, path, IN_ATTRIB | IN_DELETE | IN_DELETE_SELF | IN_ONLYDIR);
	return descriptor < 0 ? -errno : descriptor;
}

/* That it is gone already is no news. */
void nm_linux_watch_remove(struct nm_platform *platform, int watch, int descriptor)
{
	(void)platform;
	(void)inotify_rm_watch(watch, descriptor);
}
