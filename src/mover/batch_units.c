// SPDX-License-Identifier: MIT
/* Given pages of a process: those of the steps of a batch, or base pages that go back to the nodes
 * that they were on. Each is a unit of a job. */
#include "mover_internal.h"

#define RUNS_MOST 65536U /* 1 MiB; limit on the recorded locations of the pages of a process */
/* A block is queried by two of its pages. */
#define HUGE_MOST (NM_UNITS_MOST / 2)

static enum nm_pace_class class_of(uint64_t bytes)
{
	return bytes > NM_BASE_BYTES ? NM_PACE_HUGE : NM_PACE_SMALL;
}

/* ---- rules ---- */

static bool has_shape(const struct nm_page_step *step, const struct nm_mapping *mapping)
{
	if (step->bytes != mapping->page_bytes && (mapping->pool || step->bytes != NM_BLOCK_BYTES))
		return false;
	return step->address % step->bytes == 0;
}

static enum nm_unit_kind kind_of(const struct nm_mapping *mapping, uint64_t bytes)
{
	return mapping->pool ? NM_UNIT_POOL : bytes > NM_BASE_BYTES ? NM_UNIT_BLOCK : NM_UNIT_BASE;
}

/* ---- collecting ---- */

/* Adds a unit to the order, with the room on its node. Returns false if there is no place for
 * another node. */
static bool add_unit(struct nm_mover *mover, const struct nm_page_unit *unit, int16_t from,
		     int16_t to, uint64_t place)
{
	const struct nm_mover_rules *rules = &mover->rules;
	struct nm_units_order *order = &mover->job.units;
	int node = (int)rules->node_ids[to];
	unsigned i = 0;

	while (i < order->nr_rooms && order->rooms[i].node != node)
		i++;
	if (i == NM_ROOMS_MOST)
		return false;
	order->rooms[i] = nm_mover_room(mover, to, (enum nm_unit_kind)unit->kind,
					(uint64_t)unit->pages * NM_BASE_BYTES);
	if (i == order->nr_rooms)
		order->nr_rooms++;
	mover->job.places[order->count] = place;
	struct nm_page_unit *added = &order->units[order->count++];
	*added = *unit;
	added->from = from < 0 ? -1 : (int)rules->node_ids[from];
	added->to = node;
	return true;
}

/* Fills in the unit of a step, if that may move. If its mapping is not known, sets work.lacks. */
static bool make_unit(struct nm_mover *mover, const struct nm_page_step *step,
		      struct nm_page_unit *ret)
{
	unsigned nr_nodes = mover->rules.nr_nodes;

	if (step->to < 0 || (unsigned)step->to >= nr_nodes || step->from >= (int)nr_nodes)
		return false;
	const struct nm_mapping *mapping =
		nm_cache_find(mover->work.cache, step->address, step->bytes);
	if (!mapping || mapping->rule == NM_MAPS_UNKNOWN || !has_shape(step, mapping)) {
		mover->work.lacks = true;
		return false;
	}
	*ret = (struct nm_page_unit){.address = step->address,
				     .pages = (uint32_t)(step->bytes / NM_BASE_BYTES),
				     .kind = kind_of(mapping, step->bytes),
				     .first = mapping->pool ? 0 : step->next};
	return nm_maps_may_move(mapping->rule);
}

/* Collects steps with pages of one size, within the limits of a call. */
static void collect_steps(struct nm_mover *mover)
{
	struct nm_page_batch *batch = mover->work.batch;
	struct nm_units_order *order = &mover->job.units;
	uint64_t bytes = batch->steps[batch->next].bytes, bytes_most = nm_pace_bytes(&mover->pace);
	unsigned most = nm_pace_pages(&mover->pace, class_of(bytes), false);

	if (bytes > NM_BASE_BYTES && most > HUGE_MOST)
		most = HUGE_MOST;
	for (size_t i = batch->next; i < batch->count && order->count < most; i++) {
		struct nm_page_step *step = &batch->steps[i];
		struct nm_page_unit unit;
		if (step->done)
			continue;
		if (step->bytes != bytes ||
		    (order->count > 0 && (order->count + 1) * bytes > bytes_most))
			break;
		if (!make_unit(mover, step, &unit)) {
			step->fate = NM_PAGE_FATE_REFUSED;
			step->done = true;
		} else if (!add_unit(mover, &unit, step->from, step->to, i)) {
			break;
		}
	}
}

