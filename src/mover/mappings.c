// SPDX-License-Identifier: MIT
/* Reads /proc/PID/maps and then numa_maps within a time budget, and looks up mappings. */
#include "mappings.h"

#include <string.h>

#define READ_BYTES 8192U
#define SMALL_PAGE 4096U

void nm_mappings_new(struct nm_platform *platform, struct nm_mappings **ret)
{
	struct nm_mappings *mappings = nm_must(calloc(1, sizeof(*mappings)));

	mappings->platform = platform;
	mappings->directory = mappings->fd = -1;
	mappings->text = nm_must(malloc(READ_BYTES));
	*ret = mappings;
}

static void close_file(struct nm_mappings *mappings, int *fd)
{
	if (*fd >= 0)
		mappings->platform->ops->close(mappings->platform, *fd);
	*fd = -1;
}

void nm_mappings_free(struct nm_mappings *mappings)
{
	if (!mappings)
		return;
	close_file(mappings, &mappings->fd);
	close_file(mappings, &mappings->directory);
	free(mappings->text);
	free(mappings->items);
	free(mappings);
}

/* ---- lines ---- */

/*
 * Extents are ascending. One that is not results from a change during the reading, and is skipped.
 */
static int add_extent(struct nm_mappings *mappings)
{
	struct nm_mapped mapped;

	if (nm_mapped_parse_extent(mappings->line, &mapped) < 0)
		return 0;
	if (mappings->count > 0 && mapped.start < mappings->items[mappings->count - 1].end)
		return 0;
	if (mappings->count == NM_MAPPINGS_MOST)
		return -EFBIG;
	NM_RESERVE(mappings->items, mappings->capacity, mappings->count);
	mappings->items[mappings->count++] = mapped;
	return 0;
}

/* A line that begins within an extent shows that the extent was split after maps was read. It is
 * unknown whether the rest of the extent is still like its beginning, so the extent ends there. */
static void cut_extent(struct nm_mappings *mappings, uint64_t start)
{
	struct nm_mapped *before = mappings->next ? &mappings->items[mappings->next - 1] : NULL;

	if (before && before->start < start && start < before->end)
		before->end = start;
}

/* A mapping that began at another address when maps was read may not be the same one. */
static struct nm_mapped *extent_at(struct nm_mappings *mappings, uint64_t start)
{
	while (mappings->next < mappings->count && mappings->items[mappings->next].start < start)
		mappings->next++;
	cut_extent(mappings, start);
	if (mappings->next == mappings->count || mappings->items[mappings->next].start != start)
		return NULL;
	return &mappings->items[mappings->next];
}

static void add_policy(struct nm_mappings *mappings)
{
	struct nm_mapped parsed;

	if (nm_mapped_parse_policy(mappings->line, &parsed) < 0)
		return;
	struct nm_mapped *mapped = extent_at(mappings, parsed.start);
	if (!mapped) {
		mappings->grown = true;
		return;
	}
	mapped->policy = mappings->overlong ? NM_MEMORY_OTHER : parsed.policy;
	mapped->page_bytes = parsed.page_bytes ? parsed.page_bytes : SMALL_PAGE;
	mapped->shared |= parsed.shared;
	mapped->file = parsed.file || (mapped->file && !parsed.huge);
	mapped->huge = parsed.huge;
	mapped->empty = parsed.empty;
	mapped->only_on = parsed.only_on;
	mapped->resident = parsed.resident;
	if (!mapped->shared)
		nm_mapped_add_nodes(mappings->line, mappings->on_nodes);
}

static int end_line(struct nm_mappings *mappings)
{
	int r = 0;

	mappings->line[mappings->used] = '\0';
	if (mappings->phase == NM_MAPPINGS_EXTENTS)
		r = add_extent(mappings);
	else
		add_policy(mappings);
	mappings->used = 0;
	mappings->overlong = false;
	return r;
}

/* Adds a part of a line. */
static void add_text(struct nm_mappings *mappings, const char *text, size_t length)
{
	size_t room = NM_MAPPINGS_LINE_BYTES - 1 - mappings->used;
	char *at = mappings->line + mappings->used;

	mappings->overlong |= length > room;
	length = length < room ? length : room;
	memcpy(at, text, length);
	mappings->used += length;
	for (; (at = memchr(at, '\0', (size_t)(mappings->line + mappings->used - at)));)
		*at = ' ';
}

static int take_piece(struct nm_mappings *mappings, const char *piece, size_t length)
{
	for (const char *end = piece + length; piece < end;) {
		const char *newline = memchr(piece, '\n', (size_t)(end - piece));
		add_text(mappings, piece, (size_t)((newline ? newline : end) - piece));
		int r = newline ? end_line(mappings) : 0;
		if (r < 0)
			return r;
		piece = newline ? newline + 1 : end;
	}
	return 0;
}

/* ---- reading ---- */

