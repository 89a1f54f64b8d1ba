/* SPDX-License-Identifier: MIT */
/* What the walk (descent.c) and the rules of descent (kinship.c) share. */
#ifndef NM_LEASE_DESCENT_INTERNAL_H
#define NM_LEASE_DESCENT_INTERNAL_H

#include "descent.h"
#include "numa-migrd/tidmap.h"

#define NM_STEPS_CALL 64
#define NM_STEPS_LOOKUP 16

/* What was read of a process. */
struct nm_descent_process {
	uint32_t pid, ppid, session, uid;
	bool gone;   /* or it cannot be read */
	bool adopts; /* the init of a namespace, or a service manager: parent of orphans */
	uint64_t start_ticks, cgroup;
	uint64_t oldest_sibling_ticks; /* of the threads beside its leader; 0: not read yet */
};

/* The leases that the threads of one process can have inherited with one target; NULL: there is
 * none. */
struct nm_inheritable {
	uint32_t pid, target;		       /* pid 0: of no process */
	const struct nm_ledger_entry *nearest; /* by the nearest ancestor */
	const struct nm_ledger_entry *longest; /* the one that can be inherited longest */
};

struct nm_descent {
	const struct nm_masks *masks;
	struct nm_platform *platform;
	struct nm_descent_process **processes;
	size_t nr_processes, processes_capacity;
	struct nm_tidmap *process_of;
	/* Of the walk under way: */
	struct nm_ledger_entry *entries; /* copies, which outlive changes of the caller's table */
	hwloc_const_bitmap_t *targets;	 /* each once, subsets before their supersets */
	struct nm_index_entry *index;	 /* in order of their keys, and then of given_ticks */
	size_t nr_targets, nr_index;
	struct nm_inheritable inheritable;
	hwloc_bitmap_t other;	/* the last affinity that is part of no target */
	hwloc_bitmap_t allowed; /* by the cpuset of the thread at hand; empty: not read */
	hwloc_bitmap_t left;	/* of that, in a target */
	uint64_t steps;
	int error; /* a process cannot be read now: nothing is proved */
};

/* Errors that may pass: what is forbidden stays so, and counts as gone. 0 for all others. */
int nm_descent_if_passing(int error);

/* Orders copies of these leases for the rules, and drops those of an earlier walk. 0 or -ENOMEM. */
int nm_kinship_take_leases(struct nm_descent *descent, const struct nm_ledger_entry *const *entries,
			   size_t count);
void nm_kinship_drop_leases(struct nm_descent *descent);

/* Reads a process once. NULL: it is gone, or cannot be read now, which descent->error tells. */
struct nm_descent_process *nm_kinship_find_process(struct nm_descent *descent, uint32_t pid);

/* The lease under which this thread was created with this target, or NULL. */
const struct nm_ledger_entry *nm_kinship_find_terms(struct nm_descent *descent, uint32_t pid,
						    uint32_t tid, uint64_t start_ticks,
						    uint32_t target);

#endif
