/* SPDX-License-Identifier: MIT */
#include "numa-migrd/policy.h"

#include "room.h"

/* The claim of one thread to run on the node. */
struct claim {
	double process_accesses; /* to the node, by all claims of the process */
	double accesses;	 /* of the thread */
	uint32_t pid, process, thread;
	size_t room; /* the set of CPUs there that it may use */
};

/* The state for one node at a time. */
struct filling {
	const struct nm_snapshot *snapshot;
	struct claim *claims;
	size_t nr_claims;
	double *process_accesses;
};

static double demand_of(const struct nm_snap_thread *thread)
{
	return thread->run_share >= 0 && thread->run_share < 1 ? thread->run_share : 1;
}

static void sum_demands(const struct nm_snapshot *snapshot, double *demands)
{
	for (size_t i = 0; i < snapshot->nr_threads; i++)
		if (snapshot->threads[i].preferred >= 0)
			demands[snapshot->threads[i].preferred] += demand_of(&snapshot->threads[i]);
}

static void collect_claims(struct filling *filling, int node)
{
	const struct nm_snapshot *snapshot = filling->snapshot;
	filling->nr_claims = 0;
	for (size_t i = 0; i < snapshot->nr_processes; i++)
		filling->process_accesses[i] = 0;
	for (size_t i = 0; i < snapshot->nr_threads; i++) {
		const struct nm_snap_thread *thread = &snapshot->threads[i];
		if (thread->preferred != node)
			continue;
		filling->process_accesses[thread->process] += thread->accesses[node];
		filling->claims[filling->nr_claims++] =
			(struct claim){.accesses = thread->accesses[node],
				       .pid = thread->pid,
				       .process = thread->process,
				       .thread = (uint32_t)i};
	}
	for (size_t i = 0; i < filling->nr_claims; i++)
		filling->claims[i].process_accesses =
			filling->process_accesses[filling->claims[i].process];
}

/* Orders by process, and within a process by accesses of threads. */
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

/* Adds all sets before the first claim is accepted, because the sets determine where each claim
 * counts. */
static int find_rooms(struct filling *filling, struct nm_rooms *rooms)
{
	for (size_t i = 0; i < filling->nr_claims; i++) {
		struct claim *claim = &filling->claims[i];
		int r = nm_rooms_add(rooms, filling->snapshot->threads[claim->thread].allowed,
				     &claim->room);
		if (r < 0)
			return r;
	}
	return 0;
}

static void take_up(struct filling *filling, struct nm_rooms *rooms, bool *refused)
{
	qsort(filling->claims, filling->nr_claims, sizeof(*filling->claims), by_precedence);
	for (size_t i = 0; i < filling->nr_claims; i++) {
		const struct claim *claim = &filling->claims[i];
		double demand = demand_of(&filling->snapshot->threads[claim->thread]);
		refused[claim->thread] = !nm_rooms_take(rooms, claim->room, demand);
	}
}

/* If no thread is bound to a part of the node, and the node has room for all, nothing needs to be
 * decided. */
static int fill_node(struct filling *filling, int node, double demand, bool *refused)
{
	struct nm_rooms rooms;
	int r = nm_rooms_init(&rooms, filling->snapshot, node);
	if (r < 0)
		return r;
	collect_claims(filling, node);
	r = find_rooms(filling, &rooms);
	if (r == 0 && (rooms.count > 1 || demand > rooms.items[0].capacity))
		take_up(filling, &rooms, refused);
	nm_rooms_clear(&rooms);
	return r;
}

int nm_overcommit_refuse(const struct nm_snapshot *snapshot, bool *refused)
{
	size_t threads = snapshot->nr_threads, processes = snapshot->nr_processes;
	nm_autofree struct claim *claims = calloc(threads + 1, sizeof(*claims));
	nm_autofree double *process_accesses = calloc(processes + 1, sizeof(*process_accesses));
	nm_autofree double *demands = calloc(snapshot->topology->nr_nodes + 1, sizeof(*demands));
	if (!claims || !process_accesses || !demands)
		return -ENOMEM;
	struct filling filling = {
		.snapshot = snapshot, .claims = claims, .process_accesses = process_accesses};
	for (size_t i = 0; i < threads; i++)
		refused[i] = false;
	sum_demands(snapshot, demands);
	int r = 0;
	for (int node = 0; r == 0 && node < (int)snapshot->topology->nr_nodes; node++)
		r = fill_node(&filling, node, demands[node], refused);
	return r;
}
