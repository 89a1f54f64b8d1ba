/* SPDX-License-Identifier: MIT */
/*
 * The actuate stage: performs a plan through the operations of the platform, and returns receipts.
 * It also keeps the leases: renewal, expiry, inheritance by threads and children, affinities
 * changed externally, and restoration, after a crash from the ledger. Not pure: apart from the
 * mover, the only stage that writes to the machine.
 */
#ifndef NUMA_MIGRD_LEASE_H
#define NUMA_MIGRD_LEASE_H

#include "numa-migrd/metrics.h"
#include "numa-migrd/plan.h"
#include "numa-migrd/platform.h"
#include "numa-migrd/tasks.h"

/* The result of one step. */
struct nm_receipt_step {
	bool tried, applied;
	bool undone; /* applied, then rolled back because the other half of a swap failed */
	int error;   /* negative errno; -ESRCH: the thread has exited; -ESTALE: its affinity was
			changed externally */
	const char *
		what; /* check or call that failed ("identity", "sched_setaffinity", …); static */
};

struct nm_receipt {
	uint64_t decision;
	bool applied; /* all steps were applied */
	unsigned nr_steps;
	struct nm_receipt_step steps[2];
};

enum nm_lease_event_kind {
	NM_LEASE_EXPIRED, /* the thread became idle: original affinity restored */
	NM_LEASE_FOREIGN, /* another program changed the affinity */
	NM_LEASE_WIDENED, /* a thread with a transient affinity was seen on its node: original
			     affinity restored */
	NM_LEASE_UNSEEN,  /* such a thread was not seen there in time: original affinity restored */
	NM_LEASE_INHERITED, /* a task with inherited affinity got the original affinity of its
			       ancestor */
	NM_LEASE_GONE,	    /* the thread has exited */
	NM_LEASE_FAILED,    /* restoring the affinity failed; kept in the ledger and tried again */
	NM_LEASE_RETURNED,  /* restored on stop, pause, release, exec or restore, when the thread
			       left the targets, or when the kernel reset the affinity with its
			       cpuset */
	NM_LEASE_PROGRESS,  /* not about a thread: a restoration is in progress; at most once per
			       second */
	NM_LEASE_RESET,	    /* the thread has its original affinity, or all CPUs of its cpuset,
			       because the cpuset or the CPUs changed */
	NM_LEASE_UNDONE,    /* the same, and no change explains it */
};

struct nm_lease_event {
	enum nm_lease_event_kind kind;
	uint32_t tid, pid;
	uint64_t start_ticks; /* of the thread */
	uint64_t decision;
	int error;
};
typedef void (*nm_lease_event_fn)(void *context, const struct nm_lease_event *event);

struct nm_actuator;

/*
 * Creates an actuator, which the caller frees. runtime_directory: fd of the directory that holds
 * the ledger (owned by the caller, must outlive the actuator); -1: no ledger, and nothing is ever
 * changed (receipts contain -EROFS). boot_id: the kernel's random/boot_id. on_event is called for
 * each event in the life of a lease. Returns 0, or the negative errno of the ledger.
 */
int nm_actuator_new(struct nm_platform *platform, const struct nm_topology *topology,
		    int runtime_directory, const char *boot_id, nm_lease_event_fn on_event,
		    void *context, struct nm_actuator **ret);
void nm_actuator_free(
	struct nm_actuator *actuator); /* restores nothing: call nm_actuator_return_all() first */
NM_DEFINE_CLEANUP(struct nm_actuator, nm_actuator_free);

void nm_actuator_retarget(struct nm_actuator *actuator, const struct nm_topology *topology);

/* Performs the plan; `receipts` has space for plan->count entries. The identity and the affinity of
 * the thread are checked before and after each change, and a swap of which only one step was
 * applied is rolled back at once. Called by the tick, actuate stage. */
void nm_actuator_run(struct nm_actuator *actuator, const struct nm_plan *plan, uint64_t now_ns,
		     struct nm_receipt *receipts);

