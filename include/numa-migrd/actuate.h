/* SPDX-License-Identifier: MIT */
/*
 * Plan → receipts, through the ops table; and the keeping of leases: renewal, expiry, inheritance
 * by threads and children, masks that somebody else changed, and restoration, also after a crash
 * from the ledger. Not pure: the only stage that writes to the machine.
 */
#ifndef NUMA_MIGRD_ACTUATE_H
#define NUMA_MIGRD_ACTUATE_H

#include "numa-migrd/metrics.h"
#include "numa-migrd/plan.h"
#include "numa-migrd/platform.h"
#include "numa-migrd/roster.h"

/* What became of one step. */
struct nm_receipt_step {
	bool tried, applied;
	bool undone; /* applied, then taken back since the other half of a swap failed */
	int error; /* negative errno; -ESRCH: the thread was gone; -ESTALE: its mask was not ours to
		      change */
	const char *
		what; /* which check or call said so ("identity", "sched_setaffinity", …), static */
};

struct nm_receipt {
	uint64_t decision;
	bool applied; /* every step */
	unsigned nr_steps;
	struct nm_receipt_step steps[2];
};

enum nm_lease_event_kind {
	NM_LEASE_EXPIRED,   /* the thread went quiet: original mask returned */
	NM_LEASE_FOREIGN,   /* another program changed the affinity */
	NM_LEASE_WIDENED,   /* a nudged thread was seen on its node: original mask returned */
	NM_LEASE_UNSEEN,    /* a nudged thread was not seen there in time: original mask returned */
	NM_LEASE_INHERITED, /* an inheritor got the original affinity of its ancestor */
	NM_LEASE_GONE,	    /* the thread ended */
	NM_LEASE_FAILED,    /* returning the mask was refused; kept in the ledger and tried again */
	NM_LEASE_RETURNED,  /* on stop, pause, release, exec, restore, when it left the targets, or
			     * when the kernel reset the mask with its cpuset */
	NM_LEASE_PROGRESS,  /* of no thread: a restoration goes on; at most once a second */
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
 * runtime_directory: fd of the directory that holds the ledger (owned by the caller, must outlive
 * the actuator); -1: no ledger, and then nothing is ever changed (-EROFS receipts). boot_id: the
 * kernel's random/boot_id. on_event tells what happens to leases. Returns 0, -ENOMEM, -errno of the
 * ledger.
 */
int nm_actuator_new(struct nm_platform *platform, const struct nm_topology *topology,
		    int runtime_directory, const char *boot_id, nm_lease_event_fn on_event,
		    void *context, struct nm_actuator **ret);
void nm_actuator_free(
	struct nm_actuator *actuator); /* returns nothing: call nm_actuator_return_all first */
NM_DEFINE_CLEANUP(struct nm_actuator, nm_actuator_free);

void nm_actuator_retarget(struct nm_actuator *actuator, const struct nm_topology *topology);

/* Performs the plan; `receipts` has room for plan->count. Identity and mask are checked before and
 * after each act, a half-applied swap is undone at once. Tick, actuate stage. */
void nm_actuator_run(struct nm_actuator *actuator, const struct nm_plan *plan, uint64_t now_ns,
		     struct nm_receipt *receipts);

/* FORK, EXEC and EXIT of leased threads: who inherited a narrowed affinity has the ancestor's
 * original one restored, once; what it carries from then on is its owner's. The cost does not
 * depend on the number of leases. Drain, as nm_task_events_order() puts them. */
void nm_actuator_task_event(struct nm_actuator *actuator, const struct nm_task_event *event);

/*
 * For the roster (struct nm_lease_lookup): if `current` is the affinity of the lease on this very
 * thread, gives what it had before, valid until the next call on the actuator. An affinity that was
 * inherited is restored as soon as it is known, and reported as NM_LEASE_INHERITED: it is to be read
 * again then.
 */
bool nm_actuator_original(void *actuator, uint32_t tid, uint64_t start_ticks,
			  hwloc_const_bitmap_t current, hwloc_const_bitmap_t *ret_original,
			  bool *ret_unrestricted);

/* Does a lease on this very thread stand? (struct nm_lease_lookup) */
bool nm_actuator_holds(void *actuator, uint32_t tid, uint64_t start_ticks);

/*
 * Side-band records were lost, or could not be had (no source, a CPU without a ring): tasks
 * with inherited affinity may have been missed, so nm_actuator_update() walks /proc, from the next
 * time on and within a budget each time, for those created since all were known. Drain.
 */
void nm_actuator_records_lost(struct nm_actuator *actuator);

/*
 * Looks after the leases once per interval: threads that ran by `figures` renew theirs; those
 * silent for expiry_ns (0: however long) and those no longer among `members` get their masks back;
 * masks changed by others are given up. Both arrays in ascending tid order. Tick, after the rings
 * were drained: what was created before the last call counts as told of.
 */
struct nm_actuator_input {
	const struct nm_figures *figures;
	size_t nr_figures;
	const struct nm_member *members;
	size_t nr_members;
	uint64_t expiry_ns, now_ns;
};
void nm_actuator_update(struct nm_actuator *actuator, const struct nm_actuator_input *input);

/* Widens nudged threads that are on their node by now. Called every 20 ms while
 * nm_actuator_nudges() > 0. */
void nm_actuator_poll_nudges(struct nm_actuator *actuator, uint64_t now_ns);
size_t nm_actuator_nudges(const struct nm_actuator *actuator);
size_t nm_actuator_leases(const struct nm_actuator *actuator);

/*
 * Gives back one thread's lease (withdrawn verdict), a process's, or all of them, the latter two
 * with a search for who inherited. Returns the number of threads whose mask could not be returned.
 */
unsigned nm_actuator_return_thread(struct nm_actuator *actuator, uint32_t tid,
				   uint64_t start_ticks);
unsigned nm_actuator_return_process(struct nm_actuator *actuator, uint32_t pid);
unsigned nm_actuator_return_all(struct nm_actuator *actuator);

/* What nm_restore() met beside what it returned. */
struct nm_restoration {
	unsigned failed;       /* masks that could not be returned */
	size_t bad_lines;      /* damaged lines of the ledger, skipped */
	size_t first_bad_line; /* from 1; 0: none */
	int kept; /* then the damaged ledger is kept as NM_LEDGER_DAMAGED: 0, or why not (-errno) */
};

/*
 * After a crash: replays the ledger in runtime_directory, returning every mask that is still as we
 * set it, to the threads themselves and to their inheritors, and empties it. Returns the number of
 * masks returned, or -errno (nothing or not all was done, the ledger stays); refusals are counted,
 * and for these the ledger stays as well: the next nm_actuator_new() takes them over. `numa-migrd
 * --restore`, and the daemon's start.
 */
int nm_restore(struct nm_platform *platform, const struct nm_topology *topology,
	       int runtime_directory, const char *boot_id, nm_lease_event_fn on_event,
	       void *context, struct nm_restoration *ret);

#endif
