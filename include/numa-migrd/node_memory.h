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

/* ---- reclaim ---- */

/* A counter of /proc/vmstat, whose text begins with another line. False: it has none of that name. Pure. */
bool nm_vmstat_value(const char *text, const char *name, uint64_t *ret);
/* The text of /proc/vmstat as it is now; "" if it cannot be read. */
#define NM_VMSTAT_BYTES 16384U
void nm_vmstat_read(struct nm_platform *platform, char text[NM_VMSTAT_BYTES]);

/* Counters of the machine since it was booted; 0 without such a counter. */
struct nm_reclaim {
	uint64_t direct_scanned, direct_reclaimed; /* pages: by programs that needed memory at once */
	uint64_t background_scanned;		   /* by kswapd */
	uint64_t swapped_out;
};
struct nm_reclaim nm_reclaim_parse(const char *vmstat);

/*
 * Whether programs lost memory that they use, from one reading to the next: pages were swapped out
 * while the machine was short of memory (a cgroup at its own limit swaps, too), or direct reclaim
 * scanned pages and got less than 40 % of them, which vmpressure calls medium (mm/vmpressure.c).
 * Direct reclaim of clean page cache, which migration itself causes, gets nearly all. Pure.
 */
bool nm_reclaim_hurts(const struct nm_reclaim *before, const struct nm_reclaim *now);

/* One reader's view of that; {0} at first. */
struct nm_reclaim_watch {
	struct nm_reclaim last;
	bool known;		   /* last was read */
	uint64_t read_ns, hurt_ns; /* 0: never */
};
#define NM_RECLAIM_AGE_NS (100 * NM_NSEC_PER_MSEC) /* read again after that time */
#define NM_RECLAIM_QUIET_NS NM_NSEC_PER_SEC	      /* over after that time without another sign */

/*
 * True: reclaim hurt programs within the last second, and the node with the kernel's number os_id
 * has less free memory than its high watermark, below which it is reclaimed. Nothing should be moved
 * there. The kernel counts reclaim by machine (by node only since Linux 7.0). Placement and mover.
 */
bool nm_node_is_reclaimed(struct nm_platform *platform, struct nm_reclaim_watch *watch,
			  unsigned os_id, uint64_t now_ns);

#endif
