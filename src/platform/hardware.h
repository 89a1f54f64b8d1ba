/* SPDX-License-Identifier: MIT */
/* Changes of a running machine: the load of its CPUs, and the set of CPUs and memory that are
 * online. */
#ifndef NUMA_MIGRD_HARDWARE_H
#define NUMA_MIGRD_HARDWARE_H

#include "numa-migrd/platform.h"

struct nm_cpu_times;

/* The load of the CPUs, by CPU id; initially {0}. */
struct nm_cpu_load {
	double *busy_share; /* between the last two readings; NaN: not known */
	unsigned nr_cpus;
	struct nm_cpu_times *times; /* as of the last reading */
	size_t stat_bytes;	    /* size of a buffer for /proc/stat; 0: the default */
};

/* Reads the load of at least nr_cpus CPUs. */
void nm_cpu_load_read(struct nm_cpu_load *load, struct nm_platform *platform, unsigned nr_cpus);
void nm_cpu_load_clear(struct nm_cpu_load *load);

/* Properties of the machine as of the last reading; initially {0}. */
struct nm_online {
	char cpus[4096]; /* the kernel's list */
	uint64_t memory_seen_ns;
	struct nm_online_memory {
		uint64_t total_kb;
		uint64_t blocks, block_sum; /* number of blocks in /sys/devices/system/memory, and
					     * sum of their numbers */
		char nodes[512];	    /* the kernel's list */
	} memory;
};

/*
 * Detects a change of the set of CPUs at once, and of nodes and memory blocks within ten seconds.
 * Returns "CPUs" or "memory", and describes what is online; NULL if nothing has changed since the
 * last call, as in the first call.
 */
const char *nm_online_follow(struct nm_online *online, struct nm_platform *platform,
			     uint64_t now_ns, char *ret, size_t size);

#endif
