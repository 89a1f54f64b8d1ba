/* SPDX-License-Identifier: MIT */
#include "numa-migrd/policy.h"

#include "room.h"

/* One thread's wish to be on the node in question. */
struct claim {
	double accesses; /* to the node */
	uint32_t thread; /* ascending with the tid */
	uint32_t process;
	size_t room; /* of the CPUs there that it may run on */
};

/* The claims of a process: a stretch of the list, once it is in order. */
struct claimant {
	double accesses; /* of its claims */
	uint32_t pid, process;
	uint32_t first, count;
};

/* Everything for one node at a time. */
struct filling {
	const struct nm_snapshot *snapshot;
	struct claim *claims, *ordered;
	size_t nr_claims;
	struct claimant *claimants;
	size_t nr_claimants;
	uint32_t *claimant_of; /* per process: its place among the claimants + 1; 0: none */
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

static struct claimant *claimant_for(struct filling *filling, const struct nm_snap_thread *thread)
{
	uint32_t *at = &filling->claimant_of[thread->process];
	if (*at == 0) {
		filling->claimants[filling->nr_claimants++] =
			(struct claimant){.pid = thread->pid, .process = thread->process};
		*at = (uint32_t)filling->nr_claimants;
	}
	return &filling->claimants[*at - 1];
}

static void collect_claims(struct filling *filling, int node)
{
	for (size_t i = 0; i < filling->snapshot->nr_threads; i++) {
		const struct nm_snap_thread *thread = &filling->snapshot->threads[i];
		if (thread->preferred != node)
			continue;
		struct claimant *claimant = claimant_for(filling, thread);
		claimant->accesses += thread->accesses[node];
		claimant->count++;
		filling->claims[filling->nr_claims++] =
			(struct claim){.accesses = thread->accesses[node],
				       .thread = (uint32_t)i,
				       .process = thread->process};
	}
}

static int by_precedence(const void *left, const void *right)
{
	const struct claimant *a = left, *b = right;
	if (a->accesses != b->accesses)
		return a->accesses > b->accesses ? -1 : 1;
	return a->pid < b->pid ? -1 : a->pid > b->pid;
}

/* Lays out a stretch for each process, in order; counts begin anew. */
static void lay_out(struct filling *filling)
{
	uint32_t first = 0;
	qsort(filling->claimants, filling->nr_claimants, sizeof(*filling->claimants),
	      by_precedence);
	for (size_t i = 0; i < filling->nr_claimants; i++) {
		struct claimant *claimant = &filling->claimants[i];
		filling->claimant_of[claimant->process] = (uint32_t)i + 1;
		claimant->first = first;
		first += claimant->count;
		claimant->count = 0;
	}
}

static int by_accesses(const void *left, const void *right)
{
	const struct claim *a = left, *b = right;
	if (a->accesses != b->accesses)
		return a->accesses > b->accesses ? -1 : 1;
	return a->thread < b->thread ? -1 : a->thread > b->thread;
}

/* Process by process, each one's by accesses. */
static void put_in_order(struct filling *filling)
{
	lay_out(filling);
	for (size_t i = 0; i < filling->nr_claims; i++) {
		const struct claim *claim = &filling->claims[i];
		struct claimant *claimant =
			&filling->claimants[filling->claimant_of[claim->process] - 1];
		filling->ordered[claimant->first + claimant->count++] = *claim;
	}
	for (size_t i = 0; i < filling->nr_claimants; i++)
		qsort(filling->ordered + filling->claimants[i].first, filling->claimants[i].count,
		      sizeof(*filling->ordered), by_accesses);
}

/* Before the first is taken up: which sets there are decides what each counts in. */
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

static void forget_claimants(struct filling *filling)
{
	for (size_t i = 0; i < filling->nr_claimants; i++)
		filling->claimant_of[filling->claimants[i].process] = 0;
	filling->nr_claims = filling->nr_claimants = 0;
}

static void take_up(struct filling *filling, struct nm_rooms *rooms, bool *refused)
{
	put_in_order(filling);
	for (size_t i = 0; i < filling->nr_claims; i++) {
		const struct claim *claim = &filling->ordered[i];
		double demand = demand_of(&filling->snapshot->threads[claim->thread]);
		refused[claim->thread] = !nm_rooms_take(rooms, claim->room, demand);
	}
}

/* Where nobody is bound to a part of the node, and it holds them all, there is nothing to weigh. */
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
	forget_claimants(filling);
	nm_rooms_clear(&rooms);
	return r;
}

int nm_overcommit_refuse(const struct nm_snapshot *snapshot, bool *refused)
{
	size_t threads = snapshot->nr_threads, processes = snapshot->nr_processes;
	nm_autofree struct claim *claims = calloc(2 * threads + 1, sizeof(*claims));
	nm_autofree struct claimant *claimants = calloc(processes + 1, sizeof(*claimants));
	nm_autofree uint32_t *claimant_of = calloc(processes + 1, sizeof(*claimant_of));
	nm_autofree double *demands = calloc(snapshot->topology->nr_nodes + 1, sizeof(*demands));
	if (!claims || !claimants || !claimant_of || !demands)
		return -ENOMEM;
	struct filling filling = {.snapshot = snapshot,
				  .claims = claims,
				  .ordered = claims + threads,
				  .claimants = claimants,
				  .claimant_of = claimant_of};
	for (size_t i = 0; i < threads; i++)
		refused[i] = false;
	sum_demands(snapshot, demands);
	int r = 0;
	for (int node = 0; r == 0 && node < (int)snapshot->topology->nr_nodes; node++)
		r = fill_node(&filling, node, demands[node], refused);
	return r;
}
