/* SPDX-License-Identifier: MIT */
#include "numa-migrd/policy.h"
#include "room.h"

/* One thread's wish to be on the node in question. */
struct claim {
	double process_accesses; /* of its process's claims, to the node */
	double accesses;
	uint32_t pid;
	uint32_t thread; /* ascending with the tid */
	size_t room;	 /* of the CPUs there that it may run on */
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

/* Before the first is taken up: which sets there are decides what each counts in. */
static int find_rooms(const struct nm_snapshot *snapshot, struct claim *claims, size_t count,
		      struct nm_rooms *rooms)
{
	for (size_t i = 0; i < count; i++) {
		hwloc_const_bitmap_t allowed = snapshot->threads[claims[i].thread].allowed;
		int r = nm_rooms_add(rooms, allowed, &claims[i].room);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Nobody is bound to a part of the node, and it holds them all. */
static bool holds_all(const struct nm_snapshot *snapshot, const struct nm_rooms *rooms,
		      const struct claim *claims, size_t count)
{
	double demand = 0;
	for (size_t i = 0; i < count; i++)
		demand += demand_of(&snapshot->threads[claims[i].thread]);
	return rooms->count == 1 && demand <= rooms->items[0].capacity;
}

static int fill_node(const struct nm_snapshot *snapshot, int node, struct claim *claims,
		     size_t count, bool *refused)
{
	struct nm_rooms rooms;
	int r = nm_rooms_init(&rooms, snapshot, node);
	if (r < 0)
		return r;
	r = find_rooms(snapshot, claims, count, &rooms);
	if (r == 0 && holds_all(snapshot, &rooms, claims, count))
		count = 0;
	qsort(claims, count, sizeof(*claims), by_precedence);
	for (size_t i = 0; r == 0 && i < count; i++) {
		double demand = demand_of(&snapshot->threads[claims[i].thread]);
		refused[claims[i].thread] = !nm_rooms_take(&rooms, claims[i].room, demand);
	}
	nm_rooms_clear(&rooms);
	return r;
}

int nm_overcommit_refuse(const struct nm_snapshot *snapshot, bool *refused)
{
	nm_autofree struct claim *claims = calloc(snapshot->nr_threads + 1, sizeof(*claims));
	nm_autofree double *sums = calloc(snapshot->nr_processes + 1, sizeof(*sums));
	int r = 0;
	if (!claims || !sums)
		return -ENOMEM;
	for (size_t i = 0; i < snapshot->nr_threads; i++)
		refused[i] = false;
	for (int node = 0; r == 0 && node < (int)snapshot->topology->nr_nodes; node++) {
		size_t count = collect_claims(snapshot, node, sums, claims);
		r = fill_node(snapshot, node, claims, count, refused);
	}
	return r;
}
