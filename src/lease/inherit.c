/* SPDX-License-Identifier: MIT */
/* Leased affinities that were inherited: by fork, by exec, and by tasks that a walk finds. */
#include <unistd.h>

#include "actuator.h"

/* ---- restoring and remembering ---- */

static struct nm_lease *find_inherited(const struct nm_actuator *actuator,
				       const struct nm_ledger_entry *terms, uint32_t tid,
				       uint64_t start_ticks)
{
	for (uint32_t i = nm_lease_first_of_tid(actuator, tid); i != NM_LEASE_NONE;
	     i = actuator->leases[i].next_of_tid) {
		struct nm_lease *lease = &actuator->leases[i];
		if (lease->inherited && lease->terms.start_ticks == start_ticks &&
		    hwloc_bitmap_isequal(lease->terms.target, terms->target))
			return lease;
	}
	return NULL;
}

/* The limit for each domain leaves space for others. */
static struct nm_lease *add_inherited(struct nm_actuator *actuator,
				      const struct nm_ledger_entry *terms, uint32_t pid,
				      uint32_t tid, uint64_t start_ticks)
{
	struct nm_shares *shares = &actuator->inherited_shares;
	struct nm_ledger_entry copy;
	if (actuator->inherited >= NM_LEASE_MOST_INHERITED ||
	    nm_shares_take(shares, terms->domain, NM_LEASE_MOST_INHERITED) < 0)
		return NULL;
	nm_lease_reserve(actuator, 1);
	if (nm_lease_reserve_place(actuator, pid, tid) < 0) {
		nm_lease_release_place(actuator, pid, tid);
		nm_shares_release(shares, terms->domain);
		return NULL;
	}
	nm_ledger_entry_copy(terms, &copy);
	copy.pid = pid;
	copy.tid = tid;
	copy.start_ticks = start_ticks;
	return nm_lease_put_inherited(actuator, &copy);
}

/* The task still carries the target, possibly for longer than the lease of its ancestor is kept. So
 * it gets a line of its own. */
static void note_refusal(struct nm_actuator *actuator, struct nm_lease *lease)
{
	lease->refused = true;
	lease->terms.ended_ticks = 0;
	if (!lease->written) /* if this fails, the next round tries again */
		lease->written = nm_ledger_give(actuator->ledger, &lease->terms) == 0;
}

/*
 * If the thread has an active lease by now, the end of that lease also ends the lines of this one.
 */
static void note_end(struct nm_actuator *actuator, struct nm_lease *lease)
{
	const struct nm_ledger_entry *terms = &lease->terms;
	lease->refused = false;
	lease->terms.ended_ticks = nm_lease_ticks(actuator);
	if (lease->written && !nm_lease_active_of(actuator, terms->tid, terms->start_ticks))
		(void)nm_ledger_return(actuator->ledger, terms->tid, terms->start_ticks,
				       terms->ended_ticks);
	lease->written = false;
}

static void note_result(struct nm_actuator *actuator, struct nm_lease *lease, int r)
{
	lease->exited = false;
	lease->settled = r >= 0;
	lease->foreign = r == 0;
	lease->ended_round = actuator->round;
	if (r < 0 && r != -ESRCH)
		note_refusal(actuator, lease);
	else
		note_end(actuator, lease);
}

static void report_inherited(const struct nm_actuator *actuator,
			     const struct nm_ledger_entry *terms, uint32_t pid, uint32_t tid,
			     uint64_t start_ticks, int r)
{
	const struct nm_descendant task = {.pid = pid, .tid = tid, .start_ticks = start_ticks};
	if (r != 0 && r != -ESRCH)
		nm_progress_report(&actuator->progress, terms, &task,
				   r < 0 ? NM_LEASE_FAILED : NM_LEASE_INHERITED, r < 0 ? r : 0);
}

