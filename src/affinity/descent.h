/* SPDX-License-Identifier: MIT */
/*
 * Finds the tasks that inherited a narrowed affinity. FORK records identify them exactly; this walk
 * of /proc is used when records may be missing: after a crash, and after records were lost. Two
 * unrelated threads may have the same affinity, so it also requires proof of descent: a thread of
 * another program that its owner pinned to the same CPUs stays pinned.
 */
#ifndef NM_AFFINITY_DESCENT_H
#define NM_AFFINITY_DESCENT_H

#include "mask.h"
#include "affinity/move.h"

/* The receiver of events. */
struct nm_progress {
	struct nm_platform *platform;
	nm_move_event_fn on_event; /* NULL: none */
	void *context;
	uint64_t reported_ns; /* when progress was last reported; 0: not yet */
};
/* Reports that a restoration is in progress, so that its time limit can be extended. NULL is
 * allowed. */
void nm_progress_note(struct nm_progress *progress);

struct nm_descendant {
	uint32_t pid, tid;
	uint64_t start_ticks;
	const struct nm_narrowing *terms; /* what it inherited; valid until the walk returns */
};

/* Reports an event about the moved thread, or about one that inherited its affinity. */
void nm_progress_report(const struct nm_progress *progress, const struct nm_narrowing *terms,
			const struct nm_descendant *thread, enum nm_move_event_kind kind,
			int error);

struct nm_descent;

/* The caller frees it. `masks` must outlive it. */
struct nm_descent *nm_descent_new(const struct nm_masks *masks);
void nm_descent_free(struct nm_descent *descent);
NM_DEFINE_CLEANUP(struct nm_descent, nm_descent_free);

/*
 * Checks whether a moved thread that is gone has taken over the number of its process's leader by
 * exec. Returns 1 if it has and still carries the target, and stores the leader's start time in
 * *ret_start_ticks; 0 if not; -EMFILE, -ENFILE or -EIO if the leader cannot be read at the moment.
 */
int nm_descent_follow_exec(struct nm_descent *descent, const struct nm_narrowing *terms,
			   uint64_t *ret_start_ticks);

/* Called for each thread found. Returns 1 if it was restored or has exited, 0 if it did not inherit
 * its affinity after all, or a negative errno if restoring was refused. */
typedef int (*nm_descendant_fn)(void *context, const struct nm_descendant *found);

/* Numbers of the processes or threads to examine. */
struct nm_ids {
	uint32_t *ids;
	size_t count, capacity, next;
};

struct nm_descent_walk {
	/* The narrowings whose descendants are searched for; they must outlive the call. */
	const struct nm_narrowing *const *entries;
	size_t nr_entries;
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
 *  - another thread of the moved thread's process, created since the affinity was narrowed; or
 *  - a thread of a process created since then whose line of parents leads to that process, or ends
 *    at an orphan and has the user and the cgroup of that process.
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

/* The data read of one process. */
struct nm_descent_process {
	uint32_t pid, ppid, session, uid;
	bool gone;     /* or it cannot be read */
	bool adopts;   /* it becomes the parent of orphans */
	bool is_asked; /* its status has been read for that */
	uint64_t start_ticks, cgroup, domain;
};

struct nm_descent {
	const struct nm_masks *masks;
	struct nm_platform *platform;
	struct nm_descent_process **processes;
	size_t nr_processes, processes_capacity;
	struct nm_tidmap *process_of;
	struct nm_costly costly; /* since the walk began */
	hwloc_bitmap_t other;	 /* the last affinity that was not part of any target */
	hwloc_bitmap_t allowed;	 /* CPUs that the thread's cpuset allows; empty: not read */
	hwloc_bitmap_t left;	 /* the intersection of `allowed` and a target */
	uint64_t steps;
	int error; /* set if a process cannot be read at the moment, so that nothing is proved */
};

/* Returns the error if it may be temporary (-EMFILE, -ENFILE, -EIO), else 0: a process that may not
 * be read counts as gone. */
int nm_descent_if_passing(int error);

/* Returns whether this thread, whose affinity is the target, was created by the moved thread or by
 * a descendant of it. */
bool nm_kinship_is_proved(struct nm_descent *descent, const struct nm_narrowing *terms,
			  uint32_t pid, uint32_t tid, uint64_t start_ticks);

#endif
