/* SPDX-License-Identifier: MIT */
/*
 * Moves threads. The affinity of a thread is narrowed until it is on its new node, for at most
 * NM_MOVE_WINDOW_NS, and restored. A slot in a file describes each narrowed affinity, so that it is
 * restored after a crash, too. Tasks that the thread created meanwhile inherited the affinity; they
 * are found by their FORK records, and after a crash by a walk. Not pure: with the mover, the only
 * stage that writes to the machine.
 */
#ifndef NUMA_MIGRD_MOVE_H
#define NUMA_MIGRD_MOVE_H

#include "numa-migrd/lease.h"

#define NM_MOVE_WINDOW_NS (20 * NM_NSEC_PER_MSEC)
/* A slot stays in use for ten intervals if its thread creates no task, so that this number allows
 * 64 moves in each of them. */
#define NM_MOVE_SLOTS 1024U
/* After a call that took longer than a window, and after more tasks than can be followed. */
#define NM_MOVE_REST_NS (600 * NM_NSEC_PER_SEC)

#define NM_MOVES_NAME "moves" /* the file of the slots */

struct nm_moves;

/*
 * Creates the object, which the caller frees. runtime_directory: fd of the directory with the slots
 * (owned by the caller, must outlive the object); -1: none, and nothing is ever moved (receipts
 * contain -EROFS). Slots that nm_moves_restore() left there are taken over. on_event is called for
 * each event. Returns 0, or a negative errno as nm_slots_open().
 */
int nm_moves_new(struct nm_platform *platform, const struct nm_topology *topology,
		 int runtime_directory, const char *boot_id, nm_lease_event_fn on_event,
		 void *context, struct nm_moves **ret);
void nm_moves_free(struct nm_moves *moves); /* restores nothing: call nm_moves_end() first */
NM_DEFINE_CLEANUP(struct nm_moves, nm_moves_free);

void nm_moves_retarget(struct nm_moves *moves, const struct nm_topology *topology);

/*
 * Performs the plan; `receipts` has space for plan->count entries. A thread that ran or waited for a
 * CPU is on its node when the call returns, and has its affinity back. busy_share: of each CPU, or
 * NULL. An error of -EAGAIN means that the thread must not be moved now: it creates tasks, records
 * were lost, or there is no free slot.
 */
void nm_moves_run(struct nm_moves *moves, const struct nm_plan *plan, const double *busy_share,
		  uint64_t now_ns, struct nm_receipt *receipts);

/* Handles FORK, EXEC and EXIT records. Called by the drain, in the order of
 * nm_task_events_order(). */
void nm_moves_task_event(struct nm_moves *moves, const struct nm_task_event *event);

/* Notes that records were lost or are not available. Nothing is moved until the next
 * nm_moves_update(), and walks of /proc find the tasks that no record reported. */
void nm_moves_records_lost(struct nm_moves *moves);

/* Ends the interval: frees slots, and tries refused restorations again. */
void nm_moves_update(struct nm_moves *moves, uint64_t now_ns);

/* Restores the threads that are on their nodes by now, or whose time is over. Called every 20 ms
 * while nm_moves_open() > 0. */
void nm_moves_poll(struct nm_moves *moves, uint64_t now_ns);
size_t nm_moves_open(const struct nm_moves *moves);

/* Restores all affinities, and searches for tasks that inherited one. Returns the number of those
 * that could not be restored. */
unsigned nm_moves_end(struct nm_moves *moves);

/* The functions of struct nm_lease_lookup, for the task table. */
bool nm_moves_original(void *moves, uint32_t tid, uint64_t start_ticks,
		       hwloc_const_bitmap_t current, hwloc_const_bitmap_t *ret_original,
		       bool *ret_unrestricted);
bool nm_moves_is_moving(void *moves, uint32_t tid, uint64_t start_ticks);

/* Returns why the kernel lets nothing be moved; NULL: it does. Read in each interval. */
const char *nm_moves_bar(const struct nm_moves *moves);

/* Totals since the start. */
struct nm_move_counts {
	uint64_t asked, arrived, missed; /* threads; missed: it did not run within the window */
	uint64_t inherited;		 /* tasks whose inherited affinity was restored */
	uint64_t given_up;		 /* moves with more tasks than can be followed */
	uint64_t longest_ns;		 /* the longest call that narrowed an affinity */
};
struct nm_move_counts nm_moves_counts(const struct nm_moves *moves);

/*
 * Restores affinities after a crash, from the slots in runtime_directory: of the threads, of tasks
 * that inherited one, and of programs that such a thread has executed. Removes the file, unless
 * something was refused. Returns the number restored, or a negative errno. Called by `numa-migrd
 * --restore` and at the start of the daemon.
 */
int nm_moves_restore(struct nm_platform *platform, const struct nm_topology *topology,
		     int runtime_directory, const char *boot_id, nm_lease_event_fn on_event,
		     void *context, struct nm_restoration *ret);

#endif
