/* SPDX-License-Identifier: MIT */
/*
 * What cgroups allow their processes (cgroups(7), unified hierarchy): CPUs (cpuset.cpus.effective) and
 * CPU time (cpu.max). Users create cgroups at will, thousands of levels deep, so paths beyond 32 levels
 * are not opened, and each file is read once in a tick.
 */
#ifndef NUMA_MIGRD_CGROUPS_H
#define NUMA_MIGRD_CGROUPS_H

#include "numa-migrd/platform.h"

#define NM_CGROUPS_LEVELS 32U

struct nm_cgroups;

/* The platform must outlive it. -ENOMEM. Actuator, roster, placement. */
int nm_cgroups_new(struct nm_platform *platform, struct nm_cgroups **ret);
void nm_cgroups_free(struct nm_cgroups *cgroups);
NM_DEFINE_CLEANUP(struct nm_cgroups, nm_cgroups_free);

/* Begins the tick of this time: unless it is under way, everything is read again. */
void nm_cgroups_begin(struct nm_cgroups *cgroups, uint64_t now_ns);

/* Forgets what was read. */
void nm_cgroups_forget(struct nm_cgroups *cgroups);

/*
 * The CPUs that the cgroup (a path as in /proc/PID/cgroup) or its nearest ancestor with a cpuset may use;
 * *ret_root, unless NULL: that is the root. -ENODATA: not known (too deep, outside of our namespace, no
 * such controller); -errno: cannot be read now.
 */
int nm_cgroups_cpus(struct nm_cgroups *cgroups, const char *cgroup, hwloc_bitmap_t ret,
		    bool *ret_root);

/*
 * The same for the thread or process behind a directory of /proc, whose file "cpuset" names that ancestor
 * in one read. -ESRCH: it ended.
 */
int nm_cgroups_cpus_of(struct nm_cgroups *cgroups, int directory, hwloc_bitmap_t ret,
		       bool *ret_root);

/*
 * How many CPUs' time the cgroup and its ancestors leave to it, infinity without a limit. Errors as of
 * nm_cgroups_cpus().
 */
int nm_cgroups_cpu_limit(struct nm_cgroups *cgroups, const char *cgroup, double *ret_cpus);

/* Number of calls to the platform since the start, for budgets. */
uint64_t nm_cgroups_calls(const struct nm_cgroups *cgroups);

#endif
