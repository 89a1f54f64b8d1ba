/* SPDX-License-Identifier: MIT */
#include "actuator.h"

#include <string.h>

#include "heirs.h"
#include "mask.h"

void nm_lease_tell(struct nm_actuator *actuator, const struct nm_lease *lease,
		   enum nm_lease_event_kind kind, int error)
{
	struct nm_lease_event event = {
		.kind = kind,
		.tid = lease->terms.tid,
		.pid = lease->terms.pid,
		.decision = lease->terms.decision,
		.error = error,
	};
	if (actuator->on_event)
		actuator->on_event(actuator->context, &event);
}

struct nm_lease *nm_lease_find(struct nm_actuator *actuator, uint32_t tid)
{
	uint32_t index = nm_tidmap_get(actuator->by_tid, tid);
	return index == NM_TIDMAP_NONE ? NULL : &actuator->leases[index];
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

struct nm_lease *nm_lease_put(struct nm_actuator *actuator, struct nm_ledger_entry *terms)
{
	struct nm_lease *lease = nm_lease_find(actuator, terms->tid);
	if (lease) {
		nm_ledger_entry_clear(&lease->terms);
	} else {
		lease = &actuator->leases[actuator->count];
		/* A tid without a leaf in the map cannot be found again, but still is in the list.
		 */
		(void)nm_tidmap_set(actuator->by_tid, terms->tid, (uint32_t)actuator->count);
		actuator->count++;
	}
	/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): the caller has reserved the place */
	*lease = (struct nm_lease){.terms = *terms};
	*terms = (struct nm_ledger_entry){0};
	return lease;
}

void nm_lease_end(struct nm_actuator *actuator, struct nm_lease *lease, uint64_t now_ns)
{
	if (!nm_lease_active(lease))
		return;
	lease->past_ns = now_ns ? now_ns : 1;
	/* A line that cannot be written only makes the next start look at a mask that is not ours.
	 */
	(void)nm_ledger_return(actuator->ledger, lease->terms.tid, lease->terms.start_ticks);
}

/*
 * The leased thread is gone from its number. After an exec from a thread that was not the leader it
 * goes on under the leader's number, with our mask.
 */
static void follow_exec(struct nm_actuator *actuator, const struct nm_lease *lease)
{
	const struct nm_ledger_entry *terms = &lease->terms;
	if (terms->tid != terms->pid)
		nm_lease_return_heirs(actuator, &terms, 1);
}

int nm_lease_give_back(struct nm_actuator *actuator, struct nm_lease *lease,
		       enum nm_lease_event_kind kind, uint64_t now_ns)
{
	const struct nm_ledger_entry *terms = &lease->terms;
	int r = nm_mask_return(actuator->platform, actuator->topology, terms, terms->pid,
			       terms->tid, terms->start_ticks);
	if (r < 0 && r != -ESRCH) {
		nm_lease_tell(actuator, lease, NM_LEASE_FAILED, r);
		return r;
	}
	nm_lease_end(actuator, lease, now_ns);
	if (r == -ESRCH) {
		nm_lease_tell(actuator, lease, NM_LEASE_GONE, 0);
		follow_exec(actuator, lease);
		return 0;
	}
	nm_lease_tell(actuator, lease, r == 0 ? NM_LEASE_FOREIGN : kind, 0);
	return 0;
}

/* ---- heirs ---- */

static void return_heir(void *context, const struct nm_ledger_entry *terms, uint32_t pid,
			uint32_t tid, uint64_t start_ticks)
{
	struct nm_actuator *actuator = context;
	int r = nm_mask_return(actuator->platform, actuator->topology, terms, pid, tid,
			       start_ticks);
	if (r == 0 || r == -ESRCH)
		return;
	struct nm_lease_event event = {
		.kind = r < 0 ? NM_LEASE_FAILED : NM_LEASE_HEIR,
		.tid = tid,
		.pid = pid,
		.decision = terms->decision,
		.error = r < 0 ? r : 0,
	};
	if (actuator->on_event)
		actuator->on_event(actuator->context, &event);
}

void nm_lease_return_heirs(struct nm_actuator *actuator,
			   const struct nm_ledger_entry *const *entries, size_t count)
{
	/* Threads born while we walk are met by the next round; a fork bomb is not waited for. */
	for (int round = 0; round < 4; round++)
		if (nm_heirs_scan(actuator->platform, entries, count, return_heir, actuator) <= 0)
			return;
}

