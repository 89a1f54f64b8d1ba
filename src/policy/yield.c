/* SPDX-License-Identifier: MIT */
/* Ends leases under load: an affinity must not make threads queue, or share cores, while other
 * cores are idle. */
#include <math.h>
#include <stdlib.h>

#include "numa-migrd/policy.h"
#include "room.h"

#define FULL_SHARE 0.95	  /* busy share from which CPUs count as full */
#define ACTIVE_SHARE 0.05 /* run share from which a thread counts as demanding a CPU */

/* Leased threads on one node that may use the same set of CPUs there: a range of the list. */
struct group {
	const struct nm_snapshot *snapshot;
	int node;
	hwloc_const_bitmap_t allowed; /* original affinity of all of them */
	double sibling_worth;
	uint32_t *members;	      /* initially ascending */
	size_t count;
};

static bool wants_cpu(const struct nm_snap_thread *thread)
{
	return thread->main_node >= 0 && thread->run_share >= ACTIVE_SHARE;
}

/* ---- grouping ---- */

struct entry {
	const struct nm_snap_thread *thread;
	uint32_t index;
	uint32_t first; /* of its group; groups are ordered by their first thread */
};

static int by_place(const struct entry *a, const struct entry *b)
{
	if (a->thread->main_node != b->thread->main_node)
		return a->thread->main_node < b->thread->main_node ? -1 : 1;
	return hwloc_bitmap_compare(a->thread->allowed, b->thread->allowed);
}

static int by_group(const void *left, const void *right)
{
	const struct entry *a = left, *b = right;
	int order = by_place(a, b);
	return order ? order : (a->index > b->index) - (a->index < b->index);
}

static int by_first(const void *left, const void *right)
{
	const struct entry *a = left, *b = right;
	if (a->first != b->first)
		return a->first < b->first ? -1 : 1;
	return (a->index > b->index) - (a->index < b->index);
}

static size_t list_leased(const struct nm_snapshot *snapshot, struct entry *entries)
{
	size_t count = 0;
	for (size_t i = 0; i < snapshot->nr_threads; i++)
		if (snapshot->threads[i].leased && wants_cpu(&snapshot->threads[i]))
			entries[count++] = (struct entry){.thread = &snapshot->threads[i],
							  .index = (uint32_t)i};
	qsort(entries, count, sizeof(*entries), by_group);
	for (size_t i = 0; i < count; i++) {
		bool same = i > 0 && by_place(&entries[i - 1], &entries[i]) == 0;
		entries[i].first = same ? entries[i - 1].first : entries[i].index;
	}
	qsort(entries, count, sizeof(*entries), by_first);
	return count;
}

/* ---- number of threads in excess ---- */

static bool is_bound(const struct nm_snapshot *snapshot, const struct nm_snap_thread *thread)
{
	return !thread->everywhere &&
	       hwloc_bitmap_isincluded(thread->allowed,
				       snapshot->topology->nodes[thread->main_node].cpus);
}

/* Counts threads by main CPU that the scheduler cannot move away: leased threads, and others bound
 * to the node. */
static void count_held(const struct nm_snapshot *snapshot, uint32_t *held)
{
	for (size_t i = 0; i < snapshot->nr_threads; i++) {
		const struct nm_snap_thread *thread = &snapshot->threads[i];
		if (wants_cpu(thread) && (thread->leased || is_bound(snapshot, thread)))
			held[thread->main_cpu]++;
	}
}

/* The CPUs that a group may use, on its node or on others. */
struct part {
	size_t cpus, held;
	double idle;	 /* in CPUs; unknown ones count as busy */
	double capacity; /* in cores */
};

