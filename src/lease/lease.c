/* SPDX-License-Identifier: MIT */
#include "actuator.h"

#include <unistd.h>

#define RESERVED (NM_TIDMAP_NONE - 1) /* in a map: no lease yet, but the place is reserved */

void nm_lease_report(struct nm_actuator *actuator, const struct nm_lease *lease,
		     enum nm_lease_event_kind kind, int error)
{
	const struct nm_ledger_entry *terms = &lease->terms;
	const struct nm_descendant thread = {
		.pid = terms->pid, .tid = terms->tid, .start_ticks = terms->start_ticks};
	nm_progress_report(&actuator->progress, terms, &thread, kind, error);
}

uint64_t nm_lease_ticks(struct nm_actuator *actuator)
{
	uint64_t now_ns = actuator->platform->ops->now_ns(actuator->platform);
	uint64_t tick_ns = NM_NSEC_PER_SEC / (uint64_t)sysconf(_SC_CLK_TCK);
	if (!actuator->clock_ticks || now_ns - actuator->clock_ns > NM_NSEC_PER_SEC) {
		actuator->clock_ticks = nm_proc_ticks_now(actuator->platform);
		actuator->clock_ns = now_ns;
	}
	return actuator->clock_ticks
		       ? actuator->clock_ticks + (now_ns - actuator->clock_ns) / tick_ns
		       : UINT64_MAX;
}

/* ---- finding ---- */

static uint32_t first_of(const struct nm_tidmap *map, uint32_t id)
{
	uint32_t index = nm_tidmap_get(map, id);
	return index == RESERVED ? NM_LEASE_NONE : index;
}

uint32_t nm_lease_first_of_tid(const struct nm_actuator *actuator, uint32_t tid)
{
	return first_of(actuator->by_tid, tid);
}

uint32_t nm_lease_first_of_pid(const struct nm_actuator *actuator, uint32_t pid)
{
	return first_of(actuator->by_pid, pid);
}

struct nm_lease *nm_lease_active_of(const struct nm_actuator *actuator, uint32_t tid,
				    uint64_t start_ticks)
{
	for (uint32_t i = nm_lease_first_of_tid(actuator, tid); i != NM_LEASE_NONE;
	     i = actuator->leases[i].next_of_tid) {
		struct nm_lease *lease = &actuator->leases[i];
		if (nm_lease_active(lease) && lease->terms.start_ticks == start_ticks)
			return lease;
	}
	return NULL;
}

static bool is_settled(const struct nm_lease *lease, const struct nm_ledger_entry *terms)
{
	if (lease->foreign && terms && !hwloc_bitmap_isequal(lease->terms.target, terms->target))
		return false;
	return lease->settled || nm_lease_active(lease);
}

bool nm_lease_is_settled(const struct nm_actuator *actuator, uint32_t tid, uint64_t start_ticks,
			 const struct nm_ledger_entry *terms)
{
	for (uint32_t i = nm_lease_first_of_tid(actuator, tid); i != NM_LEASE_NONE;
	     i = actuator->leases[i].next_of_tid)
		if (actuator->leases[i].terms.start_ticks == start_ticks &&
		    is_settled(&actuator->leases[i], terms))
			return true;
	return nm_settled_has(actuator->settled, tid, start_ticks);
}

size_t nm_lease_collect(const struct nm_actuator *actuator, bool written,
			const struct nm_ledger_entry **ret)
{
	size_t count = 0;
	for (size_t i = 0; i < actuator->count; i++) {
		const struct nm_lease *lease = &actuator->leases[i];
		if (!lease->inherited || (written && lease->written))
			ret[count++] = &lease->terms;
	}
	return count;
}

/* ---- adding ---- */

void nm_lease_reserve(struct nm_actuator *actuator, size_t more)
{
	while (actuator->capacity < actuator->count + more)
		NM_RESERVE(actuator->leases, actuator->capacity, actuator->capacity);
}

static int reserve_id(struct nm_tidmap *map, uint32_t id)
{
	return nm_tidmap_get(map, id) == NM_TIDMAP_NONE ? nm_tidmap_set(map, id, RESERVED) : 0;
}

static void release_id(struct nm_tidmap *map, uint32_t id)
{
	if (nm_tidmap_get(map, id) == RESERVED)
		nm_tidmap_remove(map, id);
}

