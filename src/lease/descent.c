/* SPDX-License-Identifier: MIT */
#include "descent.h"

#include <inttypes.h>
#include <stdio.h>

#include "descent_internal.h"

/* ---- life ---- */

int nm_descent_new(const struct nm_masks *masks, struct nm_descent **ret)
{
	nm_auto(nm_descent_freep) struct nm_descent *descent = calloc(1, sizeof(*descent));
	if (!descent)
		return -ENOMEM;
	descent->masks = masks;
	descent->platform = masks->platform;
	descent->seen = hwloc_bitmap_alloc();
	descent->allowed = hwloc_bitmap_alloc();
	descent->left = hwloc_bitmap_alloc();
	if (!descent->seen || !descent->allowed || !descent->left)
		return -ENOMEM;
	int r = nm_tidmap_new(&descent->process_of);
	if (r < 0)
		return r;
	*ret = NM_TAKE(descent);
	return 0;
}

static void forget_lines(struct nm_descent *descent)
{
	free(descent->lines);
	free(descent->kin);
	free(descent->targets);
	descent->lines = NULL;
	descent->kin = NULL;
	descent->targets = NULL;
	descent->nr_lines = descent->nr_candidate_classes = descent->nr_targets = 0;
	descent->has_seen = false;
	descent->offers.pid = 0;
}

int nm_descent_set_lines(struct nm_descent *descent, const struct nm_ledger_entry *const *entries,
			 size_t count)
{
	forget_lines(descent);
	descent->lines = calloc(count + 1, sizeof(*descent->lines));
	descent->kin = calloc(count * NM_KIN_KINDS + 1, sizeof(*descent->kin));
	descent->targets = calloc(count + 1, sizeof(*descent->targets));
	if (!descent->lines || !descent->kin || !descent->targets) {
		forget_lines(descent);
		return -ENOMEM;
	}
	for (size_t i = 0; i < count; i++)
		descent->lines[i] = *entries[i];
	descent->nr_lines = count;
	nm_kinship_index(descent);
	return 0;
}

void nm_descent_forget_processes(struct nm_descent *descent)
{
	for (size_t i = 0; i < descent->nr_processes; i++)
		nm_tidmap_remove(descent->process_of, descent->processes[i].pid);
	descent->nr_processes = 0;
	descent->offers.pid = 0;
	nm_cgroups_forget(descent->masks->cgroups);
}

void nm_descent_free(struct nm_descent *descent)
{
	if (!descent)
		return;
	forget_lines(descent);
	free(descent->processes);
	free(descent->offers.terms);
	hwloc_bitmap_free(descent->seen);
	hwloc_bitmap_free(descent->allowed);
	hwloc_bitmap_free(descent->left);
	nm_tidmap_free(descent->process_of);
	free(descent);
}

uint64_t nm_descent_steps(const struct nm_descent *descent)
{
	return descent->steps;
}

/* ---- affinities ---- */

static uint32_t find_target(struct nm_descent *descent, hwloc_const_bitmap_t current)
{
	size_t low = 0;
	size_t high = descent->nr_targets;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = hwloc_bitmap_compare(descent->targets[middle], current);
		descent->steps++;
		if (order == 0)
			return (uint32_t)middle;
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return NM_NO_TARGET;
}

/* Is it a target, or part of one, as a smaller cpuset leaves it? Most threads carry what the one
 * before them did. */
static bool may_be_ours(struct nm_descent *descent, hwloc_const_bitmap_t current)
{
	if (descent->has_seen && hwloc_bitmap_isequal(descent->seen, current))
		return descent->seen_ours;
	descent->seen_target = find_target(descent, current);
	bool ours = descent->seen_target != NM_NO_TARGET;
	for (size_t i = 0; !ours && i < descent->nr_targets; i++, descent->steps++)
		ours = hwloc_bitmap_isincluded(current, descent->targets[i]);
	descent->has_seen = hwloc_bitmap_copy(descent->seen, current) == 0;
	descent->seen_ours = ours;
	return ours;
}

/* What its cpuset allows, read once; nothing where that cannot be known. */
static hwloc_const_bitmap_t allowed_to(struct nm_descent *descent, struct nm_candidate *candidate)
{
	if (candidate->knows_allowed)
		return descent->allowed;
	uint64_t before = nm_cgroups_calls(descent->masks->cgroups);
	if (nm_mask_read_allowed(descent->masks, candidate->directory, descent->allowed) < 0)
		hwloc_bitmap_zero(descent->allowed);
	descent->steps +=
		(nm_cgroups_calls(descent->masks->cgroups) - before + 1) * NM_STEPS_CALL;
	candidate->knows_allowed = true;
	return descent->allowed;
}

