/* SPDX-License-Identifier: MIT */
/*
 * Which tasks inherited a narrowed affinity. FORK records show it exactly; this is used if they
 * may be missing: after a crash, after records were lost, and for tasks created since they were
 * last read. Two threads with the same affinity look alike, so descent must be proved, too: a
 * neighbour that its owner pinned to the same CPUs stays pinned. One walk of /proc, within a
 * budget, serves all lines: each thread and each process is read once.
 */
#ifndef NM_ACTUATE_DESCENT_H
#define NM_ACTUATE_DESCENT_H

#include "mask.h"
#include "numa-migrd/actuate.h"
#include "numa-migrd/ledger.h"
#include "numa-migrd/platform.h"
#include "numa-migrd/proc.h"

/*
 * Created while the target could be inherited: the affinity is copied some time before a large
 * process's child has its start, and a child's own children may come until it was restored, too. So
 * two seconds after the lease's end count as well.
 */
bool nm_descent_born_under(const struct nm_ledger_entry *terms, uint64_t start_ticks);

/* Until when that is; UINT64_MAX: it stands. */
uint64_t nm_descent_last_birth(const struct nm_ledger_entry *terms);

struct nm_descent;

/* Without lines. `masks` must outlive it. 0 or -ENOMEM. */
int nm_descent_new(const struct nm_masks *masks, struct nm_descent **ret);
void nm_descent_free(struct nm_descent *descent);
NM_DEFINE_CLEANUP(struct nm_descent, nm_descent_free);

/*
 * Of these lines from now on, also ended ones; their affinities must outlive the use. 0, or
 * -ENOMEM: of none.
 */
int nm_descent_set_lines(struct nm_descent *descent, const struct nm_ledger_entry *const *entries,
			 size_t count);

struct nm_descendant {
	uint32_t pid, tid;
	uint64_t start_ticks;
	const struct nm_ledger_entry *terms; /* what it inherited; the descent's */
};

/*
 * Looks at one thread: 1 it inherited one of the targets, 0 not, gone, or not ours to look at;
 * -ENOMEM, -EMFILE, -ENFILE, -EIO: it could not be looked at now. Its affinity must be the target,
 * and it must be
 *  - another thread of the leased process, born under the lease and since born_since (ticks); or
 *  - of a process created under the lease that descends from the leased one, each parent alive; or
 * from an orphan (the process that adopts those is its parent) of the leased process's user and of
 * the same session or cgroup, also created under the lease.
 */
int nm_descent_look(struct nm_descent *descent, uint64_t born_since, uint32_t pid, uint32_t tid,
		    struct nm_descendant *ret);

/*
 * For a leased thread that is gone: 1 it took over the number of its process's leader by exec and still
 * carries the target, and *ret_start_ticks is the leader's; 0 not; -errno as of nm_descent_look().
 */
int nm_descent_follow_exec(struct nm_descent *descent, const struct nm_ledger_entry *terms,
			   uint64_t *ret_start_ticks);

/* What is known of processes is read anew: before each walk, and where time has passed. */
void nm_descent_forget_processes(struct nm_descent *descent);

/* What it has cost so far: each thing looked at in memory is a step, a call to the machine 64. Some
 * 20 ns each. */
uint64_t nm_descent_steps(const struct nm_descent *descent);

/* Told of each one found; returns whether it was one after all. */
typedef bool (*nm_descendant_fn)(void *context, const struct nm_descendant *found);

/* Told of while a restoration goes on: its time limit may be extended. */
struct nm_progress {
	struct nm_platform *platform;
	nm_lease_event_fn on_event; /* NULL: nobody */
	void *context;
	uint64_t reported_ns; /* 0: not yet */
};
void nm_progress_note(struct nm_progress *progress);

/* The threads of the process at hand. */
struct nm_descent_tasks {
	uint32_t pid;
	uint32_t *tids;
	size_t count, capacity, next;
};

struct nm_descent_walk {
	struct nm_descent *descent;
	uint64_t born_since;
	uint32_t next_pid; /* goes on with this process, after `tasks`; afterwards 0: at the end */
	uint64_t budget;   /* steps after which it stops, also within a process; 0: any */
	nm_descendant_fn each;
	void *context;
	struct nm_progress *progress; /* NULL: it does not take long */
	size_t found;
	int error; /* of the last one that could not be looked at; 0: none */
	struct nm_descent_tasks tasks; /* of the walk, until it is at the end or cleared */
	uint64_t began_steps;
};

/* Ends a walk that stopped on its way. */
void nm_descent_walk_clear(struct nm_descent_walk *walk);

/* Looks at every thread of the machine, processes in the order of /proc. 0 or -errno. */
int nm_descent_walk(struct nm_platform *platform, struct nm_descent_walk *walk);

#endif
