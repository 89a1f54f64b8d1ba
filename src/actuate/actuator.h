/* SPDX-License-Identifier: MIT */
/* What the files of this folder share: the lease keeper's state. */
#ifndef NM_ACTUATE_ACTUATOR_H
#define NM_ACTUATE_ACTUATOR_H

#include "numa-migrd/actuate.h"
#include "numa-migrd/ledger.h"
#include "numa-migrd/tidmap.h"

/*
 * One mask that we narrowed. After it ended (terms.ended_ticks != 0) it is remembered until two
 * more rounds of nm_actuator_tend() are over: FORK records of its time may still be in the rings.
 * So are heirs, whose children may have been born before they got the original back. A thread whose
 * lease is replaced by another one has several; the last is the newest.
 */
struct nm_lease {
	struct nm_ledger_entry terms;
	enum nm_step_pin pin;
	bool heir;	      /* never in the ledger: its ancestor is */
	bool exited;	      /* its thread ended, by an EXIT record: it did not exec */
	uint64_t ended_round; /* in which round of tending it ended */
	uint64_t renewed_ns;
	uint64_t nudge_end_ns; /* NUDGE: widened at the latest now */
};

#define NM_LEASE_MEMORY_ROUNDS 2
#define NM_NUDGE_NS (200 * NM_NSEC_PER_MSEC)

struct nm_actuator {
	struct nm_platform *platform;
	const struct nm_topology *topology;
	int runtime_directory;
	struct nm_ledger *ledger; /* NULL: nothing may be changed */
	nm_lease_event_fn on_event;
	void *context;
	struct nm_lease *leases;
	size_t count, capacity;
	struct nm_tidmap *by_tid; /* tid → index of its newest lease */

	uint64_t round; /* of nm_actuator_tend() */
	/* Every thread born before told_ticks has been told of by a FORK record, or was looked at.
	 */
	uint64_t told_ticks, tended_ticks;
	bool missed_heirs; /* side-band records were lost since the last look */
};

static inline bool nm_lease_active(const struct nm_lease *lease)
{
	return lease->terms.ended_ticks == 0;
}

void nm_lease_tell(struct nm_actuator *actuator, const struct nm_lease *lease,
		   enum nm_lease_event_kind kind, int error);

/* The newest lease of the tid, or NULL; of this very thread, if it is active, or NULL. */
struct nm_lease *nm_lease_find(const struct nm_actuator *actuator, uint32_t tid);
struct nm_lease *nm_lease_active_of(const struct nm_actuator *actuator, uint32_t tid,
				    uint64_t start_ticks);

/* Makes room so that `more` puts cannot fail; nm_lease_reserve_tid() for one of them, of this tid,
 * which nm_lease_release_tid() gives up where it was not used. */
int nm_lease_reserve(struct nm_actuator *actuator, size_t more);
int nm_lease_reserve_tid(struct nm_actuator *actuator, uint32_t tid);
void nm_lease_release_tid(struct nm_actuator *actuator, uint32_t tid);

/* Takes over `terms`; the thread's earlier lease, if one is active, ends with it. Cannot fail. */
struct nm_lease *nm_lease_put(struct nm_actuator *actuator, struct nm_ledger_entry *terms);

/* Ends a lease without touching the mask: it is no longer ours. */
void nm_lease_end(struct nm_actuator *actuator, struct nm_lease *lease);

/* Returns the original mask, tells `kind` (or FOREIGN, GONE, FAILED), ends the lease unless
 * refused. May add to actuator->leases, so that pointers into it are void. */
int nm_lease_give_back(struct nm_actuator *actuator, struct nm_lease *lease,
		       enum nm_lease_event_kind kind);

/*
 * The leased thread is gone from its number. After an exec from a thread that was not the leader it
 * goes on under the leader's number with our mask: that is returned, and its start_ticks told; 0
 * where it was no exec. Before nm_lease_end().
 */
uint64_t nm_lease_follow_exec(struct nm_actuator *actuator, const struct nm_lease *lease);

/* A thread carries, or carried, the mask of the lease at this index: its own children may as well.
 */
void nm_lease_remember_heir(struct nm_actuator *actuator, size_t index, uint32_t pid, uint32_t tid,
			    uint64_t start_ticks);

/*
 * Returns the mask of every heir of the given leases that was born since (ticks; 0: ever) and lives
 * now, by a walk of /proc. Returns the number of refusals, or -errno; sets missed_heirs then.
 */
int nm_lease_return_heirs(struct nm_actuator *actuator,
			  const struct nm_ledger_entry *const *entries, size_t count,
			  uint64_t born_since);

#endif
