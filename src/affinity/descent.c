/* SPDX-License-Identifier: MIT */
/* The walk that finds tasks with inherited affinity, in as many turns as necessary, and the
 * detection of an exec by a moved thread. */
#include "descent.h"

#include <inttypes.h>
#include <stdio.h>

#define MOST_ROUNDS 4
#define MOST_SIBLINGS 64U

/* ---- construction ---- */

struct nm_descent *nm_descent_new(const struct nm_masks *masks)
{
	struct nm_descent *descent = nm_must(calloc(1, sizeof(*descent)));
	descent->masks = masks;
	descent->platform = masks->platform;
	descent->other = nm_must(hwloc_bitmap_alloc());
	descent->allowed = nm_must(hwloc_bitmap_alloc());
	descent->left = nm_must(hwloc_bitmap_alloc());
	descent->process_of = nm_tidmap_new();
	return descent;
}

/* Drops the data that was read of processes and cgroups, so that it is read again. */
static void forget_processes(struct nm_descent *descent)
{
	for (size_t i = 0; i < descent->nr_processes; i++) {
		nm_tidmap_remove(descent->process_of, descent->processes[i]->pid);
		free(descent->processes[i]);
	}
	descent->nr_processes = 0;
	nm_cgroups_forget(descent->masks->cgroups);
}

void nm_descent_free(struct nm_descent *descent)
{
	if (!descent)
		return;
	forget_processes(descent);
	free(descent->processes);
	hwloc_bitmap_free(descent->other);
	hwloc_bitmap_free(descent->allowed);
	hwloc_bitmap_free(descent->left);
	nm_tidmap_free(descent->process_of);
	free(descent);
}

/* ---- one thread ---- */

int nm_descent_if_passing(int error)
{
	bool passing = error == -ENOMEM || error == -EMFILE || error == -ENFILE || error == -EIO;
	return passing ? error : 0;
}

/* Returns whether `current` is a target or a part of one. The last affinity that is not is
 * remembered, because most threads have the same affinity as the thread before them. */
static bool may_be_inherited(struct nm_descent *descent, const struct nm_descent_walk *walk,
			     hwloc_const_bitmap_t current)
{
	if (hwloc_bitmap_isequal(current, descent->other))
		return false;
	for (size_t i = 0; i < walk->nr_entries; i++, descent->steps++)
		if (hwloc_bitmap_isincluded(current, walk->entries[i]->target))
			return true;
	(void)hwloc_bitmap_copy(descent->other, current);
	return false;
}

/* Returns whether `current`, the affinity of the thread behind `directory`, is this target or the
 * part of it that the cpuset allows. */
static bool is_target(struct nm_descent *descent, int directory, hwloc_const_bitmap_t current,
		      hwloc_const_bitmap_t target)
{
	descent->steps++;
	if (hwloc_bitmap_isequal(current, target))
		return true;
	if (!hwloc_bitmap_isincluded(current, target))
		return false;
	if (hwloc_bitmap_iszero(descent->allowed)) {
		struct nm_cgroups *cgroups = descent->masks->cgroups;
		uint64_t before = nm_cgroups_calls(cgroups);
		if (nm_mask_read_allowed(descent->masks, directory, descent->allowed) < 0)
			hwloc_bitmap_zero(descent->allowed);
		descent->steps += (nm_cgroups_calls(cgroups) - before + 1) * NM_STEPS_CALL;
	}
	return hwloc_bitmap_and(descent->left, descent->allowed, target) == 0 &&
	       hwloc_bitmap_isequal(current, descent->left);
}

/* Opens the /proc directory of the thread, which the caller closes. Returns -ESRCH for a kernel
 * thread, which inherits nothing. */
static int open_thread(struct nm_descent *descent, uint32_t pid, uint32_t tid,
		       struct nm_proc_stat *ret)
{
	struct nm_platform *platform = descent->platform;
	descent->steps += 3 * NM_STEPS_CALL;
	int directory = nm_proc_open_stat(platform, pid, tid, ret);
	if (directory < 0 || !(ret->flags & NM_PROC_KTHREAD))
		return directory;
	platform->ops->close(platform, directory);
	return -ESRCH;
}

/* Finds the narrowing that explains the affinity of the thread. Returns 1, 0 if there is none, or a
 * negative errno. */
