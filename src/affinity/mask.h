/* SPDX-License-Identifier: MIT */
/* Sets and restores the CPU affinity of one identified thread. */
#ifndef NM_AFFINITY_MASK_H
#define NM_AFFINITY_MASK_H

#include "narrowing.h"
#include "numa-migrd/platform.h"
#include "numa-migrd/proc.h"
#include "numa-migrd/topology.h"

/* The machine whose affinities are set and compared. */
struct nm_masks {
	struct nm_platform *platform;
	const struct nm_topology *topology;
	struct nm_cgroups *cgroups;
};

enum nm_mask_state {
	NM_MASK_OURS,  /* the target, or the part of it that the cpuset allows */
	NM_MASK_RESET, /* set by the kernel meanwhile, because the cpuset changed or CPUs
			  went offline. Newer kernels still remember our affinity in this state, and
			  would restore it later */
	/* The original affinity, or all CPUs of the cpuset. No program chose it: before Linux 6.2
	 * the kernel sets all CPUs of the cpuset whenever a cpuset is written, or the controller is
	 * turned on. */
	NM_MASK_ORIGINAL,
	NM_MASK_FOREIGN,
};

/* Determines the origin of `current`, the affinity of the moved thread behind `directory`. Returns
 * an enum nm_mask_state, or a negative errno if the cpuset cannot be read at the moment. */
int nm_mask_judge(const struct nm_masks *masks, int directory, const struct nm_narrowing *terms,
		  hwloc_const_bitmap_t current);

/*
 * Sets the affinity of the thread behind `directory`, and verifies the result. Returns 0; -ESRCH if
 * the thread exited meanwhile (if its number was reused, the affinity of the new thread is
 * restored); -ESTALE if the kernel reports CPUs outside the requested affinity; or another negative
 * errno. After any error the affinity may have been set.
 */
int nm_mask_set(const struct nm_masks *masks, int directory, uint32_t tid, uint64_t start_ticks,
		hwloc_const_bitmap_t mask);

/* Reads the CPUs that the cpuset of the thread behind `directory` allows, or the online CPUs if
 * cpusets cannot be read (cgroup v1). Returns 0 or a negative errno. */
int nm_mask_read_allowed(const struct nm_masks *masks, int directory, hwloc_bitmap_t ret);

/*
 * Restores the original affinity of a thread that carries the target of `terms`. Returns 1 if it
 * was restored; 0 if the affinity is no longer ours and was left alone; NM_MASK_UNCHANGED if there
 * is nothing to restore (NM_MASK_ORIGINAL); -ESRCH if the thread has exited; or another negative
 * errno. If the original affinity was the whole cpuset, all possible CPUs are set, so that the
 * thread follows later extensions of the cpuset, and the kernel remembers no narrower affinity.
 */
#define NM_MASK_UNCHANGED 2
int nm_mask_restore(const struct nm_masks *masks, const struct nm_narrowing *terms, uint32_t pid,
		    uint32_t tid, uint64_t start_ticks);

/* The same for a task that may have inherited the target: it is restored only if it has exactly
 * that affinity, or the part of it that its cpuset allows. Otherwise returns 0. */
int nm_mask_restore_inherited(const struct nm_masks *masks, const struct nm_narrowing *terms,
			      uint32_t pid, uint32_t tid, uint64_t start_ticks);

#endif
