/* SPDX-License-Identifier: MIT */
/* Changing and returning the mask of one identified thread (design section 2, "Identity"). */
#ifndef NM_ACTUATE_MASK_H
#define NM_ACTUATE_MASK_H

#include "numa-migrd/cgroups.h"
#include "numa-migrd/ledger.h"
#include "numa-migrd/platform.h"
#include "numa-migrd/proc.h"
#include "numa-migrd/topology.h"

/* The machine on which affinities are set, and with which they are compared. */
struct nm_masks {
	struct nm_platform *platform;
	const struct nm_topology *topology;
	struct nm_cgroups *cgroups;
};

/*
 * Opens the thread's /proc directory if it is still the one that started at start_ticks. Returns
 * the fd (closed by the caller) or -ESRCH. stat may be NULL.
 */
int nm_mask_open(struct nm_platform *platform, uint32_t pid, uint32_t tid, uint64_t start_ticks,
		 struct nm_proc_stat *stat);

enum nm_mask_state {
	NM_MASK_OURS,  /* the target, or what the cpuset leaves of it */
	NM_MASK_RESET, /* what its cpuset, or the loss of CPUs, made of it under the lease: the
			* kernel's doing. Newer kernels still remember our mask then, and would
			* bring it back */
	NM_MASK_FOREIGN,
};

/* Who set the affinity `current` of the thread behind `directory` with this lease? An enum
 * nm_mask_state, or -errno: it cannot be read now. */
int nm_mask_judge(const struct nm_masks *masks, int directory,
				 const struct nm_ledger_entry *terms, hwloc_const_bitmap_t current);

/*
 * Sets the mask of the thread behind `directory`, and looks again: -ESRCH when it died meanwhile
 * (the affinity of a new owner of its number that was hit is restored), -ESTALE when the kernel
 * shows another mask. On any error the mask may have been set nevertheless.
 */
int nm_mask_set(const struct nm_masks *masks, int directory, uint32_t tid, uint64_t start_ticks,
		hwloc_const_bitmap_t mask);

/* What the cpuset of the thread behind `directory` allows now; where cpusets cannot be read (cgroup
 * v1), what is online. 0 or -errno. */
int nm_mask_read_allowed(const struct nm_masks *masks, int directory, hwloc_bitmap_t ret);

/*
 * The only way back: restores the original affinity of one thread that carries `terms`' target: 1
 * restored, 0 the mask is not ours any more (left alone), -ESRCH gone, other -errno refused. Where
 * the original was the whole cpuset, all possible CPUs are set, so that the thread follows the
 * cpuset when it widens, and nothing narrower stays in the kernel's memory. Everywhere.
 */
int nm_mask_restore(const struct nm_masks *masks, const struct nm_ledger_entry *terms, uint32_t pid,
		    uint32_t tid, uint64_t start_ticks);

#endif
