// SPDX-License-Identifier: MIT
/* The rules for moving the memory of a process, applied to the kernel's text about it. */
#include "platform/maps.h"

#include <string.h>

#define SMALL_PAGE 4096U

enum nm_maps_rule nm_mapped_rule(const struct nm_mapped *mapped, const struct nm_maps_rules *rules)
{
	if (mapped->policy == NM_MEMORY_UNKNOWN)
		return NM_MAPS_UNKNOWN;
	if (!rules->move_bound && nm_mapped_is_bound(mapped))
		return NM_MAPS_BOUND;
	if (!rules->move_shared && mapped->shared)
		return NM_MAPS_SHARED;
	if (!rules->move_shared && mapped->file)
		return NM_MAPS_FILE;
	return mapped->empty ? NM_MAPS_EMPTY : NM_MAPS_MOVES;
}

/* ---- lines ---- */

/* Extents are ascending. One that is not results from a change during the reading, and is skipped.
 */
static int add_extent(struct nm_maps *maps)
{
	struct nm_mapped mapped;

	if (nm_mapped_parse_extent(maps->line, &mapped) < 0)
		return 0;
	if (maps->count > 0 && mapped.start < maps->items[maps->count - 1].end)
		return 0;
	if (maps->count == NM_MAPPINGS_MOST)
		return -EFBIG;
	NM_RESERVE(maps->items, maps->capacity, maps->count);
	maps->items[maps->count++] = mapped;
	return 0;
}

/* A line that begins within an extent shows that the extent was split after maps was read. It is
 * unknown whether the rest of the extent is still like its beginning, so the extent ends there. */
static void cut_extent(struct nm_maps *maps, uint64_t start)
{
	struct nm_mapped *before = maps->next ? &maps->items[maps->next - 1] : NULL;

	if (before && before->start < start && start < before->end)
		before->end = start;
}

/* A mapping that began at another address when maps was read may not be the same one. */
static struct nm_mapped *extent_at(struct nm_maps *maps, uint64_t start)
{
	while (maps->next < maps->count && maps->items[maps->next].start < start)
		maps->next++;
	cut_extent(maps, start);
	if (maps->next == maps->count || maps->items[maps->next].start != start)
		return NULL;
	return &maps->items[maps->next];
}

static void add_policy(struct nm_maps *maps)
{
	struct nm_mapped parsed;

	if (nm_mapped_parse_policy(maps->line, &parsed) < 0)
		return;
	struct nm_mapped *mapped = extent_at(maps, parsed.start);
	if (!mapped)
		return;
	mapped->policy = maps->overlong ? NM_MEMORY_OTHER : parsed.policy;
	mapped->page_bytes = parsed.page_bytes ? parsed.page_bytes : SMALL_PAGE;
	mapped->file = parsed.file || (mapped->file && !parsed.huge);
	mapped->huge = parsed.huge;
	mapped->empty = parsed.empty;
	mapped->only_on = parsed.only_on;
	mapped->resident = parsed.resident;
}

static int end_line(struct nm_maps *maps)
{
	int r = 0;

	maps->line[maps->used] = '\0';
	if (maps->described)
		add_policy(maps);
	else
		r = add_extent(maps);
	maps->used = 0;
	maps->overlong = false;
	return r;
}

/* Adds a part of a line. */
static void add_text(struct nm_maps *maps, const char *text, size_t length)
{
	size_t room = NM_MAPPINGS_LINE_BYTES - 1 - maps->used;
	char *at = maps->line + maps->used;

	maps->overlong |= length > room;
	length = length < room ? length : room;
	memcpy(at, text, length);
	maps->used += length;
	for (; (at = memchr(at, '\0', (size_t)(maps->line + maps->used - at)));)
		*at = ' ';
}

int nm_maps_add(struct nm_maps *maps, const char *piece, size_t length)
{
	for (const char *end = piece + length; piece < end;) {
		const char *newline = memchr(piece, '\n', (size_t)(end - piece));
		add_text(maps, piece, (size_t)((newline ? newline : end) - piece));
		int r = newline ? end_line(maps) : 0;
		if (r < 0)
			return r;
		piece = newline ? newline + 1 : end;
	}
	return 0;
}

void nm_maps_end_file(struct nm_maps *maps)
{
	maps->used = 0;
	maps->overlong = false;
	maps->complete = maps->described;
	maps->described = true;
}

void nm_maps_clear(struct nm_maps *maps)
{
	free(maps->items);
	*maps = (struct nm_maps){0};
}
