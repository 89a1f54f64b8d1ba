/* SPDX-License-Identifier: MIT */
/* Leases give way to load: a mask must not keep threads queueing while other CPUs stand idle. */
#include <stdlib.h>

#include "numa-migrd/policy.h"

#define FULL_SHARE 0.95	  /* busy share from which CPUs count as full */
#define ACTIVE_SHARE 0.05 /* run share from which a thread wants a CPU */

/* Leased threads on one node that share one set of CPUs there. */
struct crowd {
	const struct nm_snapshot *snapshot;
	int node;
	hwloc_const_bitmap_t allowed; /* outer bound of all of them */
	uint32_t *members;
	size_t count;
};

static bool wants_cpu(const struct nm_snap_thread *thread)
{
	return thread->leased && thread->home_node >= 0 && thread->run_share >= ACTIVE_SHARE;
}

static bool is_first_of_crowd(const struct nm_snapshot *snapshot, size_t index)
{
	const struct nm_snap_thread *thread = &snapshot->threads[index];
	if (!wants_cpu(thread))
		return false;
	for (size_t i = 0; i < index; i++) {
		const struct nm_snap_thread *other = &snapshot->threads[i];
		if (wants_cpu(other) && other->home_node == thread->home_node &&
		    hwloc_bitmap_isequal(other->allowed, thread->allowed))
			return false;
	}
	return true;
}

static void gather(struct crowd *crowd, size_t first)
{
	const struct nm_snapshot *snapshot = crowd->snapshot;
	crowd->node = snapshot->threads[first].home_node;
	crowd->allowed = snapshot->threads[first].allowed;
	crowd->count = 0;
	for (size_t i = first; i < snapshot->nr_threads; i++) {
		const struct nm_snap_thread *thread = &snapshot->threads[i];
		if (wants_cpu(thread) && thread->home_node == crowd->node &&
		    hwloc_bitmap_isequal(thread->allowed, crowd->allowed))
			crowd->members[crowd->count++] = (uint32_t)i;
	}
}

/* Idle CPUs, in CPUs, inside the crowd's bound: on its node (here) or elsewhere; unknown ones count
 * as busy. */
static double idle_cpus(const struct crowd *crowd, bool here, unsigned *ret_cpus)
{
	const struct nm_snapshot *snapshot = crowd->snapshot;
	double idle = 0;
	unsigned cpus = 0;
	for (unsigned cpu = 0; cpu < snapshot->topology->nr_cpus; cpu++) {
		const struct nm_snap_cpu *state = &snapshot->cpus[cpu];
		if (!state->usable || (state->node == crowd->node) != here ||
		    !hwloc_bitmap_isset(crowd->allowed, cpu))
			continue;
		cpus++;
		if (state->busy_share < 1)
			idle += 1 - state->busy_share;
	}
	*ret_cpus = cpus;
	return idle;
}

/* Half of those too many, so that the next interval shows the effect, and no more than find an idle
 * CPU. */
static size_t too_many(const struct crowd *crowd)
{
	unsigned here, elsewhere;
	double idle_here = idle_cpus(crowd, true, &here);
	double idle_elsewhere = idle_cpus(crowd, false, &elsewhere);

	if (crowd->count <= here || idle_here > (1 - FULL_SHARE) * here || idle_elsewhere < 1)
		return 0;
	size_t half = (crowd->count - here + 1) / 2;
	return half < (size_t)idle_elsewhere ? half : (size_t)idle_elsewhere;
}

static double accesses_here(const struct crowd *crowd, uint32_t index)
{
	return crowd->snapshot->threads[index].accesses[crowd->node];
}

/* Moves the thread with the least to lose to the front of members[from …]. */
static void least_first(struct crowd *crowd, size_t from)
{
	size_t least = from;
	for (size_t i = from + 1; i < crowd->count; i++)
		if (accesses_here(crowd, crowd->members[i]) <
		    accesses_here(crowd, crowd->members[least]))
			least = i;
	uint32_t member = crowd->members[least];
	crowd->members[least] = crowd->members[from];
	crowd->members[from] = member;
}

int nm_overcommit_yield(const struct nm_snapshot *snapshot, uint32_t *ret_threads,
			size_t *ret_count)
{
	nm_autofree uint32_t *members = calloc(snapshot->nr_threads + 1, sizeof(*members));
	struct crowd crowd = {.snapshot = snapshot, .members = members};
	size_t count = 0;
	if (!members)
		return -ENOMEM;
	for (size_t i = 0; i < snapshot->nr_threads; i++) {
		if (!is_first_of_crowd(snapshot, i))
			continue;
		gather(&crowd, i);
		size_t yielding = too_many(&crowd);
		for (size_t k = 0; k < yielding; k++) {
			least_first(&crowd, k);
			ret_threads[count++] = crowd.members[k];
		}
	}
	*ret_count = count;
	return 0;
}