static int remember_heir(struct nm_actuator *actuator, const struct nm_lease *parent, uint32_t pid,
			 uint32_t tid, uint64_t start_ticks, uint64_t now_ns)
{
	struct nm_ledger_entry terms;
	int r = nm_ledger_entry_copy(&parent->terms, &terms);
	if (r < 0)
		return r;
	terms.pid = pid;
	terms.tid = tid;
	terms.start_ticks = start_ticks;
	r = nm_lease_reserve(actuator, 1);
	if (r < 0) {
		nm_ledger_entry_clear(&terms);
		return r;
	}
	struct nm_lease *heir = nm_lease_put(actuator, &terms);
	heir->heir = true;
	heir->past_ns = now_ns;
	return 0;
}

/* A thread or child was born of a thread that carries, or lately carried, a mask of ours. */
static void on_fork(struct nm_actuator *actuator, const struct nm_task_event *event,
		    uint64_t now_ns)
{
	struct nm_lease *parent = nm_lease_find(actuator, event->parent_tid);
	if (!parent)
		return;

	uint64_t start_ticks = 0;
	struct nm_proc_stat stat;
	int directory = nm_proc_open_thread(actuator->platform, event->pid, event->tid);
	if (directory >= 0) {
		if (nm_proc_read_stat(actuator->platform, directory, &stat) == 0)
			start_ticks = stat.start_ticks;
		actuator->platform->ops->close(actuator->platform, directory);
	}
	if (start_ticks)
		return_heir(actuator, &parent->terms, event->pid, event->tid, start_ticks);
	/* Also where it is gone by now: its own children may live. Out of memory: the scan finds
	 * them. */
	(void)remember_heir(actuator, parent, event->pid, event->tid, start_ticks, now_ns);
}

/* A program that starts must not size itself by our mask: the process's leases end. */
static void on_exec(struct nm_actuator *actuator, const struct nm_task_event *event,
		    uint64_t now_ns)
{
	for (size_t i = 0; i < actuator->count; i++) {
		struct nm_lease *lease = &actuator->leases[i];
		if (nm_lease_active(lease) && lease->terms.pid == event->pid)
			(void)nm_lease_give_back(actuator, lease, NM_LEASE_RETURNED, now_ns);
	}
}

static void on_thread_exit(struct nm_actuator *actuator, const struct nm_task_event *event,
		    uint64_t now_ns)
{
	struct nm_lease *lease = nm_lease_find(actuator, event->tid);
	if (!lease || !nm_lease_active(lease))
		return;
	/* The record may speak of the thread's number before an exec gave it away. */
	int directory = nm_mask_open(actuator->platform, lease->terms.pid, lease->terms.tid,
				     lease->terms.start_ticks, NULL);
	if (directory >= 0) {
		actuator->platform->ops->close(actuator->platform, directory);
		return;
	}
	nm_lease_end(actuator, lease, now_ns);
	nm_lease_tell(actuator, lease, NM_LEASE_GONE, 0);
}

void nm_actuator_task_event(struct nm_actuator *actuator, const struct nm_task_event *event,
			    uint64_t now_ns)
{
	switch (event->kind) {
	case NM_TASK_FORK:
		on_fork(actuator, event, now_ns);
		break;
	case NM_TASK_EXEC:
		on_exec(actuator, event, now_ns);
		break;
	case NM_TASK_EXIT:
		on_thread_exit(actuator, event, now_ns);
		break;
	case NM_TASK_COMM:
		break;
	}
}

bool nm_actuator_inherited(void *context, uint32_t pid, uint32_t tid, uint64_t start_ticks,
			   hwloc_const_bitmap_t current, hwloc_const_bitmap_t *ret_original,
			   bool *ret_unrestricted)
{
	struct nm_actuator *actuator = context;
	struct nm_proc_stat stat;
	int directory = nm_mask_open(actuator->platform, pid, tid, start_ticks, &stat);
	if (directory < 0)
		return false;
	actuator->platform->ops->close(actuator->platform, directory);

	for (size_t i = 0; i < actuator->count; i++) {
		const struct nm_ledger_entry *terms = &actuator->leases[i].terms;
		if (!nm_heirs_inherited(actuator->platform, terms, pid, tid, &stat, current))
			continue;
		return_heir(actuator, terms, pid, tid, start_ticks);
		*ret_original = terms->original;
		*ret_unrestricted = terms->unrestricted;
		return true;
	}
	return false;
}
