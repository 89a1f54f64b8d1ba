/* SPDX-License-Identifier: MIT */
/* The Linux platform's state and the operations that live in files of their own. */
#ifndef NUMA_MIGRD_PLATFORM_LINUX_H
#define NUMA_MIGRD_PLATFORM_LINUX_H

#include "numa-migrd/helper.h"
#include "numa-migrd/platform.h"

struct nm_linux {
	struct nm_platform base;
	int root, proc;
	int helper;	     /* connection, or -1 */
	int balancing;	     /* what we set kernel.numa_balancing to, or -1 */
	char *helper_socket; /* NULL: acts are done in this process */
	char *config_path, *state_path;
	unsigned long
		*mask; /* as wide as the kernel's CPU masks, so that no move has to allocate */
	unsigned mask_longs;
};

static inline struct nm_linux *nm_linux(struct nm_platform *platform)
{
	return NM_CONTAINER_OF(platform, struct nm_linux, base);
}

/* nm_platform_ops, linux_files.c */
int nm_linux_open_directory(struct nm_platform *platform, int directory, const char *path);
ssize_t nm_linux_read_file(struct nm_platform *platform, int directory, const char *path,
			   char *buffer, size_t size);
int nm_linux_list_directory(struct nm_platform *platform, int directory, const char *path,
			    nm_name_fn each, void *context);
int nm_linux_open_file(struct nm_platform *platform, int directory, const char *path);
ssize_t nm_linux_read_some(struct nm_platform *platform, int fd, char *buffer, size_t size);
void nm_linux_close(struct nm_platform *platform, int fd);

/* nm_platform_ops, linux_watch.c */
ssize_t nm_linux_read_attribute(struct nm_platform *platform, int directory, const char *name,
				void *buffer, size_t size);
int nm_linux_owner(struct nm_platform *platform, int directory, struct nm_owner *ret);
int nm_linux_watch_open(struct nm_platform *platform);
int nm_linux_watch_add(struct nm_platform *platform, int watch, int directory);
void nm_linux_watch_remove(struct nm_platform *platform, int watch, int descriptor);

/* nm_platform_ops, linux_affinity.c */
int nm_linux_mask_init(struct nm_linux *self);
int nm_linux_affinity_get(struct nm_platform *platform, pid_t tid, hwloc_bitmap_t ret);
int nm_linux_affinity_set(struct nm_platform *platform, pid_t tid, hwloc_const_bitmap_t cpus);

#endif
