/* SPDX-License-Identifier: MIT */
/* The lines of the ledger, found by process, session and cgroup, and within these by target and
 * time: what a thread is held against does not grow with what others lease. */
#include <string.h>
#include <unistd.h>

#include "descent_internal.h"

#define GRACE_S 2

static uint64_t grace_ticks(void)
{
	return GRACE_S * (uint64_t)sysconf(_SC_CLK_TCK);
}

uint64_t nm_descent_last_birth(const struct nm_ledger_entry *terms)
{
	if (!terms->ended_ticks || terms->ended_ticks > UINT64_MAX - grace_ticks())
		return UINT64_MAX;
	return terms->ended_ticks + grace_ticks();
}

bool nm_descent_born_under(const struct nm_ledger_entry *terms, uint64_t start_ticks)
{
	return start_ticks >= terms->given_ticks && start_ticks <= nm_descent_last_birth(terms);
}

/* ---- order ---- */

static int compare_numbers(uint64_t left, uint64_t right)
{
	return (left > right) - (left < right);
}

static int compare_pid(const struct nm_ledger_entry *left, const struct nm_ledger_entry *right)
{
	return compare_numbers(left->pid, right->pid);
}

static int compare_session(const struct nm_ledger_entry *left, const struct nm_ledger_entry *right)
{
	int order = compare_numbers(left->session, right->session);
	return order ? order : compare_numbers(left->uid, right->uid);
}

static int compare_cgroup(const struct nm_ledger_entry *left, const struct nm_ledger_entry *right)
{
	int order = compare_numbers(left->uid, right->uid);
	return order ? order : strcmp(left->cgroup, right->cgroup);
}

typedef int (*compare_fn)(const struct nm_ledger_entry *, const struct nm_ledger_entry *);
static const compare_fn compare_groups[NM_GROUPINGS] = {
	[NM_BY_PID] = compare_pid,
	[NM_BY_SESSION] = compare_session,
	[NM_BY_CGROUP] = compare_cgroup,
};

/* Within a group by target, and then as they were given. */
static int compare_lines(compare_fn compare_group, const void *a, const void *b)
{
	const struct nm_ledger_entry *left = *(const struct nm_ledger_entry *const *)a;
	const struct nm_ledger_entry *right = *(const struct nm_ledger_entry *const *)b;
	int order = compare_group(left, right);
	if (order == 0)
		order = hwloc_bitmap_compare(left->target, right->target);
	return order ? order : compare_numbers(left->given_ticks, right->given_ticks);
}

static int by_pid(const void *a, const void *b)
{
	return compare_lines(compare_pid, a, b);
}

static int by_session(const void *a, const void *b)
{
	return compare_lines(compare_session, a, b);
}

static int by_cgroup(const void *a, const void *b)
{
	return compare_lines(compare_cgroup, a, b);
}

static int (*const sort_by[NM_GROUPINGS])(const void *, const void *) = {
	[NM_BY_PID] = by_pid,
	[NM_BY_SESSION] = by_session,
	[NM_BY_CGROUP] = by_cgroup,
};

/* ---- targets ---- */

static int compare_targets(const void *a, const void *b)
{
	return hwloc_bitmap_compare(*(hwloc_const_bitmap_t const *)a,
				    *(hwloc_const_bitmap_t const *)b);
}

static void list_targets(struct nm_descent *descent)
{
	for (size_t i = 0; i < descent->nr_lines; i++)
		descent->targets[i] = descent->lines[i].target;
	qsort(descent->targets, descent->nr_lines, sizeof(*descent->targets), compare_targets);
	for (size_t i = 0; i < descent->nr_lines; i++)
		if (descent->nr_targets == 0 ||
		    !hwloc_bitmap_isequal(descent->targets[i],
					  descent->targets[descent->nr_targets - 1]))
			descent->targets[descent->nr_targets++] = descent->targets[i];
}

