// SPDX-License-Identifier: MIT
/* The job that moves given pages of a process. */
#include <errno.h>
#include <string.h>

#include "platform/page_jobs.h"

/* Huge pages of the pool are not part of the other memory. */
static bool take_room(struct nm_page_room *room, enum nm_unit_kind kind, uint64_t bytes)
{
	if (kind == NM_UNIT_POOL)
		return nm_page_take_room(&room->pool, bytes);
	if (kind == NM_UNIT_BLOCK &&
	    (room->memory < bytes || !nm_page_take_room(&room->huge, bytes)))
		return false;
	return nm_page_take_room(&room->memory, bytes);
}

/* ---- a job ---- */

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
	return unit->address + (uint64_t)(unit->pages - 1) * NM_BASE_BYTES;
}

static void add_run(struct nm_units_moved *moved, uint64_t address, uint32_t pages, int was_on,
		    int now_on)
{
	struct nm_moved_run *last = moved->nr_runs > 0 ? &moved->runs[moved->nr_runs - 1] : NULL;
	const struct nm_moved_run run = {address, pages, (int16_t)was_on, (int16_t)now_on};

	if (last && last->was_on == was_on && last->now_on == now_on &&
	    last->address + (uint64_t)last->pages * NM_BASE_BYTES == address)
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
		      (whole ? unit->pages : 1) * (uint64_t)NM_BASE_BYTES))
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
			NM_BASE_BYTES *
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
				unit->address + (uint64_t)outcome->next++ * NM_BASE_BYTES;
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

	while (is_due || (!job->ended && nm_page_calls_have_time(job->calls))) {
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
