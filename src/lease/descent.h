/* SPDX-License-Identifier: MIT */
/*
 * Which threads inherited a narrowed affinity. FORK records show it exactly; this is used if they
 * may be missing: after a crash, after records were lost, and for threads created since they were
 * last read. Two threads with the same affinity look alike, so descent must be proved, too: a
 * neighbour that its owner pinned to the same CPUs stays pinned. One walk of /proc, within a
 * budget, serves all leases.
 */
#ifndef NM_LEASE_DESCENT_H
#define NM_LEASE_DESCENT_H

#include "mask.h"
#include "numa-migrd/actuate.h"
#include "numa-migrd/ledger.h"
#include "numa-migrd/platform.h"
#include "numa-migrd/proc.h"

/*
 * Was it created while the target could be inherited? The affinity is copied some time before a
 * large process's child has its start, and a child's own children may come until it was restored,
 * too. So two seconds after the lease's end count as well.
 */
bool nm_descent_born_under(const struct nm_ledger_entry *terms, uint64_t start_ticks);

/* Until when that is; UINT64_MAX: the lease stands. */
uint64_t nm_descent_last_birth(const struct nm_ledger_entry *terms);

struct nm_descent;

/* `masks` must outlive it. 0 or -ENOMEM. */
int nm_descent_new(const struct nm_masks *masks, struct nm_descent **ret);
void nm_descent_free(struct nm_descent *descent);
NM_DEFINE_CLEANUP(struct nm_descent, nm_descent_free);

/* What was read of processes is read anew: each walk begins so, and its caller does after a while.
 */
void nm_descent_forget_processes(struct nm_descent *descent);

/*
 * For a leased thread that is gone: 1 it took over the number of its process's leader by exec and
 * still carries the target, and *ret_start_ticks is the leader's; 0 not; -ENOMEM, -EMFILE, -ENFILE,
 * -EIO: it cannot be read now.
 */
int nm_descent_follow_exec(struct nm_descent *descent, const struct nm_ledger_entry *terms,
			   uint64_t *ret_start_ticks);

/* ---- every thread ---- */

struct nm_descendant {
	uint32_t pid, tid;
	uint64_t start_ticks;
	const struct nm_ledger_entry *terms; /* what it inherited; valid until the walk returns */
};

/* Called for each one found. 1: it was restored, or is gone; 0: it is no inheritor after all;
 * -errno: its restoration was refused. */
typedef int (*nm_descendant_fn)(void *context, const struct nm_descendant *found);

/* Reported while a restoration goes on: its time limit may be extended. */
struct nm_progress {
	struct nm_platform *platform;
	nm_lease_event_fn on_event; /* NULL: nobody */
	void *context;
	uint64_t reported_ns; /* 0: not yet */
};
void nm_progress_note(struct nm_progress *progress);

/* The numbers of processes or threads that are to be looked at. */
struct nm_ids {
	uint32_t *ids;
	size_t count, capacity, next;
};

struct nm_descent_walk {
	/* Whose inheritors, also of leases that ended. The affinities must outlive the call. */
	const struct nm_ledger_entry *const *entries;
	size_t nr_entries;
	uint64_t born_since; /* in ticks: older threads are none */
	uint64_t budget;     /* in steps of some 20 ns, a call being 64; 0: any */
	nm_descendant_fn each;
	void *context;
	struct nm_progress *progress; /* NULL: it does not take long */
	/* Filled in: how many were found and refused, and the last reason why one could not be
	 * read. */
	size_t found, refused;
	int error;
	uint64_t steps; /* that it took so far */
	/* The walk's own, until it is at the end or cleared. */
	struct nm_ids pids, tids;
	uint32_t pid;
};

/*
 * Goes on with a walk to every thread of the machine, which begins as all zeroes but for its input.
 * 0: it is at the end; 1: the budget is spent; -errno: /proc cannot be read, which ends it. A
 * thread inherited a target if its affinity is the target, or what its cpuset leaves of it, and it
 * is
 *  - another thread of the leased process, created under the lease; or
 *  - of a process created under the lease that descends from the leased one, each parent alive; or
 *    from an orphan of the leased process's user and of the same session or cgroup.
 * Whether it has a lease of its own is for `each` to know.
 */
int nm_descent_walk(struct nm_descent *descent, struct nm_descent_walk *walk);

/* Ends a walk on its way. */
void nm_descent_walk_clear(struct nm_descent_walk *walk);

/* Walks to the end, and again for threads created by those found meanwhile, a few times at most: a
 * fork bomb is not waited for. 0, or -errno: not every thread could be read. */
int nm_descent_search(struct nm_descent *descent, struct nm_descent_walk *walk);

#endif
