/* SPDX-License-Identifier: MIT */
/* Policy "auto": moves threads to their homes. */
#include "numa-migrd/homes.h"

#define ALONE_AFTER_S 10.0 /* the same for a program that never had a second thread */
#define REFUSED_NS (60 * NM_NSEC_PER_SEC) /* time after which a refused move is tried again */

/*
 * Selects between lease and transient affinity. A process that has run only a single thread, or
 * still creates threads, may yet count the CPUs; one with a runtime that counts again, or an
 * unknown one, will do so (threads.affinity). A process created by a leased thread would inherit
 * its lease.
 */
static enum nm_step_pin pin_of(const struct nm_config *config, const struct nm_snapshot *snapshot,
			       const struct nm_home_state *state,
			       const struct nm_snap_thread *thread)
{
	const struct nm_snap_process *process = &snapshot->processes[thread->process];
	double after_s = state->max_running > 1 ? NM_SIZED_AFTER_S : ALONE_AFTER_S;
	/* Its behaviour before it was first seen is not known. */
	double known_s = (double)(snapshot->time_ns - thread->adopted_ns) / (double)NM_NSEC_PER_SEC;
	bool sized = process->age_s >= after_s && process->quiet_s >= after_s &&
		     (state->max_running > 1 || known_s >= after_s);
	bool would_see = config->threads.affinity == NM_AFFINITY_AUTO &&
			 nm_runtime_may_count_again(process->runtime);
	bool nudged =
		config->threads.affinity == NM_AFFINITY_TRANSIENT || would_see || thread->forked;
	return sized && !nudged ? NM_STEP_LEASE : NM_STEP_NUDGE;
}

/* A thread that would get only a transient affinity, and is at home already, needs no step. */
static bool needs_step(const struct nm_snapshot *snapshot, const struct nm_snap_thread *thread,
		       int home, enum nm_step_pin pin)
{
	if (!(thread->run_share > 0) || thread->leased || thread->only_watched)
		return false;
	return pin == NM_STEP_LEASE ||
	       nm_topology_node_of_cpu(snapshot->topology, thread->main_cpu) != home;
}

/* Lists the threads that need a step, in the order of their numbers. Returns how many they are. */
static size_t list_steps(const struct nm_placement *placement, const struct nm_snapshot *snapshot,
			 const struct nm_config *config, struct nm_turn *ret)
{
	size_t count = 0;
	for (uint32_t i = 0; i < snapshot->nr_threads; i++) {
		const struct nm_snap_thread *thread = &snapshot->threads[i];
		const struct nm_home_state *state = nm_home_state_find(placement, thread->pid);
		if (state && state->home >= 0 && !nm_home_state_is_suspended(state) &&
		    snapshot->time_ns >= state->refused_until_ns &&
		    needs_step(snapshot, thread, state->home,
			       pin_of(config, snapshot, state, thread)))
			ret[count++] = (struct nm_turn){
				.tenant = snapshot->processes[thread->process].tenant, .index = i};
	}
	return count;
}

/* If there are more steps than may be done, each domain gets its share: a user's threads could need
 * one in every interval. */
int nm_placement_plan(const struct nm_placement *placement, const struct nm_snapshot *snapshot,
		      const struct nm_config *config, struct nm_plan *plan)
{
	const uint64_t most = config->rules.moves_per_interval;
	nm_autofree struct nm_turn *steps = calloc(snapshot->nr_threads + 1, sizeof(*steps));
	if (!steps)
		return -ENOMEM;
	size_t count = list_steps(placement, snapshot, config, steps);
	if (count > most)
		nm_turns_order(steps, count);
	for (size_t i = 0; i < count && plan->count < most; i++) {
		const struct nm_snap_thread *thread = &snapshot->threads[steps[i].index];
		const struct nm_home_state *state = nm_home_state_find(placement, thread->pid);
		int r = nm_plan_add_home(snapshot, config, steps[i].index, state->home,
					 pin_of(config, snapshot, state, thread), state->decision,
					 plan);
		if (r == -ENOMEM)
			return r;
	}
	return 0;
}

void nm_placement_refused(struct nm_placement *placement, uint32_t pid, int error, uint64_t now_ns)
{
	struct nm_home_state *state = nm_home_state_find(placement, pid);
	if (state && error != -ESRCH && error != -ESTALE)
		state->refused_until_ns = now_ns + REFUSED_NS;
}