/* Releases unused memory, because the extents are kept for a while. */
static void shrink(struct nm_mappings *mappings)
{
	void *items =
		nm_must(reallocarray(mappings->items, mappings->count, sizeof(*mappings->items)));

	mappings->items = items;
	mappings->capacity = mappings->count;
}

/* A file without its last newline was truncated; its incomplete last line does not count. */
static void end_file(struct nm_mappings *mappings)
{
	close_file(mappings, &mappings->fd);
	mappings->used = 0;
	mappings->overlong = false;
	mappings->phase = mappings->phase == NM_MAPPINGS_EXTENTS ? NM_MAPPINGS_POLICIES
								 : NM_MAPPINGS_COMPLETE;
	if (mappings->phase == NM_MAPPINGS_POLICIES && mappings->count > 0)
		shrink(mappings);
}

static int begin_call(struct nm_mappings *mappings)
{
	const struct nm_platform_ops *ops = mappings->platform->ops;
	const char *name = mappings->phase == NM_MAPPINGS_EXTENTS ? "maps" : "numa_maps";

	mappings->held_ns = 0;
	if (mappings->fd < 0)
		return ops->open_maps(mappings->platform, mappings->directory, name);
	return (int)ops->read_maps(mappings->platform, mappings->directory, mappings->fd,
				   mappings->text, READ_BYTES,
				   mappings->budget_ns - mappings->spent_ns, &mappings->held_ns);
}

static int end_call(struct nm_mappings *mappings, int r)
{
	mappings->spent_ns += mappings->held_ns;
	if (mappings->fd < 0 && r >= 0) {
		mappings->fd = r;
		return 0;
	}
	if (r < 0)
		return mappings->fd < 0 && r == -ENOENT ? -ESRCH : r;
	if (r == 0)
		end_file(mappings);
	return take_piece(mappings, mappings->text, (size_t)r);
}

static bool has_budget(const struct nm_mappings *mappings)
{
	return mappings->phase != NM_MAPPINGS_COMPLETE && mappings->spent_ns < mappings->budget_ns;
}

/* Continues after a call with the result `r`. */
static int read_on(struct nm_mappings *mappings, int r)
{
	while (r == 0 && has_budget(mappings)) {
		r = begin_call(mappings);
		if (r == NM_CALL_BEGUN)
			return r;
		r = end_call(mappings, r);
	}
	mappings->cost_ns += mappings->spent_ns;
	close_file(mappings, &mappings->directory);
	if (r < 0)
		return r;
	if (mappings->phase != NM_MAPPINGS_COMPLETE)
		return -EAGAIN;
	free(NM_TAKE(mappings->text));
	return 0;
}

int nm_mappings_read(struct nm_mappings *mappings, int directory, uint64_t budget_ns)
{
	mappings->directory = directory;
	mappings->budget_ns = budget_ns;
	mappings->spent_ns = 0;
	return read_on(mappings, 0);
}

int nm_mappings_continue(struct nm_mappings *mappings, int r)
{
	return read_on(mappings, end_call(mappings, r));
}

size_t nm_mappings_bytes(const struct nm_mappings *mappings)
{
	return sizeof(*mappings) + mappings->capacity * sizeof(*mappings->items);
}

/* ---- lookup ---- */

size_t nm_mappings_all(const struct nm_mappings *mappings, const struct nm_mapped **ret)
{
	*ret = mappings->items;
	return mappings->count;
}

const struct nm_mapped *nm_mappings_find(const struct nm_mappings *mappings, uint64_t address,
					 uint64_t bytes)
{
	size_t low = NM_FIRST_ABOVE(mappings->items, mappings->count, end, address);

	if (low == mappings->count)
		return NULL;
	const struct nm_mapped *mapped = &mappings->items[low];
	return mapped->start <= address && bytes <= mapped->end - address ? mapped : NULL;
}

bool nm_mapped_may_move(const struct nm_mapped *mapped, bool move_bound, bool move_shared)
{
	return mapped->policy != NM_MEMORY_UNKNOWN && (move_bound || !nm_mapped_is_bound(mapped)) &&
	       (move_shared || !(mapped->shared || mapped->file));
}

void nm_mappings_ranges(const struct nm_mappings *mappings, bool move_bound, bool move_shared,
			struct nm_range **ret, size_t *ret_count)
{
	struct nm_range *ranges = nm_must(calloc(mappings->count + 1, sizeof(*ranges)));
	size_t count = 0;

	for (size_t i = 0; i < mappings->count; i++) {
		const struct nm_mapped *mapped = &mappings->items[i];
		if (mapped->empty || !nm_mapped_may_move(mapped, move_bound, move_shared))
			continue;
		struct nm_range *last = count ? &ranges[count - 1] : NULL;
		if (last && last->end == mapped->start && last->page_bytes == mapped->page_bytes)
			last->end = mapped->end;
		else
			ranges[count++] =
				(struct nm_range){mapped->start, mapped->end, mapped->page_bytes};
	}
	*ret = ranges;
	*ret_count = count;
}
