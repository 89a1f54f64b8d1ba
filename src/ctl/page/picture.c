/* SPDX-License-Identifier: MIT */
#include "picture.h"

#include <string.h>

#include "html.h"

static const size_t most_picked[NM_PICKED_KINDS] = {
	[NM_PICKED_TRACKS] = 40,
	[NM_PICKED_LINES] = 4,
};

static bool is_busier(const struct nm_seen *a, const struct nm_seen *b)
{
	return a->busy_s != b->busy_s ? a->busy_s > b->busy_s : a->id < b->id;
}

static void put_in(struct nm_pick *pick, size_t most, const struct nm_seen *seen)
{
	size_t at = pick->count;
	while (at > 0 && is_busier(seen, &pick->items[at - 1]))
		at--;
	if (at == most)
		return;
	size_t last = pick->count < most ? pick->count : most - 1;
	memmove(&pick->items[at + 1], &pick->items[at], (last - at) * sizeof(*pick->items));
	pick->items[at] = *seen;
	pick->count = last + 1;
}

static int pick(enum nm_picked what, const struct nm_seen_table *table, struct nm_pick *ret)
{
	ret->items = calloc(most_picked[what] + 1, sizeof(*ret->items));
	if (!ret->items)
		return -ENOMEM;
	for (size_t i = 0; i < table->count; i++)
		put_in(ret, most_picked[what], &table->items[i]);
	ret->more = table->count - ret->count;
	return 0;
}

int nm_picked_index(const struct nm_pick *pick, uint32_t id, uint32_t pid)
{
	for (size_t i = 0; i < pick->count; i++)
		if (pick->items[i].id == id && pick->items[i].pid == pid)
			return (int)i;
	return -1;
}

static int allocate_picture(struct nm_picture *picture)
{
	const struct nm_pick *picked = picture->picked;
	picture->tracks = calloc((picked[NM_PICKED_TRACKS].count + 1) * NM_PICTURE_BINS,
				 sizeof(*picture->tracks));
	picture->lines = calloc((picked[NM_PICKED_LINES].count + 1) * NM_PICTURE_BINS,
				sizeof(*picture->lines));
	return picture->tracks && picture->lines ? 0 : -ENOMEM;
}

int nm_picture_new(const struct nm_census *census, const char *name, struct nm_picture **ret)
{
	nm_auto(nm_picture_freep) struct nm_picture *picture = calloc(1, sizeof(*picture));
	int r = picture ? 0 : -ENOMEM;
	if (r == 0)
		r = pick(NM_PICKED_TRACKS, &census->threads, &picture->picked[NM_PICKED_TRACKS]);
	if (r == 0)
		r = pick(NM_PICKED_LINES, &census->processes, &picture->picked[NM_PICKED_LINES]);
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
	for (unsigned what = 0; what < NM_PICKED_KINDS; what++)
		free(picture->picked[what].items);
	for (size_t i = 0; i < picture->nr_decisions; i++) {
		free(picture->decisions[i].said);
		free(picture->decisions[i].judged);
	}
	free(picture->decisions);
	free(picture->tracks);
	free(picture->lines);
	free(picture->config_name);
	free(picture->config);
	free(picture->end);
	free(picture->source);
	free(picture);
}

static int compare_ids(const void *left, const void *right)
{
	const struct nm_shown_decision *a = left, *b = right;
	return NM_COMPARE(a->id, b->id);
}

struct nm_shown_decision *nm_picture_decision(const struct nm_picture *picture, uint64_t id)
{
	const struct nm_shown_decision wanted = {.id = id};
	return picture->nr_decisions ? bsearch(&wanted, picture->decisions, picture->nr_decisions,
					       sizeof(wanted), compare_ids)
				     : NULL;
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
