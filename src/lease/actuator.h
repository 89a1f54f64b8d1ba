/* SPDX-License-Identifier: MIT */
/* What the files of this folder share: the lease keeper's state. */
#ifndef NM_ACTUATE_ACTUATOR_H
#define NM_ACTUATE_ACTUATOR_H

#include "descent.h"
#include "mask.h"
#include "numa-migrd/actuate.h"
#include "numa-migrd/ledger.h"
#include "numa-migrd/tidmap.h"
#include "settled.h"

/*
 * One affinity that we narrowed, or that was inherited from one. After it ended
 * (terms.ended_ticks != 0) it is remembered until two more rounds of nm_actuator_update() are over:
 * FORK records of its time may still be in the rings. A thread whose lease is replaced by another
 * one has several.
 */
struct nm_lease {
	struct nm_ledger_entry terms;
	enum nm_step_pin pin;
	bool inherited; /* one for each thread and target; its ancestor's line stands for it */
	bool settled;	/* restored, or changed by its owner: the present affinity is the owner's
			 */
	bool refused;	/* inherited, and could not be restored: to be tried again */
	bool written;	/* then it has a line of its own, which outlives its ancestor's */
	bool exited;	/* its thread ended, by an EXIT record: it did not exec */
	bool awaited;	/* it is gone, and its leader looks as if it had called exec: a record will
			   tell */
	uint64_t ended_round; /* in which round of tending it ended */
	uint64_t renewed_ns;
	uint64_t nudge_end_ns; /* NUDGE: widened at the latest now */
	uint32_t next_of_tid, next_of_pid; /* the next older one; NM_LEASE_NONE: none */
};

static inline struct nm_tenant nm_lease_tenant(const struct nm_ledger_entry *terms)
{
	return (struct nm_tenant){.domain = terms->domain, .uid = terms->uid};
}

#define NM_LEASE_NONE NM_TIDMAP_NONE
#define NM_LEASE_MEMORY_ROUNDS 2
#define NM_LEASE_MOST_ROUNDS 64 /* however long a walk takes */
/* Tasks with inherited affinity that are remembered as leases are, and how many of one user's; of
 * those beyond it is only known that they are settled, and their children are looked for in /proc.
 */
#define NM_LEASE_MOST_INHERITED 8192U
#define NM_LEASE_SHARE_INHERITED (NM_LEASE_MOST_INHERITED / 4 * 3)
#define NM_LEASE_MOST 65536U /* that stand in the ledger, also past ones */
#define NM_LEASE_TURN_STEPS 524288U /* of a walk, in one interval: some 10 ms */
#define NM_NUDGE_NS (200 * NM_NSEC_PER_MSEC)

/* A look at every thread of the machine, in as many intervals as it takes. */
struct nm_lease_walk {
	bool under_way;
	bool unread; /* something could not be read */
	bool failed; /* somebody is to be restored yet */
	uint64_t began_ticks;
	struct nm_descent_walk course;
};

struct nm_actuator {
	struct nm_platform *platform;
	struct nm_masks masks; /* of the same platform */
	int runtime_directory;
	struct nm_ledger *ledger; /* NULL: nothing may be changed */
	nm_lease_event_fn on_event;
	void *context;
	struct nm_progress progress; /* of what returns all */
	struct nm_lease *leases;
	size_t count, capacity;
	size_t inherited;		   /* how many of them are */
	uint32_t most_leases;		   /* NM_LEASE_MOST */
	struct nm_shares lease_shares;
	struct nm_shares inherited_shares;
	struct nm_settled *settled;	   /* beside those */
	struct nm_tidmap *by_tid, *by_pid; /* to the index of the newest */
	struct nm_descent *descent;

	uint64_t round; /* of nm_actuator_update() */
	/* Every thread created before reported_ticks was reported by a FORK record, or was
	 * looked at.
	 */
	uint64_t reported_ticks, tended_ticks;
	bool missed; /* side-band records were lost since the last walk began */
	bool ends;   /* all is returned, and nothing will be looked for any more */
	struct nm_lease_walk walk;
	uint64_t turn_steps; /* NM_LEASE_TURN_STEPS */
	uint64_t clock_ns, clock_ticks; /* the same moment, for nm_lease_ticks() */
};

static inline bool nm_lease_active(const struct nm_lease *lease)
{
	return !lease->inherited && lease->terms.ended_ticks == 0;
}

