/* SPDX-License-Identifier: MIT */
#include "descent.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "descent_internal.h"
#include "mask.h"

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
	if (!candidate->knows_allowed) {
		uint64_t before = nm_cgroups_calls(descent->masks.cgroups);
		if (nm_mask_read_allowed(&descent->masks, candidate->directory, descent->allowed) <
		    0)
			hwloc_bitmap_zero(descent->allowed);
		descent->steps +=
			(nm_cgroups_calls(descent->masks.cgroups) - before + 1) * NM_STEPS_CALL;
	}
	candidate->knows_allowed = true;
	return descent->allowed;
}

bool nm_descent_carries(struct nm_descent *descent, struct nm_candidate *candidate, uint32_t target)
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

static bool has_own_line(struct nm_descent *descent, const struct nm_candidate *candidate)
{
	for (uint32_t i = nm_tidmap_get(descent->line_of, candidate->tid); i != NM_TIDMAP_NONE;
	     i = descent->line_before[i], descent->steps++)
		if (descent->lines[i].start_ticks == candidate->stat.start_ticks)
			return true;
	return false;
}

static int explain(struct nm_descent *descent, uint64_t born_since, struct nm_candidate *candidate,
		   struct nm_descendant *ret)
{
	descent->steps += 3 * NM_STEPS_CALL;
	int r = nm_proc_read_stat(descent->platform, candidate->directory, &candidate->stat);
	if (r < 0 || candidate->stat.flags & NM_PROC_KTHREAD)
		return r;
	*ret = (struct nm_descendant){.pid = candidate->pid,
				      .tid = candidate->tid,
				      .start_ticks = candidate->stat.start_ticks};
	if (candidate->stat.start_ticks >= born_since && !has_own_line(descent, candidate))
		r = nm_descent_by_birth(descent, candidate, &ret->terms);
	if (r < 0 || ret->terms)
		return r < 0 ? r : 1;
	ret->terms = nm_descent_by_exec(descent, candidate);
	ret->by_exec = ret->terms != NULL;
	return ret->by_exec;
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
	struct nm_candidate candidate = {.platform = platform,
					 .pid = pid,
					 .tid = tid,
					 .current = current,
					 .target = descent->seen_target,
					 .directory = nm_proc_open_thread(platform, pid, tid)};
	if (candidate.directory < 0)
		return if_passing(candidate.directory);
	struct nm_descendant found;
	r = explain(descent, born_since, &candidate, &found);
	platform->ops->close(platform, candidate.directory);
	if (r > 0)
		*ret = found;
	return r > 0 ? r : if_passing(r);
}

/* ---- every thread ---- */

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
