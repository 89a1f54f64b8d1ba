/* SPDX-License-Identifier: MIT */
/* Reading small kernel files below a root directory, for this folder only. */
#ifndef NUMA_MIGRD_TOPOLOGY_SYSFS_H
#define NUMA_MIGRD_TOPOLOGY_SYSFS_H

#include <stdbool.h>
#include <stddef.h>
#include <unistd.h>

#include "numa-migrd/topology.h"

/* Long enough for a list of every second CPU of 8192. */
#define NM_SYSFS_TEXT_MAX 32768

/* Opens the root directory of a tree; NULL means "/". Returns the fd or -errno. */
int nm_sysfs_root(const char *root_path);

/* Reads one file as text of less than `size` bytes. Returns its length, -EFBIG, or -errno. */
__attribute__((format(printf, 4, 5))) int nm_sysfs_read(int root, char *buffer, size_t size,
							const char *format, ...);

/*
 * Adds the CPUs of a list file ("0-3,8") to the set. Returns true when the file named any: an empty
 * one, a missing one and the "(null)" of an unset nohz_full name none.
 */
bool nm_sysfs_add_list(int root, const char *path, hwloc_bitmap_t set);

/* Sets *set to a node's cpumap, which names online CPUs only. Returns 0 or -errno. */
int nm_sysfs_node_cpus(int root, unsigned node, hwloc_bitmap_t set);

/*
 * Sets *set to the nodes that the firmware (HMAT) has as the best initiators of a node's memory, in access
 * class 0 or 1 (Linux, admin-guide/mm/numaperf); empty where it tells none.
 */
void nm_sysfs_initiators(int root, unsigned node, unsigned class, hwloc_bitmap_t set);

#endif
