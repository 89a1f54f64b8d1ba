// SPDX-License-Identifier: MIT
/* Reads /proc/PID/maps and then numa_maps within a time budget, and looks up mappings. */
#include "mappings.h"

#include "numa-migrd/regions.h"

#define READ_BYTES 8192U

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
	nm_maps_clear(&mappings->maps);
	free(mappings);
}

/* ---- reading ---- */

static void end_file(struct nm_mappings *mappings)
{
	close_file(mappings, &mappings->fd);
	nm_maps_end_file(&mappings->maps);
	mappings->phase = mappings->phase == NM_MAPPINGS_EXTENTS ? NM_MAPPINGS_POLICIES
								 : NM_MAPPINGS_COMPLETE;
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
	return nm_maps_add(&mappings->maps, mappings->text, (size_t)r);
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
	return sizeof(*mappings) + mappings->maps.capacity * sizeof(*mappings->maps.items);
}

/* ---- lookup ---- */

size_t nm_mappings_all(const struct nm_mappings *mappings, const struct nm_mapped **ret)
{
	*ret = mappings->maps.items;
	return mappings->maps.count;
}

const struct nm_mapped *nm_mappings_find(const struct nm_mappings *mappings, uint64_t address,
					 uint64_t bytes)
{
	const struct nm_maps *maps = &mappings->maps;
	size_t low = NM_FIRST_ABOVE(maps->items, maps->count, end, address);

	if (low == maps->count)
		return NULL;
	const struct nm_mapped *mapped = &maps->items[low];
	return mapped->start <= address && bytes <= mapped->end - address ? mapped : NULL;
}