static int restore_now(struct nm_actuator *actuator, const struct nm_ledger_entry *terms,
		       uint32_t pid, uint32_t tid, uint64_t start_ticks)
{
	int r = start_ticks ? nm_mask_restore(&actuator->masks, terms, pid, tid, start_ticks)
			    : -ESRCH;
	if (r == NM_MASK_UNCHANGED) /* it has not inherited the target */
		r = 0;
	report_inherited(actuator, terms, pid, tid, start_ticks, r);
	return r;
}

/* Restores a task for which there is no space among the leases. A walk finds its children, and the
 * task itself if restoring fails. */
static int restore_without_lease(struct nm_actuator *actuator, const struct nm_ledger_entry *terms,
				 uint32_t pid, uint32_t tid, uint64_t start_ticks)
{
	actuator->missed = true;
	int noted = start_ticks ? nm_settled_add(actuator->settled, terms->domain, tid, start_ticks,
						 actuator->round)
				: 0;
	if (noted < 0 && !actuator->ends) {
		actuator->walk.failed = true;
		return -ENOSPC;
	}
	int r = restore_now(actuator, terms, pid, tid, start_ticks);
	if (r < 0)
		nm_settled_remove(actuator->settled, tid, start_ticks);
	actuator->walk.failed = actuator->walk.failed || (r < 0 && r != -ESRCH);
	return r;
}

/*
 * Restores the affinity of a thread that inherited it under `terms`. Its entry is added before: the
 * task's own children may carry the target, too, an exec may pass it to the leader, and any
 * affinity that the task has afterwards is its owner's choice. Returns as nm_mask_restore(), or
 * -ENOSPC if no entry could be kept. In this case nothing is restored, because a later choice of
 * the owner could not be distinguished from the inherited affinity, and a walk finds the thread
 * again.
 */
static int restore_inherited(struct nm_actuator *actuator, const struct nm_ledger_entry *terms,
			     uint32_t pid, uint32_t tid, uint64_t start_ticks)
{
	const struct nm_ledger_entry copy = *terms; /* adding an entry may move the table */
	struct nm_lease *lease = find_inherited(actuator, &copy, tid, start_ticks);
	if (!lease)
		lease = add_inherited(actuator, &copy, pid, tid, start_ticks);
	if (!lease)
		return restore_without_lease(actuator, &copy, pid, tid, start_ticks);
	int r = restore_now(actuator, &copy, pid, tid, start_ticks);
	note_result(actuator, lease, r);
	return r;
}

void nm_lease_retry_inherited(struct nm_actuator *actuator)
{
	for (size_t i = 0; i < actuator->count; i++) {
		struct nm_lease *lease = &actuator->leases[i];
		if (!lease->refused)
			continue;
		if (nm_lease_active_of(actuator, lease->terms.tid, lease->terms.start_ticks))
			note_end(actuator, lease);
		else
			(void)restore_inherited(actuator, &lease->terms, lease->terms.pid,
						lease->terms.tid, lease->terms.start_ticks);
	}
}

/* ---- fork ---- */

static int read_start(struct nm_platform *platform, uint32_t pid, uint32_t tid, uint64_t *ret)
{
	struct nm_proc_stat stat;
	int r = nm_proc_stat_of(platform, pid, tid, &stat);
	if (r == 0)
		*ret = stat.start_ticks;
	return r;
}

/* Returns the start time, or 0 if the thread has exited, or if it cannot be read at the moment; in
 * the latter case a walk finds it. */
static uint64_t start_of(struct nm_actuator *actuator, uint32_t pid, uint32_t tid)
{
	uint64_t start_ticks = 0;
	int r = read_start(actuator->platform, pid, tid, &start_ticks);
	if (r < 0 && r != -ESRCH)
		actuator->missed = true;
	return start_ticks;
}

/*
 * The number was reused, so its previous owner has exited, even if that record was lost. An EXIT
 * record before this one was the previous owner's, even if the new thread was leased by then. If
 * the new thread has exited, too (start_ticks is 0), a walk finds the children of such a thread.
 */
