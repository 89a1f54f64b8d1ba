/* SPDX-License-Identifier: MIT */
/*
 * CPUs that no thread may be moved to because they are isolated, as they change at run time: by
 * isolcpus= and isolated cpuset partitions (cgroups(7)). Linux 6.7 and later list the latter;
 * before, they are found among the cgroups.
 */
#ifndef NUMA_MIGRD_ISOLATION_H
#define NUMA_MIGRD_ISOLATION_H

#include <stdint.h>

#include "numa-migrd/platform.h"

/* The result of the last reading; initially {0}. */
struct nm_isolation {
	uint64_t listed;     /* hash of the isolated CPUs that the kernel lists */
	uint64_t taken;	     /* hash of the online CPUs in partitions of any kind */
	char found[4096];    /* list of the CPUs in isolated partitions, found among the cgroups */
	char isolated[4096]; /* list of all isolated CPUs */
	uint64_t walked_ns;
	char partial[4096]; /* as `found`, of a search that the next call continues */
	unsigned searched;  /* children of the root cgroup that it has searched; 0: there is none */
};

/*
 * Reads what has changed: the lists of the kernel, and whether there are partitions, with four
 * files in each call; the cgroups, only if there are partitions and the kernel lists none, every
 * five seconds, and at most 512 names in a call: the next one continues. Returns 1 if anything
 * differs from the last call, as in the first call; 0 if not.
 */
int nm_isolation_follow(struct nm_isolation *isolation, struct nm_platform *platform,
			uint64_t now_ns);

#endif
