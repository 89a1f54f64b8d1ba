// SPDX-License-Identifier: MIT
#include "mover_internal.h"

#define SPARSE_PAGES 16384U /* applies to mappings with more pages */
/* A mapping with less than 1/64 of its pages in memory is not searched: it may have 64 TiB. */
#define SPARSE 64

/* Returns whether memory on the node is not moved: it is on the target or, as that of a GPU, on a
 * node without CPUs, where its owner or the kernel has placed it. */
static bool is_there(const struct nm_mover *mover, unsigned node)
{
	int16_t to = mover->work.batch->to, index = nm_node_index(&mover->rules, (int)node);

	return index == to || (index >= 0 && mover->rules.stand_ins[index] != index);
}

/* ---- selecting mappings ---- */

static uint64_t page_bytes(const struct nm_mapped *mapped)
{
	return mapped->huge ? mapped->page_bytes : NM_SMALL_PAGE;
}

/* Returns whether a search would cost more than moving the pages could gain. */
static bool is_sparse(const struct nm_mapped *mapped)
{
	uint64_t pages = (mapped->end - mapped->start) / page_bytes(mapped);

	return mapped->resident > 0 && pages > SPARSE_PAGES && pages / SPARSE > mapped->resident;
}

static bool is_to_be_looked_at(const struct nm_mover *mover, const struct nm_mapped *mapped)
{
	const struct nm_mover_rules *rules = &mover->rules;
	uint64_t bytes = page_bytes(mapped);

	if (nm_mapped_rule(mapped, &rules->may) != NM_MAPS_MOVES ||
	    mapped->only_on == (int)rules->node_ids[mover->work.batch->to])
		return false;
	return bytes >= NM_SMALL_PAGE && mapped->start % bytes == 0 && mapped->end % bytes == 0 &&
	       !is_sparse(mapped);
}

/* Selects ranges from batch->next on. */
static unsigned choose_ranges(struct nm_mover *mover)
{
	struct nm_worker_range *ranges = mover->call.ranges;
	const struct nm_mapped *items;
	size_t nr = nm_mappings_all(mover->work.known->ready, &items);
	uint64_t next = mover->work.batch->next;
	unsigned count = 0;

	for (size_t i = 0; i < nr && count < NM_WORKER_RANGES_MOST; i++) {
		if (items[i].end <= next || !is_to_be_looked_at(mover, &items[i]))
			continue;
		uint64_t bytes = page_bytes(&items[i]);
		uint64_t start = items[i].start > next ? items[i].start : next - next % bytes;
		ranges[count++] =
			(struct nm_worker_range){start, items[i].end, bytes, items[i].resident};
	}
	return count;
}

/* ---- moving ---- */

/* Returns the number of the pages found from found_next on that are in its block of 2 MiB and not
 * on the target. */
static uint64_t count_in_block(const struct nm_mover *mover)
{
	const struct nm_work *work = &mover->work;
	const uint64_t *addresses = work->found.addresses;
	uint64_t block = addresses[work->found_next] / NM_HUGE_PAGE, count = 0;

	for (unsigned i = work->found_next;
	     i < work->found.count && addresses[i] / NM_HUGE_PAGE == block; i++)
		count += work->found.nodes[i] >= 0 &&
			 !is_there(mover, (unsigned)work->found.nodes[i]);
	return count;
}

/* Takes room for a base page. The kernel moves a transparent huge page with the first of its base
 * pages, and the mappings do not show these: there must be room for all of its block. */
static bool take_base_room(struct nm_mover *mover)
{
	struct nm_work *work = &mover->work;
	int16_t to = work->batch->to;
	uint64_t block = work->found.addresses[work->found_next] / NM_HUGE_PAGE;

	if (block == work->refused_block)
		return false;
	if (nm_mover_take_room(mover, to, NM_SMALL_PAGE, false)) {
		uint64_t *room = &mover->rules.rooms[to].memory;
		if (*room >= NM_HUGE_PAGE || *room >= (count_in_block(mover) - 1) * NM_SMALL_PAGE)
			return true;
		*room += NM_SMALL_PAGE;
	}
	work->refused_block = block;
	return false;
}

/* Returns whether the page is to be moved. A used-up pool of huge pages is not expected to be
 * refilled. */
static bool is_to_go(struct nm_mover *mover, const struct nm_unit *unit)
{
	if (unit->was < 0 || is_there(mover, (unsigned)unit->was))
		return false;
	struct nm_page_batch *batch = mover->work.batch;
	if (unit->pool ? nm_mover_take_room(mover, batch->to, unit->bytes, true)
		       : take_base_room(mover))
		return true;
	batch->full |= !unit->pool;
	batch->stayed_bytes += unit->pool ? unit->bytes : 0;
	return false;
}

/* Selects pages of those found, within the limits of the call, or one larger page. */
static void collect(struct nm_mover *mover)
{
	struct nm_work *work = &mover->work;
	struct nm_call *call = &mover->call;
	uint64_t taken = 0;

	for (call->count = 0;
	     work->found_next < work->found.count && call->count < call->pages_most;
	     work->found_next++) {
		uint64_t address = work->found.addresses[work->found_next];
		const struct nm_mapped *mapped =
			nm_mappings_find(work->known->ready, address, NM_SMALL_PAGE);
		if (!mapped || !is_to_be_looked_at(mover, mapped))
			continue; /* the mapping has changed */
		if (taken > 0 && taken + page_bytes(mapped) > call->bytes_most)
			break;
		const struct nm_unit unit = {.address = address,
					     .bytes = page_bytes(mapped),
					     .to = (int)mover->rules.node_ids[work->batch->to],
					     .was = work->found.nodes[work->found_next],
					     .pool = mapped->huge};
		if (!is_to_go(mover, &unit))
			continue;
		call->units[call->count++] = unit;
		taken += unit.bytes;
	}
}