int nm_lease_reserve_place(struct nm_actuator *actuator, uint32_t pid, uint32_t tid)
{
	int r = reserve_id(actuator->by_tid, tid);
	if (r == 0)
		r = reserve_id(actuator->by_pid, pid);
	return r;
}

void nm_lease_release_place(struct nm_actuator *actuator, uint32_t pid, uint32_t tid)
{
	release_id(actuator->by_tid, tid);
	release_id(actuator->by_pid, pid);
}

/* The places in the maps exist, so this cannot fail. */
static void link_lease(struct nm_actuator *actuator, uint32_t index)
{
	struct nm_lease *lease = &actuator->leases[index];
	lease->next_of_tid = nm_lease_first_of_tid(actuator, lease->terms.tid);
	lease->next_of_pid = nm_lease_first_of_pid(actuator, lease->terms.pid);
	(void)nm_tidmap_set(actuator->by_tid, lease->terms.tid, index);
	(void)nm_tidmap_set(actuator->by_pid, lease->terms.pid, index);
}

static struct nm_lease *append_lease(struct nm_actuator *actuator, struct nm_ledger_entry *terms)
{
	uint32_t index = (uint32_t)actuator->count++;
	/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): the caller has reserved the place */
	actuator->leases[index] = (struct nm_lease){.terms = *terms};
	*terms = (struct nm_ledger_entry){0};
	link_lease(actuator, index);
	return &actuator->leases[index];
}

struct nm_lease *nm_lease_put(struct nm_actuator *actuator, struct nm_ledger_entry *terms)
{
	struct nm_lease *earlier = nm_lease_active_of(actuator, terms->tid, terms->start_ticks);
	if (earlier) { /* children from its time may still appear; the ledger keeps both lines */
		earlier->terms.ended_ticks = terms->given_ticks;
		earlier->ended_round = actuator->round;
		earlier->settled = true;
	}
	return append_lease(actuator, terms);
}

struct nm_lease *nm_lease_put_inherited(struct nm_actuator *actuator, struct nm_ledger_entry *terms)
{
	struct nm_lease *lease = append_lease(actuator, terms);
	lease->inherited = true;
	actuator->inherited++;
	return lease;
}

void nm_lease_end(struct nm_actuator *actuator, struct nm_lease *lease)
{
	if (!nm_lease_active(lease))
		return;
	uint64_t now_ticks = nm_proc_ticks_now(actuator->platform);
	lease->terms.ended_ticks = now_ticks ? now_ticks : UINT64_MAX;
	lease->ended_round = actuator->round;
	/* If this line cannot be written, the next start only examines an affinity that is not
	 * ours. */
	(void)nm_ledger_return(actuator->ledger, lease->terms.tid, lease->terms.start_ticks,
			       lease->terms.ended_ticks);
}

/* ---- dropping ---- */

/* Returns whether a walk may still find the thread or its children. If it may find the thread, the
 * entry shows that the thread's affinity is its owner's choice; if it may find a child, the entry
 * contains the terms under which the child was created. Leases that are not inherited are kept
 * neither for more than NM_LEASE_MOST_ROUNDS, nor because something cannot be read. */
static bool is_still_met(const struct nm_actuator *actuator, const struct nm_lease *lease)
{
	if (!nm_lease_may_be_missed(actuator))
		return false;
	if (lease->inherited)
		return lease->terms.start_ticks >= actuator->reported_ticks;
	return !actuator->walk.unread &&
	       actuator->round - lease->ended_round < NM_LEASE_MOST_ROUNDS &&
	       nm_descent_last_birth(&lease->terms) >= actuator->reported_ticks;
}

static bool is_past(const struct nm_actuator *actuator, const struct nm_lease *lease)
{
	return !nm_lease_active(lease) && !lease->refused &&
	       actuator->round - lease->ended_round >= NM_LEASE_MEMORY_ROUNDS &&
	       !is_still_met(actuator, lease);
}