static void note_reuse(struct nm_actuator *actuator, uint32_t tid, uint64_t start_ticks)
{
	for (uint32_t i = nm_lease_first_of_tid(actuator, tid); i != NM_LEASE_NONE;
	     i = actuator->leases[i].next_of_tid) {
		struct nm_lease *lease = &actuator->leases[i];
		if (start_ticks)
			lease->exited = lease->terms.start_ticks != start_ticks;
		lease->reused = lease->exited;
		actuator->missed = actuator->missed || (lease->reused && !start_ticks);
	}
}

/* If records were lost, the parent's number may have been reused by a thread that no record
 * reported. */
static bool is_same_thread(struct nm_actuator *actuator, const struct nm_ledger_entry *terms)
{
	uint64_t start_ticks = 0;
	return !nm_lease_may_be_missed(actuator) || !terms->start_ticks ||
	       read_start(actuator->platform, terms->pid, terms->tid, &start_ticks) < 0 ||
	       start_ticks == terms->start_ticks;
}

/* Returns whether the owner has pinned the parent to the former target. The affinity of a child
 * created since then is the owner's choice, too. */
static bool is_owners_choice(struct nm_actuator *actuator, const struct nm_lease *parent,
			     uint64_t start_ticks)
{
	if (!parent->settled || start_ticks <= parent->terms.ended_ticks)
		return false;
	nm_autobitmap current = nm_must(hwloc_bitmap_alloc());
	return actuator->platform->ops->affinity_get(actuator->platform, (pid_t)parent->terms.tid,
						     current) == 0 &&
	       hwloc_bitmap_isequal(current, parent->terms.target);
}

/* Returns whether the parent had itself inherited its affinity, and the child was created more than
 * 0.2 s after the parent was restored. A fork of a process that has only just been created does not
 * take longer. */
static bool is_born_too_late(const struct nm_lease *parent, uint64_t start_ticks)
{
	uint64_t grace_ticks = (uint64_t)sysconf(_SC_CLK_TCK) / 5;
	return parent->inherited && parent->settled && start_ticks > grace_ticks &&
	       start_ticks - grace_ticks > parent->terms.ended_ticks;
}

/* A child created well after its parent was restored inherits nothing, which ends the chain. */
static bool may_inherit(struct nm_actuator *actuator, const struct nm_lease *parent,
			uint64_t start_ticks)
{
	/* The EXIT record of a leader may be from before the lease, and an exec by another thread
	 * may have followed it. */
	bool gone = parent->reused || (parent->exited && parent->terms.tid != parent->terms.pid);
	if (gone || is_born_too_late(parent, start_ticks))
		return false;
	if (!start_ticks)
		return true;
	return nm_descent_born_under(&parent->terms, start_ticks) &&
	       is_same_thread(actuator, &parent->terms) &&
	       !is_owners_choice(actuator, parent, start_ticks);
}

/* Handles a thread or process created by a thread that has, or recently had, a leased affinity. */
static void on_fork(struct nm_actuator *actuator, const struct nm_task_event *event)
{
	uint32_t parent = nm_lease_first_of_tid(actuator, event->parent_tid);
	bool known = nm_lease_first_of_tid(actuator, event->tid) != NM_LEASE_NONE;
	if (parent == NM_LEASE_NONE && !known)
		return;
	uint64_t start_ticks = event->reused ? 0 : start_of(actuator, event->pid, event->tid);
	if (known)
		note_reuse(actuator, event->tid, start_ticks);
	/* The record is late: the thread has been handled already. */
	if (start_ticks && nm_lease_is_settled(actuator, event->tid, start_ticks, NULL))
		return;
	/* This is also done if the thread has exited, because its own children may be alive. */
	for (int r = 0; parent != NM_LEASE_NONE && (r == 0 || r == -ESRCH);
	     parent = actuator->leases[parent].next_of_tid)
		if (may_inherit(actuator, &actuator->leases[parent], start_ticks))
			r = restore_inherited(actuator, &actuator->leases[parent].terms, event->pid,
					      event->tid, start_ticks);
}

/* ---- exec ---- */

