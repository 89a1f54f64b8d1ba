// SPDX-License-Identifier: MIT
/* Processes one batch, call by call: reads what it needs to know of the process, selects the pages
 * to move, and records the results. */
#include <string.h>

#include "mover_internal.h"

#define CHECK_NS NM_NSEC_PER_SEC	   /* how often the thread named by calls is checked */
#define HUGE_MOST (NM_PACE_PAGES_MOST / 2) /* a query contains two addresses for each huge page */

static enum nm_pace_class class_of(const struct nm_page_step *step)
{
	return step->bytes > NM_SMALL_PAGE ? NM_PACE_HUGE : NM_PACE_SMALL;
}

/* ---- the process ---- */

/* Each call verifies that the number still belongs to the process. The kernel refuses nodes that
 * its cpuset excludes. */
static int check_process(struct nm_mover *mover)
{
	struct nm_work *work = &mover->work;
	uint64_t now = mover->platform->ops->now_ns(mover->platform);

	if (work->checked_ns && now - work->checked_ns < CHECK_NS)
		return 0;
	int directory = nm_known_open(mover->platform, work->batch->pid, work->batch->start_ticks,
				      &work->tid, &work->tid_ticks);
	if (directory < 0)
		return directory;
	mover->platform->ops->close(mover->platform, directory);
	work->checked_ns = now;
	return 0;
}

/* Returns 0 if the mappings are known, -EAGAIN if they may be read now, or the negative errno that
 * ends the batch. */
static int look_up(struct nm_mover *mover, uint64_t now)
{
	const struct nm_page_batch *batch = mover->work.batch;
	struct nm_known_entry *entry = nm_known_ask(&mover->known, batch->pid, batch->start_ticks,
						    batch->domain, now, NULL);

	mover->work.known = entry;
	if (!entry)
		return -ESTALE;
	if (nm_known_holds(entry, now))
		return 0;
	if (nm_known_rests(entry, now))
		return entry->error ? entry->error : -ESTALE;
	return entry->reading || nm_known_has_room(&mover->known, now, entry) ? -EAGAIN : -ESTALE;
}

/* ---- base pages and huge pages ---- */

static void collect(struct nm_mover *mover)
{
	struct nm_work *work = &mover->work;
	struct nm_call *call = &mover->call;
	struct nm_page_batch *batch = work->batch;
	uint64_t taken = 0;

	for (call->count = 0; work->next < batch->count && call->count < call->pages_most;
	     work->next++) {
		struct nm_page_step *step = &batch->steps[work->next];
		struct nm_unit *unit = &call->units[call->count];
		if (class_of(step) != call->class ||
		    (taken > 0 && taken + step->bytes > call->bytes_most))
			break;
		if (!nm_step_may_move(&mover->rules, work, step, unit)) {
			step->fate = NM_PAGE_FATE_REFUSED;
			continue;
		}
		unit->step = work->next;
		taken += step->bytes;
		call->count++;
	}
}

/* Returns whether the page is to be moved. If not, sets the fate of its step. */
static bool is_to_go(struct nm_mover *mover, struct nm_unit *unit)
{
	struct nm_page_step *step = &mover->work.batch->steps[unit->step];

	step->found_on = nm_node_index(&mover->rules, unit->was);
	if (unit->was < 0)
		nm_step_failed(step, unit->was);
	else if (!nm_step_is_where_seen(step, unit, step->found_on))
		step->fate = NM_PAGE_FATE_ELSEWHERE;
	else if (nm_mover_take_room(mover, step->to, unit->bytes, unit->pool))
		return true;
	else
		nm_step_lacks_room(step);
	return false;
}

static int settle(struct nm_mover *mover, int r)
{
	struct nm_mover_counts *counts = &mover->counts;
	const struct nm_call *call = &mover->call;

	if (r < 0)
		return r;
	for (unsigned i = 0; i < call->count; i++) {
		const struct nm_unit *unit = &call->units[i];
		struct nm_page_step *step = &mover->work.batch->steps[unit->step];
		if (call->moved.pages[i].node != unit->to) {
			nm_step_failed(step, call->moved.pages[i].node);
			continue;
		}
		bool whole = unit->pool || call->moved.pages[i].last == unit->to;
		nm_step_moved(step, counts);
		counts->bytes += whole ? unit->bytes : NM_SMALL_PAGE;
		if (whole)
			nm_base_pages_moved(mover->work.batch, unit->address,
					    unit->bytes / NM_SMALL_PAGE, step->found_on, step->to);
		else
			nm_base_pages_add(&mover->work, unit->step);
	}
	return 0;
}

