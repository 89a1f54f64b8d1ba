/* SPDX-License-Identifier: MIT */
/* Threads with their ids, and the cells of the communication matrix. */
#include "pairs.h"

#define GROW_FACTOR 4U

void nm_affinity_new(const struct nm_config *config, struct nm_affinity **ret)
{
	nm_auto(nm_affinity_freep) struct nm_affinity *affinity =
		nm_must(calloc(1, sizeof(*affinity)));

	nm_affinity_configure(affinity, config);
	affinity->slots = NM_PAIRS_FEWEST;
	affinity->pairs = nm_must(calloc(affinity->slots, sizeof(*affinity->pairs)));
	NM_RESERVE(affinity->vertices, affinity->vertex_capacity, 0);
	affinity->vertices[0] = (struct nm_vertex){0};
	affinity->vertex_count = 1;
	affinity->id_of = nm_tidmap_new();
	*ret = NM_TAKE(affinity);
}

void nm_affinity_free(struct nm_affinity *affinity)
{
	if (!affinity)
		return;
	free(affinity->pairs);
	free(affinity->vertices);
	nm_tidmap_free(affinity->id_of);
	free(affinity);
}

void nm_affinity_configure(struct nm_affinity *affinity, const struct nm_config *config)
{
	affinity->window_s = (uint32_t)config->rules.sharing_window_s;
}

/* Returns an id that is in no page: its thread exited longer ago than the window for sharing, and
 * its pairs have been cleared; 0 if there is none. */
static uint16_t take_free(struct nm_affinity *affinity, uint32_t now_s)
{
	uint16_t id = affinity->first_free;
	const struct nm_vertex *vertex = &affinity->vertices[id];

	if (!id || now_s - vertex->left_s <= affinity->window_s ||
	    affinity->agings == vertex->left_aging)
		return 0;
	affinity->first_free = vertex->next_free;
	if (affinity->last_free == id)
		affinity->last_free = 0;
	return id;
}

static void put_free(struct nm_affinity *affinity, uint16_t id)
{
	affinity->vertices[id].tid = 0;
	affinity->vertices[id].next_free = 0;
	if (affinity->last_free)
		affinity->vertices[affinity->last_free].next_free = id;
	else
		affinity->first_free = id;
	affinity->last_free = id;
}

int nm_affinity_join(struct nm_affinity *affinity, uint32_t tid, uint32_t now_s, uint16_t *ret)
{
	uint16_t id = nm_affinity_id(affinity, tid);

	if (id) {
		*ret = id;
		return 0;
	}
	id = take_free(affinity, now_s);
	if (!id) {
		if (affinity->vertex_count > UINT16_MAX)
			return -ENOSPC;
		NM_RESERVE(affinity->vertices, affinity->vertex_capacity, affinity->vertex_count);
		id = (uint16_t)affinity->vertex_count++;
	}
	affinity->vertices[id] = (struct nm_vertex){.tid = tid};
	int r = nm_tidmap_set(affinity->id_of, tid, id);
	if (r < 0) {
		put_free(affinity, id);
		return r;
	}
	affinity->live++;
	*ret = id;
	return 0;
}

void nm_affinity_leave(struct nm_affinity *affinity, uint32_t tid, uint32_t now_s)
{
	uint16_t id = nm_affinity_id(affinity, tid);

	if (!id)
		return;
	nm_tidmap_remove(affinity->id_of, tid);
	affinity->vertices[id].left_s = now_s;
	affinity->vertices[id].left_aging = affinity->agings;
	put_free(affinity, id);
	affinity->live--;
}

uint16_t nm_affinity_id(const struct nm_affinity *affinity, uint32_t tid)
{
	uint32_t id = nm_tidmap_get(affinity->id_of, tid);

	return id == NM_TIDMAP_NONE ? 0 : (uint16_t)id;
}

static uint32_t ids_of(uint16_t a, uint16_t b)
{
	return a < b ? (uint32_t)a << 16 | b : (uint32_t)b << 16 | a;
}

/* Returns the cell, or the free one where it belongs; there is always a free one. */
static struct nm_pair *cell(struct nm_pair *pairs, size_t slots, uint32_t ids)
{
	uint64_t mixed = ids * 0x9e3779b97f4a7c15ULL;
	size_t at = (size_t)(mixed >> 32) & (slots - 1);

	while (pairs[at].ids && pairs[at].ids != ids)
		at = (at + 1) & (slots - 1);
	return &pairs[at];
}

static bool is_live(const struct nm_affinity *affinity, uint16_t id)
{
	return id < affinity->vertex_count && affinity->vertices[id].tid;
}

void nm_affinity_share(struct nm_affinity *affinity, uint16_t a, uint16_t b)
{
	if (a == b || !is_live(affinity, a) || !is_live(affinity, b))
		return;
	struct nm_pair *pair = cell(affinity->pairs, affinity->slots, ids_of(a, b));
	if (pair->ids == 0) {
		/* Full tables are slow to search, so the last eighth stays free. */
		if (affinity->used >= affinity->slots / 8 * 7) {
			affinity->lost++;
			return;
		}
		pair->ids = ids_of(a, b);
		affinity->used++;
	}
	if (pair->weight <= UINT32_MAX - NM_SHARING_STEP)
		pair->weight += NM_SHARING_STEP;
}

static size_t wanted_slots(const struct nm_affinity *affinity)
{
	size_t slots = affinity->slots;

	if (affinity->used > slots / 2 && slots < NM_PAIRS_MOST)
		slots *= GROW_FACTOR;
	return slots < NM_PAIRS_MOST ? slots : NM_PAIRS_MOST;
}

void nm_affinity_age(struct nm_affinity *affinity)
{
	size_t slots = wanted_slots(affinity), used = 0;
	struct nm_pair *pairs = nm_must(calloc(slots, sizeof(*pairs)));

	for (size_t i = 0; i < affinity->slots; i++) {
		struct nm_pair pair = affinity->pairs[i];
		if (!nm_pair_lives(affinity, pair))
			continue;
		pair.weight -= pair.weight >> 2;
		/* A weight below 4 cannot decay, and would only use space. */
		if (pair.weight < 4)
			continue;
		*cell(pairs, slots, pair.ids) = pair;
		used++;
	}
	free(affinity->pairs);
	affinity->pairs = pairs;
	affinity->slots = slots;
	affinity->used = used;
	affinity->agings++;
}

void nm_affinity_each(const struct nm_affinity *affinity, nm_affinity_fn each, void *context)
{
	for (size_t i = 0; i < affinity->slots; i++) {
		struct nm_pair pair = affinity->pairs[i];
		if (nm_pair_lives(affinity, pair))
			each(context, affinity->vertices[nm_pair_low(pair)].tid,
			     affinity->vertices[nm_pair_high(pair)].tid, pair.weight);
	}
}

struct nm_affinity_counts nm_affinity_counts(const struct nm_affinity *affinity)
{
	return (struct nm_affinity_counts){
		.threads = affinity->live,
		.pairs = affinity->used,
		.bytes = affinity->slots * sizeof(*affinity->pairs),
		.lost = affinity->lost,
	};
}
