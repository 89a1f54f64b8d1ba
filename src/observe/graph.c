/* SPDX-License-Identifier: MIT */
/* Converts the matrix to the graph for thread placement. */
#include <string.h>

#include "pairs.h"

#define NOBODY UINT32_MAX

struct arc {
	uint32_t weight, partner;
};

/* The strongest pairs of each thread so far: a heap each, with the weakest on top. */
struct selection {
	size_t nr_threads;
	unsigned partners;
	uint32_t *vertex_of; /* by id: index of the thread, or NOBODY */
	uint32_t *count;
	struct arc *arcs; /* nr_threads × partners */
};

static void free_selection(struct selection *selection)
{
	free(selection->vertex_of);
	free(selection->count);
	free(selection->arcs);
}

static uint32_t *vertices_by_id(const struct nm_affinity *affinity, const uint32_t *tids,
				size_t nr_threads)
{
	uint32_t *vertex_of = nm_must(malloc(affinity->vertex_count * sizeof(*vertex_of)));

	memset(vertex_of, 0xff, affinity->vertex_count * sizeof(*vertex_of));
	for (size_t i = 0; i < nr_threads; i++) {
		uint16_t id = nm_affinity_id(affinity, tids[i]);
		if (id)
			vertex_of[id] = (uint32_t)i;
	}
	return vertex_of;
}

/* Of equal weights, the pair with the lower partner is stronger, so that the order of the cells has
 * no effect. */
static bool is_weaker(struct arc a, struct arc b)
{
	return a.weight != b.weight ? a.weight < b.weight : a.partner > b.partner;
}

static void sift_down(struct arc *heap, uint32_t count, struct arc arc)
{
	uint32_t at = 0;

	for (;;) {
		uint32_t child = 2 * at + 1;
		if (child >= count)
			break;
		if (child + 1 < count && is_weaker(heap[child + 1], heap[child]))
			child++;
		if (!is_weaker(heap[child], arc))
			break;
		heap[at] = heap[child];
		at = child;
	}
	heap[at] = arc;
}

static void sift_up(struct arc *heap, uint32_t at, struct arc arc)
{
	while (at > 0 && is_weaker(arc, heap[(at - 1) / 2])) {
		heap[at] = heap[(at - 1) / 2];
		at = (at - 1) / 2;
	}
	heap[at] = arc;
}

static void offer(struct selection *selection, uint32_t vertex, uint32_t partner, uint32_t weight)
{
	struct arc *heap = selection->arcs + (size_t)vertex * selection->partners;
	struct arc arc = {.weight = weight, .partner = partner};

	if (selection->count[vertex] < selection->partners)
		sift_up(heap, selection->count[vertex]++, arc);
	else if (is_weaker(heap[0], arc))
		sift_down(heap, selection->count[vertex], arc);
}

static void select_all(struct selection *selection, const struct nm_affinity *affinity)
{
	for (size_t i = 0; i < affinity->slots; i++) {
		struct nm_pair pair = affinity->pairs[i];
		if (!nm_pair_lives(affinity, pair) || !pair.weight)
			continue;
		uint32_t a = selection->vertex_of[nm_pair_low(pair)];
		uint32_t b = selection->vertex_of[nm_pair_high(pair)];
		if (a == NOBODY || b == NOBODY)
			continue;
		offer(selection, a, b, pair.weight);
		offer(selection, b, a, pair.weight);
	}
}

static void begin_selection(const struct nm_affinity *affinity, const uint32_t *tids,
			    struct selection *selection)
{
	size_t nr_threads = selection->nr_threads ? selection->nr_threads : 1;

	selection->vertex_of = vertices_by_id(affinity, tids, selection->nr_threads);
	selection->count = nm_must(calloc(nr_threads, sizeof(*selection->count)));
	selection->arcs =
		nm_must(calloc(nr_threads * selection->partners, sizeof(*selection->arcs)));
}

/* ---- the graph ---- */

