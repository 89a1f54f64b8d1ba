// SPDX-License-Identifier: MIT
/* A batch that moves all memory of a process. Each job finds pages and moves them. */
#include <string.h>

#include "mover_internal.h"

#define SPARSE_PAGES 16384U /* applies to mappings with more pages */
/* A mapping with less than 1/64 of its pages in memory is not searched: it may have 64 TiB. */
#define SPARSE 64

/* Returns whether a search would cost more than moving the pages could gain. */
static bool is_sparse(const struct nm_mapping *mapping)
{
	uint64_t pages = (mapping->end - mapping->start) / mapping->page_bytes;

	return mapping->resident > 0 && pages > SPARSE_PAGES && pages / SPARSE > mapping->resident;
}

static bool is_searched(const struct nm_mover *mover, const struct nm_mapping *mapping)
{
	if (mapping->rule != NM_MAPS_MOVES ||
	    mapping->only_on == (int)mover->rules.node_ids[mover->work.batch->to])
		return false;
	return mapping->start % mapping->page_bytes == 0 &&
	       mapping->end % mapping->page_bytes == 0 && !is_sparse(mapping);
}

/* Selects ranges with pages of one kind from batch->next on. */
static void choose_ranges(struct nm_mover *mover)
{
	const struct nm_mappings *all = mover->work.cache->ready;
	struct nm_ranges_order *order = &mover->job.ranges;
	uint64_t next = mover->work.batch->next;

	order->count = 0;
	for (size_t i = 0; i < all->count && order->count < NM_RANGES_MOST; i++) {
		const struct nm_mapping *mapping = &all->items[i];
		if (mapping->end <= next || !is_searched(mover, mapping))
			continue;
		if (order->count > 0 &&
		    (mapping->page_bytes != order->page_bytes || mapping->pool != order->pool))
			return;
		order->page_bytes = mapping->page_bytes;
		order->pool = mapping->pool;
		order->ranges[order->count++] = (struct nm_page_range){
			mapping->start > next ? mapping->start : next - next % mapping->page_bytes,
			mapping->end, mapping->resident};
	}
}

/* Pages stay that are on the target, or on a node without CPUs, as that of a GPU, where their owner
 * or the kernel has placed them. */
static void list_nodes_to_stay_on(struct nm_mover *mover)
{
	const struct nm_mover_rules *rules = &mover->rules;
	uint64_t *stays = mover->job.ranges.stays;

	memset(stays, 0, sizeof(mover->job.ranges.stays));
	for (unsigned i = 0; i < rules->nr_nodes; i++) {
		unsigned id = rules->node_ids[i];
		bool is_there = (int)i == mover->work.batch->to || rules->stand_ins[i] != (int)i;
		if (is_there && id < NM_NODE_NUMBERS)
			stays[id / 64] |= UINT64_C(1) << id % 64;
	}
}

int nm_bulk_begin(struct nm_mover *mover)
{
	struct nm_page_batch *batch = mover->work.batch;
	struct nm_ranges_order *order = &mover->job.ranges;

	if (batch->to < 0 || (unsigned)batch->to >= mover->rules.nr_nodes)
		return -EPERM;
	if (nm_node_is_reclaimed(mover->platform, &mover->reclaim, mover->rules.node_ids[batch->to],
				 mover->work.now_ns))
		return -ENOSPC;
	choose_ranges(mover);
	if (order->count == 0) {
		batch->next = NM_BULK_END;
		return 0;
	}
	order->pages_most = nm_pace_pages(&mover->pace, NM_PACE_SMALL, true);
	order->bytes_most = nm_pace_bytes(&mover->pace);
	order->slow_ns = nm_pace_slow_ns(&mover->pace, true);
	order->search_ns = mover->rules.maps.budget_ns;
	order->room = nm_mover_room(mover, batch->to, order->pool ? NM_UNIT_POOL : NM_UNIT_BASE,
				    order->page_bytes);
	list_nodes_to_stay_on(mover);
	mover->job.kind = NM_JOB_MOVES;
	return mover->platform->ops->ranges_move(mover->platform, (pid_t)mover->work.tid,
						 mover->work.tid_ticks, order,
						 &mover->job.ranges_moved);
}

int nm_bulk_end(struct nm_mover *mover, int r)
{
	struct nm_page_batch *batch = mover->work.batch;
	const struct nm_ranges_order *order = &mover->job.ranges;
	const struct nm_ranges_moved *moved = &mover->job.ranges_moved;

	uint64_t bytes = moved->nr_tries > 0 ? moved->tried_bytes : 0;

	if (nm_batch_is_late(r))
		bytes = order->bytes_most < order->pages_most * order->page_bytes
				? order->bytes_most
				: order->pages_most * order->page_bytes;
	nm_batch_learn(mover, moved->tries, moved->nr_tries, bytes);
	if (r < 0)
		return r;
	batch->next = moved->next;
	batch->stayed_bytes += moved->stayed * order->page_bytes;
	batch->full |= moved->full;
	mover->counts.moved += moved->pages;
	mover->counts.bytes += moved->pages * order->page_bytes;
	nm_mover_use_room(mover, batch->to, order->pool ? NM_UNIT_POOL : NM_UNIT_BASE,
			  moved->pages * order->page_bytes);
	return 0;
}
