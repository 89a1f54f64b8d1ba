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

#include "policy/plan.h"
#include "numa-migrd/platform.h"
#include "tasks/tasks.h"

#define NM_MOVE_WINDOW_NS (20 * NM_NSEC_PER_MSEC)
/* A slot stays in use for ten intervals if its thread creates no task, so that this number allows
 * 64 moves in each of them. */
#define NM_MOVE_SLOTS 1024U /* shared: quota */
/* After a call that took longer than a window, and after more tasks than can be followed. */
#define NM_MOVE_REST_NS (600 * NM_NSEC_PER_SEC)

#define NM_MOVES_NAME "moves"			    /* the file of the slots */
#define NM_LEDGER_NAME "ledger"			    /* of versions that kept affinities narrowed */
#define NM_LEDGER_DAMAGED NM_LEDGER_NAME ".damaged" /* kept for the administrator */

/* The result of one step. */
struct nm_receipt_step {
	bool tried, applied;
	int error; /* negative errno; -ESRCH: the thread has exited; -ESTALE: its affinity was
		      changed externally; -EAGAIN: it must not be moved now */
	const char
		*what; /* check or call that failed ("identity", "sched_setaffinity", …); static */
};

struct nm_receipt {
	uint64_t decision;
	bool applied; /* all steps were applied */
	unsigned nr_steps;
	struct nm_receipt_step steps[2];
};

/* Returns whether a thread must not be moved now: it has just created a task, records were lost, or
 * no slot is free. The policy may propose it again. */
static inline bool nm_receipt_is_postponed(const struct nm_receipt *receipt)
{
	for (unsigned i = 0; i < receipt->nr_steps; i++)
		if (receipt->steps[i].error == -EAGAIN)
			return true;
	return false;
}

enum nm_move_event_kind {
	NM_MOVE_FOREIGN,   /* another program changed the affinity, which stays */
	NM_MOVE_MISSED,	   /* the thread did not run within the window; it is where it was */
	NM_MOVE_INHERITED, /* a task with inherited affinity got the original one of its ancestor */
	NM_MOVE_FAILED,	   /* restoring the affinity failed; tried again */
	NM_MOVE_RETURNED,  /* restored after a crash */
	NM_MOVE_PROGRESS,  /* not about a thread: a restoration is in progress; at most once per
			      second */
};

struct nm_move_event {
	enum nm_move_event_kind kind;
	uint32_t tid, pid;
	uint64_t start_ticks; /* of the thread */
	uint64_t decision;
	int error;
};
typedef void (*nm_move_event_fn)(void *context, const struct nm_move_event *event);

struct nm_moves;

/*
 * Creates the object, which the caller frees. runtime_directory: fd of the directory with the slots
 * (owned by the caller, must outlive the object); -1: none, and nothing is ever moved (receipts
 * contain -EROFS). Slots that nm_moves_restore() left there are taken over. on_event is called for
 * each event. Returns 0, or a negative errno as nm_slots_open().
 */
int nm_moves_new(struct nm_platform *platform, const struct nm_topology *topology,
		 int runtime_directory, const char *boot_id, nm_move_event_fn on_event,
		 void *context, struct nm_moves **ret);
void nm_moves_free(struct nm_moves *moves); /* restores nothing: call nm_moves_end() first */
NM_DEFINE_CLEANUP(struct nm_moves, nm_moves_free);

void nm_moves_retarget(struct nm_moves *moves, const struct nm_topology *topology);

/*
 * Performs the plan; `receipts` has space for plan->count entries. A thread that ran or waited for
 * a CPU is on its node when the call returns, and has its affinity back. busy_share: of each CPU,
 * or NULL. An error of -EAGAIN means that the thread must not be moved now: it creates tasks,
 * records were lost, or there is no free slot.
 */
void nm_moves_run(struct nm_moves *moves, const struct nm_plan *plan, const double *busy_share,
		  uint64_t now_ns, struct nm_receipt *receipts);

/* Handles FORK, EXEC and EXIT records, in the order of nm_task_events_order(). */
void nm_moves_task_event(struct nm_moves *moves, const struct nm_task_event *event);

/* Notes that records were lost or are not available. Nothing is moved until the next
 * nm_moves_update(), and walks of /proc find the tasks that no record reported. */
void nm_moves_records_lost(struct nm_moves *moves);

/* Notes that records begin: those of tasks created before are not available. */
void nm_moves_records_begin(struct nm_moves *moves);

/* Ends the interval: frees slots, and tries refused restorations again. */
void nm_moves_update(struct nm_moves *moves, uint64_t now_ns);

/* Restores the threads that are on their nodes by now, or whose time is over; to be called every
 * 20 ms while nm_moves_open() > 0. */
void nm_moves_poll(struct nm_moves *moves, uint64_t now_ns);
size_t nm_moves_open(const struct nm_moves *moves);

/* Restores all affinities, and searches for tasks that inherited one. Returns the number of those
 * that could not be restored. */
unsigned nm_moves_end(struct nm_moves *moves);

/* The functions of struct nm_move_lookup, for the task table. */
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

struct nm_restore_input {
	struct nm_platform *platform;
	const struct nm_topology *topology;
	int directory; /* the runtime directory */
	const char *boot_id;
	nm_move_event_fn on_event;
	void *context;
};

struct nm_restoration {
	unsigned failed;       /* affinities that could not be restored */
	size_t bad_lines;      /* damaged ones, which were skipped */
	size_t first_bad_line; /* number of the first one, from 1; 0: none */
};

/*
 * Restore affinities after a crash, from the slots or from the ledger of an earlier version: of the
 * threads, of tasks that inherited one, and of programs that such a thread has executed. Remove the
 * file, unless something was refused; a damaged ledger is renamed to NM_LEDGER_DAMAGED. Return the
 * number restored, or a negative errno.
 */
int nm_moves_restore(const struct nm_restore_input *input, struct nm_restoration *ret);
int nm_ledger_restore(const struct nm_restore_input *input, struct nm_restoration *ret);

#endif
