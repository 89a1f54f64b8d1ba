/* SPDX-License-Identifier: MIT */
/* Masks of ours that were passed on: by fork, by exec, and to whom the roster meets. */
#include "actuator.h"
#include "heirs.h"
#include "mask.h"

static int return_heir(struct nm_actuator *actuator, const struct nm_ledger_entry *terms,
		       uint32_t pid, uint32_t tid, uint64_t start_ticks)
{
	int r = nm_mask_return(actuator->platform, actuator->topology, terms, pid, tid,
			       start_ticks);
	if (r == 0 || r == -ESRCH)
		return 0;
	struct nm_lease_event event = {
		.kind = r < 0 ? NM_LEASE_FAILED : NM_LEASE_HEIR,
		.tid = tid,
		.pid = pid,
		.start_ticks = start_ticks,
		.decision = terms->decision,
		.error = r < 0 ? r : 0,
	};
	if (actuator->on_event)
		actuator->on_event(actuator->context, &event);
	if (r < 0) /* the next round looks for it again */
		actuator->missed_heirs = true;
	return r;
}

struct returning {
	struct nm_actuator *actuator;
	int refused;
	uint64_t start_ticks; /* of the last one found */
};

static void return_found(void *context, const struct nm_ledger_entry *terms, uint32_t pid,
			 uint32_t tid, uint64_t start_ticks)
{
	struct returning *returning = context;
	returning->refused += return_heir(returning->actuator, terms, pid, tid, start_ticks) < 0;
	returning->start_ticks = start_ticks;
}

int nm_lease_return_heirs(struct nm_actuator *actuator,
			  const struct nm_ledger_entry *const *entries, size_t count,
			  uint64_t born_since)
{
	struct returning returning = {.actuator = actuator};
	struct nm_heirs_search search = {
		.platform = actuator->platform,
		.entries = entries,
		.count = count,
		.born_since = born_since,
		.each = return_found,
		.context = &returning,
	};
	int found = 1;
	/* Threads born while we walk are met by the next round; a fork bomb is not waited for. */
	for (int round = 0; found > 0 && returning.refused == 0 && round < 4; round++)
		found = nm_heirs_scan(&search);
	return found < 0 ? found : returning.refused;
}

uint64_t nm_lease_follow_exec(struct nm_actuator *actuator, const struct nm_lease *lease)
{
	const struct nm_ledger_entry *terms = &lease->terms;
	struct returning returning = {.actuator = actuator};
	struct nm_heirs_search search = {
		.platform = actuator->platform,
		.entries = &terms,
		.count = 1,
		.born_since = UINT64_MAX,
		.each = return_found,
		.context = &returning,
	};
	if (terms->tid != terms->pid)
		(void)nm_heirs_look_at(&search, terms->pid, terms->pid);
	return returning.start_ticks;
}

static int remember(struct nm_actuator *actuator, size_t index, uint32_t pid, uint32_t tid,
		    uint64_t start_ticks)
{
	struct nm_ledger_entry terms;
	int r = nm_lease_reserve(actuator, 1);
	if (r == 0)
		r = nm_ledger_entry_copy(&actuator->leases[index].terms, &terms);
	if (r < 0)
		return r;
	r = nm_lease_reserve_tid(actuator, tid);
	if (r < 0) {
		nm_ledger_entry_clear(&terms);
		return r;
	}
	terms.pid = pid;
	terms.tid = tid;
	terms.start_ticks = start_ticks;
	terms.ended_ticks = nm_proc_ticks_now(actuator->platform);
	if (!terms.ended_ticks)
		terms.ended_ticks = UINT64_MAX;
	struct nm_lease *heir = nm_lease_put(actuator, &terms);
	heir->heir = true;
	heir->ended_round = actuator->round;
	return 0;
}

