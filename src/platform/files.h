/* SPDX-License-Identifier: MIT */
/* The operations of struct nm_platform_ops on files and the clock, apart from the others, so that
 * numa-migrctl does not link what opens events. */
#ifndef NUMA_MIGRD_PLATFORM_FILES_H
#define NUMA_MIGRD_PLATFORM_FILES_H

#include "numa-migrd/platform.h"

/* The first member of a platform that uses NM_FILES_OPS. */
struct nm_files {
	struct nm_platform base;
	int root;
};

uint64_t nm_files_now_ns(struct nm_platform *platform);
uint64_t nm_files_boot_ns(struct nm_platform *platform);
int nm_files_open_directory(struct nm_platform *platform, int directory, const char *path);
ssize_t nm_files_read_file(struct nm_platform *platform, int directory, const char *path,
			   char *buffer, size_t size);
int nm_files_list_directory(struct nm_platform *platform, int directory, const char *path,
			    nm_name_fn each, void *context);
void nm_files_close(struct nm_platform *platform, int fd);
ssize_t nm_files_read_attribute(struct nm_platform *platform, int directory, const char *name,
				void *buffer, size_t size);
int nm_files_owner(struct nm_platform *platform, int directory, struct nm_owner *ret);

#define NM_FILES_OPS                                                                               \
	.now_ns = nm_files_now_ns, .boot_ns = nm_files_boot_ns,                                    \
	.open_directory = nm_files_open_directory, .read_file = nm_files_read_file,                \
	.list_directory = nm_files_list_directory, .close = nm_files_close,                        \
	.read_attribute = nm_files_read_attribute, .owner = nm_files_owner

#endif