static void settle_units(struct nm_mover *mover)
{
	struct nm_mover_counts *counts = &mover->counts;
	const struct nm_call *call = &mover->call;

	for (unsigned i = 0; i < call->count; i++) {
		const struct nm_unit *unit = &call->units[i];
		int node = call->moved.pages[i].node;
		if (node != unit->to) {
			bool vanished = node == -ENOENT || node == -EFAULT;
			mover->work.batch->stayed_bytes += vanished ? 0 : unit->bytes;
			continue;
		}
		counts->moved++;
		counts->bytes += unit->bytes;
		nm_base_pages_moved(mover->work.batch, unit->address, unit->bytes / NM_SMALL_PAGE,
				    nm_node_index(&mover->rules, unit->was),
				    nm_node_index(&mover->rules, unit->to));
	}
}

static void advance(struct nm_mover *mover)
{
	struct nm_work *work = &mover->work;

	work->batch->next = work->found_next < work->found.count
				    ? work->found.addresses[work->found_next]
				    : work->found.next;
}

static int take_moved(struct nm_mover *mover, int r)
{
	if (r < 0)
		return r;
	settle_units(mover);
	advance(mover);
	return 0;
}

static int move_found(struct nm_mover *mover, int r)
{
	if (r < 0)
		return r;
	collect(mover);
	if (mover->call.count == 0) {
		advance(mover);
		return 0;
	}
	return nm_call_round(mover, take_moved);
}

static int find_pages(struct nm_mover *mover)
{
	struct nm_work *work = &mover->work;
	unsigned count = choose_ranges(mover);

	work->found.count = work->found_next = 0;
	work->found.next = NM_BULK_END;
	work->refused_block = NM_BULK_END;
	return count ? nm_call_find(mover, count, move_found) : move_found(mover, 0);
}

/* ---- rolling back ---- */

/* Adds the page of the run at this address, if its owner still allows it to move. Returns its size,
 * which is larger for one from the pool of huge pages. */
static uint64_t add_back(struct nm_mover *mover, const struct nm_base_pages *run, uint64_t address)
{
	const struct nm_mover_rules *rules = &mover->rules;
	struct nm_call *call = &mover->call;
	const struct nm_mapped *mapped =
		nm_mappings_find(mover->work.known->ready, address, NM_SMALL_PAGE);

	if (run->was_on < 0 || (unsigned)run->was_on >= rules->nr_nodes ||
	    (unsigned)run->now_on >= rules->nr_nodes || !mapped ||
	    !nm_mapped_may_move(mapped, &rules->may))
		return NM_SMALL_PAGE;
	call->units[call->count++] = (struct nm_unit){.address = address,
						      .bytes = page_bytes(mapped),
						      .to = (int)rules->node_ids[run->was_on],
						      .was = (int)rules->node_ids[run->now_on],
						      .pool = mapped->huge};
	return page_bytes(mapped);
}

/* batch->next is the number of base pages that are done. It advances with the success of the call.
 */
static void collect_back(struct nm_mover *mover)
{
	struct nm_page_batch *batch = mover->work.batch;
	uint64_t page = batch->next;

	mover->call.count = 0;
	mover->work.back_next = batch->next;
	for (size_t i = 0; i < batch->nr_back; i++) {
		const struct nm_base_pages *run = &batch->back[i];
		while (page < run->pages && mover->call.count < mover->call.pages_most) {
			uint64_t bytes = add_back(mover, run, run->address + page * NM_SMALL_PAGE);
			page += bytes / NM_SMALL_PAGE;
			mover->work.back_next += bytes / NM_SMALL_PAGE;
		}
		if (page < run->pages)
			return;
		page -= run->pages;
	}
	mover->work.back_next = NM_BULK_END;
}

static int take_moved_back(struct nm_mover *mover, int r)
{
	if (r < 0)
		return r;
	settle_units(mover);
	mover->work.batch->next = mover->work.back_next;
	return 0;
}

/* A page that has moved again since stays where it is now. */
static int move_back_found(struct nm_mover *mover, int r)
{
	struct nm_call *call = &mover->call;
	unsigned kept = 0;

	if (r < 0)
		return r;
	for (unsigned i = 0; i < call->count; i++) {
		const struct nm_unit unit = call->units[i];
		if (call->statuses[i] == unit.was &&
		    nm_mover_take_room(mover, nm_node_index(&mover->rules, unit.to), unit.bytes,
				       unit.pool))
			call->units[kept++] = unit;
	}
	call->count = kept;
	return kept > 0 ? nm_call_round(mover, take_moved_back) : take_moved_back(mover, 0);
}

static int move_back(struct nm_mover *mover)
{
	collect_back(mover);
	return nm_call_where(mover, move_back_found);
}

/* ---- a step ---- */

int nm_bulk_move(struct nm_mover *mover)
{
	struct nm_work *work = &mover->work;

	if (work->batch->nr_back > 0)
		return move_back(mover);
	if (work->batch->to < 0 || (unsigned)work->batch->to >= mover->rules.nr_nodes)
		return -EPERM;
	if (nm_node_is_reclaimed(mover->platform, &mover->reclaim,
				 mover->rules.node_ids[work->batch->to], mover->call.now_ns))
		return -ENOSPC;
	return work->found_next == work->found.count ? find_pages(mover) : move_found(mover, 0);
}
