/* SPDX-License-Identifier: MIT */
/* What the files of this folder share: the lease keeper's state. */
#ifndef NM_ACTUATE_ACTUATOR_H
#define NM_ACTUATE_ACTUATOR_H

#include "numa-migrd/actuate.h"
#include "numa-migrd/ledger.h"
#include "numa-migrd/tidmap.h"

/*
 * One mask that we narrowed. After it ended (past_ns != 0) it is remembered for NM_LEASE_MEMORY_NS:
 * FORK records of its time may still be in the rings. Heirs are remembered the same way, with
 * `heir` set.
 */
struct nm_lease {
	struct nm_ledger_entry terms;
	enum nm_step_pin pin;
	bool heir;
	int node; /* where it leads, node index */
	uint64_t renewed_ns;
	uint64_t past_ns;      /* 0: active */
	uint64_t nudge_end_ns; /* NUDGE: widened at the latest now */
};

#define NM_LEASE_MEMORY_NS (10 * NM_NSEC_PER_SEC)
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
	bool missed_heirs;	  /* side-band records were lost since the last look */
	struct nm_tidmap *by_tid; /* tid → index of its newest lease */
};

static inline bool nm_lease_active(const struct nm_lease *lease)
{
	return lease->past_ns == 0;
}

void nm_lease_tell(struct nm_actuator *actuator, const struct nm_lease *lease,
		   enum nm_lease_event_kind kind, int error);

/* The tid's newest lease, active or past, or NULL. */
struct nm_lease *nm_lease_find(struct nm_actuator *actuator, uint32_t tid);

/* Takes over `terms`; replaces the tid's earlier lease. Room must have been reserved. Cannot fail.
 */
struct nm_lease *nm_lease_put(struct nm_actuator *actuator, struct nm_ledger_entry *terms);
int nm_lease_reserve(struct nm_actuator *actuator, size_t more);

/* Ends a lease without touching the mask: it is no longer ours. */
void nm_lease_end(struct nm_actuator *actuator, struct nm_lease *lease, uint64_t now_ns);

/* Returns the original mask, tells `kind` (or FOREIGN, GONE, FAILED), ends the lease unless
 * refused. */
int nm_lease_give_back(struct nm_actuator *actuator, struct nm_lease *lease,
		       enum nm_lease_event_kind kind, uint64_t now_ns);

/* Returns the mask of every heir of the given leases that lives now, by a walk of /proc. */
void nm_lease_return_heirs(struct nm_actuator *actuator,
			   const struct nm_ledger_entry *const *entries, size_t count);

#endif