/* Returns whether the lease of the leader's number is more recent than the exec by the thread of
 * `former`: its number has the leased affinity, which is not that of the other lease. */
static bool is_in_force(struct nm_actuator *actuator, const struct nm_lease *leader,
			const struct nm_lease *former)
{
	struct nm_platform *platform = actuator->platform;
	nm_autobitmap current = nm_must(hwloc_bitmap_alloc());
	return platform->ops->affinity_get(platform, (pid_t)leader->terms.tid, current) == 0 &&
	       hwloc_bitmap_isequal(current, leader->terms.target) &&
	       !hwloc_bitmap_isequal(current, former->terms.target);
}

/*
 * When a thread other than the leader calls exec, all other threads end with EXIT records,
 * including the leader, and the calling thread takes the leader's number. If it carried our
 * affinity, the leader carries it now, and its children may, even if it has exited.
 */
static void follow_record(struct nm_actuator *actuator, size_t index, uint32_t pid)
{
	uint64_t start_ticks = start_of(actuator, pid, pid);
	/* The number may be taken over again, by a thread without this affinity. */
	actuator->leases[index].settled = true;
	struct nm_lease *leader = nm_lease_active_of(actuator, pid, start_ticks);
	if (leader && (!leader->exited || is_in_force(actuator, leader, &actuator->leases[index])))
		return;
	if (leader)
		nm_lease_end(actuator, leader);
	(void)restore_inherited(actuator, &actuator->leases[index].terms, pid, pid, start_ticks);
}

/* A new program must not size itself by a leased affinity, so the leases of the process end. */
static void on_exec(struct nm_actuator *actuator, const struct nm_task_event *event)
{
	for (uint32_t i = nm_lease_first_of_pid(actuator, event->pid); i != NM_LEASE_NONE;
	     i = actuator->leases[i].next_of_pid) {
		const struct nm_lease *lease = &actuator->leases[i];
		if (lease->terms.tid != event->pid && !lease->exited && !lease->settled)
			follow_record(actuator, i, event->pid);
	}
	for (uint32_t i = nm_lease_first_of_pid(actuator, event->pid); i != NM_LEASE_NONE;
	     i = actuator->leases[i].next_of_pid)
		if (nm_lease_active(&actuator->leases[i]))
			(void)nm_lease_give_back(actuator, i, NM_LEASE_RETURNED);
}

/* Returns whether the leader of the thread has an active lease with the same target. */
static bool is_leader_leased(const struct nm_actuator *actuator,
			     const struct nm_ledger_entry *terms)
{
	for (uint32_t i = nm_lease_first_of_tid(actuator, terms->pid); i != NM_LEASE_NONE;
	     i = actuator->leases[i].next_of_tid) {
		const struct nm_lease *leader = &actuator->leases[i];
		if (nm_lease_active(leader) &&
		    hwloc_bitmap_isequal(leader->terms.target, terms->target))
			return true;
	}
	return false;
}

bool nm_lease_follow_exec(struct nm_actuator *actuator, size_t index)
{
	const struct nm_ledger_entry terms = actuator->leases[index].terms;
	uint64_t start_ticks;
	if (nm_descent_follow_exec(actuator->descent, &terms, is_leader_leased(actuator, &terms),
				   &start_ticks) <= 0)
		return false;
	/* The leader's lease is from before the exec, and its thread has ended. */
	struct nm_lease *leader = nm_lease_active_of(actuator, terms.pid, start_ticks);
	if (leader)
		nm_lease_end(actuator, leader);
	(void)restore_inherited(actuator, &terms, terms.pid, terms.pid, start_ticks);
	return true;
}

/* ---- exit ---- */

