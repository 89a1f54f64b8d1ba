/* SPDX-License-Identifier: MIT */
/* Reads small kernel files below a root directory; used only in this folder. */
#ifndef NUMA_MIGRD_TOPOLOGY_SYSFS_H
#define NUMA_MIGRD_TOPOLOGY_SYSFS_H

#include <stdbool.h>
#include <stddef.h>
#include <unistd.h>

#include "numa-migrd/topology.h"

/* Enough for a list of every second CPU of 8192. */
#define NM_SYSFS_TEXT_MAX 32768

/*
 * Opens the root directory of a tree; NULL means "/". Returns the descriptor or a negative errno.
 */
int nm_sysfs_root(const char *root_path);

/* Reads one file as text of less than `size` bytes. Returns its length, -EFBIG, or another negative
 * errno. */
__attribute__((format(printf, 4, 5))) int nm_sysfs_read(int root, char *buffer, size_t size,
							const char *format, ...);

/* Adds the CPUs of a list file ("0-3,8") to the set. Returns whether the file contains any: an
 * empty file, a missing one and the "(null)" of an unset nohz_full contain none. */
bool nm_sysfs_add_list(int root, const char *path, hwloc_bitmap_t set);

/* Sets *set to a node's cpumap, which contains only online CPUs. Returns 0 or a negative errno. */
int nm_sysfs_node_cpus(int root, unsigned node, hwloc_bitmap_t set);

/* Sets *set to the best initiators of a node's memory according to the firmware (HMAT), in access
 * class 0 or 1 (Linux, admin-guide/mm/numaperf); empty if it provides none. */
void nm_sysfs_initiators(int root, unsigned node, unsigned class, hwloc_bitmap_t set);

#endif
