// SPDX-License-Identifier: MIT
/* Extended attributes and owners of directories (xattr(7), stat(2)). */
#include <errno.h>
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
