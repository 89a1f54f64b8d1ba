/* SPDX-License-Identifier: MIT */
/*
 * Keeps nodes from being overcommitted: refuses threads for which their preferred node has no
 * capacity left, and ends leases under load, because an affinity must not make threads queue, or
 * share cores, while other cores are idle.
 */
#include <math.h>

#include "numa-migrd/policy.h"

#define FULL_SHARE 0.95	  /* busy share from which CPUs count as full */
#define ACTIVE_SHARE 0.05 /* run share from which a thread counts as demanding a CPU */

/*
 * A machine is usually divided into a few sets; threads of further sets count for the whole node.
 */
#define CPU_SETS_MAX 64U

/*
 * A set of a node's CPUs to which threads are bound. The demand of its threads, and of those bound
 * to subsets of it, must fit into its capacity. This is exact if the sets are nested or disjoint;
 * with other overlaps too many threads may be admitted.
 */
struct cpu_set {
	hwloc_bitmap_t cpus;
	double capacity, used; /* in cores */
};

/* The claim of one thread to run on the node. */
struct claim {
	double process_accesses; /* to the node, by all claims of the process */
	double accesses;	 /* of the thread */
	uint32_t pid, process, thread;
	size_t cpu_set; /* the set of CPUs there that it may use */
};

/* The state for one node at a time. */
struct node_claims {
	const struct nm_snapshot *snapshot;
	struct claim *claims;
	size_t nr_claims;
	double *process_accesses;
	double demand;		      /* of all claims */
	struct cpu_set cpu_sets[CPU_SETS_MAX]; /* the first is the whole node */
	size_t nr_cpu_sets;
};

static void add_cpu_set(struct node_claims *node_claims, hwloc_bitmap_t cpus)
{
	node_claims->cpu_sets[node_claims->nr_cpu_sets++] = (struct cpu_set){
		.cpus = cpus, .capacity = nm_core_capacity(node_claims->snapshot, cpus)};
}

/* Finds or adds the set of threads with this affinity. */
static void find_cpu_set(struct node_claims *node_claims, hwloc_const_bitmap_t allowed, size_t *ret)
{
	hwloc_const_bitmap_t node = node_claims->cpu_sets[0].cpus;
	size_t cpu_set = 0;
	*ret = 0;
	if (hwloc_bitmap_isincluded(node, allowed)) /* the case of most threads */
		return;
	nm_autobitmap cpus = nm_must(hwloc_bitmap_alloc());
	nm_must_do(hwloc_bitmap_and(cpus, node, allowed));
	while (cpu_set < node_claims->nr_cpu_sets &&
	       !hwloc_bitmap_isequal(node_claims->cpu_sets[cpu_set].cpus, cpus))
		cpu_set++;
	if (cpu_set == CPU_SETS_MAX)
		return;
	if (cpu_set == node_claims->nr_cpu_sets)
		add_cpu_set(node_claims, NM_TAKE(cpus));
	*ret = cpu_set;
}

/* Adds the demand of a thread. Returns false, without a change, if it exceeds the capacity of one
 * of its sets. */
static bool use_cpu_sets(struct node_claims *node_claims, size_t cpu_set, double demand)
{
	hwloc_const_bitmap_t cpus = node_claims->cpu_sets[cpu_set].cpus;
	bool counts[CPU_SETS_MAX];
	for (size_t i = 0; i < node_claims->nr_cpu_sets; i++) {
		const struct cpu_set *one = &node_claims->cpu_sets[i];
		counts[i] = hwloc_bitmap_isincluded(cpus, one->cpus);
		if (counts[i] && one->used + demand > one->capacity)
			return false;
	}
	for (size_t i = 0; i < node_claims->nr_cpu_sets; i++)
		if (counts[i])
			node_claims->cpu_sets[i].used += demand;
	return true;
}

static double demand_of(const struct nm_snap_thread *thread)
{
	return thread->run_share >= 0 && thread->run_share < 1 ? thread->run_share : 1;
}

static void collect_claims(struct node_claims *node_claims, int node)
{
	const struct nm_snapshot *snapshot = node_claims->snapshot;
	node_claims->nr_claims = 0;
	node_claims->demand = 0;
	for (size_t i = 0; i < snapshot->nr_processes; i++)
		node_claims->process_accesses[i] = 0;
	for (size_t i = 0; i < snapshot->nr_threads; i++) {
		const struct nm_snap_thread *thread = &snapshot->threads[i];
		if (thread->preferred != node)
			continue;
		node_claims->demand += demand_of(thread);
		node_claims->process_accesses[thread->process] += thread->accesses[node];
		node_claims->claims[node_claims->nr_claims++] =
			(struct claim){.accesses = thread->accesses[node],
				       .pid = thread->pid,
				       .process = thread->process,
				       .thread = (uint32_t)i};
	}
	for (size_t i = 0; i < node_claims->nr_claims; i++)
		node_claims->claims[i].process_accesses =
			node_claims->process_accesses[node_claims->claims[i].process];
}

