/* SPDX-License-Identifier: MIT */
/* Tasks that inherited a narrowed affinity: by fork, by exec, and those that a walk finds. */
#include <unistd.h>

#include "moves.h"

#define LATE_TICKS 1 /* the time of a restoration is known up to this */
/* The affinity is copied when the creation of a task begins; it starts when the memory of its
 * parent has been copied, which takes 0.1 s per GiB, and ten times as long if the CPUs are busy. */
#define CREATION_TICKS 5
#define CREATION_BYTES_PER_TICK (10U << 20)

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
			nm_moves_report(moves, &slot->terms, pid, tid, start_ticks, NM_MOVE_FAILED,
					-E2BIG);
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

/* Restores a task that may have inherited the affinity, and follows it, also if it has exited or
 * has another affinity by now, because it may have created children before that. Returns as
 * nm_mask_restore_inherited(). */
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
				r < 0 ? NM_MOVE_FAILED : NM_MOVE_INHERITED, r < 0 ? r : 0);
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

/* Reads the start time, which is 0 if the task has exited, or if it cannot be read at the moment;
 * in the latter case a walk finds it. */
static struct nm_proc_stat look_at(struct nm_moves *moves, struct nm_slot *slot, uint32_t pid,
				   uint32_t tid)
{
	struct nm_proc_stat stat = {0};
	int r = nm_proc_stat_of(moves->platform, pid, tid, &stat);
	if (r < 0 && r != -ESRCH)
		slot->lost = true;
	return r == 0 ? stat : (struct nm_proc_stat){0};
}

static uint64_t start_of(struct nm_moves *moves, struct nm_slot *slot, uint32_t pid, uint32_t tid)
{
	return look_at(moves, slot, pid, tid).start_ticks;
}

/* The longest creation of a task by a process with this memory, or of such a task. */
static uint64_t creation_ticks(const struct nm_proc_stat *stat)
{
	const uint64_t bytes = stat->rss_pages * (uint64_t)sysconf(_SC_PAGESIZE);
	return CREATION_TICKS + bytes / CREATION_BYTES_PER_TICK;
}

/* Returns whether the creation of the task may have begun before its parent was restored. */
static bool may_have_inherited(const struct nm_follow *parent, const struct nm_proc_stat *child)
{
	return !parent->end_ticks ||
	       child->start_ticks <= parent->end_ticks + creation_ticks(child);
}

bool nm_children_may_appear(struct nm_moves *moves, struct nm_slot *slot)
{
	const struct nm_proc_stat stat = look_at(moves, slot, slot->terms.pid, slot->terms.pid);
	return stat.start_ticks &&
	       nm_moves_ticks(moves) <= slot->restored_ticks + creation_ticks(&stat);
}

static void on_fork(struct nm_moves *moves, struct nm_slot *slot, const struct nm_task_event *event)
{
	struct nm_follow *parent = find_follow(slot, event->parent_tid);
	if (!parent)
		return;
	uint64_t now_ticks = slot->lost ? start_of(moves, slot, parent->pid, parent->tid) : 0;
	if (now_ticks && now_ticks != parent->start_ticks) { /* the record of its end was lost */
		nm_follow_end(moves, parent);
		return;
	}
	struct nm_proc_stat child = {0};
	if (!event->reused)
		child = look_at(moves, slot, event->pid, event->tid);
	bool inherits = may_have_inherited(parent, &child);
	if (parent->end_ticks && child.start_ticks > parent->end_ticks + LATE_TICKS)
		nm_follow_end(moves, parent); /* the first one after the window */
	if (inherits)
		(void)restore_task(moves, slot, event->pid, event->tid, child.start_ticks);
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
static void on_exec(struct nm_moves *moves, struct nm_slot *slot, const struct nm_task_event *event)
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
	if (!followed)
		return;
	struct nm_follow *leader = find_follow(slot, event->pid);
	if (leader) /* the number is that of another task now */
		nm_follow_end(moves, leader);
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
	const struct nm_narrowing *terms = &slot->terms;
	uint64_t start_ticks;
	int r = nm_descent_follow_exec(moves->descent, terms, &start_ticks);
	if (r <= 0)
		return r < 0 ? r : -ESRCH;
	return restore_task(moves, slot, terms->pid, terms->pid, start_ticks);
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
				r < 0 ? NM_MOVE_FAILED : NM_MOVE_INHERITED, r < 0 ? r : 0);
	return r < 0 && r != -ESRCH ? r : 1;
}

/* Stores the terms of the slots that need a walk. Returns their number. */
static size_t collect(const struct nm_moves *moves, const struct nm_narrowing **entries)
{
	size_t count = 0;
	for (size_t i = 0; i < NM_MOVE_SLOTS; i++)
		if (moves->slots[i].terms.tid && moves->slots[i].lost)
			entries[count++] = &moves->slots[i].terms;
	return count;
}

/* A complete walk that began long enough after the window has found everything. */
static void end_walk(struct nm_moves *moves)
{
	for (size_t i = 0; i < NM_MOVE_SLOTS; i++) {
		struct nm_slot *slot = &moves->slots[i];
		if (!slot->lost || moves->walk.error < 0 || moves->walk.refused > 0)
			continue;
		if (slot->terms.known_ticks < moves->walk_ticks)
			slot->terms.known_ticks = moves->walk_ticks;
		if (!slot->narrow &&
		    moves->walk_round >= slot->restored_round + NM_MOVE_KEPT_ROUNDS)
			slot->lost = false;
	}
	moves->walking = false;
	nm_descent_walk_clear(&moves->walk);
}

int nm_children_walk(struct nm_moves *moves, uint64_t budget)
{
	nm_autofree const struct nm_narrowing **entries =
		nm_must(calloc(NM_MOVE_SLOTS, sizeof(*entries)));
	size_t count = collect(moves, entries);
	if (!moves->walking && count == 0)
		return 0;
	if (!moves->walking) {
		moves->walk = (struct nm_descent_walk){.each = restore_found, .context = moves};
		moves->walk_round = moves->round;
		moves->walk_ticks = nm_moves_known(moves);
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
