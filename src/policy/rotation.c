/* SPDX-License-Identifier: MIT */
/*
 * Moves in a circle. On a full machine no CPU is free, and two threads swap only if both gain.
 * Three or more threads of different users may each have their memory where the next one runs: then
 * all of them gain if they move together, and none can move alone.
 */
#include <math.h>

#include "gate.h"
#include "search.h"

#define LEAST_THREADS 3U /* two swap */
#define MAX_COMPARISONS (1ULL << 20)

struct rotation {
	const struct nm_snapshot *snapshot;
	const struct nm_config *config;
	const struct nm_search_tickets *tickets;
	uint32_t nr_nodes;
	uint32_t *waiting; /* at from × nr_nodes + to: the first thread that gains there */
	uint32_t *next;	   /* per thread: the next one on the same nodes */
	uint32_t *before;  /* per node, in one search: the node from which it was reached */
	uint32_t *queue;
	uint64_t comparisons;
};

static void rotation_clear(struct rotation *rotation)
{
	free(rotation->waiting);
	free(rotation->next);
	free(rotation->before);
	free(rotation->queue);
}

static uint32_t *waiting_at(struct rotation *rotation, uint32_t from, uint32_t to)
{
	return &rotation->waiting[(size_t)from * rotation->nr_nodes + to];
}

/* Returns whether the thread gains on the node that it prefers, and may run on any CPU there. */
static bool gains(const struct rotation *rotation, uint32_t index)
{
	const struct nm_snapshot *snapshot = rotation->snapshot;
	const struct nm_config *config = rotation->config;
	const struct nm_snap_thread *thread = &snapshot->threads[index];
	int to = thread->preferred;
	if (!thread->movable || !rotation->tickets->known[index] || thread->main_node < 0 ||
	    to < 0 || to == thread->main_node || !snapshot->cpus[thread->main_cpu].usable)
		return false;
	return (thread->everywhere ||
		hwloc_bitmap_isincluded(snapshot->topology->nodes[to].cpus, thread->allowed)) &&
	       nm_surplus_of(snapshot->topology, thread, thread->main_node, to, NM_GATE_MARGIN,
			     config->rules.gate_sigmas) > 0;
}

/*
 * Finds the shortest way from one node to another along which threads wait to move. Returns the
 * number of nodes on it, or 0; rotation->before leads back from its end.
 */
static uint32_t find_way(struct rotation *rotation, uint32_t from, uint32_t to)
{
	uint32_t head = 0, tail = 0, length = 1;
	for (uint32_t k = 0; k < rotation->nr_nodes; k++)
		rotation->before[k] = NM_NO_PARTNER;
	rotation->comparisons += (uint64_t)rotation->nr_nodes * rotation->nr_nodes;
	rotation->before[from] = from;
	rotation->queue[tail++] = from;
	while (head < tail && rotation->before[to] == NM_NO_PARTNER) {
		uint32_t at = rotation->queue[head++];
		for (uint32_t k = 0; k < rotation->nr_nodes; k++) {
			if (rotation->before[k] != NM_NO_PARTNER ||
			    *waiting_at(rotation, at, k) == NM_NO_PARTNER)
				continue;
			rotation->before[k] = at;
			rotation->queue[tail++] = k;
		}
	}
	if (rotation->before[to] == NM_NO_PARTNER)
		return 0;
	for (uint32_t at = to; at != from; at = rotation->before[at])
		length++;
	return length;
}

static uint32_t take_waiting(struct rotation *rotation, uint32_t from, uint32_t to)
{
	uint32_t *first = waiting_at(rotation, from, to), thread = *first;
	*first = rotation->next[thread];
	return thread;
}