/* Orders by process, and within a process by accesses of threads. */
static int by_precedence(const void *left, const void *right)
{
	const struct claim *a = left, *b = right;
	return NM_COMPARE(b->process_accesses, a->process_accesses)
		       ?: NM_COMPARE(a->pid, b->pid)
		       ?: NM_COMPARE(b->accesses, a->accesses)
		       ?: NM_COMPARE(a->thread, b->thread);
}

static void fill_node(struct node_claims *node_claims, int node, bool *refused)
{
	const struct nm_topology *topology = node_claims->snapshot->topology;
	nm_autobitmap cpus = nm_must(hwloc_bitmap_alloc());
	nm_must_do(hwloc_bitmap_and(cpus, topology->nodes[node].cpus, topology->usable));
	add_cpu_set(node_claims, NM_TAKE(cpus));
	collect_claims(node_claims, node);
	/* Add all sets before the first claim is accepted, because the sets determine where each
	 * claim counts. */
	for (size_t i = 0; i < node_claims->nr_claims; i++) {
		struct claim *claim = &node_claims->claims[i];
		find_cpu_set(node_claims, node_claims->snapshot->threads[claim->thread].allowed,
			     &claim->cpu_set);
	}
	/* If no thread is bound to a part of the node, and the node has room for all, nothing needs
	 * to be decided. */
	if (node_claims->nr_cpu_sets > 1 ||
	    node_claims->demand > node_claims->cpu_sets[0].capacity) {
		qsort(node_claims->claims, node_claims->nr_claims, sizeof(*node_claims->claims),
		      by_precedence);
		for (size_t i = 0; i < node_claims->nr_claims; i++) {
			const struct claim *claim = &node_claims->claims[i];
			double demand = demand_of(&node_claims->snapshot->threads[claim->thread]);
			refused[claim->thread] = !use_cpu_sets(node_claims, claim->cpu_set, demand);
		}
	}
	while (node_claims->nr_cpu_sets > 0)
		hwloc_bitmap_free(node_claims->cpu_sets[--node_claims->nr_cpu_sets].cpus);
}

void nm_overcommit_refuse(const struct nm_snapshot *snapshot, bool *refused)
{
	size_t threads = snapshot->nr_threads, processes = snapshot->nr_processes;
	nm_autofree struct claim *claims = nm_must(calloc(threads + 1, sizeof(*claims)));
	nm_autofree double *process_accesses =
		nm_must(calloc(processes + 1, sizeof(*process_accesses)));
	struct node_claims node_claims = {
		.snapshot = snapshot, .claims = claims, .process_accesses = process_accesses};
	for (size_t i = 0; i < threads; i++)
		refused[i] = false;
	for (int node = 0; node < (int)snapshot->topology->nr_nodes; node++)
		fill_node(&node_claims, node, refused);
}

static bool wants_cpu(const struct nm_snap_thread *thread)
{
	return thread->main_node >= 0 && thread->run_share >= ACTIVE_SHARE;
}

struct entry {
	const struct nm_snap_thread *thread;
	uint32_t index;
	uint32_t first; /* of its group; groups are ordered by their first thread */
};

/* Leased threads on one node that may use the same set of CPUs there: a range of the list. */
struct group {
	const struct nm_snapshot *snapshot;
	int node;
	hwloc_const_bitmap_t allowed; /* original affinity of all of them */
	struct entry *entries;	      /* initially ascending */
	size_t count;
};

static int compare_places(const struct entry *a, const struct entry *b)
{
	if (a->thread->main_node != b->thread->main_node)
		return a->thread->main_node < b->thread->main_node ? -1 : 1;
	return hwloc_bitmap_compare(a->thread->allowed, b->thread->allowed);
}

static int by_group(const void *left, const void *right)
{
	const struct entry *a = left, *b = right;
	int order = compare_places(a, b);
	return order ? order : NM_COMPARE(a->index, b->index);
}

static int by_first(const void *left, const void *right)
{
	const struct entry *a = left, *b = right;
	return NM_COMPARE(a->first, b->first) ?: NM_COMPARE(a->index, b->index);
}

static size_t list_leased(const struct nm_snapshot *snapshot, struct entry *entries)
{
	size_t count = 0;
	for (size_t i = 0; i < snapshot->nr_threads; i++)
		if (snapshot->threads[i].leased && wants_cpu(&snapshot->threads[i]) &&
		    !snapshot->processes[snapshot->threads[i].process].at_home)
			entries[count++] = (struct entry){.thread = &snapshot->threads[i],
							  .index = (uint32_t)i};
	qsort(entries, count, sizeof(*entries), by_group);
	for (size_t i = 0; i < count; i++) {
		bool same = i > 0 && compare_places(&entries[i - 1], &entries[i]) == 0;
		entries[i].first = same ? entries[i - 1].first : entries[i].index;
	}
	qsort(entries, count, sizeof(*entries), by_first);
	return count;
}