void nm_lease_forget_past(struct nm_actuator *actuator)
{
	bool any = false;
	size_t kept = 0;
	nm_settled_forget(actuator->settled, actuator->platform,
			  actuator->round - NM_LEASE_MEMORY_ROUNDS + 1,
			  nm_lease_may_be_missed(actuator) ? actuator->reported_ticks : UINT64_MAX);
	for (size_t i = 0; !any && i < actuator->count; i++)
		any = is_past(actuator, &actuator->leases[i]);
	if (!any)
		return;
	for (size_t i = 0; i < actuator->count; i++) {
		(void)nm_tidmap_set(actuator->by_tid, actuator->leases[i].terms.tid, RESERVED);
		(void)nm_tidmap_set(actuator->by_pid, actuator->leases[i].terms.pid, RESERVED);
	}
	/* Those to keep move to the front, in their order. */
	for (size_t i = 0; i < actuator->count; i++) {
		struct nm_lease lease = actuator->leases[i];
		if (is_past(actuator, &lease))
			continue;
		actuator->leases[i] = actuator->leases[kept];
		actuator->leases[kept++] = lease;
	}
	for (size_t i = 0; i < kept; i++)
		link_lease(actuator, (uint32_t)i);
	for (size_t i = kept; i < actuator->count; i++) {
		struct nm_lease *lease = &actuator->leases[i];
		nm_lease_release_place(actuator, lease->terms.pid, lease->terms.tid);
		nm_shares_release(lease->inherited ? &actuator->inherited_shares
						   : &actuator->lease_shares,
				  lease->terms.domain);
		actuator->inherited -= lease->inherited;
		nm_ledger_entry_clear(&lease->terms);
	}
	actuator->count = kept;
}

/* ---- restoring ---- */

static bool looks_like_exec(const struct nm_actuator *actuator, const struct nm_lease *lease)
{
	const struct nm_ledger_entry *terms = &lease->terms;
	nm_autobitmap leader = nm_must(hwloc_bitmap_alloc());
	return terms->tid != terms->pid && !lease->exited &&
	       actuator->platform->ops->affinity_get(actuator->platform, (pid_t)terms->pid,
						     leader) == 0 &&
	       hwloc_bitmap_isincluded(leader, terms->target);
}

/* The thread has exited, or continues as the leader of a new program. The latter is handled by an
 * EXEC record, unless records were lost. */
static void end_of_thread(struct nm_actuator *actuator, size_t index)
{
	struct nm_lease *lease = &actuator->leases[index];
	if (!nm_lease_may_be_missed(actuator) && !lease->awaited &&
	    looks_like_exec(actuator, lease)) {
		lease->awaited = true;
		return;
	}
	bool followed = nm_lease_may_be_missed(actuator) && nm_lease_follow_exec(actuator, index);
	lease = &actuator->leases[index];
	if (followed) /* so that the record of the exec does not follow it again */
		lease->settled = true;
	nm_lease_end(actuator, lease);
	nm_lease_report(actuator, lease, NM_LEASE_GONE, 0);
}

/* Returns whether the cpuset or the CPUs have changed during the lease, as far as is known. */
static bool is_explained(const struct nm_actuator *actuator, const struct nm_lease *lease)
{
	const struct nm_ledger_entry *terms = &lease->terms;
	struct nm_platform *platform = actuator->platform;
	int directory =
		nm_proc_open_same(platform, terms->pid, terms->tid, terms->start_ticks, NULL);
	if (directory < 0)
		return true;
	nm_cgroups_forget(actuator->masks.cgroups); /* they may have changed in this interval */
	uint64_t id = nm_mask_cpuset_id(&actuator->masks, directory);
	platform->ops->close(platform, directory);
	return id == 0 || lease->cpuset_id == 0 || id != lease->cpuset_id;
}

int nm_lease_give_back(struct nm_actuator *actuator, size_t index, enum nm_lease_event_kind kind)
{
	struct nm_lease *lease = &actuator->leases[index];
	const struct nm_ledger_entry *terms = &lease->terms;
	int r = nm_mask_restore(&actuator->masks, terms, terms->pid, terms->tid,
				terms->start_ticks);
	if (r == -ESRCH) {
		end_of_thread(actuator, index);
		return 0;
	}
	if (r < 0) {
		nm_lease_report(actuator, lease, NM_LEASE_FAILED, r);
		return r;
	}
	lease->settled = true;
	nm_lease_end(actuator, lease);
	if (r == NM_MASK_UNCHANGED)
		kind = is_explained(actuator, lease) ? NM_LEASE_RESET : NM_LEASE_UNDONE;
	if (r == 0)
		kind = NM_LEASE_FOREIGN;
	/* A leader that ended in an exec by another thread is reported as gone: its number belongs
	 * to that thread. */
	if (lease->exited && (r == 0 || r == NM_MASK_UNCHANGED))
		kind = NM_LEASE_GONE;
	nm_lease_report(actuator, lease, kind, 0);
	return 0;
}
