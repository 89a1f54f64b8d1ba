/* SPDX-License-Identifier: MIT */
/*
 * The amount of memory on a node that the kernel would make available for migrated pages. A
 * migration to one node reclaims clean page cache before it fails, so such cache counts as
 * available.
 */
#ifndef NUMA_MIGRD_NODE_MEMORY_H
#define NUMA_MIGRD_NODE_MEMORY_H

#include "numa-migrd/platform.h"

struct nm_node_memory {
	uint64_t total_bytes, free_bytes;
	uint64_t clean_bytes; /* inactive file pages that need no writeback */
};

/* Parses /sys/devices/system/node/nodeN/meminfo. Returns 0 or -EINVAL. Pure. */
int nm_node_memory_parse(const char *text, struct nm_node_memory *ret);

/* Reads that file for the node with the kernel's number os_id. Returns 0, -EINVAL or another
 * negative errno. */
int nm_node_memory_read(struct nm_platform *platform, unsigned os_id, struct nm_node_memory *ret);

/* Memory that the kernel itself keeps free: vm.min_free_kbytes and vm.watermark_scale_factor
 * (sysctl/vm.rst). */
struct nm_watermarks {
	uint64_t min_free_bytes;
	double scale; /* distance between two watermarks, as a share of the node's memory */
};

/* Reads the two settings. A file that cannot be read counts as 0. */
struct nm_watermarks nm_watermarks_read(struct nm_platform *platform);

/*
 * Returns free memory plus clean inactive file pages, minus the high watermark and the share
 * keep_free (0–1) of the node's memory. Subtracts min_free_kbytes completely, although the node's
 * part of it is smaller. Pure.
 */
uint64_t nm_node_memory_available(const struct nm_node_memory *memory,
				  const struct nm_watermarks *watermarks, double keep_free);

/* The same for the node with the kernel's number os_id, read now. Returns 0, -EINVAL or another
 * negative errno. Called by placement and mover. */
int nm_node_available_read(struct nm_platform *platform, unsigned os_id,
			   const struct nm_watermarks *watermarks, double keep_free,
			   uint64_t *ret_bytes);

/* ---- reclaim ---- */

/* Finds a counter in the text of /proc/vmstat, which must not be the first line. Returns false if
 * there is none with this name. Pure. */
bool nm_vmstat_value(const char *text, const char *name, uint64_t *ret);
/* Reads the current text of /proc/vmstat, or "" if it cannot be read. */
#define NM_VMSTAT_BYTES 16384U
void nm_vmstat_read(struct nm_platform *platform, char text[NM_VMSTAT_BYTES]);

/* Counters of the machine since boot; 0 for a counter that does not exist. */
struct nm_reclaim {
	uint64_t direct_scanned, direct_reclaimed; /* pages, by allocations that waited for
						    * memory */
	uint64_t background_scanned;		   /* pages, by kswapd */
	uint64_t swapped_out;
};
struct nm_reclaim nm_reclaim_parse(const char *vmstat);

/*
 * Returns whether programs lost memory that they use, between two readings: pages were swapped out
 * while the machine was short of memory (a cgroup at its own limit swaps, too), or direct reclaim
 * scanned pages and reclaimed less than 40 % of them, which vmpressure calls medium
 * (mm/vmpressure.c). Direct reclaim of clean page cache, which migration itself causes, reclaims
 * nearly all. Pure.
 */
bool nm_reclaim_hurts(const struct nm_reclaim *before, const struct nm_reclaim *now);

/* The state of one observer of reclaim; initially {0}. */
struct nm_reclaim_watch {
	struct nm_reclaim last;
	bool known;		   /* `last` is valid */
	uint64_t read_ns, hurt_ns; /* times of the last reading and the last sign of harm; 0:
				    * never */
};
#define NM_RECLAIM_AGE_NS (100 * NM_NSEC_PER_MSEC) /* time after which the counters are read
						    * again */
#define NM_RECLAIM_QUIET_NS NM_NSEC_PER_SEC /* time without another sign after which it is over */

/*
 * Returns true if reclaim has harmed programs within the last second, and the node with the
 * kernel's number os_id has less free memory than its high watermark, below which it is reclaimed.
 * Nothing should then be moved to it. The kernel counts reclaim per machine (per node only since
 * Linux 7.0). Called by placement and mover.
 */
bool nm_node_is_reclaimed(struct nm_platform *platform, struct nm_reclaim_watch *watch,
			  unsigned os_id, uint64_t now_ns);

#endif
