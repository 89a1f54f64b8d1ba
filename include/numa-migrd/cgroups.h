/* SPDX-License-Identifier: MIT */
/*
 * The limits of cgroups (cgroups(7), unified hierarchy): CPUs (cpuset.cpus.effective) and CPU time
 * (cpu.max). Users can create cgroups thousands of levels deep, so paths beyond 32 levels are not
 * opened, and each file is read once per tick.
 */
#ifndef NUMA_MIGRD_CGROUPS_H
#define NUMA_MIGRD_CGROUPS_H

#include "numa-migrd/platform.h"

#define NM_CGROUPS_LEVELS 32U

struct nm_cgroups;

/* Creates a reader. The platform must outlive it. Returns 0 or -ENOMEM. Called by actuator, task
 * table and placement. */
int nm_cgroups_new(struct nm_platform *platform, struct nm_cgroups **ret);
void nm_cgroups_free(struct nm_cgroups *cgroups);
NM_DEFINE_CLEANUP(struct nm_cgroups, nm_cgroups_free);

/* Begins the tick with this time. If the time differs from that of the last call, all files are
 * read again. */
void nm_cgroups_begin(struct nm_cgroups *cgroups, uint64_t now_ns);

/* Discards all values read. */
void nm_cgroups_forget(struct nm_cgroups *cgroups);

/*
 * Returns the CPUs that the cgroup (a path as in /proc/PID/cgroup), or its nearest ancestor with a
 * cpuset, may use. *ret_root, if not NULL, is set to whether that is the root. Returns 0; -ENODATA
 * if it is not known (too deep, outside the cgroup namespace, no such controller); or another
 * negative errno if it cannot be read now.
 */
int nm_cgroups_cpus(struct nm_cgroups *cgroups, const char *cgroup, hwloc_bitmap_t ret,
		    bool *ret_root);

/* The same for the thread or process of a directory in /proc, whose file "cpuset" names that
 * ancestor with one read. Also returns -ESRCH if it has exited. */
int nm_cgroups_cpus_of(struct nm_cgroups *cgroups, int directory, hwloc_bitmap_t ret,
		       bool *ret_root);

/* Returns the CPU time, in CPUs, that the limits of the cgroup and its ancestors allow; infinity
 * without a limit. Errors are those of nm_cgroups_cpus(). */
int nm_cgroups_cpu_limit(struct nm_cgroups *cgroups, const char *cgroup, double *ret_cpus);

/* Returns the number of calls to the platform since the start, for budgets. */
uint64_t nm_cgroups_calls(const struct nm_cgroups *cgroups);

#endif
