/* SPDX-License-Identifier: MIT */
/*
 * Computes the capacity of sets of CPUs in cores, and determines which CPUs are free from the idle
 * time of a whole node: a thread that alternates between two CPUs leaves neither idle, although one
 * CPU is free.
 */
#include <math.h>

#include "build.h"

#define SIBLING_WORTH_LEAST 0.25

/* A CPU busier than this is never free: a small idle share on many CPUs is no room for another
 * thread. Two threads that alternate among three CPUs cause this share on each. */
#define BUSY_MAX 0.67

/* ---- cores ---- */

struct capacity {
	unsigned cores, siblings;
};

static bool is_usable(const struct nm_snapshot *view, hwloc_const_bitmap_t cpus, unsigned cpu)
{
	return view->cpus[cpu].usable && hwloc_bitmap_isset(cpus, cpu);
}

/* Returns whether a lower CPU of the same core counts as the core. */
static bool is_sibling(const struct nm_snapshot *view, hwloc_const_bitmap_t cpus, unsigned cpu)
{
	unsigned other = view->cpus[cpu].sibling;
	while (other != cpu && !(other < cpu && is_usable(view, cpus, other)))
		other = view->cpus[other].sibling;
	return other != cpu;
}

static struct capacity count_cores(const struct nm_snapshot *view, hwloc_const_bitmap_t cpus)
{
	struct capacity capacity = {0};
	for (unsigned cpu = 0; cpu < view->topology->nr_cpus; cpu++) {
		if (!is_usable(view, cpus, cpu))
			continue;
		if (is_sibling(view, cpus, cpu))
			capacity.siblings++;
		else
			capacity.cores++;
	}
	return capacity;
}

static double sibling_worth(const struct nm_snapshot *view)
{
	struct capacity all = count_cores(view, view->topology->usable);
	double busy = 0;
	if (all.siblings == 0)
		return 1;
	for (unsigned cpu = 0; cpu < view->topology->nr_cpus; cpu++)
		if (view->cpus[cpu].usable)
			busy += nm_busy_share(&view->cpus[cpu]);
	return fmin(fmax((busy - all.cores) / all.siblings, SIBLING_WORTH_LEAST), 1);
}

double nm_core_capacity(const struct nm_snapshot *snapshot, hwloc_const_bitmap_t cpus)
{
	struct capacity capacity = count_cores(snapshot, cpus);
	return capacity.cores + snapshot->sibling_worth * capacity.siblings;
}

/* ---- idle time of a node ---- */

/* Sums over a set of CPUs of one node. */
struct share {
	unsigned cpus;
	unsigned idle_cpus; /* CPUs that are idle individually */
	unsigned at_work; /* managed threads with these main CPUs that ran enough to demand a CPU */
	double idle;	  /* in CPUs */
};

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
		share.idle += 1 - nm_busy_share(cpu);
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

static bool is_freer(const struct nm_snapshot *view, int cpu, int than)
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
		    is_freer(view, cpu, best))
			best = cpu;
	}
	return best;
}

void nm_snapshot_fill_capacity(const struct nm_config *config, struct nm_snapshot *view)
{
	view->idle_cpu = 1 - config->threads.free_max;
	view->sibling_worth = sibling_worth(view);
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
			idle += 1 - nm_busy_share(&snapshot->cpus[i]);
	return idle > snapshot->idle_cpu;
}