/* May there be tasks with inherited affinity that no record told of? */
static inline bool nm_lease_may_be_missed(const struct nm_actuator *actuator)
{
	return actuator->missed || actuator->walk.under_way;
}

void nm_lease_report(struct nm_actuator *actuator, const struct nm_lease *lease,
		     enum nm_lease_event_kind kind, int error);

/* Roughly now, in clock ticks; /proc/uptime is read once a second. UINT64_MAX where it cannot be.
 */
uint64_t nm_lease_ticks(struct nm_actuator *actuator);

/* The index of the newest one of the number; NM_LEASE_NONE: none. The others follow by next_of_….
 */
uint32_t nm_lease_first_of_tid(const struct nm_actuator *actuator, uint32_t tid);
uint32_t nm_lease_first_of_pid(const struct nm_actuator *actuator, uint32_t pid);

/* The lease that this very thread holds, or NULL. */
struct nm_lease *nm_lease_active_of(const struct nm_actuator *actuator, uint32_t tid,
				    uint64_t start_ticks);

/* Is it known that what this very thread carries is its lease, or its owner's choice? */
bool nm_lease_is_settled(const struct nm_actuator *actuator, uint32_t tid, uint64_t start_ticks);

/* All leases, also past ones; or all that is to stand in the ledger. ret: room for actuator->count. */
size_t nm_lease_collect(const struct nm_actuator *actuator, const struct nm_ledger_entry **ret);
size_t nm_lease_collect_lines(const struct nm_actuator *actuator,
			      const struct nm_ledger_entry **ret);

/* Makes room so that `more` puts cannot fail; nm_lease_reserve_place() for one of them, of this
 * thread, which nm_lease_release_place() gives up where it was not used. */
int nm_lease_reserve(struct nm_actuator *actuator, size_t more);
int nm_lease_reserve_place(struct nm_actuator *actuator, uint32_t pid, uint32_t tid);
void nm_lease_release_place(struct nm_actuator *actuator, uint32_t pid, uint32_t tid);

/* Takes over `terms`; the thread's earlier lease, if one is active, ends with it. Cannot fail. */
struct nm_lease *nm_lease_put(struct nm_actuator *actuator, struct nm_ledger_entry *terms);

/* The same for inherited affinity: no lease ends with it. */
struct nm_lease *nm_lease_put_inherited(struct nm_actuator *actuator,
					struct nm_ledger_entry *terms);

/* Ends a lease without touching the mask: it is no longer ours. */
void nm_lease_end(struct nm_actuator *actuator, struct nm_lease *lease);

/* Rewrites the ledger when most of its lines are dead. */
void nm_lease_compact_ledger(struct nm_actuator *actuator);

/* Drops those that ended long enough ago. */
void nm_lease_forget_past(struct nm_actuator *actuator);

/* Restores the original affinity, tells `kind` (or FOREIGN, GONE, FAILED), ends the lease unless
 * refused. May add to actuator->leases, so that pointers into it are void. */
int nm_lease_give_back(struct nm_actuator *actuator, size_t index, enum nm_lease_event_kind kind);

/* ---- inherited affinity ---- */

/* Restores what a thread inherited under `terms`, and remembers it. Returns as nm_mask_restore(),
 * or -ENOSPC: it could not be remembered, so that what it carried afterwards could not be told from
 * what it inherited; it is looked for again. */
int nm_lease_restore_inherited(struct nm_actuator *actuator, const struct nm_ledger_entry *terms,
			       uint32_t pid, uint32_t tid, uint64_t start_ticks);

/* Tries again what was refused. */
void nm_lease_retry_inherited(struct nm_actuator *actuator);

/*
 * The leased thread is gone from its number. After an exec from a thread that was not the leader it
 * goes on under the leader's number with our mask: that is restored. For when no record tells it.
 */
void nm_lease_follow_exec(struct nm_actuator *actuator, size_t index);

/* Looks for missed ones at every thread of the machine, at once. Returns the number of refusals, or
 * -errno. */
int nm_lease_search(struct nm_actuator *actuator);

/* Goes on with the walk, for as much as one interval may take; begins one where records were lost.
 */
void nm_lease_walk_on(struct nm_actuator *actuator);
void nm_lease_walk_stop(struct nm_actuator *actuator);

#endif
