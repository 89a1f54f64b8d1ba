/* SPDX-License-Identifier: MIT */
/* Keeps nodes from being overcommitted: refuses threads for which their preferred node has no
 * capacity left. */
#include <math.h>

#include "policy/policy.h"

/*
 * A machine is usually divided into a few sets; threads of further sets count for the whole node.
 */
#define CPU_SETS_MAX 64U /* shared: first */

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
	double demand;			       /* of all claims */
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
	return thread->stats.run_share >= 0 && thread->stats.run_share < 1 ? thread->stats.run_share
									   : 1;
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
		node_claims->process_accesses[thread->process] += thread->stats.accesses[node];
		node_claims->claims[node_claims->nr_claims++] =
			(struct claim){.accesses = thread->stats.accesses[node],
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
