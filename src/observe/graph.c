/* SPDX-License-Identifier: MIT */
/* Converts the matrix to the graph for thread placement. */
#include <string.h>

#include "pairs.h"

#define NOBODY UINT32_MAX

/* A pair, as one of its threads sees it. */
struct arc {
	uint32_t from, partner, weight;
};

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

/* The strongest pairs of each thread, in descending order. */
struct selection {
	unsigned partners;
	uint32_t *count;
	struct arc *arcs; /* nr_threads × partners */
};

static void offer(struct selection *selection, uint32_t from, uint32_t partner, uint32_t weight)
{
	struct arc *strongest = selection->arcs + (size_t)from * selection->partners;
	struct arc arc = {.from = from, .partner = partner, .weight = weight};
	uint32_t at = selection->count[from];

	if (at < selection->partners)
		selection->count[from]++;
	else if (!is_weaker(strongest[--at], arc))
		return;
	for (; at > 0 && is_weaker(strongest[at - 1], arc); at--)
		strongest[at] = strongest[at - 1];
	strongest[at] = arc;
}

static int by_partner(const void *left, const void *right)
{
	const struct arc *a = left, *b = right;

	return NM_COMPARE(a->from, b->from) ?: NM_COMPARE(a->partner, b->partner);
}

static void add_cell(struct nm_affinity_row *row, uint32_t weight)
{
	double accesses = (double)weight / NM_SHARING_STEP;
	row->sum += accesses;
	row->squares += accesses * accesses;
}

void nm_affinity_graph(const struct nm_affinity *affinity, const uint32_t *tids, size_t nr_threads,
		       unsigned partners, struct nm_affinity_graph **ret)
{
	nm_autofree uint32_t *vertex_of = vertices_by_id(affinity, tids, nr_threads);
	nm_autofree uint32_t *counts = nm_must(calloc(nr_threads + 1, sizeof(*counts)));
	nm_autofree struct arc *arcs = nm_must(calloc(nr_threads * partners + 1, sizeof(*arcs)));
	nm_autofree struct arc *edges =
		nm_must(calloc(2 * nr_threads * partners + 1, sizeof(*edges)));
	struct selection selection = {.partners = partners, .count = counts, .arcs = arcs};
	struct nm_affinity_graph *graph = nm_must(calloc(1, sizeof(*graph)));
	uint32_t nr_arcs = 0;
	size_t kept = 0;

	graph->rows = nm_must(calloc(nr_threads + 1, sizeof(*graph->rows)));
	for (size_t i = 0; i < affinity->slots; i++) {
		struct nm_pair pair = affinity->pairs[i];
		if (!nm_pair_lives(affinity, pair) || !pair.weight)
			continue;
		uint32_t a = vertex_of[nm_pair_low(pair)], b = vertex_of[nm_pair_high(pair)];
		if (a == NOBODY || b == NOBODY)
			continue;
		offer(&selection, a, b, pair.weight);
		offer(&selection, b, a, pair.weight);
		add_cell(&graph->rows[a], pair.weight);
		add_cell(&graph->rows[b], pair.weight);
	}
	/* A pair that is among the strongest of one of its threads belongs to both. */
	for (size_t i = 0; i < nr_threads; i++)
		for (uint32_t k = 0; k < counts[i]; k++) {
			struct arc arc = arcs[i * partners + k];
			edges[kept++] = arc;
			edges[kept++] = (struct arc){
				.from = arc.partner, .partner = arc.from, .weight = arc.weight};
		}
	qsort(edges, kept, sizeof(*edges), by_partner);
	graph->nr_threads = nr_threads;
	graph->first = nm_must(calloc(nr_threads + 1, sizeof(*graph->first)));
	graph->partner = nm_must(calloc(kept + 1, sizeof(*graph->partner)));
	graph->weight = nm_must(calloc(kept + 1, sizeof(*graph->weight)));
	for (size_t i = 0; i < kept; i++) {
		if (i > 0 && by_partner(&edges[i - 1], &edges[i]) == 0)
			continue;
		graph->partner[nr_arcs] = edges[i].partner;
		graph->weight[nr_arcs++] = edges[i].weight;
		graph->first[edges[i].from + 1] = nr_arcs;
	}
	for (size_t i = 0; i < nr_threads; i++)
		if (graph->first[i + 1] < graph->first[i]) /* no partners */
			graph->first[i + 1] = graph->first[i];
	*ret = graph;
}

void nm_affinity_graph_free(struct nm_affinity_graph *graph)
{
	if (!graph)
		return;
	free(graph->first);
	free(graph->partner);
	free(graph->weight);
	free(graph->rows);
	free(graph);
}
