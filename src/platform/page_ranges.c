// SPDX-License-Identifier: MIT
/* The job that moves the pages that it finds. */
#include <errno.h>

#include "platform/page_jobs.h"

#define BLOCK_PAGES 512U

/* Queries the node of every page. /proc/PID/pagemap would show faster which pages are in memory,
 * but only the owner of the process may read it. */
struct search {
	const struct nm_ranges_order *order;
	const struct nm_page_calls *calls;
	struct nm_ranges_moved *moved;
	struct nm_page_room room;
	uint64_t bytes; /* of those found */
	bool begun, ended;
	unsigned count; /* of those found */
	uint64_t addresses[NM_UNITS_MOST];
	int nodes[NM_UNITS_MOST], statuses[NM_UNITS_MOST];
	uint64_t piece[NM_UNITS_MOST]; /* pages that are queried together */
	int on[NM_UNITS_MOST];
};

/* Returns whether the page at this place of the piece is to move. */
static bool is_elsewhere(const struct search *search, unsigned i)
{
	int on = search->on[i];

	return on >= 0 && on < (int)NM_NODE_NUMBERS &&
	       !(search->order->stays[on / 64] >> on % 64 & 1);
}

static bool has_place(const struct search *search)
{
	const struct nm_ranges_order *order = search->order;

	return search->count < order->pages_most &&
	       (search->count == 0 || search->bytes + order->page_bytes <= order->bytes_most);
}

/* Adds the pages [first, end) of the piece that are to move, which are one page of a pool or those
 * of a block. Returns the index of the first one that the job has no place for. */
static unsigned add_pages(struct search *search, unsigned first, unsigned end)
{
	const struct nm_ranges_order *order = search->order;
	uint64_t count = 0;

	for (unsigned i = first; i < end; i++)
		count += is_elsewhere(search, i);
	if (count == 0)
		return end;
	if (order->pool ? !nm_page_take_room(&search->room.pool, order->page_bytes)
			: search->room.memory < count * order->page_bytes) {
		search->moved->full |= !order->pool;
		search->moved->stayed += order->pool;
		return end;
	}
	for (unsigned i = first; i < end; i++) {
		if (!is_elsewhere(search, i))
			continue;
		if (!has_place(search))
			return i;
		if (!order->pool)
			(void)nm_page_take_room(&search->room.memory, order->page_bytes);
		search->nodes[search->count] = order->room.node;
		search->addresses[search->count++] = search->piece[i];
		search->bytes += order->page_bytes;
	}
	return end;
}

/* Returns the index after the block of the page at `first`. */
static unsigned end_of_block(const struct search *search, unsigned first, unsigned count)
{
	unsigned end = first + 1;

	while (!search->order->pool && end < count && search->piece[end] % NM_BLOCK_BYTES != 0)
		end++;
	return end;
}

/* Queries a piece, which ends with a block or the range, and adds what is to move. Returns the
 * number of pages in memory up to moved->next, or a negative errno. */
static int search_piece(struct search *search, const struct nm_page_range *range)
{
	const struct nm_ranges_order *order = search->order;
	unsigned wanted = order->pages_most - search->count, count = 0, resident = 0;
	uint64_t at = search->moved->next;
	uint64_t end = at + (wanted > BLOCK_PAGES ? wanted : BLOCK_PAGES) * order->page_bytes;

	if (!order->pool)
		end -= end % NM_BLOCK_BYTES;
	for (; at < end && at < range->end && count < NM_UNITS_MOST; at += order->page_bytes)
		search->piece[count++] = at;
	int r = search->calls->where(search->calls->context, count, search->piece, search->on);
	if (r < 0)
		return r;
	for (unsigned i = 0, next; i < count && !search->ended; i = next) {
		unsigned block_end = end_of_block(search, i, count);
		next = add_pages(search, i, block_end);
		search->ended = next < block_end;
		for (unsigned k = i; k < next; k++)
			resident += search->on[k] >= 0;
		search->moved->next = next < count ? search->piece[next] : at;
	}
	return (int)resident;
}

static int search_range(struct search *search, const struct nm_page_range *range)
{
	uint64_t left = range->resident ? range->resident : UINT64_MAX;

	search->moved->next = range->start;
	while (!search->ended && search->moved->next < range->end) {
		search->ended = !has_place(search) ||
				(search->begun && !nm_page_calls_have_time(search->calls));
		search->begun = true;
		int r = search->ended ? 0 : search_piece(search, range);
		if (r < 0)
			return r;
		left -= (uint64_t)r < left ? (uint64_t)r : left;
		if (left == 0 && !search->ended)
			search->moved->next = range->end;
	}
	return 0;
}

static int move_found(struct search *search)
{
	struct nm_ranges_moved *moved = search->moved;
	const struct nm_page_round round = {.count = search->count,
					    .addresses = search->addresses,
					    .nodes = search->nodes,
					    .slow_ns = search->order->slow_ns};

	moved->tried_bytes = search->bytes;
	int r = nm_page_round(&round, search->calls, moved->tries, search->statuses);
	for (unsigned i = 0; i < 2; i++)
		moved->nr_tries += moved->tries[i].pages > 0;
	for (unsigned i = 0; r == 0 && i < search->count; i++) {
		int status = search->statuses[i];
		bool vanished = status == -ENOENT || status == -EFAULT;
		moved->pages += status == search->nodes[i];
		moved->stayed += status != search->nodes[i] && !vanished;
	}
	return r;
}

int nm_ranges_move(const struct nm_ranges_order *order, const struct nm_page_calls *calls,
		   struct nm_ranges_moved *ret)
{
	struct search search = {.order = order, .calls = calls, .moved = ret, .room = order->room};
	int r = 0;

	*ret = (struct nm_ranges_moved){0};
	for (unsigned i = 0; r == 0 && i < order->count && !search.ended; i++)
		r = search_range(&search, &order->ranges[i]);
	return r == 0 && search.count > 0 ? move_found(&search) : r;
}
