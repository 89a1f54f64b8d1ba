/* SPDX-License-Identifier: MIT */
#include "descent.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "descent_internal.h"
#include "mask.h"

#define GRACE_S 2

static uint64_t grace_ticks(void)
{
	return GRACE_S * (uint64_t)sysconf(_SC_CLK_TCK);
}

/* Until when children may have inherited the target. */
static uint64_t last_birth(const struct nm_ledger_entry *terms)
{
	if (!terms->ended_ticks || terms->ended_ticks > UINT64_MAX - grace_ticks())
		return UINT64_MAX;
	return terms->ended_ticks + grace_ticks();
}

bool nm_descent_born_under(const struct nm_ledger_entry *terms, uint64_t start_ticks)
{
	return start_ticks >= terms->given_ticks && start_ticks <= last_birth(terms);
}

/* ---- the index ---- */

static int compare_ids(uint32_t left, uint32_t right)
{
	return (left > right) - (left < right);
}

/* Lines of one family in the order in which they were given. */
static int compare_lines(const void *a, const void *b)
{
	const struct nm_ledger_entry *left = a;
	const struct nm_ledger_entry *right = b;
	int order = compare_ids(left->pid, right->pid);
	if (order == 0)
		order = hwloc_bitmap_compare(left->target, right->target);
	if (order == 0)
		order = compare_ids(left->uid, right->uid);
	if (order == 0)
		order = compare_ids(left->session, right->session);
	if (order == 0)
		order = strcmp(left->cgroup, right->cgroup);
	if (order == 0)
		order = (left->given_ticks > right->given_ticks) -
			(left->given_ticks < right->given_ticks);
	return order;
}

static bool is_of_family(const struct nm_ledger_entry *a, const struct nm_ledger_entry *b)
{
	return a->pid == b->pid && a->uid == b->uid && a->session == b->session &&
	       strcmp(a->cgroup, b->cgroup) == 0 && hwloc_bitmap_isequal(a->target, b->target);
}

/* For each line: of it and those before it, the one whose children may have come last. */
static void fill_latest(struct nm_descent *descent, size_t first, size_t count)
{
	size_t latest = first;
	for (size_t i = first; i < first + count; i++) {
		if (last_birth(&descent->lines[i]) >= last_birth(&descent->lines[latest]))
			latest = i;
		descent->latest[i] = (uint32_t)latest;
	}
}

static int add_family(struct nm_descent *descent, size_t first, size_t count)
{
	struct nm_family *family = &descent->families[descent->nr_families];
	*family = (struct nm_family){
		.first = (uint32_t)first,
		.count = (uint32_t)count,
		.next_of_pid = nm_tidmap_get(descent->family_of, descent->lines[first].pid)};
	fill_latest(descent, first, count);
	return nm_tidmap_set(descent->family_of, descent->lines[first].pid,
			     (uint32_t)descent->nr_families++);
}

static int compare_targets(const void *a, const void *b)
{
	return hwloc_bitmap_compare(*(hwloc_const_bitmap_t const *)a,
				    *(hwloc_const_bitmap_t const *)b);
}

/* The targets, each once, in order. */
static void list_targets(struct nm_descent *descent)
{
	for (size_t i = 0; i < descent->nr_families; i++)
		descent->targets[i] = descent->lines[descent->families[i].first].target;
	qsort(descent->targets, descent->nr_families, sizeof(*descent->targets), compare_targets);
	for (size_t i = 0; i < descent->nr_families; i++)
		if (descent->nr_targets == 0 ||
		    !hwloc_bitmap_isequal(descent->targets[i],
					  descent->targets[descent->nr_targets - 1]))
			descent->targets[descent->nr_targets++] = descent->targets[i];
}

static int index_lines(struct nm_descent *descent)
{
	int r = 0;
	qsort(descent->lines, descent->nr_lines, sizeof(*descent->lines), compare_lines);
	for (size_t first = 0, next; r == 0 && first < descent->nr_lines; first = next) {
		next = first + 1;
		while (next < descent->nr_lines &&
		       is_of_family(&descent->lines[first], &descent->lines[next]))
			next++;
		r = add_family(descent, first, next - first);
	}
	for (size_t i = 0; r == 0 && i < descent->nr_lines; i++) {
		uint32_t tid = descent->lines[i].tid;
		descent->line_before[i] = nm_tidmap_get(descent->line_of, tid);
		r = nm_tidmap_set(descent->line_of, tid, (uint32_t)i);
	}
	if (r == 0)
		list_targets(descent);
	return r;
}