static int part_of(const struct group *group, const uint32_t *held, bool here, struct part *ret)
{
	const struct nm_snapshot *snapshot = group->snapshot;
	nm_autobitmap cpus = hwloc_bitmap_alloc();
	struct part part = {0};
	if (!cpus)
		return -ENOMEM;
	for (unsigned cpu = 0; cpu < snapshot->topology->nr_cpus; cpu++) {
		const struct nm_snap_cpu *state = &snapshot->cpus[cpu];
		if (!state->usable || (state->node == group->node) != here ||
		    !hwloc_bitmap_isset(group->allowed, cpu))
			continue;
		if (hwloc_bitmap_set(cpus, cpu) < 0)
			return -ENOMEM;
		part.cpus++;
		part.held += held[cpu];
		if (state->busy_share < 1)
			part.idle += 1 - state->busy_share;
	}
	int r = nm_core_capacity(snapshot, cpus, group->sibling_worth, &part.capacity);
	if (r == 0)
		*ret = part;
	return r;
}

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Returns half of the excess, so that the next interval shows the effect, and at most the number of
 * idle cores. */
static int too_many(const struct group *group, const uint32_t *held, size_t *ret)
{
	struct part here, elsewhere;
	int r = part_of(group, held, true, &here);
	if (r < 0)
		return r;
	*ret = 0;
	size_t fit = (size_t)here.capacity;
	if (here.held <= fit || here.idle > (1 - FULL_SHARE) * (double)here.cpus)
		return 0;
	r = part_of(group, held, false, &elsewhere);
	if (r < 0)
		return r;
	double busy = (double)elsewhere.cpus - elsewhere.idle;
	size_t half = (here.held - fit + 1) / 2;
	*ret = least(least(half, group->count), (size_t)fmax(elsewhere.capacity - busy, 0));
	return 0;
}

/* ---- selection ---- */

static double accesses_here(const struct group *group, uint32_t index)
{
	return group->snapshot->threads[index].accesses[group->node];
}

/* Moves the thread with the fewest accesses to the front of members[from …]. */
static void least_first(struct group *group, size_t from)
{
	size_t lowest = from;
	for (size_t i = from + 1; i < group->count; i++)
		if (accesses_here(group, group->members[i]) <
		    accesses_here(group, group->members[lowest]))
			lowest = i;
	uint32_t member = group->members[lowest];
	group->members[lowest] = group->members[from];
	group->members[from] = member;
}

/* Selected threads are no longer counted as held here, so that the next group need not yield for
 * the same reason. */
static int yield_group(struct group *group, uint32_t *held, uint32_t *ret, size_t *ret_count)
{
	size_t yielding;
	int r = too_many(group, held, &yielding);
	if (r < 0)
		return r;
	for (size_t k = 0; k < yielding; k++) {
		least_first(group, k);
		ret[k] = group->members[k];
		held[group->snapshot->threads[ret[k]].main_cpu]--;
	}
	*ret_count += yielding;
	return 0;
}

/* Returns the group that begins at this entry. */
static struct group gather(const struct nm_snapshot *snapshot, const struct entry *entries,
			   size_t count, uint32_t *members)
{
	struct group group = {.snapshot = snapshot,
			      .node = entries->thread->main_node,
			      .allowed = entries->thread->allowed,
			      .members = members};
	while (group.count < count && entries[group.count].first == entries->first) {
		members[group.count] = entries[group.count].index;
		group.count++;
	}
	return group;
}

int nm_overcommit_yield(const struct nm_snapshot *snapshot, uint32_t *ret_threads,
			size_t *ret_count)
{
	nm_autofree struct entry *entries = calloc(snapshot->nr_threads + 1, sizeof(*entries));
	nm_autofree uint32_t *members = calloc(snapshot->nr_threads + 1, sizeof(*members));
	nm_autofree uint32_t *held = calloc(snapshot->topology->nr_cpus + 1U, sizeof(*held));
	size_t yielding = 0;
	double sibling_worth;
	if (!entries || !members || !held)
		return -ENOMEM;
	int r = nm_sibling_worth(snapshot, &sibling_worth);
	size_t count = list_leased(snapshot, entries);
	if (count > 0)
		count_held(snapshot, held);
	for (size_t i = 0; r == 0 && i < count;) {
		struct group group = gather(snapshot, entries + i, count - i, members);
		group.sibling_worth = sibling_worth;
		r = yield_group(&group, held, ret_threads + yielding, &yielding);
		i += group.count;
	}
	if (r == 0)
		*ret_count = yielding;
	return r;
}
