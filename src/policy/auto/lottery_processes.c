/* SPDX-License-Identifier: MIT */
/*
 * Policy "auto": processes without a home whose threads and pages are placed one by one, by the
 * lotteries of LBMA and IMAR² and by page exclusivity.
 */
#include "policy/homes.h"

static bool takes_part(const struct nm_home_state *state, uint64_t interval)
{
	return state->home < 0 && nm_place_is_spread(state->reason) &&
	       (state->drawn || interval >= state->stays_until);
}

void nm_placement_leave_to_lottery(const struct nm_placement *placement,
				   struct nm_snapshot *snapshot)
{
	/* The states are in the order of the snapshot's processes. */
	for (size_t i = 0; i < snapshot->nr_threads; i++) {
		struct nm_snap_thread *thread = &snapshot->threads[i];
		const struct nm_home_state *state = nm_home_state_at(placement, thread->process);
		thread->movable = thread->movable && takes_part(state, snapshot->interval);
	}
}

bool nm_placement_is_spread(const struct nm_placement *placement, uint32_t pid, uint64_t interval)
{
	const struct nm_home_state *state = placement ? nm_home_state_find(placement, pid) : NULL;
	return state && takes_part(state, interval);
}

bool nm_placement_may_assign(const struct nm_placement *placement,
			     const struct nm_home_state *state)
{
	double cores = 0, room = 0;
	if (state->home >= 0 || state->reason != NM_PLACE_LARGER)
		return false;
	for (unsigned k = 0; k < placement->nr_nodes; k++) {
		cores += placement->nodes[k].cores;
		room += state->room[k];
	}
	return placement->recent_demand <= cores &&
	       (!state->is_restricted || state->movable_cpus <= room);
}

/* Assigned threads must not queue, and those of a process that no longer exceeds every node are not
 * assigned. */
const struct nm_home_state *nm_placement_end_assignments(struct nm_placement *placement,
							 size_t *next)
{
	while (*next < placement->processes.count) {
		struct nm_home_state *state = nm_home_state_at(placement, (*next)++);
		if (!state->assigned || nm_placement_may_assign(placement, state))
			continue;
		state->assigned = false;
		return state;
	}
	return NULL;
}

bool nm_placement_assigned(struct nm_placement *placement, uint32_t pid)
{
	struct nm_home_state *state = nm_home_state_find(placement, pid);
	if (!state || state->home >= 0 || state->assigned)
		return false;
	state->assigned = true;
	return true;
}

void nm_placement_drawn(struct nm_placement *placement, uint32_t pid, uint64_t interval)
{
	struct nm_home_state *state = nm_home_state_find(placement, pid);
	if (!state || state->drawn)
		return;
	state->drawn = true;
	state->stays_until = interval + NM_PLACE_STAYS_INTERVALS;
}
