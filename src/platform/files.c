// SPDX-License-Identifier: MIT
/* Files below a root, attributes and owners of directories (xattr(7), stat(2)), and the clock. */
#include "files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include "numa-migrd/base.h"
#include "numa-migrd/file.h"

static struct nm_files *files_of(struct nm_platform *platform)
{
	return NM_CONTAINER_OF(platform, struct nm_files, base);
}

static int base_of(struct nm_platform *platform, int directory)
{
	return directory == NM_ROOT ? files_of(platform)->root : directory;
}

uint64_t nm_files_now_ns(struct nm_platform *platform)
{
	(void)platform;
	return nm_clock_ns();
}

uint64_t nm_files_boot_ns(struct nm_platform *platform)
{
	struct timespec now;

	(void)platform;
	(void)clock_gettime(CLOCK_BOOTTIME, &now); /* fails only for unknown clocks */
	return (uint64_t)now.tv_sec * NM_NSEC_PER_SEC + (uint64_t)now.tv_nsec;
}

int nm_files_open_directory(struct nm_platform *platform, int directory, const char *path)
{
	int fd = openat(base_of(platform, directory), path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

ssize_t nm_files_read_file(struct nm_platform *platform, int directory, const char *path,
			   char *buffer, size_t size)
{
	if (size == 0 || size > INT_MAX)
		return -EINVAL;
	return nm_read_text(base_of(platform, directory), path, buffer, size);
}

int nm_files_list_directory(struct nm_platform *platform, int directory, const char *path,
			    nm_name_fn each, void *context)
{
	nm_auto(nm_closedirp) DIR *listing = NULL;
	const struct dirent *entry;
	int r = nm_open_listing(base_of(platform, directory), path, &listing);

	while (r >= 0 && (errno = 0, entry = readdir(listing)))
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			r = each(context, entry->d_name);
	return r < 0 ? r : -errno;
}

void nm_files_close(struct nm_platform *platform, int fd)
{
	(void)platform;
	if (fd >= 0)
		close(fd);
}

ssize_t nm_files_read_attribute(struct nm_platform *platform, int directory, const char *name,
				void *buffer, size_t size)
{
	ssize_t length = fgetxattr(directory, name, buffer, size);

	(void)platform;
	return length < 0 ? -errno : length;
}

int nm_files_owner(struct nm_platform *platform, int directory, struct nm_owner *ret)
{
	struct stat st;

	(void)platform;
	if (fstat(directory, &st) < 0)
		return -errno;
	*ret = (struct nm_owner){.uid = st.st_uid, .others_write = (st.st_mode & 022) != 0};
	return 0;
}

/* ---- a platform of these operations alone ---- */

static void free_files(struct nm_platform *platform)
{
	struct nm_files *files = files_of(platform);

	nm_closep(&files->root);
	free(files);
}

static const struct nm_platform_ops files_ops = {NM_FILES_OPS};

int nm_platform_files_new(const char *root_path, struct nm_platform **ret)
{
	nm_autofree struct nm_files *files = nm_must(calloc(1, sizeof(*files)));

	files->base = (struct nm_platform){.ops = &files_ops, .free = free_files};
	files->root = open(root_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (files->root < 0)
		return -errno;
	*ret = &NM_TAKE(files)->base;
	return 0;
}
