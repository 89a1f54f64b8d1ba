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

/* Returns whether a call may begin: none does once the mover is stopping. */
static bool may_call(struct nm_mover *mover)
{
	pthread_mutex_lock(&mover->lock);
	bool may = !mover->stopping;
	pthread_mutex_unlock(&mover->lock);
	return may;
}

void nm_call_prepare(struct nm_mover *mover)
{
	const struct nm_platform_ops *ops = mover->platform->ops;

	if (ops->pages_prepare && may_call(mover))
		(void)ops->pages_prepare(mover->platform);
}

static int ask_where(struct nm_mover *mover, unsigned count, uint64_t offset)
{
	struct nm_call *call = &mover->call;

	for (unsigned i = 0; i < count; i++)
		call->addresses[i] = call->units[i].address + offset;
	if (!may_call(mover))
		return -ECANCELED;
	return mover->platform->ops->pages_where(mover->platform, (pid_t)mover->work.tid,
						 mover->work.tid_ticks, count, call->addresses,
						 call->statuses);
}

int nm_call_where(struct nm_mover *mover, uint64_t offset)
{
	return mover->call.count ? ask_where(mover, mover->call.count, offset) : 0;
}

int nm_call_find(struct nm_mover *mover, unsigned count, const struct nm_worker_range *ranges)
{
	if (!may_call(mover))
		return -ECANCELED;
	return mover->platform->ops->pages_find(mover->platform, (pid_t)mover->work.tid,
						mover->work.tid_ticks, count, ranges,
						mover->rules.maps.budget_ns, &mover->work.found);
}

void nm_call_spend(struct nm_mover *mover, uint64_t pages, uint64_t bytes)
{
	pthread_mutex_lock(&mover->lock);
	nm_pace_spend(&mover->pace, pages, bytes);
	pthread_mutex_unlock(&mover->lock);
}

static void count_call(struct nm_mover_counts *counts, uint64_t taken_ns)
{
	counts->calls++;
	counts->call_ns += taken_ns;
	if (taken_ns > counts->call_longest_ns)
		counts->call_longest_ns = taken_ns;
}

int nm_call_migrate(struct nm_mover *mover, uint64_t from_nodes, unsigned to_node,
		    struct nm_mover_counts *counts)
{
	uint64_t held_ns;

	if (!may_call(mover))
		return -ECANCELED;
	int r = mover->platform->ops->pages_migrate(mover->platform, (pid_t)mover->work.tid,
						    mover->work.tid_ticks, from_nodes, to_node,
						    &held_ns);
	count_call(counts, held_ns);
	return r;
}

static void prepare(struct nm_call *call, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		call->addresses[i] = call->units[i].address;
		call->nodes[i] = call->units[i].to;
		call->statuses[i] = NM_UNIT_UNTOLD;
	}
}

/* Returns true if the call was slow, and no other one should follow now. */
static bool learn(struct nm_mover *mover, enum nm_pace_class class, unsigned count, uint64_t taken,
		  struct nm_mover_counts *counts)
{
	uint64_t now = mover->platform->ops->now_ns(mover->platform);

	pthread_mutex_lock(&mover->lock);
	bool slow = nm_pace_learn(&mover->pace, class, mover->work.batch->bulk, count,
				   taken, now);
	pthread_mutex_unlock(&mover->lock);
	count_call(counts, taken);
	counts->backoffs += slow;
	return slow;
}

/* Makes one call, which is timed and counted. */
static int call_once(struct nm_mover *mover, enum nm_pace_class class, unsigned count,
		     struct nm_mover_counts *counts, bool *ret_slow)
{
	const struct nm_platform_ops *ops = mover->platform->ops;
	struct nm_call *call = &mover->call;
	uint64_t held_ns;

	prepare(call, count);
	if (!may_call(mover))
		return -ECANCELED;
	int r = ops->pages_move(mover->platform, (pid_t)mover->work.tid, mover->work.tid_ticks,
				count, call->addresses, call->nodes, call->statuses, &held_ns);
	for (unsigned i = 0; i < count; i++)
		call->units[i].state = call->statuses[i];
	*ret_slow = learn(mover, class, count, held_ns, counts);
	return r;
}

/* These errors concern the pages or the node; all others concern the process or our permissions. */
static bool is_about_pages(int error)
{
	return error == -ENOMEM || error == -EACCES || error == -ENODEV || error == -EBUSY ||
	       error == -EAGAIN || error == -EINTR;
}

/* Queries those of the first `count` units whose status the kernel did not report. */
static void learn_unreported(struct nm_mover *mover, unsigned count, int r)
{
	struct nm_call *call = &mover->call;

	if (count == 0 || ask_where(mover, count, 0) < 0)
		return;
	for (unsigned i = 0; i < count; i++) {
		struct nm_unit *unit = &call->units[i];
		int on = call->statuses[i];
		if (on == unit->to || (on < 0 && is_worth_a_try(unit)))
			unit->state = on;
		else if (r < 0 && is_worth_a_try(unit))
			unit->state = r;
	}
}

static void end_unreported(struct nm_call *call)
{
	for (unsigned i = 0; i < call->count; i++) {
		struct nm_unit *unit = &call->units[i];
		if (unit->state != unit->to && is_worth_a_try(unit))
			unit->state = -EBUSY;
	}
}

int nm_call_move(struct nm_mover *mover, enum nm_pace_class class, struct nm_mover_counts *counts)
{
	struct nm_call *call = &mover->call;
	unsigned count = call->count;
	bool slow = false;

	for (int round = 0; round < 2 && count > 0 && !slow; round++) {
		int r = call_once(mover, class, count, counts, &slow);
		if (r < 0 && !is_about_pages(r))
			return round == 0 ? r : 0;
		count = bring_forward(call->units, count, is_off_target);
		learn_unreported(mover, count, r);
		count = bring_forward(call->units, count, is_off_target);
		count = bring_forward(call->units, count, is_worth_a_try);
		reverse(call->units, count);
	}
	end_unreported(call);
	return 0;
}
