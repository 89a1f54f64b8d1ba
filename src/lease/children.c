/* SPDX-License-Identifier: MIT */
/* Tasks that inherited a narrowed affinity: by fork, by exec, and those that a walk finds. */
#include "moves.h"

#define LATE_TICKS 1 /* the time of a restoration is known up to this */

/* ---- following ---- */

static void count_follow(struct nm_moves *moves, uint32_t tid, int change)
{
	uint32_t count = nm_tidmap_get(moves->followed, tid);
	uint32_t now = (count == NM_TIDMAP_NONE ? 0 : count) + (uint32_t)change;
	if (now == 0)
		nm_tidmap_remove(moves->followed, tid);
	else
		(void)nm_tidmap_set(moves->followed, tid, now);
}

struct nm_follow *nm_follow_add(struct nm_moves *moves, struct nm_slot *slot, uint32_t pid,
				uint32_t tid, uint64_t start_ticks)
{
	if (slot->nr_follows == NM_MOVE_MOST_FOLLOWED) {
		if (!slot->lost) {
			moves->counts.given_up++;
			nm_moves_rest(moves, slot->terms.domain);
			nm_moves_report(moves, &slot->terms, pid, tid, start_ticks,
					NM_LEASE_FAILED, -E2BIG);
		}
		slot->lost = true;
		return NULL;
	}
	NM_RESERVE(slot->follows, slot->capacity, slot->nr_follows);
	struct nm_follow *follow = &slot->follows[slot->nr_follows++];
	*follow = (struct nm_follow){.tid = tid, .pid = pid, .start_ticks = start_ticks};
	count_follow(moves, tid, 1);
	return follow;
}

void nm_follow_end(struct nm_moves *moves, struct nm_follow *follow)
{
	if (follow->done)
		return;
	follow->done = true;
	count_follow(moves, follow->tid, -1);
}

static struct nm_follow *find_follow(const struct nm_slot *slot, uint32_t tid)
{
	for (size_t i = 0; i < slot->nr_follows; i++)
		if (slot->follows[i].tid == tid && !slot->follows[i].done)
			return &slot->follows[i];
	return NULL;
}

/* Restores a task that may have inherited the affinity, and follows it, also if it has exited or has
 * another affinity by now, because it may have created children before that. Returns as nm_mask_restore_inherited(). */
static int restore_task(struct nm_moves *moves, struct nm_slot *slot, uint32_t pid, uint32_t tid,
			uint64_t start_ticks)
{
	int r = start_ticks ? nm_mask_restore_inherited(&moves->masks, &slot->terms, pid, tid,
							start_ticks)
			    : -ESRCH;
	struct nm_follow *follow = nm_follow_add(moves, slot, pid, tid, start_ticks);
	if (follow) {
		follow->end_ticks = r >= 0 ? nm_moves_ticks(moves) : 0;
		follow->refused = r < 0 && r != -ESRCH;
	}
	moves->counts.inherited += r > 0;
	if (r != 0 && r != -ESRCH)
		nm_moves_report(moves, &slot->terms, pid, tid, start_ticks,
				r < 0 ? NM_LEASE_FAILED : NM_LEASE_INHERITED, r < 0 ? r : 0);
	return r;
}

void nm_children_retry(struct nm_moves *moves, struct nm_slot *slot)
{
	for (size_t i = 0; i < slot->nr_follows; i++) {
		struct nm_follow *follow = &slot->follows[i];
		if (!follow->refused)
			continue;
		int r = nm_mask_restore_inherited(&moves->masks, &slot->terms, follow->pid,
						  follow->tid, follow->start_ticks);
		follow->refused = r < 0 && r != -ESRCH;
		if (!follow->refused)
			follow->end_ticks = nm_moves_ticks(moves);
	}
}

/* ---- records ---- */

/* Returns the start time, or 0 if the task has exited, or if it cannot be read at the moment; in the
 * latter case a walk finds it. */
static uint64_t start_of(struct nm_moves *moves, struct nm_slot *slot, uint32_t pid, uint32_t tid)
{
	struct nm_proc_stat stat;
	int r = nm_proc_stat_of(moves->platform, pid, tid, &stat);
	if (r < 0 && r != -ESRCH)
		slot->lost = true;
	return r == 0 ? stat.start_ticks : 0;
}

static void on_fork(struct nm_moves *moves, struct nm_slot *slot,
		    const struct nm_task_event *event)
{
	struct nm_follow *parent = find_follow(slot, event->parent_tid);
	if (!parent)
		return;
	uint64_t start_ticks = event->reused ? 0 : start_of(moves, slot, event->pid, event->tid);
	if (parent->end_ticks && start_ticks > parent->end_ticks + LATE_TICKS)
		nm_follow_end(moves, parent); /* the first one after the window */
	(void)restore_task(moves, slot, event->pid, event->tid, start_ticks);
}

static bool is_alive(struct nm_moves *moves, struct nm_slot *slot, const struct nm_follow *follow)
{
	return follow->start_ticks &&
	       start_of(moves, slot, follow->pid, follow->tid) == follow->start_ticks;
}

/* The number of an exited leader may still be in use: by a zombie, or by another thread after an
 * exec. */
static void on_end(struct nm_moves *moves, struct nm_slot *slot, const struct nm_task_event *event)
{
	struct nm_follow *follow = find_follow(slot, event->tid);
	if (!follow)
		return;
	if (!is_alive(moves, slot, follow))
		nm_follow_end(moves, follow);
}