static int explain_thread(struct nm_descent *descent, const struct nm_descent_walk *walk,
			  hwloc_const_bitmap_t current, int directory, struct nm_descendant *found)
{
	hwloc_bitmap_zero(descent->allowed);
	descent->error = 0;
	for (size_t i = 0; !found->terms && !descent->error && i < walk->nr_entries; i++) {
		const struct nm_narrowing *terms = walk->entries[i];
		if (is_target(descent, directory, current, terms->target) &&
		    nm_kinship_is_proved(descent, terms, found->pid, found->tid,
					 found->start_ticks))
			found->terms = terms;
	}
	return descent->error ? descent->error : found->terms != NULL;
}

/* Returns 1 if the thread inherited a target; 0 if not, or if it has exited or may not be read; or
 * a negative errno. */
static int look_at_thread(struct nm_descent *descent, const struct nm_descent_walk *walk,
			  struct nm_descendant *found)
{
	struct nm_platform *platform = descent->platform;
	nm_autobitmap current = nm_must(hwloc_bitmap_alloc());
	struct nm_proc_stat stat;
	descent->steps += NM_STEPS_CALL;
	int r = platform->ops->affinity_get(platform, (pid_t)found->tid, current);
	if (r < 0 || !may_be_inherited(descent, walk, current))
		return nm_descent_if_passing(r);
	int directory = open_thread(descent, found->pid, found->tid, &stat);
	if (directory < 0)
		return nm_descent_if_passing(directory);
	found->start_ticks = stat.start_ticks;
	r = explain_thread(descent, walk, current, directory, found);
	platform->ops->close(platform, directory);
	return r;
}

/* ---- every thread ---- */

void nm_progress_note(struct nm_progress *progress)
{
	const struct nm_move_event event = {.kind = NM_MOVE_PROGRESS};
	if (!progress || !progress->on_event)
		return;
	uint64_t now_ns = progress->platform->ops->now_ns(progress->platform);
	if (progress->reported_ns && now_ns - progress->reported_ns < NM_NSEC_PER_SEC)
		return;
	if (progress->reported_ns)
		progress->on_event(progress->context, &event);
	progress->reported_ns = now_ns;
}

void nm_progress_report(const struct nm_progress *progress, const struct nm_narrowing *terms,
			const struct nm_descendant *thread, enum nm_move_event_kind kind, int error)
{
	const struct nm_move_event event = {
		.kind = kind,
		.tid = thread->tid,
		.pid = thread->pid,
		.start_ticks = thread->start_ticks,
		.decision = terms->decision,
		.error = error,
	};
	if (progress->on_event)
		progress->on_event(progress->context, &event);
}

static int add_id(void *context, const char *name)
{
	struct nm_ids *ids = context;
	uint32_t id;
	char end;
	if (sscanf(name, "%" SCNu32 "%c", &id, &end) != 1)
		return 0;
	NM_RESERVE(ids->ids, ids->capacity, ids->count);
	ids->ids[ids->count++] = id;
	return 0;
}

/* Lists the processes, or the threads of `pid` if it is not 0. */
static int list_ids(struct nm_descent *descent, uint32_t pid, struct nm_ids *ret)
{
	struct nm_platform *platform = descent->platform;
	char path[64] = "proc";
	if (pid)
		snprintf(path, sizeof(path), "proc/%" PRIu32 "/task", pid);
	ret->count = ret->next = 0;
	int r = platform->ops->list_directory(platform, NM_ROOT, path, add_id, ret);
	descent->steps += NM_STEPS_CALL + ret->count * NM_STEPS_CALL / 4;
	return r;
}

/* Returns 1 if the budget is used up, or 0 at the end of the walk. */
static int continue_walk(struct nm_descent *descent, struct nm_descent_walk *walk)
{
	const uint64_t began_steps = descent->steps;
	while (walk->tids.next < walk->tids.count || walk->pids.next < walk->pids.count) {
		int r;
		if (walk->budget && descent->steps - began_steps >= walk->budget)
			return 1;
		if (walk->tids.next == walk->tids.count) {
			walk->pid = walk->pids.ids[walk->pids.next++];
			nm_progress_note(walk->progress);
			/* A process that has exited meanwhile is not an error. */
			r = nm_descent_if_passing(list_ids(descent, walk->pid, &walk->tids));
			walk->error = r < 0 ? r : walk->error;
			continue;
		}
		struct nm_descendant found = {.pid = walk->pid,
					      .tid = walk->tids.ids[walk->tids.next++]};
		r = look_at_thread(descent, walk, &found);
		walk->error = r < 0 ? r : walk->error;
		if (r <= 0)
			continue;
		r = walk->each(walk->context, &found);
		walk->found += r != 0;
		walk->refused += r < 0;
	}
	return 0;
}

