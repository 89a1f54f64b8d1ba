// SPDX-License-Identifier: MIT
/* The jobs of page_jobs.h that move pages. */
#include "numa-migrd/page_jobs.h"

#include <errno.h>
#include <string.h>

#define BASE_BYTES 4096U
#define BLOCK_BYTES ((uint64_t)2 << 20)
#define BLOCK_PAGES 512U

/* ---- the room on a node ---- */

static bool take(uint64_t *room, uint64_t bytes)
{
	if (*room < bytes)
		return false;
	*room -= bytes;
	return true;
}

/* Huge pages of the pool are not part of the other memory. */
static bool take_room(struct nm_page_room *room, enum nm_unit_kind kind, uint64_t bytes)
{
	if (kind == NM_UNIT_POOL)
		return take(&room->pool, bytes);
	if (kind == NM_UNIT_BLOCK && (room->memory < bytes || !take(&room->huge, bytes)))
		return false;
	return take(&room->memory, bytes);
}

/* ---- given pages ---- */

/* Some pages of a job on their way through its calls: each stands for its whole unit, or for
 * itself. */
struct group {
	bool wholes;
	unsigned count;
	unsigned units[NM_UNITS_MOST];	   /* indices */
	uint64_t addresses[NM_UNITS_MOST]; /* in a group of wholes, those of their last pages
					    * follow if they are blocks */
	int was[NM_UNITS_MOST], nodes[NM_UNITS_MOST], statuses[NM_UNITS_MOST];
};

struct job {
	bool base_alone; /* there are units of several base pages: they come in order */
	unsigned nr_alone;
	const struct nm_units_order *order;
	const struct nm_page_calls *calls;
	struct nm_units_moved *moved;
	struct nm_page_room rooms[NM_ROOMS_MOST];
	bool ended; /* by a slow call, or the calls end it */
	struct group group;
};

static struct nm_page_room *room_of(struct job *job, int node)
{
	unsigned i = 0;

	while (i + 1 < job->order->nr_rooms && job->rooms[i].node != node)
		i++;
	return &job->rooms[i];
}

/* Units of several base pages have no whole. */
static bool has_whole(const struct job *job, const struct nm_page_unit *unit)
{
	return unit->kind == NM_UNIT_BASE ? !job->base_alone : unit->first == 0;
}

static uint64_t last_page(const struct nm_page_unit *unit)
{
	return unit->address + (uint64_t)(unit->pages - 1) * BASE_BYTES;
}

static void add_run(struct nm_units_moved *moved, uint64_t address, uint32_t pages, int was_on,
		    int now_on)
{
	struct nm_moved_run *last = moved->nr_runs > 0 ? &moved->runs[moved->nr_runs - 1] : NULL;
	const struct nm_moved_run run = {address, pages, (int16_t)was_on, (int16_t)now_on};

	if (last && last->was_on == was_on && last->now_on == now_on &&
	    last->address + (uint64_t)last->pages * BASE_BYTES == address)
		last->pages += pages;
	else if (moved->nr_runs < NM_UNITS_MOST)
		moved->runs[moved->nr_runs++] = run;
}

static void add_tries(struct job *job, const struct nm_page_try *tries)
{
	struct nm_units_moved *moved = job->moved;

	for (unsigned i = 0; i < 2; i++) {
		if (tries[i].pages == 0)
			continue;
		moved->tries[moved->nr_tries] = tries[i];
		moved->tries[moved->nr_tries++].blocks =
			job->group.wholes &&
			job->order->units[job->group.units[0]].kind != NM_UNIT_BASE;
		job->ended |= tries[i].held_ns > job->order->slow_ns;
	}
	job->ended |= moved->nr_tries + 2 > NM_TRIES_MOST;
}

/* Only the kernel knows whether a block is a transparent huge page. If it is one, its first and
 * last base page are on one node and move together. */