static uint32_t index_of_target(const struct nm_descent *descent, hwloc_const_bitmap_t target)
{
	hwloc_const_bitmap_t *found = bsearch(&target, descent->targets, descent->nr_targets,
					      sizeof(*descent->targets), compare_targets);
	return (uint32_t)(found - descent->targets);
}

/* ---- groups ---- */

/* For each line: of it and those before it, the one whose children may have come last. */
static void fill_latest(const struct nm_family *family)
{
	const struct nm_ledger_entry *latest = family->lines[0];
	for (size_t i = 0; i < family->count; i++) {
		if (nm_descent_last_birth(family->lines[i]) >= nm_descent_last_birth(latest))
			latest = family->lines[i];
		family->latest[i] = latest;
	}
}

/* The family that begins with this line: how many it has. */
static size_t add_family(struct nm_descent *descent, enum nm_grouping_kind kind, size_t first)
{
	struct nm_grouping *grouping = &descent->groupings[kind];
	const struct nm_ledger_entry **lines = &grouping->lines[first];
	size_t count = 1;
	while (first + count < descent->nr_lines &&
	       compare_groups[kind](lines[0], lines[count]) == 0 &&
	       hwloc_bitmap_isequal(lines[0]->target, lines[count]->target))
		count++;
	struct nm_family *family = &grouping->families[grouping->nr_families++];
	*family = (struct nm_family){
		.lines = lines,
		.latest = &grouping->latest[first],
		.count = count,
		.target = index_of_target(descent, lines[0]->target),
	};
	fill_latest(family);
	return count;
}

static void group_lines(struct nm_descent *descent, enum nm_grouping_kind kind)
{
	struct nm_grouping *grouping = &descent->groupings[kind];
	for (size_t i = 0; i < descent->nr_lines; i++)
		grouping->lines[i] = &descent->lines[i];
	qsort(grouping->lines, descent->nr_lines, sizeof(*grouping->lines), sort_by[kind]);
	for (size_t first = 0, next; first < descent->nr_lines; first = next) {
		bool same = first > 0 && compare_groups[kind](grouping->lines[first - 1],
							      grouping->lines[first]) == 0;
		if (!same)
			grouping->groups[grouping->nr_groups++] = (struct nm_group){
				.families = &grouping->families[grouping->nr_families]};
		grouping->groups[grouping->nr_groups - 1].count++;
		next = first + add_family(descent, kind, first);
	}
}

static int index_numbers(struct nm_descent *descent)
{
	int r = 0;
	for (size_t i = 0; r == 0 && i < descent->nr_lines; i++) {
		uint32_t tid = descent->lines[i].tid;
		descent->line_before[i] = nm_tidmap_get(descent->line_of, tid);
		r = nm_tidmap_set(descent->line_of, tid, (uint32_t)i);
	}
	return r;
}

/* ---- making one ---- */

static int new_grouping(struct nm_grouping *grouping, size_t count)
{
	grouping->lines = calloc(count + 1, sizeof(*grouping->lines));
	grouping->latest = calloc(count + 1, sizeof(*grouping->latest));
	grouping->families = calloc(count + 1, sizeof(*grouping->families));
	grouping->groups = calloc(count + 1, sizeof(*grouping->groups));
	return grouping->lines && grouping->latest && grouping->families && grouping->groups
		       ? 0
		       : -ENOMEM;
}

static int make_room(struct nm_descent *descent, size_t count)
{
	descent->lines = calloc(count + 1, sizeof(*descent->lines));
	descent->line_before = calloc(count + 1, sizeof(*descent->line_before));
	descent->targets = calloc(count + 1, sizeof(*descent->targets));
	descent->best = calloc(count + 1, sizeof(*descent->best));
	descent->seen = hwloc_bitmap_alloc();
	descent->allowed = hwloc_bitmap_alloc();
	descent->left = hwloc_bitmap_alloc();
	if (!descent->lines || !descent->line_before || !descent->targets || !descent->best ||
	    !descent->seen || !descent->allowed || !descent->left)
		return -ENOMEM;
	int r = nm_tidmap_new(&descent->line_of);
	if (r == 0)
		r = nm_tidmap_new(&descent->process_of);
	for (int kind = 0; r == 0 && kind < NM_GROUPINGS; kind++)
		r = new_grouping(&descent->groupings[kind], count);
	return r;
}