/* Returns whether the order has huge pages of another size: they have another pool. */
static bool other_pool(const struct nm_units_order *order, uint64_t pages)
{
	for (unsigned i = 0; i < order->count; i++)
		if (order->units[i].kind == NM_UNIT_POOL && order->units[i].pages != pages)
			return true;
	return false;
}

/* Adds the pages of the run from this one on, if their owner still allows them to move. Returns
 * their number, 0: there is no place for them. */
static uint64_t add_back(struct nm_mover *mover, const struct nm_base_pages *run, uint64_t page,
			 uint64_t most, uint64_t place)
{
	unsigned nr_nodes = mover->rules.nr_nodes;
	uint64_t address = run->address + page * NM_BASE_BYTES, left = run->pages - page;
	const struct nm_mapping *mapping = nm_cache_find(mover->work.cache, address, NM_BASE_BYTES);

	if (!mapping)
		return 1;
	uint64_t count = (mapping->end - address) / NM_BASE_BYTES;
	count = count < left ? count : left;
	if (run->was_on < 0 || (unsigned)run->was_on >= nr_nodes ||
	    (unsigned)run->now_on >= nr_nodes || !nm_maps_may_move(mapping->rule))
		return count;
	uint64_t of_pool = mapping->page_bytes / NM_BASE_BYTES;
	if (mapping->pool && (address % mapping->page_bytes != 0 || left < of_pool))
		return count; /* they were other pages when they moved */
	if (mapping->pool && other_pool(&mover->job.units, of_pool))
		return 0;
	count = mapping->pool ? of_pool : count < most ? count : most;
	const struct nm_page_unit unit = {.address = address,
					  .pages = (uint32_t)count,
					  .kind = mapping->pool ? NM_UNIT_POOL : NM_UNIT_BASE};
	return add_unit(mover, &unit, run->now_on, run->was_on, place) ? count : 0;
}

/* batch->next is the number of base pages that are done. */
static void collect_back(struct nm_mover *mover)
{
	const struct nm_page_batch *batch = mover->work.batch;
	struct nm_units_order *order = &mover->job.units;
	uint64_t page = batch->next, most = nm_pace_pages(&mover->pace, NM_PACE_SMALL, false);
	uint64_t collected = 0, count;

	mover->job.end = batch->next;
	for (size_t i = 0; i < batch->nr_back; i++) {
		const struct nm_base_pages *run = &batch->back[i];
		for (; page < run->pages; page += count) {
			uint64_t room = most - collected, before = order->count;
			if (collected >= most || order->count == NM_UNITS_MOST)
				return;
			count = add_back(mover, run, page,
					 room < NM_UNIT_PAGES_MOST ? room : NM_UNIT_PAGES_MOST,
					 mover->job.end);
			if (count == 0)
				return;
			collected += order->count > before ? count : 0;
			mover->job.end += count;
		}
		page -= run->pages;
	}
	mover->job.end = NM_BULK_END;
}

/* ---- results ---- */

static void record(struct nm_page_batch *batch, const struct nm_base_pages *run)
{
	struct nm_base_pages *last =
		batch->nr_base_pages > 0 ? &batch->base_pages[batch->nr_base_pages - 1] : NULL;

	if (last && last->was_on == run->was_on && last->now_on == run->now_on &&
	    last->address + (uint64_t)last->pages * NM_BASE_BYTES == run->address) {
		last->pages += run->pages;
		return;
	}
	if (batch->nr_base_pages == RUNS_MOST) {
		batch->base_pages_lost += run->pages;
		return;
	}
	NM_RESERVE(batch->base_pages, batch->base_pages_capacity, batch->nr_base_pages);
	batch->base_pages[batch->nr_base_pages++] = *run;
}

/* Returns the number of base pages that moved. */
static uint64_t record_runs(struct nm_mover *mover)
{
	const struct nm_units_moved *moved = &mover->job.units_moved;
	uint64_t pages = 0;

	for (unsigned i = 0; i < moved->nr_runs; i++) {
		const struct nm_moved_run *run = &moved->runs[i];
		const struct nm_base_pages pages_of_run = {
			run->address, run->pages, nm_node_index(&mover->rules, run->was_on),
			nm_node_index(&mover->rules, run->now_on)};
		record(mover->work.batch, &pages_of_run);
		pages += run->pages;
	}
	mover->counts.bytes += pages * NM_BASE_BYTES;
	return pages;
}

static void end_step(struct nm_page_step *step, int error)
{
	step->done = true;
	if (step->fate == NM_PAGE_FATE_MOVED)
		return;
	if (error == -ENOSPC)
		step->fate = NM_PAGE_FATE_REFUSED;
	else if (error || step->found_on < 0)
		step->fate = NM_PAGE_FATE_FAILED;
	else
		step->fate = NM_PAGE_FATE_ELSEWHERE;
	step->error = step->fate == NM_PAGE_FATE_FAILED && !error ? -ENOENT : error;
}