static void on_thread_exit(struct nm_actuator *actuator, const struct nm_task_event *event)
{
	struct nm_lease *active = NULL;
	for (uint32_t i = nm_lease_first_of_tid(actuator, event->tid); i != NM_LEASE_NONE;
	     i = actuator->leases[i].next_of_tid) {
		actuator->leases[i].exited = true;
		if (!active && nm_lease_active(&actuator->leases[i]))
			active = &actuator->leases[i];
	}
	if (!active)
		return;
	/* The number of an exited leader may still be in use: by a zombie, or by another thread
	 * after an exec. After another error the next check of the lease decides. */
	uint64_t start_ticks = 0;
	int r = read_start(actuator->platform, active->terms.pid, active->terms.tid, &start_ticks);
	if (r < 0 ? r != -ESRCH : start_ticks == active->terms.start_ticks)
		return;
	nm_lease_end(actuator, active);
	nm_lease_report(actuator, active, NM_LEASE_GONE, 0);
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

/* ---- tasks that no record reported ---- */

static int restore_found(void *context, const struct nm_descendant *found)
{
	struct nm_actuator *actuator = context;
	if (nm_lease_is_settled(actuator, found->tid, found->start_ticks, found->terms))
		return 0;
	int r = restore_inherited(actuator, found->terms, found->pid, found->tid,
				  found->start_ticks);
	return r < 0 && r != -ESRCH ? r : 1;
}

/* `entries` has space for all leases. */
static void set_input(struct nm_actuator *actuator, const struct nm_ledger_entry **entries,
		      struct nm_descent_walk *walk)
{
	walk->entries = entries;
	walk->nr_entries = nm_lease_collect(actuator, false, entries);
	walk->born_since = actuator->reported_ticks;
	walk->each = restore_found;
	walk->context = actuator;
}

int nm_lease_search(struct nm_actuator *actuator)
{
	struct nm_descent_walk walk = {.progress = &actuator->progress};
	nm_autofree const struct nm_ledger_entry **entries =
		nm_must(calloc(actuator->count + 1, sizeof(*entries)));
	set_input(actuator, entries, &walk);
	int r = nm_descent_search(actuator->descent, &walk);
	return r < 0 ? r : (int)walk.refused;
}

void nm_lease_walk_stop(struct nm_actuator *actuator)
{
	actuator->walk.under_way = false;
	nm_descent_walk_clear(&actuator->walk.course);
}

/* Threads created within 1 s before the start of the walk may not have been visible to it. */
static void end_walk(struct nm_actuator *actuator)
{
	const struct nm_lease_walk *walk = &actuator->walk;
	uint64_t second = (uint64_t)sysconf(_SC_CLK_TCK);
	if (walk->failed || walk->unread)
		actuator->missed = true;
	else if (walk->began_ticks > actuator->reported_ticks + second)
		actuator->reported_ticks = walk->began_ticks - second;
	nm_lease_walk_stop(actuator);
}

void nm_lease_walk_on(struct nm_actuator *actuator)
{
	struct nm_lease_walk *walk = &actuator->walk;
	if (!walk->under_way && actuator->missed) {
		actuator->missed = false;
		*walk = (struct nm_lease_walk){
			.under_way = actuator->count > actuator->inherited,
			.began_ticks = nm_proc_ticks_now(actuator->platform),
		};
	}
	if (!walk->under_way)
		return;
	nm_autofree const struct nm_ledger_entry **entries =
		nm_must(calloc(actuator->count + 1, sizeof(*entries)));
	set_input(actuator, entries, &walk->course);
	walk->course.budget = actuator->turn_steps;
	walk->course.error = 0;
	int r = nm_descent_walk(actuator->descent, &walk->course);
	walk->unread = walk->unread || r < 0 || walk->course.error < 0;
	if (!walk->course.pids.ids)
		end_walk(actuator);
}

/* ---- lookup for the task table ---- */

bool nm_actuator_original(void *actuator, uint32_t tid, uint64_t start_ticks,
			  hwloc_const_bitmap_t current, hwloc_const_bitmap_t *ret_original,
			  bool *ret_unrestricted)
{
	const struct nm_lease *lease = nm_lease_active_of(actuator, tid, start_ticks);
	if (!lease || !hwloc_bitmap_isincluded(current, lease->terms.target))
		return false;
	*ret_original = lease->terms.original;
	*ret_unrestricted = lease->terms.unrestricted;
	return true;
}
