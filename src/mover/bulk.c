// SPDX-License-Identifier: MIT
#include "bulk.h"

#include "call.h"

static uint64_t page_bytes(const struct nm_unit *unit, const struct nm_page_step *step)
{
	return unit->pool ? step->bytes : NM_SMALL_PAGE;
}

/* Advances to where the call has no more room, or the step ends. */
static void add_pages(struct nm_work *work, struct nm_call *call, const struct nm_unit *first)
{
	const struct nm_page_step *step = &work->batch->steps[work->next];

	while (work->bulk_offset < step->bytes && call->count < NM_PACE_PAGES_MOST) {
		struct nm_unit *unit = &call->units[call->count++];
		*unit = *first;
		unit->address = step->address + work->bulk_offset;
		work->bulk_offset += page_bytes(first, step);
	}
	if (work->bulk_offset < step->bytes)
		return;
	work->next++;
	work->bulk_offset = 0;
}

/* All that was in its mapping is on the node that it is to go to, or has been seen by now. */
static bool is_nothing_left(const struct nm_work *work, const struct nm_unit *unit)
{
	const struct nm_mapped *mapped = unit->mapped;

	return mapped->only_on == unit->to ||
	       (mapped->start == work->bulk_mapping && work->bulk_seen >= mapped->resident);
}

/* False: none of its pages is, and the step is settled. */
static bool is_to_be_looked_at(struct nm_mover *mover, struct nm_page_step *step,
			       struct nm_mover_counts *counts, struct nm_unit *ret_unit)
{
	uint64_t *why = nm_step_refusal(&mover->rules, &mover->work, step, counts, ret_unit);

	if (why)
		nm_step_refused(step, counts, why);
	else if (is_nothing_left(&mover->work, ret_unit))
		nm_step_elsewhere(step, counts);
	else
		return true;
	return false;
}

static void collect(struct nm_mover *mover, struct nm_mover_counts *counts)
{
	struct nm_work *work = &mover->work;
	struct nm_call *call = &mover->call;

	call->count = 0;
	while (work->next < work->batch->count && call->count < NM_PACE_PAGES_MOST) {
		struct nm_page_step *step = &work->batch->steps[work->next];
		struct nm_unit unit;
		if (!is_to_be_looked_at(mover, step, counts, &unit)) {
			work->next++;
			work->bulk_offset = 0;
			continue;
		}
		unit.step = work->next;
		add_pages(work, call, &unit);
	}
}

/* One more page of this mapping has been seen. */
static void note_seen(struct nm_work *work, const struct nm_mapped *mapped)
{
	if (mapped->start != work->bulk_mapping)
		work->bulk_seen = 0;
	work->bulk_mapping = mapped->start;
	work->bulk_seen++;
}

/* Leaves those that are to go, `most` of them; what lies behind the last is for the next call. */
static int find(struct nm_mover *mover, unsigned most)
{
	struct nm_work *work = &mover->work;
	struct nm_call *call = &mover->call;
	unsigned kept = 0;
	int r = nm_call_where(mover, 0);

	for (unsigned i = 0; r == 0 && i < call->count; i++) {
		struct nm_unit unit = call->units[i];
		struct nm_page_step *step = &work->batch->steps[unit.step];
		unit.was = call->statuses[i];
		int16_t found_on = nm_node_index(&mover->rules, unit.was);
		bool is_to_go = unit.was >= 0 && nm_step_is_where_seen(&mover->rules, step, &unit,
								       found_on);
		if (is_to_go && kept == most) {
			work->next = unit.step;
			work->bulk_offset = unit.address - step->address;
			break;
		}
		if (found_on >= 0)
			step->found_on = found_on;
		if (unit.was >= 0)
			note_seen(work, unit.mapped);
		if (!is_to_go)
			continue;
		if (nm_mover_take_room(mover, step->to, page_bytes(&unit, step), unit.pool))
			call->units[kept++] = unit;
		else
			step->error = -ENOSPC;
	}
	call->count = r == 0 ? kept : 0;
	return r;
}

static uint64_t bytes_of_call(const struct nm_mover *mover)
{
	const struct nm_call *call = &mover->call;
	uint64_t bytes = 0;

	for (unsigned i = 0; i < call->count; i++)
		bytes += page_bytes(&call->units[i],
				    &mover->work.batch->steps[call->units[i].step]);
	return bytes;
}

static void settle(struct nm_mover *mover, struct nm_mover_counts *counts)
{
	const struct nm_call *call = &mover->call;

	for (unsigned i = 0; i < call->count; i++) {
		const struct nm_unit *unit = &call->units[i];
		struct nm_page_step *step = &mover->work.batch->steps[unit->step];
		if (unit->state != unit->to) {
			step->error = unit->state;
			continue;
		}
		step->fate = NM_PAGE_FATE_MOVED;
		counts->moved++;
		counts->bytes += page_bytes(unit, step);
	}
}

int nm_bulk_move(struct nm_mover *mover, struct nm_mover_counts *counts, unsigned pages)
{
	size_t from = mover->work.next;

	collect(mover, counts);
	int r = mover->call.count ? find(mover, pages) : 0;
	if (r == 0 && mover->call.count > 0) {
		nm_call_spend(mover, bytes_of_call(mover));
		r = nm_call_move(mover, NM_PACE_SMALL, counts);
		if (r == 0)
			settle(mover, counts);
	}
	/* Nothing of those that it has passed is left to be looked at. */
	for (size_t i = from; r == 0 && i < mover->work.next; i++)
		nm_step_end(&mover->work.batch->steps[i], counts);
	return r;
}
