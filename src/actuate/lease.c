/* SPDX-License-Identifier: MIT */
#include "actuator.h"
#include "mask.h"

#define RESERVED (NM_TIDMAP_NONE - 1) /* in by_tid: no lease yet, but room for it */

void nm_lease_tell(struct nm_actuator *actuator, const struct nm_lease *lease,
		   enum nm_lease_event_kind kind, int error)
{
	struct nm_lease_event event = {
		.kind = kind,
		.tid = lease->terms.tid,
		.pid = lease->terms.pid,
		.start_ticks = lease->terms.start_ticks,
		.decision = lease->terms.decision,
		.error = error,
	};
	if (actuator->on_event)
		actuator->on_event(actuator->context, &event);
}

struct nm_lease *nm_lease_find(const struct nm_actuator *actuator, uint32_t tid)
{
	uint32_t index = nm_tidmap_get(actuator->by_tid, tid);
	return index < actuator->count ? &actuator->leases[index] : NULL;
}

struct nm_lease *nm_lease_active_of(const struct nm_actuator *actuator, uint32_t tid,
				    uint64_t start_ticks)
{
	struct nm_lease *lease = nm_lease_find(actuator, tid);
	return lease && nm_lease_active(lease) && lease->terms.start_ticks == start_ticks ? lease
											  : NULL;
}

int nm_lease_reserve(struct nm_actuator *actuator, size_t more)
{
	while (actuator->capacity < actuator->count + more) {
		int r = nm_reserve((void **)&actuator->leases, &actuator->capacity,
				   actuator->capacity, sizeof(*actuator->leases));
		if (r < 0)
			return r;
	}
	return 0;
}

int nm_lease_reserve_tid(struct nm_actuator *actuator, uint32_t tid)
{
	if (nm_tidmap_get(actuator->by_tid, tid) != NM_TIDMAP_NONE)
		return 0;
	return nm_tidmap_set(actuator->by_tid, tid, RESERVED);
}

void nm_lease_release_tid(struct nm_actuator *actuator, uint32_t tid)
{
	if (nm_tidmap_get(actuator->by_tid, tid) == RESERVED)
		nm_tidmap_remove(actuator->by_tid, tid);
}

struct nm_lease *nm_lease_put(struct nm_actuator *actuator, struct nm_ledger_entry *terms)
{
	struct nm_lease *earlier = nm_lease_active_of(actuator, terms->tid, terms->start_ticks);
	if (earlier) { /* its heirs may still turn up; the ledger keeps both until the return */
		earlier->terms.ended_ticks = terms->given_ticks;
		earlier->ended_round = actuator->round;
	}
	struct nm_lease *lease = &actuator->leases[actuator->count];
	(void)nm_tidmap_set(actuator->by_tid, terms->tid, (uint32_t)actuator->count);
	actuator->count++;
	/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): the caller has reserved the place */
	*lease = (struct nm_lease){.terms = *terms};
	*terms = (struct nm_ledger_entry){0};
	return lease;
}

void nm_lease_end(struct nm_actuator *actuator, struct nm_lease *lease)
{
	if (!nm_lease_active(lease))
		return;
	uint64_t now_ticks = nm_proc_ticks_now(actuator->platform);
	lease->terms.ended_ticks = now_ticks ? now_ticks : UINT64_MAX;
	lease->ended_round = actuator->round;
	/* A line that cannot be written only makes the next start look at a mask that is not ours.
	 */
	(void)nm_ledger_return(actuator->ledger, lease->terms.tid, lease->terms.start_ticks,
			       lease->terms.ended_ticks);
}

/* The thread is gone, or goes on as the leader of a new program. */
static void bury(struct nm_actuator *actuator, struct nm_lease *lease)
{
	size_t index = (size_t)(lease - actuator->leases);
	uint32_t pid = lease->terms.pid;
	uint64_t start_ticks = nm_lease_follow_exec(actuator, lease);
	nm_lease_end(actuator, lease);
	nm_lease_tell(actuator, lease, NM_LEASE_GONE, 0);
	if (start_ticks)
		nm_lease_remember_heir(actuator, index, pid, pid, start_ticks);
}

int nm_lease_give_back(struct nm_actuator *actuator, struct nm_lease *lease,
		       enum nm_lease_event_kind kind)
{
	const struct nm_ledger_entry *terms = &lease->terms;
	int r = nm_mask_return(actuator->platform, actuator->topology, terms, terms->pid,
			       terms->tid, terms->start_ticks);
	if (r == -ESRCH) {
		bury(actuator, lease);
		return 0;
	}
	if (r < 0) {
		nm_lease_tell(actuator, lease, NM_LEASE_FAILED, r);
		return r;
	}
	nm_lease_end(actuator, lease);
	/* After an exec by another thread, a leader that ended has no owner to have it back. */
	if (r == 0)
		kind = lease->exited ? NM_LEASE_GONE : NM_LEASE_FOREIGN;
	nm_lease_tell(actuator, lease, kind, 0);
	return 0;
}