static bool is_split(const struct nm_page_unit *unit, int first, int last)
{
	return unit->kind == NM_UNIT_BLOCK && (first < 0 || first != last);
}

static bool has_time(const struct nm_page_calls *calls)
{
	return !calls->has_time || calls->has_time(calls->context);
}

/* Returns whether the page, or the unit that it stands for, is to move. */
static bool is_to_go(struct job *job, unsigned index, int was)
{
	const struct nm_page_unit *unit = &job->order->units[index];
	struct nm_unit_outcome *outcome = &job->moved->outcomes[index];
	bool whole = job->group.wholes;

	if (outcome->found_on < 0)
		outcome->found_on = (int16_t)was;
	if (was < 0 && whole)
		outcome->error = (int16_t)was;
	if (was < 0 || (unit->from >= 0 && unit->from != was) || was == unit->to)
		return false;
	if (take_room(room_of(job, unit->to), whole ? unit->kind : NM_UNIT_BASE,
		      (whole ? unit->pages : 1) * (uint64_t)BASE_BYTES))
		return true;
	outcome->error = -ENOSPC;
	return false;
}

/* Returns whether this base page is the first one of its block, which has moved alone. It goes
 * through the call once more, so that its run is adjacent to those of the others. */
static bool is_first_alone(const struct job *job, unsigned i)
{
	unsigned index = job->group.units[i];

	return !job->group.wholes && job->moved->outcomes[index].alone &&
	       job->group.addresses[i] == job->order->units[index].address;
}

/* Asks where the pages of the group are, and keeps those that are to move. */
static int keep_those_to_go(struct job *job)
{
	struct group *group = &job->group;
	unsigned count = group->count, kept = 0, lasts = count;
	const struct nm_page_unit *units = job->order->units;

	for (unsigned i = 0; group->wholes && i < count; i++)
		if (units[group->units[i]].kind == NM_UNIT_BLOCK)
			group->addresses[lasts++] = last_page(&units[group->units[i]]);
	int r = job->calls->where(job->calls->context, lasts, group->addresses, group->was);
	if (r < 0)
		return r;
	lasts = count;
	for (unsigned i = 0; i < count; i++) {
		unsigned index = group->units[i];
		int was = group->was[i];
		bool block = group->wholes && units[index].kind == NM_UNIT_BLOCK;
		if (block && is_split(&units[index], was, group->was[lasts++])) {
			job->moved->outcomes[index].split = true;
			continue;
		}
		bool came_alone = is_first_alone(job, i);
		if (!came_alone && !is_to_go(job, index, was))
			continue;
		group->units[kept] = index;
		group->addresses[kept] = group->addresses[i];
		group->was[kept] = came_alone ? job->moved->outcomes[index].found_on : was;
		group->nodes[kept++] = units[index].to;
	}
	group->count = kept;
	return 0;
}

static int ask_for_lasts(struct job *job, int *lasts)
{
	struct group *group = &job->group;
	unsigned count = 0;

	for (unsigned i = 0; i < group->count; i++) {
		const struct nm_page_unit *unit = &job->order->units[group->units[i]];
		if (unit->kind == NM_UNIT_BLOCK)
			group->addresses[count++] = last_page(unit);
	}
	if (count == 0)
		return 0;
	return job->calls->where(job->calls->context, count, group->addresses, lasts);
}

/* A page of a block moved alone, so that it was no huge page: its run is added with the others. */
static void set_alone(struct job *job, struct nm_unit_outcome *outcome, bool alone)
{
	job->nr_alone += (unsigned)alone - outcome->alone;
	outcome->alone = alone;
}