/* The CPUs that a group may use, on its node or on others. */
struct group_cpus {
	size_t cpus, bound;
	double idle;	 /* in CPUs; unknown ones count as busy */
	double capacity; /* in cores */
};

static void group_cpus_of(const struct group *group, const uint32_t *bound, bool here,
			  struct group_cpus *ret)
{
	const struct nm_snapshot *snapshot = group->snapshot;
	hwloc_const_bitmap_t node = snapshot->topology->nodes[group->node].cpus;
	nm_autobitmap cpus = nm_must(hwloc_bitmap_alloc());
	struct group_cpus group_cpus = {0};
	nm_must_do(hwloc_bitmap_and(cpus, group->allowed, snapshot->topology->usable));
	nm_must_do(here ? hwloc_bitmap_and(cpus, cpus, node)
			: hwloc_bitmap_andnot(cpus, cpus, node));
	for (int cpu = hwloc_bitmap_first(cpus); cpu >= 0; cpu = hwloc_bitmap_next(cpus, cpu)) {
		group_cpus.cpus++;
		group_cpus.bound += bound[cpu];
		group_cpus.idle += 1 - nm_busy_share(&snapshot->cpus[cpu]);
	}
	group_cpus.capacity = nm_core_capacity(snapshot, cpus);
	*ret = group_cpus;
}

/* Returns half of the excess, so that the next interval shows the effect, and at most the number of
 * idle cores. */
static void count_yielding(const struct group *group, const uint32_t *bound, size_t *ret)
{
	struct group_cpus here, elsewhere;
	group_cpus_of(group, bound, true, &here);
	*ret = 0;
	size_t fit = (size_t)here.capacity;
	if (here.bound <= fit || here.idle > (1 - FULL_SHARE) * (double)here.cpus)
		return;
	group_cpus_of(group, bound, false, &elsewhere);
	double busy = (double)elsewhere.cpus - elsewhere.idle;
	size_t half = (here.bound - fit + 1) / 2;
	size_t idle = (size_t)fmax(elsewhere.capacity - busy, 0);
	*ret = half < group->count ? half : group->count;
	*ret = *ret < idle ? *ret : idle;
}

/* Selected threads are no longer counted as held here, so that the next group need not yield for
 * the same reason. */
static void yield_group(struct group *group, uint32_t *bound, uint32_t *ret, size_t *ret_count)
{
	size_t yielding;
	count_yielding(group, bound, &yielding);
	for (size_t k = 0; k < yielding; k++) {
		/* Move the thread with the fewest accesses to the front of entries[k …]. */
		struct entry *entries = group->entries, first = entries[k];
		size_t lowest = k;
		for (size_t i = k + 1; i < group->count; i++)
			if (entries[i].thread->accesses[group->node] <
			    entries[lowest].thread->accesses[group->node])
				lowest = i;
		entries[k] = entries[lowest];
		entries[lowest] = first;
		ret[k] = group->entries[k].index;
		bound[group->entries[k].thread->main_cpu]--;
	}
	*ret_count += yielding;
}

/* Returns the group that begins at this entry. */
static struct group group_at(const struct nm_snapshot *snapshot, struct entry *entries,
			     size_t count)
{
	struct group group = {.snapshot = snapshot,
			      .node = entries->thread->main_node,
			      .allowed = entries->thread->allowed,
			      .entries = entries};
	while (group.count < count && entries[group.count].first == entries->first)
		group.count++;
	return group;
}

void nm_overcommit_yield(const struct nm_snapshot *snapshot, uint32_t *ret_threads,
			 size_t *ret_count)
{
	nm_autofree struct entry *entries =
		nm_must(calloc(snapshot->nr_threads + 1, sizeof(*entries)));
	nm_autofree uint32_t *bound =
		nm_must(calloc(snapshot->topology->nr_cpus + 1U, sizeof(*bound)));
	size_t yielding = 0;
	size_t count = list_leased(snapshot, entries);
	if (count > 0) {
		/* Count threads by main CPU that the scheduler cannot move away: leased threads,
		 * and others bound to the node. */
		for (size_t i = 0; i < snapshot->nr_threads; i++) {
			const struct nm_snap_thread *thread = &snapshot->threads[i];
			if (wants_cpu(thread) &&
			    (thread->leased ||
			     (!thread->everywhere &&
			      hwloc_bitmap_isincluded(
				      thread->allowed,
				      snapshot->topology->nodes[thread->main_node].cpus))))
				bound[thread->main_cpu]++;
		}
	}
	for (size_t i = 0; i < count;) {
		struct group group = group_at(snapshot, entries + i, count - i);
		yield_group(&group, bound, ret_threads + yielding, &yielding);
		i += group.count;
	}
	*ret_count = yielding;
}
