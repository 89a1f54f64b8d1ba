/* SPDX-License-Identifier: MIT */
/* Declarations shared by the walk (descent.c) and the rules of descent (kinship.c). */
#ifndef NM_LEASE_DESCENT_INTERNAL_H
#define NM_LEASE_DESCENT_INTERNAL_H

#include "descent.h"
#include "numa-migrd/base.h"

#define NM_STEPS_CALL 64UL
#define NM_STEPS_LOOKUP 16

/* The data read of one process. */
struct nm_descent_process {
	uint32_t pid, ppid, session, uid;
	bool gone;   /* or it cannot be read */
	bool adopts; /* the init process of a namespace or a service manager, which becomes the
			parent of orphans */
	uint64_t start_ticks, cgroup;
	uint64_t oldest_sibling_ticks; /* start time of the oldest thread other than the leader; 0:
					  not read yet */
};

/*
 * The leases that threads of one process may have inherited with one target; NULL if there is none.
 */
struct nm_inheritable {
	uint32_t pid, target;		       /* pid 0: no process */
	const struct nm_ledger_entry *nearest; /* lease of the nearest ancestor */
	const struct nm_ledger_entry *longest; /* lease that can be inherited longest */
};

struct nm_descent {
	const struct nm_masks *masks;
	struct nm_platform *platform;
	struct nm_descent_process **processes;
	size_t nr_processes, processes_capacity;
	struct nm_tidmap *process_of;
	struct nm_costly costly; /* since the walk began */
	/* State of the current walk: */
	struct nm_ledger_entry *entries; /* copies, which do not depend on the caller's table */
	hwloc_const_bitmap_t *targets;	 /* without duplicates, subsets before their supersets */
	struct nm_index_entry *index;	 /* sorted by key, then by given_ticks */
	size_t nr_targets, nr_index;
	struct nm_inheritable inheritable;
	hwloc_bitmap_t other;	/* the last affinity that was not part of any target */
	hwloc_bitmap_t allowed; /* CPUs that the thread's cpuset allows; empty: not read */
	hwloc_bitmap_t left;	/* the intersection of `allowed` and a target */
	uint64_t steps;
	int error; /* set if a process cannot be read at the moment, so that nothing is proved */
};

/* Returns the error if it may be temporary (-ENOMEM, -EMFILE, -ENFILE, -EIO), else 0: a process
 * that may not be read counts as gone. */
int nm_descent_if_passing(int error);

/* Copies and sorts these leases for the rules, and drops those of an earlier walk. Returns 0 or
 * -ENOMEM. */
int nm_kinship_take_leases(struct nm_descent *descent, const struct nm_ledger_entry *const *leases,
			   size_t count);
void nm_kinship_drop_leases(struct nm_descent *descent);

/* Returns the data of a process, which is read once, or NULL if the process is gone or cannot be
 * read at the moment; descent->error is set in the latter case. */
struct nm_descent_process *nm_kinship_find_process(struct nm_descent *descent, uint32_t pid);

/* Returns the lease under which this thread was created with this target, or NULL. */
const struct nm_ledger_entry *nm_kinship_find_terms(struct nm_descent *descent, uint32_t pid,
						    uint32_t tid, uint64_t start_ticks,
						    uint32_t target);

#endif