static void add_move(const struct rotation *rotation, uint32_t thread, int cpu_to,
		     struct nm_proposals *proposals)
{
	const struct nm_snap_thread *moved = &rotation->snapshot->threads[thread];
	struct nm_proposal *proposal = &proposals->items[proposals->count++];
	*proposal = (struct nm_proposal){
		.kind = NM_PROPOSAL_MIGRATE,
		.moves = {{.thread = thread,
			   .cpu_from = moved->main_cpu,
			   .cpu_to = cpu_to,
			   .node_from = moved->main_node,
			   .node_to = moved->preferred,
			   .record = NAN}},
		.tickets.total =
			rotation->tickets->move_tickets[(size_t)thread * rotation->nr_nodes +
							(size_t)moved->preferred],
		.nr_candidates = 1,
		.nr_alternatives = 1,
	};
	proposals->stuck--;
	proposal->gain = nm_gate_gain(rotation->snapshot, proposal->moves, 1);
	proposal->alternatives[0] = (struct nm_alternative){
		.node_to = moved->preferred, .cpu_to = cpu_to, .tickets = proposal->tickets.total};
}

/* Adds the moves along the way that was found from `start` to `end`, and the one from `end` to
 * `start`: each thread moves to the CPU of the thread that leaves its node. */
static void add_circle(struct rotation *rotation, uint32_t start, uint32_t end,
		       struct nm_proposals *proposals)
{
	uint32_t first = take_waiting(rotation, end, start), left = first;
	/* Backwards: `left` leaves the node to which the thread found next moves. */
	for (uint32_t to = end; to != start; to = rotation->before[to]) {
		uint32_t thread = take_waiting(rotation, rotation->before[to], to);
		add_move(rotation, thread, rotation->snapshot->threads[left].main_cpu, proposals);
		left = thread;
	}
	add_move(rotation, first, rotation->snapshot->threads[left].main_cpu, proposals);
}

void nm_search_circles(const struct nm_snapshot *snapshot, const struct nm_config *config,
		       const struct nm_search_tickets *tickets, const bool *stuck, uint64_t most,
		       struct nm_proposals *proposals)
{
	nm_auto(rotation_clear) struct rotation rotation = {
		.snapshot = snapshot,
		.config = config,
		.tickets = tickets,
		.nr_nodes = snapshot->topology->nr_nodes,
	};
	size_t nodes = rotation.nr_nodes, threads = snapshot->nr_threads;
	rotation.waiting = nm_must(calloc(nodes * nodes + 1, sizeof(*rotation.waiting)));
	rotation.next = nm_must(calloc(threads + 1, sizeof(*rotation.next)));
	rotation.before = nm_must(calloc(nodes + 1, sizeof(*rotation.before)));
	rotation.queue = nm_must(calloc(nodes + 1, sizeof(*rotation.queue)));
	nm_autofree bool *moving = nm_must(calloc(threads + 1, sizeof(*moving)));
	for (size_t i = 0; i < proposals->count; i++) {
		const struct nm_proposal *proposal = &proposals->items[i];
		moving[proposal->moves[0].thread] = true;
		if (proposal->kind == NM_PROPOSAL_SWAP)
			moving[proposal->moves[1].thread] = true;
	}
	for (size_t i = 0; i < nodes * nodes; i++)
		rotation.waiting[i] = NM_NO_PARTNER;
	/* In descending order, so that the first thread of each list has the lowest index. */
	for (uint32_t i = (uint32_t)threads; i-- > 0;) {
		const struct nm_snap_thread *thread = &snapshot->threads[i];
		if (moving[i] || !stuck[i] || !gains(&rotation, i))
			continue;
		uint32_t *first = waiting_at(&rotation, (uint32_t)thread->main_node,
					     (uint32_t)thread->preferred);
		rotation.next[i] = *first;
		*first = i;
	}
	for (uint32_t edge = 0; edge < rotation.nr_nodes * rotation.nr_nodes; edge++) {
		uint32_t end = edge / rotation.nr_nodes, start = edge % rotation.nr_nodes;
		while (rotation.waiting[edge] != NM_NO_PARTNER &&
		       rotation.comparisons < MAX_COMPARISONS) {
			uint32_t length = find_way(&rotation, start, end);
			if (length < LEAST_THREADS || length > most)
				break;
			add_circle(&rotation, start, end, proposals);
			most -= length;
		}
	}
}