int nm_descent_new(struct nm_platform *platform, const struct nm_ledger_entry *const *entries,
		   size_t count, struct nm_descent **ret)
{
	nm_auto(nm_descent_freep) struct nm_descent *descent = calloc(1, sizeof(*descent));
	if (!descent)
		return -ENOMEM;
	descent->platform = descent->masks.platform = platform;
	int r = nm_cgroups_new(platform, &descent->masks.cgroups);
	if (r == 0)
		r = make_room(descent, count);
	if (r < 0)
		return r;
	for (size_t i = 0; i < count; i++)
		descent->lines[i] = *entries[i];
	descent->nr_lines = count;
	r = index_numbers(descent);
	if (r < 0)
		return r;
	list_targets(descent);
	for (int kind = 0; kind < NM_GROUPINGS; kind++)
		group_lines(descent, (enum nm_grouping_kind)kind);
	*ret = NM_TAKE(descent);
	return 0;
}

void nm_descent_forget_processes(struct nm_descent *descent)
{
	for (size_t i = 0; i < descent->nr_processes; i++)
		nm_tidmap_remove(descent->process_of, descent->processes[i].pid);
	descent->nr_processes = 0;
	nm_cgroups_forget(descent->masks.cgroups);
	descent->lineage.pid = 0;
}

void nm_descent_free(struct nm_descent *descent)
{
	if (!descent)
		return;
	for (int kind = 0; kind < NM_GROUPINGS; kind++) {
		free(descent->groupings[kind].lines);
		free(descent->groupings[kind].latest);
		free(descent->groupings[kind].families);
		free(descent->groupings[kind].groups);
	}
	free(descent->processes);
	free(descent->lineage.offers);
	free(descent->lines);
	free(descent->line_before);
	free(descent->targets);
	free(descent->best);
	hwloc_bitmap_free(descent->seen);
	hwloc_bitmap_free(descent->allowed);
	hwloc_bitmap_free(descent->left);
	nm_cgroups_free(descent->masks.cgroups);
	nm_tidmap_free(descent->line_of);
	nm_tidmap_free(descent->process_of);
	free(descent);
}

uint64_t nm_descent_steps(const struct nm_descent *descent)
{
	return descent->steps;
}

/* ---- finding ---- */

struct nm_group *nm_descent_group(struct nm_descent *descent, enum nm_grouping_kind kind,
				  const struct nm_ledger_entry *key)
{
	const struct nm_grouping *grouping = &descent->groupings[kind];
	size_t low = 0;
	size_t high = grouping->nr_groups;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		struct nm_group *group = &grouping->groups[middle];
		int order = compare_groups[kind](group->families->lines[0], key);
		descent->steps++;
		if (order == 0)
			return group;
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

const struct nm_ledger_entry *nm_descent_latest(struct nm_descent *descent,
						const struct nm_family *family,
						uint64_t until_ticks)
{
	size_t low = 0;
	size_t high = family->count;
	while (low < high) { /* the first line given later */
		size_t middle = low + (high - low) / 2;
		descent->steps++;
		if (family->lines[middle]->given_ticks <= until_ticks)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? family->latest[low - 1] : NULL;
}

static int compare_family(const void *key, const void *family)
{
	return compare_numbers(*(const uint32_t *)key, ((const struct nm_family *)family)->target);
}

const struct nm_family *nm_descent_family(struct nm_descent *descent, const struct nm_group *group,
					  uint32_t target)
{
	descent->steps++;
	return bsearch(&target, group->families, group->count, sizeof(*group->families),
		       compare_family);
}
