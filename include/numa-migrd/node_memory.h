/* SPDX-License-Identifier: MIT */
/*
 * How much memory of a node the kernel would give to pages that are migrated there. A migration
 * to one node reclaims clean page cache before it fails, so that such cache counts as available.
 */
#ifndef NUMA_MIGRD_NODE_MEMORY_H
#define NUMA_MIGRD_NODE_MEMORY_H

#include "numa-migrd/platform.h"

struct nm_node_memory {
	uint64_t total_bytes, free_bytes;
	uint64_t clean_bytes; /* of inactive file pages that need no writing */
};

/* Parses /sys/devices/system/node/nodeN/meminfo. -EINVAL. Pure. */
int nm_node_memory_parse(const char *text, struct nm_node_memory *ret);

/* Reads that file for the node with the kernel's number os_id. -EINVAL, -errno. */
int nm_node_memory_read(struct nm_platform *platform, unsigned os_id, struct nm_node_memory *ret);

/* What the kernel keeps free itself: vm.min_free_kbytes and vm.watermark_scale_factor
 * (sysctl/vm.rst). */
struct nm_watermarks {
	uint64_t min_free_bytes;
	double scale; /* of a node's memory, between two watermarks */
};

/* A file that cannot be read counts as 0. */
struct nm_watermarks nm_watermarks_read(struct nm_platform *platform);

/*
 * Free memory and clean inactive file pages, less the high watermark and keep_free (0–1) of the
 * node's memory. The whole of min_free_kbytes is taken off, of which the node's part is smaller.
 * Pure.
 */
uint64_t nm_node_memory_available(const struct nm_node_memory *memory,
				  const struct nm_watermarks *watermarks, double keep_free);

/* The same of the node with the kernel's number os_id, read now. Placement and mover. -EINVAL,
 * -errno. */
int nm_node_available_read(struct nm_platform *platform, unsigned os_id,
			   const struct nm_watermarks *watermarks, double keep_free,
			   uint64_t *ret_bytes);

#endif
