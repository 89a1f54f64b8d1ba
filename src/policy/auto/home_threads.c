/* SPDX-License-Identifier: MIT */
/* Policy "auto": moves threads to their homes, and assigns those of large programs to the nodes on
 * which they run. */
#include "policy/homes.h"

#define COMPUTES 0.75		   /* share of a CPU from which a thread is assigned */
#define COMPUTES_AT_A_TIME_S 0.003 /* as BURST_TO_PLACE (propose.c): others answer requests */
#define NEVER_SLEEPS 0.9	   /* demand of a thread in CPUs */
#define STEADY_NS NM_NSEC_PER_SEC  /* time since the number of threads last rose */
#define REFUSED_NS (60 * NM_NSEC_PER_SEC) /* time after which a refused move is tried again */

/*
 * Returns the node to which the thread is to be assigned; -1: none. The computing threads of a
 * process that exceeds every node stay where they are (stencil paper, section 5): the scheduler
 * would move them away from their memory without need, and pages follow threads that stay. A light
 * thread is not assigned, because it would queue while CPUs elsewhere are idle.
 */
static int node_of(const struct nm_placement *placement, const struct nm_snapshot *snapshot,
		   const struct nm_home_state *state, const struct nm_snap_thread *thread)
{
	if (state->home >= 0)
		return nm_home_state_is_suspended(state) ? -1 : state->home;
	if (!nm_placement_may_assign(placement, state) ||
	    state->input.burst_s < COMPUTES_AT_A_TIME_S ||
	    snapshot->time_ns - state->grown_ns < STEADY_NS || !thread->movable ||
	    !(thread->stats.run_share >= COMPUTES))
		return -1;
	return thread->stats.main_node;
}

/* On a crowded CPU a thread that never sleeps runs for short times, too. */
static bool may_compute(const struct nm_home_state *state)
{
	return state->input.burst_s >= COMPUTES_AT_A_TIME_S ||
	       (state->input.running > 0 &&
		state->input.demand_cpus >= NEVER_SLEEPS * state->input.running);
}

/* Returns whether most of its memory is on the node, or is being moved there. */
static bool is_memory_there(const struct nm_home_state *state, int node)
{
	if (state->home == node && (state->migration.state == NM_MIGRATION_READY ||
				    state->migration.state == NM_MIGRATION_RUNNING ||
				    state->migration.state == NM_MIGRATION_DONE))
		return true;
	const double *shares = nm_home_state_shares(state);
	return shares && shares[node] > 0.5;
}

/* The step for a thread. */
enum step_kind { STEP_NONE, STEP_FIRST, STEP_AGAIN, STEP_ASSIGN };

static enum step_kind kind_of(const struct nm_snapshot *snapshot, const struct nm_home_state *state,
			      const struct nm_snap_thread *thread, int node,
			      const struct nm_assignment *known)
{
	if (!(thread->stats.run_share > 0) || thread->only_watched)
		return STEP_NONE;
	if (known && known->node == node)
		return nm_assignment_is_due(known, snapshot->time_ns) ? STEP_AGAIN : STEP_NONE;
	if (nm_topology_node_of_cpu(snapshot->topology, thread->stats.main_cpu) == node)
		return may_compute(state) ? STEP_ASSIGN : STEP_NONE;
	bool moved = known && known->decision == state->decision;
	return state->home >= 0 && !moved ? STEP_FIRST : STEP_NONE;
}

/* The node of an assigned thread is remembered: it is where it ran at first. */
static int assigned_node_of(const struct nm_placement *placement,
			    const struct nm_snapshot *snapshot, const struct nm_home_state *state,
			    const struct nm_snap_thread *thread, const struct nm_assignment *known)
{
	/* The kernel moves both the threads and the pages of a large program, and must not be
	 * opposed. */
	if (state->home < 0 && snapshot->kernel_balances)
		return -1;
	if (state->home < 0 && known && known->by_home && known->node >= 0)
		return nm_placement_may_assign(placement, state) ? known->node : -1;
	return node_of(placement, snapshot, state, thread);
}

/* Plans, or notes, the step of a thread if it is of this kind. Returns whether a move was planned.
 */
static bool step_thread(const struct nm_home_round *round, struct nm_home_state *state,
			uint32_t index, int node, enum step_kind kind, struct nm_plan *plan)
{
	const struct nm_snap_thread *thread = &round->snapshot->threads[index];
	const struct nm_assigning assigning = {
		.node = node,
		.decision = kind == STEP_FIRST ? state->decision : 0,
		.by_home = true,
		.computes = may_compute(state),
		.memory_there = is_memory_there(state, node),
	};
	if (kind == STEP_ASSIGN)
		state->assigned |= state->home < 0;
	else if (nm_plan_add_home(round->snapshot, round->config, index, node, state->decision,
				  plan) < 0)
		return false;
	if (kind == STEP_AGAIN)
		nm_assignments_return(round->assignments, thread->tid, round->snapshot->time_ns);
	else
		nm_assignments_note(round->assignments, round->snapshot, round->config, thread,
				    &assigning);
	return kind != STEP_ASSIGN;
}

/* In the order of the threads' numbers, first moves before others. The first round of each kind
 * leaves moves to others: a user's threads could need all of them in every interval. The second one
 * gives what is left, which no later interval could use. */
void nm_placement_plan(struct nm_placement *placement, const struct nm_home_round *round,
		       struct nm_plan *plan)
{
	const struct nm_snapshot *snapshot = round->snapshot;
	const uint64_t most = round->config->rules.moves_per_interval;
	const uint64_t nr_threads = snapshot->nr_threads;
	nm_autofree uint64_t *movers = nm_must(calloc(most + 1, sizeof(*movers)));
	size_t count = 0;
	for (uint64_t turn = 0; turn < 4 * nr_threads && count < most; turn++) {
		const uint32_t i = (uint32_t)(turn % nr_threads);
		const uint64_t pass = turn / nr_threads;
		const struct nm_snap_thread *thread = &snapshot->threads[i];
		struct nm_home_state *state = nm_home_state_find(placement, thread->pid);
		if (!state || snapshot->time_ns < state->refused_until_ns)
			continue;
		const struct nm_assignment *known =
			nm_assignments_of(round->assignments, thread->tid, thread->start_ticks);
		int node = assigned_node_of(placement, snapshot, state, thread, known);
		enum step_kind kind =
			node < 0 ? STEP_NONE : kind_of(snapshot, state, thread, node, known);
		if (kind == STEP_NONE || (kind == STEP_AGAIN) != (pass >= 2))
			continue;
		uint64_t domain = snapshot->processes[thread->process].domain;
		struct nm_quota quota = {.limit = (double)most};
		for (size_t k = 0; k < count; k++)
			nm_quota_count(&quota, domain, movers[k], 1);
		if (pass % 2 == 0 && !nm_quota_permits(&quota, domain))
			continue;
		if (step_thread(round, state, i, node, kind, plan))
			movers[count++] = domain;
	}
}

void nm_placement_refused(struct nm_placement *placement, uint32_t pid, int error, uint64_t now_ns)
{
	struct nm_home_state *state = nm_home_state_find(placement, pid);
	if (state && error != -ESRCH && error != -ESTALE)
		state->refused_until_ns = now_ns + REFUSED_NS;
}
