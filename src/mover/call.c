// SPDX-License-Identifier: MIT
/*
 * The kernel reports the status of a page only if it does not give up: near a page that it could
 * not migrate, others may have moved without a status, and later ones may not have been tried.
 * Therefore pages without a status are queried, and tried once more in the opposite order.
 */
#include "call.h"

typedef bool (*unit_fn)(const struct nm_unit *unit);

static bool is_off_target(const struct nm_unit *unit)
{
	return unit->state != unit->to;
}

/* Returns whether another try may succeed: the page was in use, or was never reached. */
static bool is_worth_a_try(const struct nm_unit *unit)
{
	return unit->state >= 0 || unit->state == NM_UNIT_UNTOLD || unit->state == -EBUSY ||
	       unit->state == -EAGAIN;
}

/* Moves those of the first `count` units for which is_meant() is true to the front; returns their
 * number. */
static unsigned bring_forward(struct nm_unit *units, unsigned count, unit_fn is_meant)
{
	unsigned front = 0;

	for (unsigned i = 0; i < count; i++) {
		if (!is_meant(&units[i]))
			continue;
		struct nm_unit unit = units[front];
		units[front++] = units[i];
		units[i] = unit;
	}
	return front;
}

static void reverse(struct nm_unit *units, unsigned count)
{
	for (unsigned i = 0; i < count / 2; i++) {
		struct nm_unit unit = units[i];
		units[i] = units[count - 1 - i];
		units[count - 1 - i] = unit;
	}
}

static int continue_with(struct nm_mover *mover, int r, nm_then_fn then)
{
	if (r != NM_CALL_BEGUN)
		return then(mover, r);
	mover->then = then;
	return r;
}

int nm_call_prepare(struct nm_mover *mover, nm_then_fn then)
{
	const struct nm_platform_ops *ops = mover->platform->ops;

	return continue_with(mover, ops->pages_prepare ? ops->pages_prepare(mover->platform) : 0,
			     then);
}

static int ask_where(struct nm_mover *mover, unsigned count, uint64_t offset, nm_then_fn then)
{
	struct nm_call *call = &mover->call;

	for (unsigned i = 0; i < count; i++)
		call->addresses[i] = call->units[i].address + offset;
	int r = mover->platform->ops->pages_where(mover->platform, (pid_t)mover->work.tid,
						  mover->work.tid_ticks, count, call->addresses,
						  call->statuses);
	return continue_with(mover, r, then);
}

int nm_call_where(struct nm_mover *mover, uint64_t offset, nm_then_fn then)
{
	if (mover->call.count == 0)
		return then(mover, 0);
	return ask_where(mover, mover->call.count, offset, then);
}

int nm_call_find(struct nm_mover *mover, unsigned count, nm_then_fn then)
{
	int r = mover->platform->ops->pages_find(mover->platform, (pid_t)mover->work.tid,
						 mover->work.tid_ticks, count, mover->call.ranges,
						 mover->rules.maps.budget_ns, &mover->work.found);

	return continue_with(mover, r, then);
}

void nm_call_count(struct nm_mover *mover)
{
	struct nm_mover_counts *counts = &mover->work.counts;
	uint64_t taken_ns = mover->call.held_ns;

	counts->calls++;
	counts->call_ns += taken_ns;
	if (taken_ns > counts->call_longest_ns)
		counts->call_longest_ns = taken_ns;
}

int nm_call_migrate(struct nm_mover *mover, uint64_t from_nodes, unsigned to_node, nm_then_fn then)
{
	int r = mover->platform->ops->pages_migrate(mover->platform, (pid_t)mover->work.tid,
						    mover->work.tid_ticks, from_nodes, to_node,
						    &mover->call.held_ns);

	return continue_with(mover, r, then);
}

static void fill_in(struct nm_call *call)
{
	for (unsigned i = 0; i < call->left; i++) {
		call->addresses[i] = call->units[i].address;
		call->nodes[i] = call->units[i].to;
		call->statuses[i] = NM_UNIT_UNTOLD;
	}
}

/* Returns true if the call was slow, and no other one should follow now. */
static bool learn(struct nm_mover *mover)
{
	const struct nm_call *call = &mover->call;
	uint64_t now = mover->platform->ops->now_ns(mover->platform);
	bool slow = nm_pace_learn(&mover->pace, call->class, mover->work.batch->bulk, call->left,
				  call->held_ns, now);

	nm_call_count(mover);
	mover->work.counts.backoffs += slow;
	return slow;
}

/* These errors concern the pages or the node; all others concern the process or our permissions. */
static bool is_about_pages(int error)
{
	return error == -ENOMEM || error == -EACCES || error == -ENODEV || error == -EBUSY ||
	       error == -EAGAIN || error == -EINTR;
}

static void end_unreported(struct nm_call *call)
{
	for (unsigned i = 0; i < call->count; i++) {
		struct nm_unit *unit = &call->units[i];
		if (unit->state != unit->to && is_worth_a_try(unit))
			unit->state = -EBUSY;
	}
}

static int make_a_try(struct nm_mover *mover);

/* Tries once more, in the opposite order, the units that did not move and that still may. */
static int end_try(struct nm_mover *mover)
{
	struct nm_call *call = &mover->call;

	call->left = bring_forward(call->units, call->left, is_off_target);
	call->left = bring_forward(call->units, call->left, is_worth_a_try);
	reverse(call->units, call->left);
	if (call->round++ == 0 && call->left > 0 && !call->slow)
		return make_a_try(mover);
	end_unreported(call);
	return call->moved(mover, 0);
}

static int take_unreported(struct nm_mover *mover, int r)
{
	struct nm_call *call = &mover->call;

	for (unsigned i = 0; i < call->left && r >= 0; i++) {
		struct nm_unit *unit = &call->units[i];
		int on = call->statuses[i];
		if (on == unit->to || (on < 0 && is_worth_a_try(unit)))
			unit->state = on;
		else if (call->error < 0 && is_worth_a_try(unit))
			unit->state = call->error;
	}
	return end_try(mover);
}

/* Queries those units that are not on their node as far as the kernel reported. */
static int take_statuses(struct nm_mover *mover, int r)
{
	struct nm_call *call = &mover->call;

	for (unsigned i = 0; i < call->left; i++)
		call->units[i].state = call->statuses[i];
	call->slow = learn(mover);
	if (r < 0 && !is_about_pages(r) && call->round == 0)
		return call->moved(mover, r);
	call->error = r;
	call->left = bring_forward(call->units, call->left, is_off_target);
	if (call->left == 0 || (r < 0 && !is_about_pages(r)))
		return end_try(mover);
	return ask_where(mover, call->left, 0, take_unreported);
}

static int make_a_try(struct nm_mover *mover)
{
	struct nm_call *call = &mover->call;

	fill_in(call);
	int r = mover->platform->ops->pages_move(mover->platform, (pid_t)mover->work.tid,
						 mover->work.tid_ticks, call->left, call->addresses,
						 call->nodes, call->statuses, &call->held_ns);
	return continue_with(mover, r, take_statuses);
}

int nm_call_move(struct nm_mover *mover, enum nm_pace_class class, nm_then_fn then)
{
	struct nm_call *call = &mover->call;

	call->class = class;
	call->moved = then;
	call->round = 0;
	call->left = call->count;
	return make_a_try(mover);
}
