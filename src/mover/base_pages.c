// SPDX-License-Identifier: MIT
#include "mover_internal.h"

#define RUNS_MOST 65536U /* 1 MiB; limit on the recorded locations of the pages of a process */
#define PAGES NM_ARRAY_SIZE(((struct nm_work *)0)->base_was)

/* ---- previous nodes ---- */

static struct nm_page_step *last_step(const struct nm_work *work)
{
	return &work->batch->steps[work->base_pages[work->nr_base_pages - 1]];
}

/* Begins with the step that is the last one now. At most its first base page has moved. */
static void begin_step(struct nm_work *work)
{
	work->base_offset = 0;
	for (size_t i = 0; i < PAGES; i++)
		work->base_was[i] = NM_BASE_STAYS;
	if (work->nr_base_pages == 0)
		return;
	const struct nm_page_step *step = last_step(work);
	if (step->fate == NM_PAGE_FATE_MOVED)
		work->base_was[0] = step->found_on;
}

void nm_base_pages_moved(struct nm_page_batch *batch, uint64_t address, uint64_t pages,
			 int16_t was_on, int16_t now_on)
{
	struct nm_base_pages *last =
		batch->nr_base_pages > 0 ? &batch->base_pages[batch->nr_base_pages - 1] : NULL;

	if (last && last->was_on == was_on && last->now_on == now_on &&
	    last->address + (uint64_t)last->pages * NM_SMALL_PAGE == address) {
		last->pages += (uint32_t)pages;
		return;
	}
	if (batch->nr_base_pages == RUNS_MOST) {
		batch->base_pages_lost += pages;
		return;
	}
	NM_RESERVE(batch->base_pages, batch->base_pages_capacity, batch->nr_base_pages);
	batch->base_pages[batch->nr_base_pages++] =
		(struct nm_base_pages){address, (uint32_t)pages, was_on, now_on};
}

static void write_down(struct nm_work *work, const struct nm_page_step *step)
{
	for (size_t i = 0, end; i < PAGES; i = end) {
		for (end = i + 1; end < PAGES && work->base_was[end] == work->base_was[i];)
			end++;
		if (work->base_was[i] != NM_BASE_STAYS)
			nm_base_pages_moved(work->batch, step->address + i * NM_SMALL_PAGE, end - i,
					    work->base_was[i], step->to);
	}
}

/* Removes the last step, which is complete, or will never be. */
static void take_off(struct nm_work *work)
{
	write_down(work, last_step(work));
	work->nr_base_pages--;
	begin_step(work);
}

void nm_base_pages_add(struct nm_work *work, size_t step)
{
	work->batch->steps[step].base_pages = true;
	work->base_pages[work->nr_base_pages++] = step;
	begin_step(work);
}

void nm_base_pages_end(struct nm_work *work)
{
	while (work->nr_base_pages > 0)
		take_off(work);
}

/* ---- a call ---- */

static void collect_base_pages(struct nm_mover *mover)
{
	struct nm_work *work = &mover->work;
	struct nm_call *call = &mover->call;
	const struct nm_page_step *step = last_step(work);

	for (call->count = 0; call->count < call->pages_most && work->base_offset < step->bytes;
	     work->base_offset += NM_SMALL_PAGE)
		call->units[call->count++] =
			(struct nm_unit){.address = step->address + work->base_offset,
					 .bytes = NM_SMALL_PAGE,
					 .to = (int)mover->rules.node_ids[step->to]};
}

static void end_call(struct nm_mover *mover)
{
	struct nm_work *work = &mover->work;
	struct nm_page_step *step = last_step(work);

	if (work->base_offset >= step->bytes) {
		take_off(work);
		nm_step_end(step);
	}
}

static int settle_base_pages(struct nm_mover *mover, int r)
{
	const struct nm_call *call = &mover->call;
	struct nm_page_step *step = last_step(&mover->work);

	if (r < 0)
		return r;
	for (unsigned i = 0; i < call->count; i++) {
		const struct nm_unit *unit = &call->units[i];
		if (call->moved.pages[i].node != unit->to) {
			step->error = call->moved.pages[i].node;
			continue;
		}
		nm_step_moved(step, &mover->counts);
		mover->counts.bytes += unit->bytes;
		mover->work.base_was[(unit->address - step->address) / NM_SMALL_PAGE] =
			nm_node_index(&mover->rules, unit->was);
	}
	end_call(mover);
	return 0;
}

/* Returns whether the page, which was on this node, is to be moved. Others are not counted. */
static bool is_to_go(struct nm_mover *mover, struct nm_page_step *step, const struct nm_unit *unit)
{
	int16_t found_on = nm_node_index(&mover->rules, unit->was);

	if (step->found_on < 0)
		step->found_on = found_on;
	if (unit->was < 0 || !nm_step_is_where_seen(step, unit, found_on))
		return false;
	if (!nm_mover_take_room(mover, step->to, unit->bytes, false)) {
		step->error = -ENOSPC;
		return false;
	}
	step->found_on = found_on;
	return true;
}

static int move_found(struct nm_mover *mover, int r)
{
	struct nm_call *call = &mover->call;
	unsigned kept = 0;

	if (r < 0)
		return r;
	for (unsigned i = 0; i < call->count; i++) {
		struct nm_unit unit = call->units[i];
		unit.was = call->statuses[i];
		if (is_to_go(mover, last_step(&mover->work), &unit))
			call->units[kept++] = unit;
	}
	call->count = kept;
	if (kept == 0) {
		end_call(mover);
		return 0;
	}
	return nm_call_round(mover, settle_base_pages);
}

int nm_base_pages_move(struct nm_mover *mover)
{
	collect_base_pages(mover);
	return nm_call_where(mover, move_found);
}