/* Is its affinity this target, or what a cpuset leaves of it? */
static bool carries(struct nm_descent *descent, struct nm_candidate *candidate, uint32_t target)
{
	hwloc_const_bitmap_t mask = descent->targets[target];
	descent->steps++;
	if (target == candidate->target)
		return true;
	return hwloc_bitmap_isincluded(candidate->current, mask) &&
	       hwloc_bitmap_and(descent->left, allowed_to(descent, candidate), mask) == 0 &&
	       hwloc_bitmap_isequal(candidate->current, descent->left);
}

/* ---- one look ---- */

/* For want of something that may be had again; what is forbidden stays so, and would be asked for
 * ever. */
static int if_passing(int error)
{
	return error == -ENOMEM || error == -EMFILE || error == -ENFILE || error == -EIO ? error
											 : 0;
}

/* What it carries is a target, or what its cpuset has left of one. */
static int explain(struct nm_descent *descent, struct nm_candidate *candidate,
		   const struct nm_ledger_entry **ret)
{
	int r = 0;
	if (candidate->target != NM_NO_TARGET)
		r = nm_kinship_by_birth(descent, candidate, candidate->target, ret);
	for (uint32_t i = 0; r == 0 && !*ret && i < descent->nr_targets; i++)
		if (i != candidate->target && carries(descent, candidate, i))
			r = nm_kinship_by_birth(descent, candidate, i, ret);
	return r < 0 ? r : *ret != NULL;
}

/* Its caller closes the directory, unless it fails. Threads of the kernel are not ours. */
static int open_candidate(struct nm_descent *descent, struct nm_candidate *candidate)
{
	struct nm_platform *platform = descent->platform;
	descent->steps += 3 * NM_STEPS_CALL;
	candidate->directory = nm_proc_open_thread(platform, candidate->pid, candidate->tid);
	if (candidate->directory < 0)
		return candidate->directory;
	int r = nm_proc_read_stat(platform, candidate->directory, &candidate->stat);
	if (r == 0 && candidate->stat.flags & NM_PROC_KTHREAD)
		r = -ESRCH;
	if (r < 0)
		platform->ops->close(platform, candidate->directory);
	return r;
}

/* As nm_descent_look() does, of one whose affinity may be ours. */
static int look_closer(struct nm_descent *descent, uint64_t born_since,
		       struct nm_candidate *candidate, struct nm_descendant *ret)
{
	int r = open_candidate(descent, candidate);
	if (r < 0)
		return r;
	uint64_t start_ticks = candidate->stat.start_ticks;
	struct nm_descendant found = {
		.pid = candidate->pid, .tid = candidate->tid, .start_ticks = start_ticks};
	bool may_be_born = start_ticks >= born_since &&
			   !nm_kinship_has_line(descent, candidate->tid, start_ticks);
	r = may_be_born ? explain(descent, candidate, &found.terms) : 0;
	descent->platform->ops->close(descent->platform, candidate->directory);
	if (r > 0)
		*ret = found;
	return r;
}

int nm_descent_look(struct nm_descent *descent, uint64_t born_since, uint32_t pid, uint32_t tid,
		    struct nm_descendant *ret)
{
	struct nm_platform *platform = descent->platform;
	nm_autobitmap current = hwloc_bitmap_alloc();
	descent->steps += NM_STEPS_CALL;
	int r = current ? platform->ops->affinity_get(platform, (pid_t)tid, current) : -ENOMEM;
	if (r < 0 || !may_be_ours(descent, current))
		return if_passing(r);
	struct nm_candidate candidate = {
		.pid = pid, .tid = tid, .current = current, .target = descent->seen_target};
	r = look_closer(descent, born_since, &candidate, ret);
	return r > 0 ? r : if_passing(r);
}

int nm_descent_follow_exec(struct nm_descent *descent, const struct nm_ledger_entry *terms,
			   uint64_t *ret_start_ticks)
{
	struct nm_platform *platform = descent->platform;
	nm_autobitmap current = hwloc_bitmap_alloc();
	struct nm_candidate leader = {.pid = terms->pid, .tid = terms->pid, .current = current};
	if (terms->tid == terms->pid)
		return 0;
	int r = current ? platform->ops->affinity_get(platform, (pid_t)leader.tid, current)
			: -ENOMEM;
	if (r < 0 || !hwloc_bitmap_isincluded(current, terms->target))
		return if_passing(r);
	r = open_candidate(descent, &leader);
	if (r < 0)
		return if_passing(r);
	bool took_over = nm_kinship_took_over(descent, terms, &leader) &&
			 nm_mask_judge(descent->masks, leader.directory, terms, current) ==
				 NM_MASK_OURS;
	platform->ops->close(platform, leader.directory);
	if (took_over)
		*ret_start_ticks = leader.stat.start_ticks;
	return took_over;
}