/* All other threads have ended, and a followed one may now have the number of the leader. A thread
 * that is there was created after the exec. */
static void on_exec(struct nm_moves *moves, struct nm_slot *slot,
		    const struct nm_task_event *event)
{
	bool followed = false;
	for (size_t i = 0; i < slot->nr_follows; i++) {
		struct nm_follow *follow = &slot->follows[i];
		if (follow->pid != event->pid || follow->tid == event->pid || follow->done ||
		    is_alive(moves, slot, follow))
			continue;
		followed = true;
		nm_follow_end(moves, follow);
	}
	if (followed)
		(void)restore_task(moves, slot, event->pid, event->pid,
				   start_of(moves, slot, event->pid, event->pid));
}

static bool is_followed(const struct nm_moves *moves, uint32_t tid)
{
	return nm_tidmap_get(moves->followed, tid) != NM_TIDMAP_NONE;
}

void nm_moves_task_event(struct nm_moves *moves, const struct nm_task_event *event)
{
	bool forks = event->kind == NM_TASK_FORK;
	if (forks)
		nm_moves_rest_thread(moves, event->parent_tid, NM_MOVE_FORKED_TURNS);
	bool concerns = event->kind == NM_TASK_EXEC ||
			is_followed(moves, forks ? event->parent_tid : event->tid);
	for (size_t i = 0; concerns && moves->used > 0 && i < NM_MOVE_SLOTS; i++) {
		struct nm_slot *slot = &moves->slots[i];
		if (!slot->terms.tid)
			continue;
		if (forks)
			on_fork(moves, slot, event);
		else if (event->kind == NM_TASK_EXEC)
			on_exec(moves, slot, event);
		else if (event->kind == NM_TASK_EXIT)
			on_end(moves, slot, event);
	}
}

int nm_children_follow_exec(struct nm_moves *moves, struct nm_slot *slot)
{
	const struct nm_ledger_entry *terms = &slot->terms;
	uint64_t start_ticks = 0;
	if (terms->tid == terms->pid)
		return -ESRCH;
	start_ticks = start_of(moves, slot, terms->pid, terms->pid);
	return start_ticks ? restore_task(moves, slot, terms->pid, terms->pid, start_ticks)
			   : -ESRCH;
}

/* ---- tasks that no record reported ---- */

static bool is_thread_of_slot(const struct nm_moves *moves, const struct nm_descendant *found)
{
	for (size_t i = 0; i < NM_MOVE_SLOTS; i++)
		if (moves->slots[i].terms.tid == found->tid &&
		    moves->slots[i].terms.start_ticks == found->start_ticks)
			return true;
	return false;
}

static int restore_found(void *context, const struct nm_descendant *found)
{
	struct nm_moves *moves = context;
	if (is_thread_of_slot(moves, found))
		return 0;
	int r = nm_mask_restore_inherited(&moves->masks, found->terms, found->pid, found->tid,
					  found->start_ticks);
	if (r == 0)
		return 0;
	moves->counts.inherited += r > 0;
	if (r != -ESRCH)
		nm_moves_report(moves, found->terms, found->pid, found->tid, found->start_ticks,
				r < 0 ? NM_LEASE_FAILED : NM_LEASE_INHERITED, r < 0 ? r : 0);
	return r < 0 && r != -ESRCH ? r : 1;
}

/* Stores the terms of all slots, and returns how many of them need the walk. */
static size_t collect(const struct nm_moves *moves, const struct nm_ledger_entry **entries,
		      size_t *ret_lost)
{
	size_t count = 0;
	*ret_lost = 0;
	for (size_t i = 0; i < NM_MOVE_SLOTS; i++) {
		if (!moves->slots[i].terms.tid)
			continue;
		entries[count++] = &moves->slots[i].terms;
		*ret_lost += moves->slots[i].lost;
	}
	return count;
}

/* A complete walk that began long enough after the window has found everything. */
static void end_walk(struct nm_moves *moves)
{
	for (size_t i = 0; i < NM_MOVE_SLOTS; i++) {
		struct nm_slot *slot = &moves->slots[i];
		if (slot->lost && !slot->narrow && moves->walk.error == 0 &&
		    moves->walk_round >= slot->restored_round + NM_MOVE_KEPT_ROUNDS)
			slot->lost = false;
	}
	moves->walking = false;
	nm_descent_walk_clear(&moves->walk);
}

int nm_children_walk(struct nm_moves *moves, uint64_t budget)
{
	nm_autofree const struct nm_ledger_entry **entries =
		nm_must(calloc(NM_MOVE_SLOTS, sizeof(*entries)));
	size_t lost, count = collect(moves, entries, &lost);
	if (!moves->walking && lost == 0)
		return 0;
	if (!moves->walking) {
		moves->walk = (struct nm_descent_walk){.each = restore_found, .context = moves};
		moves->walk_round = moves->round;
		moves->walking = true;
	}
	moves->walk.entries = entries;
	moves->walk.nr_entries = count;
	moves->walk.budget = budget;
	int r = budget ? nm_descent_walk(moves->descent, &moves->walk)
		       : nm_descent_search(moves->descent, &moves->walk);
	unsigned refused = (unsigned)moves->walk.refused;
	if (!moves->walk.pids.ids)
		end_walk(moves);
	return r < 0 ? r : (int)refused;
}