int nm_descent_new(struct nm_platform *platform, const struct nm_ledger_entry *const *entries,
		   size_t count, struct nm_descent **ret)
{
	nm_auto(nm_descent_freep) struct nm_descent *descent = calloc(1, sizeof(*descent));
	if (!descent)
		return -ENOMEM;
	descent->platform = platform;
	descent->nr_lines = count;
	descent->lines = calloc(count + 1, sizeof(*descent->lines));
	descent->latest = calloc(count + 1, sizeof(*descent->latest));
	descent->line_before = calloc(count + 1, sizeof(*descent->line_before));
	descent->families = calloc(count + 1, sizeof(*descent->families));
	descent->targets = calloc(count + 1, sizeof(*descent->targets));
	descent->seen = hwloc_bitmap_alloc();
	if (!descent->lines || !descent->latest || !descent->line_before || !descent->families ||
	    !descent->targets || !descent->seen)
		return -ENOMEM;
	int r = nm_tidmap_new(&descent->family_of);
	if (r == 0)
		r = nm_tidmap_new(&descent->line_of);
	if (r == 0)
		r = nm_tidmap_new(&descent->process_of);
	if (r < 0)
		return r;
	for (size_t i = 0; i < count; i++)
		descent->lines[i] = *entries[i];
	r = index_lines(descent);
	if (r < 0)
		return r;
	*ret = NM_TAKE(descent);
	return 0;
}

void nm_descent_forget_processes(struct nm_descent *descent)
{
	for (size_t i = 0; i < descent->nr_processes; i++) {
		nm_tidmap_remove(descent->process_of, descent->processes[i].pid);
		free(descent->processes[i].cgroup);
	}
	descent->nr_processes = 0;
}

void nm_descent_free(struct nm_descent *descent)
{
	if (!descent)
		return;
	if (descent->process_of)
		nm_descent_forget_processes(descent);
	free(descent->processes);
	free(descent->lines);
	free(descent->latest);
	free(descent->line_before);
	free(descent->families);
	free(descent->targets);
	hwloc_bitmap_free(descent->seen);
	nm_tidmap_free(descent->family_of);
	nm_tidmap_free(descent->line_of);
	nm_tidmap_free(descent->process_of);
	free(descent);
}

/* The newest line that stands, or else the one that ended last, of those under which both starts
 * may have been. */
const struct nm_ledger_entry *nm_descent_pick(const struct nm_descent *descent,
					      const struct nm_family *family, uint64_t first_ticks,
					      uint64_t last_ticks)
{
	size_t low = family->first;
	size_t high = (size_t)family->first + family->count;
	while (low < high) { /* the first line given after first_ticks */
		size_t middle = low + (high - low) / 2;
		if (descent->lines[middle].given_ticks <= first_ticks)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == family->first)
		return NULL;
	const struct nm_ledger_entry *terms = &descent->lines[descent->latest[low - 1]];
	return last_birth(terms) >= last_ticks ? terms : NULL;
}

/* ---- affinities ---- */

static bool is_target(const struct nm_descent *descent, hwloc_const_bitmap_t current)
{
	size_t low = 0;
	size_t high = descent->nr_targets;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = hwloc_bitmap_compare(descent->targets[middle], current);
		if (order == 0)
			return true;
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return false;
}

/* Is it a target, or part of one, as a smaller cpuset leaves it? Most threads carry what the one
 * before them did. */
static bool may_be_ours(struct nm_descent *descent, hwloc_const_bitmap_t current)
{
	if (descent->has_seen && hwloc_bitmap_isequal(descent->seen, current))
		return descent->seen_ours;
	bool ours = is_target(descent, current);
	for (size_t i = 0; !ours && i < descent->nr_targets; i++)
		ours = hwloc_bitmap_isincluded(current, descent->targets[i]);
	descent->has_seen = hwloc_bitmap_copy(descent->seen, current) == 0;
	descent->seen_ours = ours;
	return ours;
}

bool nm_descent_carries(struct nm_candidate *candidate, const struct nm_ledger_entry *terms)
{
	if (hwloc_bitmap_isequal(candidate->current, terms->target))
		return true;
	return hwloc_bitmap_isincluded(candidate->current, terms->target) &&
	       nm_mask_judge(candidate->platform, candidate->directory, terms,
			     candidate->current) == NM_MASK_OURS;
}