static bool has_partner(const struct selection *selection, uint32_t vertex, uint32_t partner)
{
	const struct arc *heap = selection->arcs + (size_t)vertex * selection->partners;

	for (uint32_t i = 0; i < selection->count[vertex]; i++)
		if (heap[i].partner == partner)
			return true;
	return false;
}

/* Calls on_edge once for each selected pair, for the end that has it first. */
static void for_edges(const struct selection *selection, struct nm_affinity_graph *graph,
		      void (*on_edge)(struct nm_affinity_graph *graph, uint32_t a, struct arc arc))
{
	for (uint32_t a = 0; a < selection->nr_threads; a++) {
		const struct arc *heap = selection->arcs + (size_t)a * selection->partners;
		for (uint32_t i = 0; i < selection->count[a]; i++)
			if (heap[i].partner > a || !has_partner(selection, heap[i].partner, a))
				on_edge(graph, a, heap[i]);
	}
}

static void count_edge(struct nm_affinity_graph *graph, uint32_t a, struct arc arc)
{
	graph->first[a + 1]++;
	graph->first[arc.partner + 1]++;
}

/*
 * first[v + 1] is the current end of v's row, and its final value when all edges have been added.
 */
static void put_edge(struct nm_affinity_graph *graph, uint32_t a, struct arc arc)
{
	uint32_t at = graph->first[a + 1]++, back = graph->first[arc.partner + 1]++;

	graph->partner[at] = arc.partner;
	graph->partner[back] = a;
	graph->weight[at] = graph->weight[back] = arc.weight;
}

/* Insertion sort: rows are short and nearly sorted. */
static void sort_row(struct nm_affinity_graph *graph, uint32_t vertex)
{
	uint32_t begin = graph->first[vertex], end = graph->first[vertex + 1];

	for (uint32_t i = begin + 1; i < end; i++) {
		struct arc arc = {graph->weight[i], graph->partner[i]};
		uint32_t at = i;
		for (; at > begin && graph->partner[at - 1] > arc.partner; at--) {
			graph->partner[at] = graph->partner[at - 1];
			graph->weight[at] = graph->weight[at - 1];
		}
		graph->partner[at] = arc.partner;
		graph->weight[at] = arc.weight;
	}
}

static void build(const struct selection *selection, struct nm_affinity_graph *graph)
{
	size_t nr_threads = selection->nr_threads;
	uint32_t arcs = 0;

	graph->nr_threads = nr_threads;
	graph->first = nm_must(calloc(nr_threads + 1, sizeof(*graph->first)));
	for_edges(selection, graph, count_edge);
	for (size_t i = 0; i < nr_threads; i++) {
		uint32_t length = graph->first[i + 1];
		graph->first[i + 1] = arcs;
		arcs += length;
	}
	graph->partner = nm_must(calloc((size_t)arcs + 1, sizeof(*graph->partner)));
	graph->weight = nm_must(calloc((size_t)arcs + 1, sizeof(*graph->weight)));
	for_edges(selection, graph, put_edge);
	for (uint32_t i = 0; i < nr_threads; i++)
		sort_row(graph, i);
}

int nm_affinity_graph(const struct nm_affinity *affinity, const uint32_t *tids, size_t nr_threads,
		      unsigned partners, struct nm_affinity_graph **ret)
{
	nm_auto(free_selection) struct selection selection = {.nr_threads = nr_threads,
							      .partners = partners};
	nm_auto(nm_affinity_graph_freep) struct nm_affinity_graph *graph =
		nm_must(calloc(1, sizeof(*graph)));

	begin_selection(affinity, tids, &selection);
	select_all(&selection, affinity);
	build(&selection, graph);
	*ret = NM_TAKE(graph);
	return 0;
}

void nm_affinity_graph_free(struct nm_affinity_graph *graph)
{
	if (!graph)
		return;
	free(graph->first);
	free(graph->partner);
	free(graph->weight);
	free(graph);
}
