/* SPDX-License-Identifier: MIT */
#include "picture.h"

#include <string.h>

#include "html.h"

static const size_t most_picked[NM_PICKED_KINDS] = {
	[NM_PICKED_POINTS] = 400, [NM_PICKED_TRACKS] = 40, [NM_PICKED_MATRIX] = 48,
	[NM_PICKED_LINES] = 4,	  [NM_PICKED_SPACES] = 6,
};

/* Returns the weight for the selection; 0: no data. */
static double weight_of(enum nm_picked what, const struct nm_seen *seen)
{
	switch (what) {
	case NM_PICKED_POINTS:
		return seen->has_roof ? seen->busy_s : 0;
	case NM_PICKED_MATRIX:
		return seen->shared;
	case NM_PICKED_SPACES:
		return (double)seen->most_pages;
	default:
		return seen->busy_s;
	}
}

static bool comes_before(enum nm_picked what, const struct nm_seen *a, const struct nm_seen *b)
{
	double one = weight_of(what, a), other = weight_of(what, b);
	return one != other ? one > other : a->id < b->id;
}

static void put_in(enum nm_picked what, struct nm_pick *pick, const struct nm_seen *seen)
{
	size_t at = pick->count;
	while (at > 0 && comes_before(what, seen, &pick->items[at - 1]))
		at--;
	if (at == most_picked[what])
		return;
	size_t last = pick->count < most_picked[what] ? pick->count : most_picked[what] - 1;
	memmove(&pick->items[at + 1], &pick->items[at], (last - at) * sizeof(*pick->items));
	pick->items[at] = *seen;
	pick->count = last + 1;
}

static int compare_key(const struct nm_seen *seen, uint32_t id, uint32_t pid)
{
	return NM_COMPARE(seen->id, id) ?: NM_COMPARE(seen->pid, pid);
}

static int compare_items(const void *a, const void *b, void *context)
{
	const struct nm_seen *items = context;
	const struct nm_seen *other = &items[*(const uint32_t *)b];
	return compare_key(&items[*(const uint32_t *)a], other->id, other->pid);
}

/* Groups communicating threads by process. */
static int compare_owners(const void *a, const void *b)
{
	const struct nm_seen *one = a, *other = b;
	return NM_COMPARE(one->pid, other->pid) ?: NM_COMPARE(one->id, other->id);
}

static int pick(enum nm_picked what, const struct nm_seen_table *table, struct nm_pick *ret)
{
	uint64_t all = 0;
	ret->items = calloc(most_picked[what] + 1, sizeof(*ret->items));
	ret->by_id = calloc(most_picked[what] + 1, sizeof(*ret->by_id));
	if (!ret->items || !ret->by_id)
		return -ENOMEM;
	for (size_t i = 0; i < table->count; i++) {
		if (!(weight_of(what, &table->items[i]) > 0))
			continue;
		put_in(what, ret, &table->items[i]);
		all++;
	}
	if (what == NM_PICKED_MATRIX)
		qsort(ret->items, ret->count, sizeof(*ret->items), compare_owners);
	ret->more = all - ret->count;
	for (uint32_t i = 0; i < ret->count; i++)
		ret->by_id[i] = i;
	qsort_r(ret->by_id, ret->count, sizeof(*ret->by_id), compare_items, ret->items);
	return 0;
}

int nm_picked_index(const struct nm_pick *pick, uint32_t id, uint32_t pid)
{
	size_t low = 0, high = pick->count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		uint32_t index = pick->by_id[middle];
		int order = compare_key(&pick->items[index], id, pid);
		if (order == 0)
			return (int)index;
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return -1;
}

static int allocate_picture(struct nm_picture *picture)
{
	const struct nm_pick *picked = picture->picked;
	size_t sharing = picked[NM_PICKED_MATRIX].count;
	picture->roofs = calloc(picked[NM_PICKED_POINTS].count + 1, sizeof(*picture->roofs));
	picture->trails =
		calloc((size_t)NM_PICTURE_TRAILS * NM_PICTURE_STEPS, sizeof(*picture->trails));
	picture->tracks = calloc((picked[NM_PICKED_TRACKS].count + 1) * NM_PICTURE_BINS,
				 sizeof(*picture->tracks));
	picture->matrix = calloc(sharing * sharing + 1, sizeof(*picture->matrix));
	picture->lines = calloc((picked[NM_PICKED_LINES].count + 1) * NM_PICTURE_BINS,
				sizeof(*picture->lines));
	picture->spaces = calloc(picked[NM_PICKED_SPACES].count + 1, sizeof(*picture->spaces));
	return picture->roofs && picture->trails && picture->tracks && picture->matrix &&
			       picture->lines && picture->spaces
		       ? 0
		       : -ENOMEM;
}

int nm_picture_new(const struct nm_census *census, const char *name, struct nm_picture **ret)
{
	nm_auto(nm_picture_freep) struct nm_picture *picture = calloc(1, sizeof(*picture));
	int r = picture ? 0 : -ENOMEM;
	for (unsigned what = 0; r == 0 && what < NM_PICKED_KINDS; what++)
		r = pick((enum nm_picked)what,
			 what == NM_PICKED_LINES || what == NM_PICKED_SPACES ? &census->processes
									     : &census->threads,
			 &picture->picked[what]);
	if (r == 0)
		r = allocate_picture(picture);
	if (r < 0)
		return r;
	picture->census = census;
	picture->name = name;
	picture->span_s = (double)(census->last_ns - census->first_ns) / 1e9;
	if (census->decisions > NM_PICTURE_DECISIONS)
		picture->skipped_decisions = census->decisions - NM_PICTURE_DECISIONS;
	*ret = NM_TAKE(picture);
	return 0;
}

void nm_picture_free(struct nm_picture *picture)
{
	if (!picture)
		return;
	for (unsigned what = 0; what < NM_PICKED_KINDS; what++) {
		free(picture->picked[what].items);
		free(picture->picked[what].by_id);
	}
	for (size_t i = 0; i < picture->nr_decisions; i++) {
		free(picture->decisions[i].said);
		free(picture->decisions[i].judged);
	}
	free(picture->decisions);
	free(picture->roofs);
	free(picture->trails);
	free(picture->tracks);
	free(picture->matrix);
	free(picture->lines);
	free(picture->spaces);
	free(picture->config_name);
	free(picture->config);
	free(picture->end);
	free(picture->source);
	free(picture);
}

struct nm_shown_decision *nm_picture_decision(const struct nm_picture *picture, uint64_t id)
{
	size_t low = 0, high = picture->nr_decisions;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (picture->decisions[middle].id == id)
			return &picture->decisions[middle];
		if (picture->decisions[middle].id < id)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

const char *nm_picture_comm(const struct nm_picture *picture, uint32_t pid)
{
	const struct nm_seen *process = nm_seen_find(&picture->census->processes, pid);
	return process && process->comm[0] != '\0' ? process->comm : "?";
}

void nm_picture_put_comm(const struct nm_picture *picture, uint32_t pid, FILE *out)
{
	const char *comm = nm_picture_comm(picture, pid);
	nm_html(out, "<bdi>");
	nm_html_text(out, comm, strlen(comm));
	nm_html(out, "</bdi>");
}