/* ---- one look ---- */

/* For want of something that may be had again; what is forbidden stays so, and would be asked for
 * ever. */
static int if_passing(int error)
{
	return error == -ENOMEM || error == -EMFILE || error == -ENFILE || error == -EIO ? error
											 : 0;
}

static bool has_own_line(const struct nm_descent *descent, const struct nm_candidate *candidate)
{
	for (uint32_t i = nm_tidmap_get(descent->line_of, candidate->tid); i != NM_TIDMAP_NONE;
	     i = descent->line_before[i])
		if (descent->lines[i].start_ticks == candidate->stat.start_ticks)
			return true;
	return false;
}

static int explain(struct nm_descent *descent, uint64_t born_since, struct nm_candidate *candidate,
		   struct nm_descendant *ret)
{
	int r = nm_proc_read_stat(descent->platform, candidate->directory, &candidate->stat);
	if (r < 0 || candidate->stat.flags & NM_PROC_KTHREAD)
		return r;
	*ret = (struct nm_descendant){.pid = candidate->pid,
				      .tid = candidate->tid,
				      .start_ticks = candidate->stat.start_ticks};
	if (candidate->stat.start_ticks >= born_since && !has_own_line(descent, candidate))
		ret->terms = nm_descent_by_birth(descent, candidate);
	if (ret->terms)
		return 1;
	ret->terms = nm_descent_by_exec(descent, candidate);
	ret->by_exec = ret->terms != NULL;
	return ret->by_exec;
}

int nm_descent_look(struct nm_descent *descent, uint64_t born_since, uint32_t pid, uint32_t tid,
		    struct nm_descendant *ret)
{
	struct nm_platform *platform = descent->platform;
	nm_autobitmap current = hwloc_bitmap_alloc();
	int r = current ? platform->ops->affinity_get(platform, (pid_t)tid, current) : -ENOMEM;
	if (r < 0 || !may_be_ours(descent, current))
		return if_passing(r);
	struct nm_candidate candidate = {.platform = platform,
					 .pid = pid,
					 .tid = tid,
					 .current = current,
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

struct visit {
	struct nm_platform *platform;
	struct nm_descent_walk *walk;
	uint32_t pid;
	size_t looks;
};

static bool parse_id(const char *name, uint32_t *ret)
{
	char end;
	return sscanf(name, "%" SCNu32 "%c", ret, &end) == 1;
}

static int visit_thread(void *context, const char *name)
{
	struct visit *visit = context;
	struct nm_descent_walk *walk = visit->walk;
	struct nm_descendant found;
	uint32_t tid;
	if (!parse_id(name, &tid))
		return 0;
	visit->looks++;
	int r = nm_descent_look(walk->descent, walk->born_since, visit->pid, tid, &found);
	if (r < 0)
		walk->error = r;
	else if (r > 0)
		walk->found += walk->each(walk->context, &found);
	return 0;
}

static int visit_process(void *context, const char *name)
{
	struct visit *visit = context;
	struct nm_descent_walk *walk = visit->walk;
	uint32_t pid;
	char path[64];
	if (!parse_id(name, &pid) || pid < walk->next_pid)
		return 0;
	if (walk->budget && visit->looks >= walk->budget) {
		walk->next_pid = pid;
		return -ECANCELED;
	}
	visit->pid = pid;
	snprintf(path, sizeof(path), "proc/%" PRIu32 "/task", pid);
	/* A process that ended while we walk is no error. */
	int r = if_passing(visit->platform->ops->list_directory(visit->platform, NM_ROOT, path,
								visit_thread, visit));
	if (r < 0)
		walk->error = r;
	return 0;
}

int nm_descent_walk(struct nm_platform *platform, struct nm_descent_walk *walk)
{
	struct visit visit = {.platform = platform, .walk = walk};
	nm_descent_forget_processes(walk->descent);
	if (walk->descent->nr_lines == 0) {
		walk->next_pid = 0;
		return 0;
	}
	int r = platform->ops->list_directory(platform, NM_ROOT, "proc", visit_process, &visit);
	if (r == -ECANCELED)
		return 0;
	walk->next_pid = 0;
	return r < 0 ? r : 0;
}