void nm_lease_remember_heir(struct nm_actuator *actuator, size_t index, uint32_t pid, uint32_t tid,
			    uint64_t start_ticks)
{
	/* A leader's lease of before the exec: that thread is gone. */
	struct nm_lease *earlier = nm_lease_active_of(actuator, tid, start_ticks);
	if (earlier)
		nm_lease_end(actuator, earlier);
	if (remember(actuator, index, pid, tid, start_ticks) < 0)
		actuator->missed_heirs = true;
}

static int read_start(struct nm_platform *platform, uint32_t pid, uint32_t tid, uint64_t *ret)
{
	struct nm_proc_stat stat;
	int directory = nm_proc_open_thread(platform, pid, tid);
	if (directory < 0)
		return directory;
	int r = nm_proc_read_stat(platform, directory, &stat);
	platform->ops->close(platform, directory);
	if (r == 0)
		*ret = stat.start_ticks;
	return r;
}

/* 0: it is gone, or cannot be read now; then the next round looks for it. */
static uint64_t start_of(struct nm_actuator *actuator, uint32_t pid, uint32_t tid)
{
	uint64_t start_ticks = 0;
	int r = read_start(actuator->platform, pid, tid, &start_ticks);
	if (r < 0 && r != -ESRCH)
		actuator->missed_heirs = true;
	return start_ticks;
}

/* A child born well after its parent had its mask back is no heir: this ends the chain. */
static bool is_parent(const struct nm_lease *lease, const struct nm_task_event *event,
		      uint64_t start_ticks)
{
	return lease->terms.tid == event->parent_tid &&
	       (!start_ticks || nm_heirs_born_under(&lease->terms, start_ticks));
}

/* A thread or child was born of a thread that carries, or lately carried, masks of ours. */
static void on_fork(struct nm_actuator *actuator, const struct nm_task_event *event)
{
	if (!nm_lease_find(actuator, event->parent_tid))
		return;
	uint64_t start_ticks = start_of(actuator, event->pid, event->tid);
	/* The record comes late: the thread was met before, and has a lease of its own. */
	if (start_ticks && nm_lease_active_of(actuator, event->tid, start_ticks))
		return;

	/* The newest first: an exec may have put another thread under the parent's number. */
	size_t count = actuator->count;
	for (size_t i = count; start_ticks && i-- > 0;)
		if (is_parent(&actuator->leases[i], event, start_ticks))
			(void)return_heir(actuator, &actuator->leases[i].terms, event->pid,
					  event->tid, start_ticks);
	/* Also where it is gone by now: its own children may live. */
	for (size_t i = 0; i < count; i++)
		if (is_parent(&actuator->leases[i], event, start_ticks))
			nm_lease_remember_heir(actuator, i, event->pid, event->tid, start_ticks);
}

/*
 * In an exec by a thread that was not the leader all others end, with EXIT records, the leader too,
 * and it takes the leader's number: if it carried our mask, the leader does now.
 */
static void follow_record(struct nm_actuator *actuator, size_t index, uint32_t pid)
{
	uint64_t start_ticks = start_of(actuator, pid, pid);
	const struct nm_lease *leader = nm_lease_active_of(actuator, pid, start_ticks);
	if (!start_ticks || (leader && !leader->exited))
		return;
	(void)return_heir(actuator, &actuator->leases[index].terms, pid, pid, start_ticks);
	nm_lease_remember_heir(actuator, index, pid, pid, start_ticks);
}

/* A program that starts must not size itself by our mask: the process's leases end. */
static void on_exec(struct nm_actuator *actuator, const struct nm_task_event *event)
{
	size_t count = actuator->count;
	for (size_t i = 0; i < count; i++) {
		const struct nm_lease *lease = &actuator->leases[i];
		if (lease->terms.pid == event->pid && lease->terms.tid != event->pid &&
		    !lease->exited)
			follow_record(actuator, i, event->pid);
	}
	for (size_t i = 0; i < count; i++) {
		struct nm_lease *lease = &actuator->leases[i];
		if (lease->terms.pid == event->pid && nm_lease_active(lease))
			(void)nm_lease_give_back(actuator, lease, NM_LEASE_RETURNED);
	}
}

