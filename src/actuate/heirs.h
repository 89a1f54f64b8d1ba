/* SPDX-License-Identifier: MIT */
/*
 * Finding the threads and processes that inherited a narrowed mask, by a walk of /proc: only on
 * stop, release, and after a crash, when side-band records may be missing.
 */
#ifndef NM_ACTUATE_HEIRS_H
#define NM_ACTUATE_HEIRS_H

#include "numa-migrd/ledger.h"
#include "numa-migrd/platform.h"
#include "numa-migrd/proc.h"

/*
 * Was this thread's mask inherited from `terms`? Its mask must equal the target, and it must be
 *  - another thread of the leased process, born after the lease was given; or
 *  - the leader of that process after an exec by the leased thread, which took the leader's number;
 * or
 *  - of a process born after the lease that descends from the leased one, or, as an orphan (its
 * parent or the leased thread is gone), is of the same session or cgroup.
 */
bool nm_heirs_inherited(struct nm_platform *platform, const struct nm_ledger_entry *terms,
			uint32_t pid, uint32_t tid, const struct nm_proc_stat *stat,
			hwloc_const_bitmap_t current);

typedef void (*nm_heir_fn)(void *context, const struct nm_ledger_entry *terms, uint32_t pid,
			   uint32_t tid, uint64_t start_ticks);

/* Calls `each` for every heir of any of the entries that lives now. Returns their number, or
 * -errno. */
int nm_heirs_scan(struct nm_platform *platform, const struct nm_ledger_entry *const *entries,
		  size_t count, nm_heir_fn each, void *context);

#endif