/* Only the kernel knows whether a range is a transparent huge page. If it is one, its first and
 * last base page are on one node and move together. Any other range is handled as base pages. */
static int move_found(struct nm_mover *mover, int r)
{
	struct nm_call *call = &mover->call;
	bool huge = call->class == NM_PACE_HUGE;
	unsigned kept = 0;

	if (r < 0)
		return r;
	for (unsigned i = 0; i < call->count; i++) {
		struct nm_unit unit = call->units[i];
		unit.was = call->statuses[i];
		if (huge && !unit.pool &&
		    (unit.was < 0 || call->statuses[call->count + i] != unit.was))
			nm_base_pages_add(&mover->work, unit.step);
		else if (is_to_go(mover, &unit))
			call->units[kept++] = unit;
	}
	call->count = kept;
	if (kept == 0)
		return 0;
	return nm_call_round(mover, settle);
}

/* ---- a step ---- */

/* Adds what the step has done to the results of the batch. */
static void add_results(struct nm_mover *mover)
{
	const struct nm_mover_counts *counts = &mover->counts, *before = &mover->work.before;
	struct nm_page_batch *batch = mover->work.batch;

	batch->moved += counts->moved - before->moved;
	batch->bytes += counts->bytes - before->bytes;
	batch->calls += counts->calls - before->calls;
	batch->call_ns += counts->call_ns - before->call_ns;
	if (mover->work.lacks)
		nm_known_lacks(mover->work.known);
}

static bool is_done(const struct nm_work *work)
{
	if (!nm_batch_has_steps(work->batch))
		return work->batch->next == NM_BULK_END;
	return work->next == work->batch->count && work->nr_base_pages == 0;
}

static int make_calls(struct nm_mover *mover)
{
	struct nm_work *work = &mover->work;
	struct nm_call *call = &mover->call;
	bool small = !nm_batch_has_steps(work->batch) || work->nr_base_pages > 0;

	call->class = small ? NM_PACE_SMALL : class_of(&work->batch->steps[work->next]);
	call->pages_most = nm_pace_pages(&mover->pace, call->class, work->batch->bulk);
	call->bytes_most = nm_pace_bytes(&mover->pace);
	if (call->class == NM_PACE_HUGE && call->pages_most > HUGE_MOST)
		call->pages_most = HUGE_MOST;
	if (!nm_batch_has_steps(work->batch))
		return nm_bulk_move(mover);
	if (work->nr_base_pages)
		return nm_base_pages_move(mover);
	collect(mover);
	return nm_call_where(mover, move_found);
}

/* The first turn of reading may be sufficient; otherwise later turns continue it. */
static int take_mappings(struct nm_mover *mover, int r)
{
	mover->work.held_ns = mover->work.known->held_ns;
	mover->work.known->had = r != -EAGAIN;
	if (r < 0)
		return r == -EAGAIN ? -ESTALE : r;
	return make_calls(mover);
}

int nm_batch_step(struct nm_mover *mover)
{
	struct nm_work *work = &mover->work;

	work->held_ns = 0;
	work->lacks = false;
	work->before = mover->counts;
	memset(mover->call.moved.tries, 0, sizeof(mover->call.moved.tries));
	if (is_done(work))
		return 0;
	int r = check_process(mover);
	if (r < 0)
		return r;
	mover->call.now_ns = mover->platform->ops->now_ns(mover->platform);
	r = look_up(mover, mover->call.now_ns);
	if (r == -EAGAIN)
		return nm_mover_read(mover, take_mappings);
	return r < 0 ? r : make_calls(mover);
}

int nm_batch_step_end(struct nm_mover *mover, int r)
{
	const struct nm_page_batch *batch = mover->work.batch;

	nm_call_learn(mover);
	add_results(mover);
	if (r == -EINVAL) /* the process is exiting, and has no memory any more */
		return -ESRCH;
	if (r < 0)
		return r == -EACCES ? -EPERM : r == -EAGAIN || r == -EINPROGRESS ? -ESTALE : r;
	if (!is_done(&mover->work))
		return -EAGAIN;
	return batch->bulk && batch->full ? -ENOSPC : 0;
}
