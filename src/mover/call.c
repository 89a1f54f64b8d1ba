// SPDX-License-Identifier: MIT
#include "mover_internal.h"

#define LAST_OFFSET (NM_HUGE_PAGE - NM_SMALL_PAGE)

static int continue_with(struct nm_mover *mover, int r, nm_then_fn then)
{
	if (r != NM_CALL_BEGUN)
		return then(mover, r);
	mover->then = then;
	return r;
}

int nm_call_where(struct nm_mover *mover, nm_then_fn then)
{
	struct nm_call *call = &mover->call;
	unsigned count = call->count;

	if (count == 0)
		return then(mover, 0);
	for (unsigned i = 0; i < call->count; i++)
		call->addresses[i] = call->units[i].address;
	if (call->class == NM_PACE_HUGE)
		for (unsigned i = 0; i < call->count; i++)
			call->addresses[count++] = call->units[i].address + LAST_OFFSET;
	int r = mover->platform->ops->pages_where(mover->platform, (pid_t)mover->work.tid,
						  mover->work.tid_ticks, count, call->addresses,
						  call->statuses);
	return continue_with(mover, r, then);
}

int nm_call_find(struct nm_mover *mover, unsigned count, nm_then_fn then)
{
	int r = mover->platform->ops->pages_find(mover->platform, (pid_t)mover->work.tid,
						 mover->work.tid_ticks, count, mover->call.ranges,
						 mover->rules.maps.budget_ns, &mover->work.found);

	return continue_with(mover, r, then);
}

int nm_call_round(struct nm_mover *mover, nm_then_fn then)
{
	struct nm_call *call = &mover->call;
	const struct nm_page_round round = {
		.count = call->count,
		.addresses = call->addresses,
		.nodes = call->nodes,
		.last_offset = call->class == NM_PACE_HUGE ? LAST_OFFSET : 0,
		.slow_ns = nm_pace_slow_ns(&mover->pace, mover->work.batch->bulk),
	};

	for (unsigned i = 0; i < call->count; i++) {
		call->addresses[i] = call->units[i].address;
		call->nodes[i] = call->units[i].to;
		nm_pace_spend(&mover->pace, mover->work.batch->domain, call->units[i].bytes);
	}
	int r = mover->platform->ops->pages_round(mover->platform, (pid_t)mover->work.tid,
						  mover->work.tid_ticks, &round, &call->moved);
	return continue_with(mover, r, then);
}

static void count_call(struct nm_mover *mover, uint64_t taken_ns)
{
	struct nm_mover_counts *counts = &mover->counts;

	counts->calls++;
	counts->call_ns += taken_ns;
	if (taken_ns > counts->call_longest_ns)
		counts->call_longest_ns = taken_ns;
}

void nm_call_learn(struct nm_mover *mover)
{
	const struct nm_call *call = &mover->call;
	uint64_t now = mover->platform->ops->now_ns(mover->platform);

	for (size_t i = 0; i < NM_ARRAY_SIZE(call->moved.tries); i++) {
		const struct nm_worker_try *try = &call->moved.tries[i];
		if (try->pages == 0)
			continue;
		count_call(mover, try->held_ns);
		mover->counts.backoffs +=
			nm_pace_learn(&mover->pace, call->class, mover->work.batch->bulk,
				      mover->work.batch->domain, try->pages, try->held_ns, now);
	}
}