void nm_descent_walk_clear(struct nm_descent_walk *walk)
{
	free(walk->pids.ids);
	free(walk->tids.ids);
	walk->pids = walk->tids = (struct nm_ids){0};
}

int nm_descent_walk(struct nm_descent *descent, struct nm_descent_walk *walk)
{
	const uint64_t began_steps = descent->steps;
	int r = 0;
	forget_processes(descent);
	hwloc_bitmap_zero(descent->other);
	if (!walk->pids.ids)
		descent->costly.count = 0;
	if (walk->nr_entries > 0 && !walk->pids.ids)
		r = list_ids(descent, 0, &walk->pids);
	if (walk->nr_entries > 0 && r == 0)
		r = continue_walk(descent, walk);
	if (r <= 0)
		nm_descent_walk_clear(walk);
	walk->steps += descent->steps - began_steps;
	return r;
}

int nm_descent_search(struct nm_descent *descent, struct nm_descent_walk *walk)
{
	int r = 0;
	walk->found = 1;
	for (unsigned round = 0;
	     r == 0 && walk->found > 0 && walk->refused == 0 && round < MOST_ROUNDS; round++) {
		walk->found = 0;
		r = nm_descent_walk(descent, walk);
		if (r == 0)
			r = walk->error;
	}
	return r;
}

/* ---- exec ---- */

static int add_sibling(void *context, const char *name)
{
	const struct nm_ids *siblings = context;
	int r = add_id(context, name);
	return r == 0 && siblings->count > MOST_SIBLINGS ? -ECANCELED : r;
}

/* Returns the start time of the oldest thread other than the leader; UINT64_MAX if there is no such
 * thread, or 0 if it cannot be determined. The kernel lists threads in the order of their creation,
 * so that some of them are enough. */
static uint64_t oldest_sibling(struct nm_descent *descent, uint32_t pid)
{
	struct nm_platform *platform = descent->platform;
	struct nm_ids tids = {0};
	char path[64];
	snprintf(path, sizeof(path), "proc/%" PRIu32 "/task", pid);
	int r = platform->ops->list_directory(platform, NM_ROOT, path, add_sibling, &tids);
	uint64_t oldest_ticks = r < 0 && r != -ECANCELED ? 0 : UINT64_MAX;
	for (size_t i = 0; i < tids.count; i++) {
		struct nm_proc_stat stat;
		int directory =
			tids.ids[i] == pid ? -ESRCH : open_thread(descent, pid, tids.ids[i], &stat);
		if (directory < 0)
			continue;
		platform->ops->close(platform, directory);
		if (stat.start_ticks < oldest_ticks)
			oldest_ticks = stat.start_ticks;
	}
	free(tids.ids);
	return oldest_ticks;
}

/*
 * Returns whether the leader is the moved thread, after an exec. An exec by another thread keeps
 * the start time of the leader, but the leader is that thread from then on: it has used at least as
 * much CPU time, and no thread older than the move is left, because an exec ends all other threads.
 * A leader that its owner may have pinned while another thread exists is left alone. The address of
 * its stack would show an exec, but other users' stacks are hidden from the service (ptrace(2)).
 */
static bool took_over(struct nm_descent *descent, const struct nm_narrowing *terms,
		      const struct nm_proc_stat *leader)
{
	return leader->start_ticks <= terms->start_ticks && leader->ran_ticks >= terms->ran_ticks &&
	       oldest_sibling(descent, terms->pid) > terms->given_ticks;
}

int nm_descent_follow_exec(struct nm_descent *descent, const struct nm_narrowing *terms,
			   uint64_t *ret_start_ticks)
{
	struct nm_platform *platform = descent->platform;
	nm_autobitmap current = nm_must(hwloc_bitmap_alloc());
	struct nm_proc_stat leader;
	if (terms->tid == terms->pid)
		return 0;
	int r = platform->ops->affinity_get(platform, (pid_t)terms->pid, current);
	if (r < 0 || !hwloc_bitmap_isincluded(current, terms->target))
		return nm_descent_if_passing(r);
	int directory = open_thread(descent, terms->pid, terms->pid, &leader);
	if (directory < 0)
		return nm_descent_if_passing(directory);
	r = took_over(descent, terms, &leader) &&
	    nm_mask_judge(descent->masks, directory, terms, current) == NM_MASK_OURS;
	platform->ops->close(platform, directory);
	if (r > 0)
		*ret_start_ticks = leader.start_ticks;
	return r;
}