static void settle(struct job *job)
{
	struct group *group = &job->group;
	int *lasts = group->nodes; /* not needed any more */
	unsigned next = 0;
	bool known = !group->wholes || ask_for_lasts(job, lasts) == 0;

	for (unsigned i = 0; i < group->count; i++) {
		const struct nm_page_unit *unit = &job->order->units[group->units[i]];
		struct nm_unit_outcome *outcome = &job->moved->outcomes[group->units[i]];
		bool block = group->wholes && unit->kind == NM_UNIT_BLOCK;
		int last = block ? lasts[next++] : unit->to;
		if (group->statuses[i] != unit->to) {
			outcome->error = (int16_t)group->statuses[i];
			continue;
		}
		outcome->moved = true;
		outcome->found_on = (int16_t)group->was[i];
		outcome->split |= block && (!known || last != unit->to);
		if (block || is_first_alone(job, i))
			set_alone(job, outcome, block && outcome->split);
		if (!outcome->alone)
			add_run(job->moved, group->wholes ? unit->address : group->addresses[i],
				group->wholes ? unit->pages : 1, group->was[i], unit->to);
	}
}

/* Moves the pages of the group. */
static int move_group(struct job *job)
{
	struct group *group = &job->group;
	struct nm_page_try tries[2];

	int r = keep_those_to_go(job);
	if (r < 0 || group->count == 0)
		return r;
	const struct nm_page_round round = {.count = group->count,
					    .addresses = group->addresses,
					    .nodes = group->nodes,
					    .slow_ns = job->order->slow_ns};
	for (unsigned i = 0; i < group->count; i++)
		job->moved->tried_bytes +=
			BASE_BYTES *
			(uint64_t)(group->wholes ? job->order->units[group->units[i]].pages : 1);
	r = nm_page_round(&round, job->calls, tries, group->statuses);
	add_tries(job, tries);
	if (r == 0)
		settle(job);
	return r;
}

static int move_wholes(struct job *job)
{
	struct group *group = &job->group;

	group->wholes = true;
	group->count = 0;
	for (unsigned i = 0; i < job->order->count; i++) {
		if (!has_whole(job, &job->order->units[i]))
			continue;
		group->units[group->count] = i;
		group->addresses[group->count++] = job->order->units[i].address;
	}
	if (group->count == 0)
		return 0;
	int r = move_group(job);
	for (unsigned i = 0; r == 0 && i < job->order->count; i++)
		job->moved->outcomes[i].done =
			has_whole(job, &job->order->units[i]) && !job->moved->outcomes[i].split;
	return r;
}

/* Fills the group with base pages of the units that are not done, and sets how far they are when it
 * has been moved. Each page, and each block whose first page moved alone, may need a run. */
static void collect_base_pages(struct job *job)
{
	struct group *group = &job->group;
	unsigned places = NM_UNITS_MOST - job->moved->nr_runs - job->nr_alone;
	unsigned most = job->order->pages_most < places ? job->order->pages_most : places;

	group->wholes = false;
	group->count = 0;
	for (unsigned i = 0; i < job->order->count && group->count < most; i++) {
		const struct nm_page_unit *unit = &job->order->units[i];
		struct nm_unit_outcome *outcome = &job->moved->outcomes[i];
		while (!outcome->done && outcome->next < unit->pages && group->count < most) {
			group->units[group->count] = i;
			group->addresses[group->count++] =
				unit->address + (uint64_t)outcome->next++ * BASE_BYTES;
		}
	}
}

static void finish_units(struct job *job)
{
	for (unsigned i = 0; i < job->order->count; i++)
		job->moved->outcomes[i].done |=
			job->moved->outcomes[i].next == job->order->units[i].pages;
}

/* The first unit advances even without time, so that no order is repeated without end. */
static int move_base_pages(struct job *job)
{
	bool is_due = !job->moved->outcomes[0].done;

	while (is_due || (!job->ended && has_time(job->calls))) {
		collect_base_pages(job);
		if (job->group.count == 0)
			return 0;
		int r = move_group(job);
		if (r < 0)
			return r;
		finish_units(job);
		is_due = false;
	}
	return 0;
}

