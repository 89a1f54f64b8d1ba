// SPDX-License-Identifier: MIT
/* The mappings that a worker sends, and checks of orders and answers. */
#include <errno.h>
#include <string.h>

#include "platform/page_jobs.h"

/* ---- mappings ---- */

static struct nm_mapping mapping_of(const struct nm_mapped *mapped,
				    const struct nm_maps_rules *rules)
{
	return (struct nm_mapping){
		.start = mapped->start,
		.end = mapped->end,
		.page_bytes = mapped->huge ? mapped->page_bytes : NM_BASE_BYTES,
		.resident = mapped->resident,
		.only_on = mapped->only_on,
		.rule = (uint8_t)nm_mapped_rule(mapped, rules),
		.pool = mapped->huge,
	};
}

/* The last one that a line has described may still be cut by the next line. */
bool nm_mappings_take(const struct nm_maps *maps, const struct nm_maps_rules *rules, size_t *next,
		      struct nm_mappings_piece *ret)
{
	size_t end = maps->complete ? maps->count : maps->next > 0 ? maps->next - 1 : 0;

	ret->count = 0;
	for (; *next < end; ++*next) {
		if (ret->count == NM_MAPPINGS_PIECE)
			break;
		ret->items[ret->count++] = mapping_of(&maps->items[*next], rules);
	}
	ret->complete = maps->complete && *next == maps->count;
	return !ret->complete;
}

/* ---- what the other side has sent ---- */

static bool is_node(int64_t node)
{
	return node >= 0 && node < (int64_t)NM_NODE_NUMBERS;
}

static bool is_unit(const struct nm_page_unit *unit)
{
	uint64_t bytes = (uint64_t)unit->pages * NM_BASE_BYTES;
	uint64_t most = unit->kind == NM_UNIT_POOL ? NM_PAGE_BYTES_MOST : NM_BLOCK_BYTES;
	uint64_t align = unit->kind == NM_UNIT_BASE ? NM_BASE_BYTES : bytes;

	if (bytes == 0 || bytes > most || unit->kind > NM_UNIT_POOL || unit->address > INT64_MAX ||
	    (unit->kind == NM_UNIT_BLOCK && bytes != NM_BLOCK_BYTES) || unit->address % align != 0)
		return false;
	if (unit->kind == NM_UNIT_POOL ? unit->first > 0 : unit->first >= unit->pages)
		return false;
	return is_node(unit->to) && (unit->from == -1 || is_node(unit->from));
}

bool nm_units_order_is_valid(const struct nm_units_order *order)
{
	unsigned queried = order->count;

	if (order->count == 0 || order->count > NM_UNITS_MOST || order->pages_most == 0 ||
	    order->pages_most > NM_UNITS_MOST || order->nr_rooms == 0 ||
	    order->nr_rooms > NM_ROOMS_MOST)
		return false;
	for (unsigned i = 0; i < order->count; i++) {
		if (!is_unit(&order->units[i]))
			return false;
		queried += order->units[i].kind == NM_UNIT_BLOCK;
	}
	return queried <= NM_UNITS_MOST;
}

bool nm_ranges_order_is_valid(const struct nm_ranges_order *order)
{
	uint64_t last = 0, page = order->page_bytes;

	if (order->count == 0 || order->count > NM_RANGES_MOST || order->pages_most == 0 ||
	    order->pages_most > NM_UNITS_MOST || !nm_is_page_size(page) ||
	    !is_node(order->room.node))
		return false;
	for (unsigned i = 0; i < order->count; i++) {
		const struct nm_page_range *range = &order->ranges[i];
		if (range->start < last || range->end <= range->start || range->end > INT64_MAX ||
		    range->start % page != 0 || range->end % page != 0)
			return false;
		last = range->end;
	}
	return true;
}

bool nm_ranges_moved_is_valid(const struct nm_ranges_moved *moved,
			      const struct nm_ranges_order *order)
{
	const struct nm_page_range *first = order->ranges, *last = first + order->count - 1;
	uint64_t most = (last->end - first->start) / order->page_bytes;

	return moved->next > first->start && moved->next <= last->end && moved->nr_tries <= 2 &&
	       moved->pages <= order->pages_most && moved->stayed <= most &&
	       moved->tried_bytes <= order->pages_most * order->page_bytes;
}

bool nm_mappings_piece_is_valid(const struct nm_mappings_piece *piece, uint64_t after)
{
	if (piece->count > NM_MAPPINGS_PIECE)
		return false;
	for (unsigned i = 0; i < piece->count; i++) {
		const struct nm_mapping *mapping = &piece->items[i];
		if (mapping->start < after || mapping->end <= mapping->start ||
		    mapping->rule > NM_MAPS_FILE || mapping->pool > 1 ||
		    mapping->page_bytes < NM_BASE_BYTES)
			return false;
		after = mapping->end;
	}
	return true;
}

/* The pages of all runs are no more than those of the units, and between the first and the last of
 * these. */
static bool are_runs_valid(const struct nm_units_moved *moved, const struct nm_units_order *order)
{
	uint64_t pages = 0, start = UINT64_MAX, end = 0, used = 0;

	for (unsigned i = 0; i < order->count; i++) {
		const struct nm_page_unit *unit = &order->units[i];
		uint64_t unit_end = unit->address + (uint64_t)unit->pages * NM_BASE_BYTES;
		pages += unit->pages;
		start = unit->address < start ? unit->address : start;
		end = unit_end > end ? unit_end : end;
	}
	for (unsigned i = 0; i < moved->nr_runs; i++) {
		const struct nm_moved_run *run = &moved->runs[i];
		used += run->pages;
		if (run->pages == 0 || run->address < start || run->address >= end ||
		    run->pages > (end - run->address) / NM_BASE_BYTES || !is_node(run->now_on))
			return false;
	}
	return used <= pages && moved->tried_bytes <= 2 * pages * NM_BASE_BYTES;
}

static bool are_outcomes_valid(const struct nm_units_moved *moved,
			       const struct nm_units_order *order)
{
	for (unsigned i = 0; i < order->count; i++) {
		const struct nm_unit_outcome *outcome = &moved->outcomes[i];
		const struct nm_page_unit *unit = &order->units[i];
		uint64_t most = unit->kind == NM_UNIT_POOL ? 0 : unit->pages;
		if (outcome->error > 0 || outcome->next < unit->first || outcome->next > most)
			return false;
	}
	return true;
}

size_t nm_units_moved_pack(struct nm_units_moved *moved)
{
	struct nm_unit_outcome *end = moved->outcomes + moved->count;
	size_t runs = moved->nr_runs * sizeof(*moved->runs);

	memmove(end, moved->runs, runs);
	return (size_t)((char *)end - (char *)moved) + runs;
}

int nm_units_moved_unpack(struct nm_units_moved *moved, size_t size,
			  const struct nm_units_order *order)
{
	const struct nm_unit_outcome *end = moved->outcomes + order->count;
	size_t outcomes = (size_t)((const char *)end - (const char *)moved);

	if (size < outcomes || moved->count != order->count || moved->nr_runs > NM_UNITS_MOST ||
	    moved->nr_tries > NM_TRIES_MOST ||
	    size - outcomes != moved->nr_runs * sizeof(*moved->runs))
		return -EPROTO;
	memmove(moved->runs, end, moved->nr_runs * sizeof(*moved->runs));
	return are_runs_valid(moved, order) && are_outcomes_valid(moved, order) ? 0 : -EPROTO;
}