/* Handles FORK, EXEC and EXIT records of leased threads. A task that inherited a narrowed affinity
 * gets the original affinity of its ancestor, once; any affinity that it has afterwards is its
 * owner's choice. The cost does not depend on the number of leases. Called by the drain, in the
 * order of nm_task_events_order(). */
void nm_actuator_task_event(struct nm_actuator *actuator, const struct nm_task_event *event);

/*
 * A function of struct nm_lease_lookup, for the task table. If `current` is within the affinity of
 * an active lease of this thread, returns true and the affinity that the thread had before, which
 * is valid until the next call on the actuator. An inherited affinity is restored as soon as it is
 * known, and reported as NM_LEASE_INHERITED; the task table then reads the affinity again.
 */
bool nm_actuator_original(void *actuator, uint32_t tid, uint64_t start_ticks,
			  hwloc_const_bitmap_t current, hwloc_const_bitmap_t *ret_original,
			  bool *ret_unrestricted);

/* Returns whether this thread has an active lease. Also a function of struct nm_lease_lookup. */
bool nm_actuator_holds(void *actuator, uint32_t tid, uint64_t start_ticks);

/*
 * Notes that side-band records were lost or are not available (no source, or a CPU without a ring).
 * Tasks with inherited affinity may have been missed, so nm_actuator_update() walks /proc from its
 * next call on, within a budget per call, to find those created since all tasks were known. Called
 * by the drain.
 */
void nm_actuator_records_lost(struct nm_actuator *actuator);

/*
 * Updates the leases once per interval. A thread that ran according to `figures` renews its lease.
 * The affinity is restored if the thread has been idle for expiry_ns (0: no limit), or is no longer
 * among `members`; a lease ends if the affinity was changed externally. Both arrays are in
 * ascending order of tid. Called by the tick, after the rings were drained: tasks created before
 * the last call count as reported.
 */
struct nm_actuator_input {
	const struct nm_figures *figures;
	size_t nr_figures;
	const struct nm_member *members;
	size_t nr_members;
	uint64_t expiry_ns, now_ns;
};
void nm_actuator_update(struct nm_actuator *actuator, const struct nm_actuator_input *input);

/* Restores threads with a transient affinity that are on their node by now, or whose time is over.
 * Called every 20 ms while nm_actuator_nudges() > 0. */
void nm_actuator_poll_nudges(struct nm_actuator *actuator, uint64_t now_ns);
size_t nm_actuator_nudges(const struct nm_actuator *actuator);
size_t nm_actuator_leases(const struct nm_actuator *actuator);

/*
 * Restores the affinity of one thread (cancelled verdict), of one process, or of all. The function
 * for all also searches for tasks that inherited an affinity; the one for a process leaves this to
 * nm_actuator_update(). Returns the number of threads whose affinity could not be restored.
 */
unsigned nm_actuator_return_thread(struct nm_actuator *actuator, uint32_t tid,
				   uint64_t start_ticks);
unsigned nm_actuator_return_process(struct nm_actuator *actuator, uint32_t pid);
unsigned nm_actuator_return_all(struct nm_actuator *actuator);

/* The results of nm_restore(), apart from its return value. */
struct nm_restoration {
	unsigned failed;       /* affinities that could not be restored */
	size_t bad_lines;      /* damaged lines of the ledger, which were skipped */
	size_t first_bad_line; /* number of the first one, from 1; 0: none */
	int kept; /* if there are damaged lines: 0 if the ledger was kept as NM_LEDGER_DAMAGED, or a
		     negative errno */
};

/*
 * Restores affinities after a crash. Processes the ledger in runtime_directory, restores every
 * affinity that is still as we set it, both of the threads themselves and of the tasks that
 * inherited it, and removes the ledger. Returns the number of affinities restored, or a negative
 * errno if not everything was done; in this case the ledger stays. Refusals are counted; if there
 * are any, the ledger stays as well, and the next nm_actuator_new() takes it over. Called by
 * `numa-migrd --restore` and at the start of the daemon.
 */
int nm_restore(struct nm_platform *platform, const struct nm_topology *topology,
	       int runtime_directory, const char *boot_id, nm_lease_event_fn on_event,
	       void *context, struct nm_restoration *ret);

#endif