static void begin_units(struct job *job)
{
	const struct nm_units_order *order = job->order;
	struct nm_units_moved *moved = job->moved;

	memcpy(job->rooms, order->rooms, sizeof(job->rooms));
	moved->count = order->count;
	moved->nr_runs = moved->nr_tries = moved->zero = 0;
	moved->tried_bytes = 0;
	for (unsigned i = 0; i < order->count; i++) {
		const struct nm_page_unit *unit = &order->units[i];
		moved->outcomes[i] = (struct nm_unit_outcome){
			.found_on = -ENOENT,
			.split = unit->kind == NM_UNIT_BLOCK && unit->first > 0,
			.next = (uint16_t)unit->first};
		job->base_alone |= unit->kind == NM_UNIT_BASE && unit->pages > 1;
	}
}

/* After an error, what was moved before it is the result. */
int nm_units_move(const struct nm_units_order *order, const struct nm_page_calls *calls,
		  struct nm_units_moved *ret)
{
	struct job job = {.order = order, .calls = calls, .moved = ret};

	begin_units(&job);
	int r = move_wholes(&job);
	if (r == 0)
		r = move_base_pages(&job);
	for (unsigned i = 0; i < order->count; i++) {
		struct nm_unit_outcome *outcome = &ret->outcomes[i];
		if (outcome->done || outcome->moved)
			r = 0;
		if (!outcome->alone)
			continue;
		add_run(ret, order->units[i].address, 1, outcome->found_on, order->units[i].to);
		outcome->next = outcome->next > 0 ? outcome->next : 1;
		outcome->alone = false;
	}
	return r;
}

/* ---- pages that are found ---- */

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
	if (order->pool ? !take(&search->room.pool, order->page_bytes)
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
			(void)take(&search->room.memory, order->page_bytes);
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

	while (!search->order->pool && end < count && search->piece[end] % BLOCK_BYTES != 0)
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
		end -= end % BLOCK_BYTES;
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
		search->ended = !has_place(search) || (search->begun && !has_time(search->calls));
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

/* ---- mappings ---- */

static struct nm_mapping mapping_of(const struct nm_mapped *mapped,
				    const struct nm_maps_rules *rules)
{
	return (struct nm_mapping){
		.start = mapped->start,
		.end = mapped->end,
		.page_bytes = mapped->huge ? mapped->page_bytes : BASE_BYTES,
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

static bool is_page_size(uint64_t bytes)
{
	return bytes >= BASE_BYTES && bytes <= NM_PAGE_BYTES_MOST && (bytes & (bytes - 1)) == 0;
}

static bool is_unit(const struct nm_page_unit *unit)
{
	uint64_t bytes = (uint64_t)unit->pages * BASE_BYTES;
	uint64_t most = unit->kind == NM_UNIT_POOL ? NM_PAGE_BYTES_MOST : BLOCK_BYTES;
	uint64_t align = unit->kind == NM_UNIT_BASE ? BASE_BYTES : bytes;

	if (bytes == 0 || bytes > most || unit->kind > NM_UNIT_POOL || unit->address > INT64_MAX ||
	    (unit->kind == NM_UNIT_BLOCK && bytes != BLOCK_BYTES) || unit->address % align != 0)
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
	    order->pages_most > NM_UNITS_MOST || !is_page_size(page) || !is_node(order->room.node))
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
		    mapping->page_bytes < BASE_BYTES)
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
		uint64_t unit_end = unit->address + (uint64_t)unit->pages * BASE_BYTES;
		pages += unit->pages;
		start = unit->address < start ? unit->address : start;
		end = unit_end > end ? unit_end : end;
	}
	for (unsigned i = 0; i < moved->nr_runs; i++) {
		const struct nm_moved_run *run = &moved->runs[i];
		used += run->pages;
		if (run->pages == 0 || run->address < start || run->address >= end ||
		    run->pages > (end - run->address) / BASE_BYTES || !is_node(run->now_on))
			return false;
	}
	return used <= pages && moved->tried_bytes <= 2 * pages * BASE_BYTES;
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
