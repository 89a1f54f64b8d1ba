/* SPDX-License-Identifier: MIT */
#include "numa-migrd/policy.h"

/* One thread's wish to be on the node in question. */
struct claim {
	double process_accesses; /* of its process's claims, to the node */
	double accesses;
	uint32_t pid;
	uint32_t thread; /* ascending with the tid */
};

static int by_precedence(const void *left, const void *right)
{
	const struct claim *a = left, *b = right;
	if (a->process_accesses != b->process_accesses)
		return a->process_accesses > b->process_accesses ? -1 : 1;
	if (a->pid != b->pid)
		return a->pid < b->pid ? -1 : 1;
	if (a->accesses != b->accesses)
		return a->accesses > b->accesses ? -1 : 1;
	return a->thread < b->thread ? -1 : a->thread > b->thread;
}

static double demand_of(const struct nm_snap_thread *thread)
{
	return thread->run_share >= 0 && thread->run_share < 1 ? thread->run_share : 1;
}

static double capacity_of(const struct nm_snapshot *snapshot, int node)
{
	unsigned count = 0;
	for (unsigned cpu = 0; cpu < snapshot->topology->nr_cpus; cpu++)
		count += snapshot->cpus[cpu].usable && snapshot->cpus[cpu].node == node;
	return count;
}

static double demand_for(const struct nm_snapshot *snapshot, int node)
{
	double demand = 0;
	for (size_t i = 0; i < snapshot->nr_threads; i++)
		if (snapshot->threads[i].preferred == node)
			demand += demand_of(&snapshot->threads[i]);
	return demand;
}

/* Lists the claims on the node; `sums` (per process) is left with each process's accesses to it. */
static size_t collect_claims(const struct nm_snapshot *snapshot, int node, double *sums,
			     struct claim *claims)
{
	size_t count = 0;
	for (size_t i = 0; i < snapshot->nr_processes; i++)
		sums[i] = 0;
	for (size_t i = 0; i < snapshot->nr_threads; i++) {
		const struct nm_snap_thread *thread = &snapshot->threads[i];
		if (thread->preferred != node)
			continue;
		sums[thread->process] += thread->accesses[node];
		claims[count++] = (struct claim){
			.accesses = thread->accesses[node],
			.pid = thread->pid,
			.thread = (uint32_t)i,
		};
	}
	for (size_t i = 0; i < count; i++)
		claims[i].process_accesses = sums[snapshot->threads[claims[i].thread].process];
	return count;
}

static void fill_node(const struct nm_snapshot *snapshot, const struct claim *claims, size_t count,
		      double capacity, bool *refused)
{
	double used = 0;
	for (size_t i = 0; i < count; i++) {
		double demand = demand_of(&snapshot->threads[claims[i].thread]);
		if (used + demand > capacity)
			refused[claims[i].thread] = true;
		else
			used += demand;
	}
}

int nm_overcommit_refuse(const struct nm_snapshot *snapshot, bool *refused)
{
	nm_autofree struct claim *claims = calloc(snapshot->nr_threads + 1, sizeof(*claims));
	nm_autofree double *sums = calloc(snapshot->nr_processes + 1, sizeof(*sums));
	if (!claims || !sums)
		return -ENOMEM;
	for (size_t i = 0; i < snapshot->nr_threads; i++)
		refused[i] = false;
	for (int node = 0; node < (int)snapshot->topology->nr_nodes; node++) {
		double capacity = capacity_of(snapshot, node);
		if (demand_for(snapshot, node) <= capacity)
			continue;
		size_t count = collect_claims(snapshot, node, sums, claims);
		qsort(claims, count, sizeof(*claims), by_precedence);
		fill_node(snapshot, claims, count, capacity, refused);
	}
	return 0;
}
