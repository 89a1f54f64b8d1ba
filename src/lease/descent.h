/* SPDX-License-Identifier: MIT */
/*
 * Finds the threads that inherited a leased affinity. FORK records identify them exactly; this
 * search is used when records may be missing: after a crash, after records were lost, and for
 * threads created since the records were last read. Two unrelated threads may have the same
 * affinity, so the search also requires proof of descent: a thread of another program that its
 * owner pinned to the same CPUs stays pinned. One walk of /proc, limited by a budget, serves all
 * leases.
 */
#ifndef NM_LEASE_DESCENT_H
#define NM_LEASE_DESCENT_H

#include "mask.h"
#include "numa-migrd/lease.h"
#include "numa-migrd/ledger.h"
#include "numa-migrd/platform.h"
#include "numa-migrd/proc.h"

/*
 * Returns whether a thread with this start time was created while the target could be inherited.
 * The kernel copies the affinity some time before the child of a large process gets its start time,
 * and a child may itself create children before its affinity is restored. Therefore 2 s after the
 * end of the lease still count.
 */
bool nm_descent_born_under(const struct nm_ledger_entry *terms, uint64_t start_ticks);

/* Returns the latest start time for which nm_descent_born_under() holds, in clock ticks, or
 * UINT64_MAX while the lease is active. */
uint64_t nm_descent_last_birth(const struct nm_ledger_entry *terms);

struct nm_descent;

/* The caller frees it. `masks` must outlive it. */
struct nm_descent *nm_descent_new(const struct nm_masks *masks);
void nm_descent_free(struct nm_descent *descent);
NM_DEFINE_CLEANUP(struct nm_descent, nm_descent_free);

/* Drops the data that was read of processes and cgroups, so that it is read again. Each turn of a
 * walk begins with this call; the actuator also calls it once per round. */
void nm_descent_forget_processes(struct nm_descent *descent);

/*
 * Checks whether a leased thread that is gone has taken over the number of its process's leader by
 * exec. `leader_leased`: the leader has a lease of its own with the same target, so that its
 * affinity alone proves nothing. Returns 1 if the thread has taken it over and still carries the
 * target, and stores the leader's start time in *ret_start_ticks; 0 if not; -EMFILE, -ENFILE or
 * -EIO if the leader cannot be read at the moment.
 */
int nm_descent_follow_exec(struct nm_descent *descent, const struct nm_ledger_entry *terms,
			   bool leader_leased, uint64_t *ret_start_ticks);

/* ---- every thread ---- */

struct nm_descendant {
	uint32_t pid, tid;
	uint64_t start_ticks;
	const struct nm_ledger_entry *terms; /* the inherited lease; valid until the walk returns */
};

/* Called for each thread found. Returns 1 if it was restored or has exited, 0 if it did not inherit
 * its affinity after all, or a negative errno if restoring was refused. */
typedef int (*nm_descendant_fn)(void *context, const struct nm_descendant *found);

/* The receiver of events. */
struct nm_progress {
	struct nm_platform *platform;
	nm_lease_event_fn on_event; /* NULL: none */
	void *context;
	uint64_t reported_ns; /* when progress was last reported; 0: not yet */
};
/* Reports that a restoration is in progress, so that its time limit can be extended. NULL is
 * allowed. */
void nm_progress_note(struct nm_progress *progress);
/* Reports an event about the lease or the inherited affinity of this thread. */
void nm_progress_report(const struct nm_progress *progress, const struct nm_ledger_entry *terms,
			const struct nm_descendant *thread, enum nm_lease_event_kind kind,
			int error);

/* Numbers of the processes or threads to examine. */
struct nm_ids {
	uint32_t *ids;
	size_t count, capacity, next;
};

struct nm_descent_walk {
	/* The leases whose descendants are searched for, including ended ones. Their affinities
	 * must outlive the call. */
	const struct nm_ledger_entry *const *entries;
	size_t nr_entries;
	uint64_t born_since; /* in ticks; older threads are skipped */
	uint64_t budget; /* limit in steps of about 20 ns, where a call counts as 64; 0: no limit */
	nm_descendant_fn each;
	void *context;
	struct nm_progress *progress; /* NULL: the walk is short */
	/* Set by the walk: the number of threads found and of those refused, and the last error
	 * that prevented a read. */
	size_t found, refused;
	int error;
	uint64_t steps; /* steps used so far */
	/* Used internally by the walk until it ends or is cleared. */
	struct nm_ids pids, tids;
	uint32_t pid;
};

/*
 * Continues a walk over all threads of the machine. Before the first call, all fields except the
 * input are zero. Returns 0 at the end of the walk, 1 if the budget is used up, or a negative errno
 * if /proc cannot be read, which ends the walk. A thread inherited a target if its affinity is the
 * target, or the part of it that its cpuset allows, and if it is
 *  - another thread of the leased process, created under the lease; or
 *  - a thread of a process created under the lease whose line of parents leads to the leased
 *    process, or ends at an orphan and has the user and the cgroup of the leased process.
 * `each` checks whether the thread has a lease of its own.
 */
int nm_descent_walk(struct nm_descent *descent, struct nm_descent_walk *walk);

/* Ends a walk that is not finished. */
void nm_descent_walk_clear(struct nm_descent_walk *walk);

/* Walks to the end, and repeats the walk while it finds threads, because these may have created
 * others. The number of walks is limited, so that a fork bomb cannot prolong it. Returns 0, or a
 * negative errno if some thread could not be read. */
int nm_descent_search(struct nm_descent *descent, struct nm_descent_walk *walk);

/* ---- shared by the walk (descent.c) and the rules of descent (kinship.c) ---- */

#define NM_STEPS_CALL 64UL
#define NM_STEPS_LOOKUP 16

/* The data read of one process. */
struct nm_descent_process {
	uint32_t pid, ppid, session, uid;
	bool gone;   /* or it cannot be read */
	bool adopts; /* it becomes the parent of orphans */
	bool is_asked; /* its status has been read for that */
	uint64_t start_ticks, cgroup, domain;
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

/* Returns the error if it may be temporary (-EMFILE, -ENFILE, -EIO), else 0: a process that may not
 * be read counts as gone. */
int nm_descent_if_passing(int error);

/* Copies and sorts these leases for the rules, and drops those of an earlier walk. */
void nm_kinship_take_leases(struct nm_descent *descent, const struct nm_ledger_entry *const *leases,
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