static void on_thread_exit(struct nm_actuator *actuator, const struct nm_task_event *event)
{
	struct nm_lease *newest = nm_lease_find(actuator, event->tid);
	if (!newest)
		return;
	for (size_t i = 0; i < actuator->count; i++)
		if (actuator->leases[i].terms.tid == event->tid)
			actuator->leases[i].exited = true;
	if (!nm_lease_active(newest))
		return;
	/* A leader's number may live on: as a zombie, or given to another thread by an exec. */
	int directory = nm_mask_open(actuator->platform, newest->terms.pid, newest->terms.tid,
				     newest->terms.start_ticks, NULL);
	if (directory >= 0) {
		actuator->platform->ops->close(actuator->platform, directory);
		return;
	}
	nm_lease_end(actuator, newest);
	nm_lease_tell(actuator, newest, NM_LEASE_GONE, 0);
}

void nm_actuator_task_event(struct nm_actuator *actuator, const struct nm_task_event *event)
{
	switch (event->kind) {
	case NM_TASK_FORK:
		on_fork(actuator, event);
		break;
	case NM_TASK_EXEC:
		on_exec(actuator, event);
		break;
	case NM_TASK_EXIT:
		on_thread_exit(actuator, event);
		break;
	case NM_TASK_COMM:
		break;
	}
}

/* ---- what the roster asks ---- */

struct newcomer {
	uint32_t pid, tid;
	uint64_t start_ticks;
	const struct nm_ledger_entry *terms; /* what it inherited */
};

static void note_terms(void *context, const struct nm_ledger_entry *terms, uint32_t pid,
		       uint32_t tid, uint64_t start_ticks)
{
	struct newcomer *newcomer = context;
	(void)pid;
	(void)tid;
	if (start_ticks == newcomer->start_ticks)
		newcomer->terms = terms;
}

/* Records told whose heir it is; where some were lost, its mask and its descent have to. */
static void find_terms(struct nm_actuator *actuator, struct newcomer *newcomer,
		       hwloc_const_bitmap_t current)
{
	for (size_t i = 0; i < actuator->count; i++) {
		const struct nm_lease *lease = &actuator->leases[i];
		if (lease->heir && lease->terms.tid == newcomer->tid &&
		    lease->terms.start_ticks == newcomer->start_ticks &&
		    hwloc_bitmap_isequal(current, lease->terms.target))
			newcomer->terms = &lease->terms;
	}
	for (size_t i = 0; actuator->missed_heirs && !newcomer->terms && i < actuator->count; i++) {
		const struct nm_ledger_entry *terms = &actuator->leases[i].terms;
		struct nm_heirs_search search = {
			.platform = actuator->platform,
			.entries = &terms,
			.count = 1,
			.each = note_terms,
			.context = newcomer,
		};
		if (!actuator->leases[i].heir && hwloc_bitmap_isincluded(current, terms->target))
			(void)nm_heirs_look_at(&search, newcomer->pid, newcomer->tid);
	}
}

bool nm_actuator_inherited(void *context, uint32_t pid, uint32_t tid, uint64_t start_ticks,
			   hwloc_const_bitmap_t current, hwloc_const_bitmap_t *ret_original,
			   bool *ret_unrestricted)
{
	struct nm_actuator *actuator = context;
	struct newcomer newcomer = {.pid = pid, .tid = tid, .start_ticks = start_ticks};
	const struct nm_lease *own = nm_lease_active_of(actuator, tid, start_ticks);
	if (own && hwloc_bitmap_isincluded(current, own->terms.target))
		newcomer.terms = &own->terms;
	else
		find_terms(actuator, &newcomer, current);
	if (!newcomer.terms)
		return false;
	if (!own)
		(void)return_heir(actuator, newcomer.terms, pid, tid, start_ticks);
	*ret_original = newcomer.terms->original;
	*ret_unrestricted = newcomer.terms->unrestricted;
	return true;
}