/* ---- every thread ---- */

void nm_progress_note(struct nm_progress *progress)
{
	const struct nm_lease_event event = {.kind = NM_LEASE_PROGRESS};
	if (!progress || !progress->on_event)
		return;
	uint64_t now_ns = progress->platform->ops->now_ns(progress->platform);
	if (progress->reported_ns && now_ns - progress->reported_ns < NM_NSEC_PER_SEC)
		return;
	if (progress->reported_ns)
		progress->on_event(progress->context, &event);
	progress->reported_ns = now_ns;
}

static bool parse_id(const char *name, uint32_t *ret)
{
	char end;
	return sscanf(name, "%" SCNu32 "%c", ret, &end) == 1;
}

static int add_task(void *context, const char *name)
{
	struct nm_descent_walk *walk = context;
	struct nm_descent_tasks *tasks = &walk->tasks;
	uint32_t tid;
	if (!parse_id(name, &tid))
		return 0;
	walk->descent->steps += NM_STEPS_CALL / 4;
	int r = nm_reserve((void **)&tasks->tids, &tasks->capacity, tasks->count,
			   sizeof(*tasks->tids));
	if (r == 0)
		tasks->tids[tasks->count++] = tid;
	return r;
}

/* They are looked at in as many turns as it takes: the list is not read again for each of them. */
static void list_tasks(struct nm_descent_walk *walk, uint32_t pid)
{
	struct nm_platform *platform = walk->descent->platform;
	char path[64];
	walk->tasks.pid = pid;
	walk->tasks.count = walk->tasks.next = 0;
	snprintf(path, sizeof(path), "proc/%" PRIu32 "/task", pid);
	/* A process that ended while we walk is no error. */
	int r = if_passing(platform->ops->list_directory(platform, NM_ROOT, path, add_task, walk));
	if (r < 0)
		walk->error = r;
}

static void look_at_task(struct nm_descent_walk *walk, uint32_t tid)
{
	struct nm_descendant found;
	int r = nm_descent_look(walk->descent, walk->born_since, walk->tasks.pid, tid, &found);
	if (r < 0)
		walk->error = r;
	else if (r > 0)
		walk->found += walk->each(walk->context, &found);
}

static bool is_spent(const struct nm_descent_walk *walk)
{
	return walk->budget && walk->descent->steps - walk->began_steps >= walk->budget;
}

/* Those of the process at hand that are left. -ECANCELED: not all in this turn. */
static int look_at_tasks(struct nm_descent_walk *walk)
{
	struct nm_descent_tasks *tasks = &walk->tasks;
	while (tasks->next < tasks->count) {
		if (is_spent(walk))
			return -ECANCELED;
		look_at_task(walk, tasks->tids[tasks->next++]);
	}
	return 0;
}

static int visit_process(void *context, const char *name)
{
	struct nm_descent_walk *walk = context;
	uint32_t pid;
	if (!parse_id(name, &pid) || pid < walk->next_pid)
		return 0;
	walk->next_pid = pid;
	if (is_spent(walk))
		return -ECANCELED;
	walk->next_pid = pid + 1;
	nm_progress_note(walk->progress);
	list_tasks(walk, pid);
	return look_at_tasks(walk);
}

void nm_descent_walk_clear(struct nm_descent_walk *walk)
{
	free(walk->tasks.tids);
	walk->tasks = (struct nm_descent_tasks){0};
}

int nm_descent_walk(struct nm_platform *platform, struct nm_descent_walk *walk)
{
	int r = 0;
	nm_descent_forget_processes(walk->descent);
	walk->began_steps = walk->descent->steps;
	if (walk->descent->nr_lines > 0) {
		r = look_at_tasks(walk);
		if (r == 0)
			r = platform->ops->list_directory(platform, NM_ROOT, "proc", visit_process,
							  walk);
	}
	if (r == -ECANCELED)
		return 0;
	nm_descent_walk_clear(walk);
	walk->next_pid = 0;
	return r;
}
