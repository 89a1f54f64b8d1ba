/* SPDX-License-Identifier: MIT */
/*
 * Who inherited a narrowed mask. FORK records tell it exactly; this is for when they may be
 * missing: after a crash, after records were lost, and for what was born since they were last read.
 * Two threads with the same mask look alike, so kinship is asked for as well: an owner who pinned a
 * neighbour to the same CPUs keeps his mask.
 */
#ifndef NM_ACTUATE_HEIRS_H
#define NM_ACTUATE_HEIRS_H

#include "numa-migrd/ledger.h"
#include "numa-migrd/platform.h"
#include "numa-migrd/proc.h"

/*
 * Born while the target could be inherited: the mask is copied some time before a large process's
 * child has its start, and an heir's own children may come until its mask was returned too. So two
 * seconds after the lease's end count as well.
 */
bool nm_heirs_born_under(const struct nm_ledger_entry *terms, uint64_t start_ticks);

typedef void (*nm_heir_fn)(void *context, const struct nm_ledger_entry *terms, uint32_t pid,
			   uint32_t tid, uint64_t start_ticks);

struct nm_heirs_search {
	struct nm_platform *platform;
	const struct nm_ledger_entry *const *entries; /* also ended ones: their heirs may live */
	size_t count;
	uint64_t born_since; /* only of threads born then or later (ticks); 0: of all */
	nm_heir_fn each;     /* called for every heir, with the terms it inherited */
	void *context;
};

/*
 * Looks at one thread: 1 an heir of one of the entries, 0 not, gone, or not ours to look at;
 * -ENOMEM, -EMFILE, -ENFILE, -EIO: it could not be looked at now. Its mask must be the target, and
 * it must be
 *  - another thread of the leased process, born under the lease; or
 *  - the leader of that process, taken over in an exec by the leased thread; or
 *  - of a process born under the lease that descends from the leased one, or from an orphan
 * (whoever adopts those is its parent) of the same session or cgroup, also born under the lease.
 */
int nm_heirs_look_at(const struct nm_heirs_search *search, uint32_t pid, uint32_t tid);

/* Looks at every thread of the machine. Returns the number of heirs, or -errno: there may be more.
 */
int nm_heirs_scan(const struct nm_heirs_search *search);

#endif
