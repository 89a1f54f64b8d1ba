/* SPDX-License-Identifier: MIT */
/* Determines which CPUs are free from the idle time of a whole node: a thread that alternates
 * between two CPUs leaves neither idle, although one CPU is free. */
#include "build.h"

/* A CPU busier than this is never free: a small idle share on many CPUs is no room for another
 * thread. Two threads that alternate among three CPUs cause this share on each. */
#define BUSY_MAX 0.67

/* Sums over a set of CPUs of one node. */
struct share {
	unsigned cpus;
	unsigned idle_cpus; /* CPUs that are idle individually */
	unsigned at_work; /* managed threads with these main CPUs that ran enough to demand a CPU */
	double idle;	    /* in CPUs */
};

/* Unknown counts as busy. */
static double idle_share(const struct nm_snap_cpu *cpu)
{
	return cpu->busy_share < 1 ? 1 - cpu->busy_share : 0;
}

static unsigned at_work(const struct nm_snapshot *view, const struct nm_snap_cpu *cpu)
{
	unsigned count = 0;
	for (unsigned i = 0; i < cpu->homes; i++)
		count += view->threads[view->home_threads[cpu->first_home + i]].active;
	return count;
}

static struct share share_of(const struct nm_snapshot *view, unsigned node)
{
	hwloc_const_bitmap_t cpus = view->topology->nodes[node].cpus;
	struct share share = {0};
	for (int i = hwloc_bitmap_first(cpus); i >= 0; i = hwloc_bitmap_next(cpus, i)) {
		const struct nm_snap_cpu *cpu = &view->cpus[i];
		if (!cpu->usable)
			continue;
		share.cpus++;
		share.idle_cpus += cpu->idle;
		share.at_work += at_work(view, cpu);
		share.idle += idle_share(cpu);
	}
	return share;
}

/* Returns the number of CPUs that the idle time covers, limited to those not demanded by the
 * threads that run here. */
static unsigned free_cpus_of(const struct nm_snapshot *view, const struct share *share)
{
	unsigned left = share->cpus > share->at_work ? share->cpus - share->at_work : 0;
	unsigned count = 0;
	while (count < left && share->idle > (count + 1) * view->idle_cpu)
		count++;
	return count;
}

static bool is_better(const struct nm_snapshot *view, int cpu, int than)
{
	bool taken = at_work(view, &view->cpus[cpu]) > 0;
	if (than < 0)
		return true;
	if (taken != (at_work(view, &view->cpus[than]) > 0))
		return !taken;
	return view->cpus[cpu].busy_share < view->cpus[than].busy_share;
}

/* Returns the least busy CPU that is not yet free, if possible one that is not the main CPU of a
 * thread; or -1. */
static int next_free(const struct nm_snapshot *view, unsigned node)
{
	hwloc_const_bitmap_t cpus = view->topology->nodes[node].cpus;
	int best = -1;
	for (int cpu = hwloc_bitmap_first(cpus); cpu >= 0; cpu = hwloc_bitmap_next(cpus, cpu)) {
		const struct nm_snap_cpu *state = &view->cpus[cpu];
		if (state->usable && !state->free && state->busy_share <= BUSY_MAX &&
		    is_better(view, cpu, best))
			best = cpu;
	}
	return best;
}

void nm_snapshot_fill_free(const struct nm_config *config, struct nm_snapshot *view)
{
	view->idle_cpu = 1 - config->threads.free_max;
	if (config->profile == NM_PROFILE_PAPER)
		return;
	for (unsigned node = 0; node < view->topology->nr_nodes; node++) {
		struct share share = share_of(view, node);
		unsigned wanted = free_cpus_of(view, &share);
		for (unsigned have = share.idle_cpus; have < wanted; have++) {
			int cpu = next_free(view, node);
			if (cpu < 0)
				break;
			view->cpus[cpu].free = true;
		}
	}
}

bool nm_snapshot_is_free_for(const struct nm_snapshot *snapshot, int cpu,
			     hwloc_const_bitmap_t allowed)
{
	const struct nm_snap_cpu *state = &snapshot->cpus[cpu];
	if (!state->free || !hwloc_bitmap_isset(allowed, (unsigned)cpu))
		return false;
	if (state->idle)
		return true;
	hwloc_const_bitmap_t cpus = snapshot->topology->nodes[state->node].cpus;
	double idle = 0;
	for (int i = hwloc_bitmap_first(cpus); i >= 0; i = hwloc_bitmap_next(cpus, i))
		if (snapshot->cpus[i].usable && hwloc_bitmap_isset(allowed, (unsigned)i))
			idle += idle_share(&snapshot->cpus[i]);
	return idle > snapshot->idle_cpu;
}