static void end_steps(struct nm_mover *mover)
{
	struct nm_page_batch *batch = mover->work.batch;
	const struct nm_units_moved *moved = &mover->job.units_moved;

	for (unsigned i = 0; i < moved->count; i++) {
		const struct nm_unit_outcome *outcome = &moved->outcomes[i];
		struct nm_page_step *step = &batch->steps[mover->job.places[i]];
		step->base_pages |= outcome->split;
		if (step->fate != NM_PAGE_FATE_MOVED)
			step->found_on = nm_node_index(&mover->rules, outcome->found_on);
		if (outcome->moved && step->fate != NM_PAGE_FATE_MOVED) {
			step->fate = NM_PAGE_FATE_MOVED;
			mover->counts.moved++;
		}
		step->next = outcome->next;
		if (outcome->done)
			end_step(step, outcome->error);
	}
}

/* A page of a pool counts as one. The batch continues behind the last page that is done. */
static void end_back(struct nm_mover *mover, uint64_t base_pages)
{
	struct nm_page_batch *batch = mover->work.batch;
	const struct nm_units_moved *moved = &mover->job.units_moved;
	uint64_t next = mover->job.end;

	for (unsigned i = moved->count; i-- > 0;) {
		const struct nm_page_unit *unit = &mover->job.units.units[i];
		if (unit->kind == NM_UNIT_POOL && moved->outcomes[i].moved)
			base_pages -= base_pages < unit->pages ? base_pages : unit->pages - 1;
		if (!moved->outcomes[i].done)
			next = mover->job.places[i] + moved->outcomes[i].next;
	}
	mover->counts.moved += base_pages;
	batch->next = next;
}

/* Until the free memory is read again. */
static void use_rooms(struct nm_mover *mover)
{
	const struct nm_units_moved *moved = &mover->job.units_moved;

	for (unsigned i = 0; i < moved->nr_runs; i++)
		nm_mover_use_room(mover, nm_node_index(&mover->rules, moved->runs[i].now_on),
				  NM_UNIT_BASE, (uint64_t)moved->runs[i].pages * NM_BASE_BYTES);
	for (unsigned i = 0; i < moved->count; i++) {
		const struct nm_page_unit *unit = &mover->job.units.units[i];
		if (moved->outcomes[i].moved && !moved->outcomes[i].split &&
		    unit->kind != NM_UNIT_BASE)
			nm_mover_use_room(mover, nm_node_index(&mover->rules, unit->to),
					  (enum nm_unit_kind)unit->kind,
					  (uint64_t)unit->pages * NM_BASE_BYTES);
	}
}

/* ---- a job ---- */

int nm_units_begin(struct nm_mover *mover)
{
	struct nm_page_batch *batch = mover->work.batch;
	struct nm_units_order *order = &mover->job.units;

	order->count = order->nr_rooms = order->zero = 0;
	order->pages_most = nm_pace_pages(&mover->pace, NM_PACE_SMALL, false);
	order->slow_ns = nm_pace_slow_ns(&mover->pace, false);
	if (nm_batch_has_steps(batch))
		collect_steps(mover);
	else
		collect_back(mover);
	mover->job.units_moved.nr_tries = 0;
	if (order->count == 0) {
		if (!nm_batch_has_steps(batch))
			batch->next = mover->job.end;
		return 0;
	}
	mover->job.kind = NM_JOB_MOVES;
	return mover->platform->ops->units_move(mover->platform, (pid_t)mover->work.tid,
						mover->work.tid_ticks, order,
						&mover->job.units_moved);
}

int nm_units_end(struct nm_mover *mover, int r)
{
	const struct nm_units_moved *moved = &mover->job.units_moved;
	const struct nm_units_order *order = &mover->job.units;
	uint64_t bytes = moved->nr_tries > 0 ? moved->tried_bytes : 0;

	for (unsigned i = 0; nm_batch_is_late(r) && i < order->count; i++)
		bytes += (uint64_t)order->units[i].pages * NM_BASE_BYTES;
	nm_batch_learn(mover, moved->tries, moved->nr_tries, bytes);
	if (r < 0)
		return r;
	uint64_t base_pages = record_runs(mover);
	use_rooms(mover);
	if (nm_batch_has_steps(mover->work.batch))
		end_steps(mover);
	else
		end_back(mover, base_pages);
	return 0;
}
