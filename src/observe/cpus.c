/* SPDX-License-Identifier: MIT */
/* The CPUs of a snapshot: which are idle or free, and their capacity in cores. */
#include <math.h>

#include "build.h"

#define SIBLING_WORTH_LEAST 0.25

/* A CPU busier than this is never free: a small idle share on many CPUs is no room for another
 * thread. Two threads that alternate among three CPUs cause this share on each. */
#define BUSY_MAX 0.67

/* Unknown counts as busy. With free_max = 0 (the paper) only a CPU on which nothing ran is idle. */
static bool is_idle(double busy_share, double free_max)
{
	return busy_share < free_max || busy_share <= 0;
}

/* Sorts the threads by main CPU, with a counting sort, which keeps the order of their ids. */
static void group_main_threads(struct nm_snapshot *view, unsigned nr_cpus)
{
	for (size_t i = 0; i < view->nr_threads; i++)
		if (view->threads[i].stats.main_cpu >= 0)
			view->cpus[view->threads[i].stats.main_cpu].nr_main_threads++;
	unsigned next = 0;
	for (unsigned cpu = 0; cpu < nr_cpus; cpu++) {
		view->cpus[cpu].first_main_thread = next;
		next += view->cpus[cpu].nr_main_threads;
		view->cpus[cpu].nr_main_threads = 0;
	}
	for (size_t i = 0; i < view->nr_threads; i++) {
		if (view->threads[i].stats.main_cpu < 0)
			continue;
		struct nm_snap_cpu *cpu = &view->cpus[view->threads[i].stats.main_cpu];
		view->main_threads[cpu->first_main_thread + cpu->nr_main_threads++] = (uint32_t)i;
	}
}

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
	for (unsigned i = 0; i < cpu->nr_main_threads; i++)
		count += view->threads[view->main_threads[cpu->first_main_thread + i]].active;
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

/* A thread that alternates between two CPUs leaves neither idle, although one CPU is free. */
static void fill_capacity(const struct nm_config *config, struct nm_snapshot *view)
{
	view->idle_cpu = 1 - config->rules.free_max;
	view->sibling_worth = sibling_worth(view);
	if (config->rules.paper)
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

/* The time of threads that leave their CPUs to others is free for these. */
static void give_up_yielded(struct nm_snapshot *view)
{
	for (size_t i = 0; i < view->nr_threads; i++) {
		const struct nm_snap_thread *thread = &view->threads[i];
		if (!thread->yields || !(thread->stats.run_share > 0) || thread->stats.main_cpu < 0)
			continue;
		double *busy = &view->cpus[thread->stats.main_cpu].busy_share;
		if (*busy > 0)
			*busy = *busy > thread->stats.run_share ? *busy - thread->stats.run_share
								: 0;
	}
}

void nm_snapshot_fill_cpus(const struct nm_snapshot_input *input,
			   struct nm_snapshot_storage *storage)
{
	struct nm_snapshot *view = &storage->view;
	const struct nm_topology *topology = input->topology;
	unsigned nr_cpus = topology->nr_cpus;
	double free_max = input->config->rules.free_max;
	nm_autofree unsigned *last = nm_must(calloc(nr_cpus + 1U, sizeof(*last))); /* + 1 */
	for (unsigned cpu = 0; cpu < nr_cpus; cpu++) {
		const struct nm_cpu *known = &topology->cpus[cpu];
		struct nm_snap_cpu *one = &view->cpus[cpu];
		*one = (struct nm_snap_cpu){
			.node = known->online ? known->node : -1,
			.busy_share = input->busy_share ? input->busy_share[cpu] : (double)NAN,
			.sibling = cpu,
		};
		one->usable = one->node >= 0 && hwloc_bitmap_isset(topology->usable, cpu);
		if (!known->online || known->core < 0 || known->core >= (int)nr_cpus)
			continue;
		if (last[known->core]) {
			one->sibling = view->cpus[last[known->core] - 1].sibling;
			view->cpus[last[known->core] - 1].sibling = cpu;
		}
		last[known->core] = cpu + 1;
	}
	give_up_yielded(view);
	group_main_threads(view, nr_cpus);
	for (unsigned cpu = 0; cpu < nr_cpus; cpu++) {
		struct nm_snap_cpu *one = &view->cpus[cpu];
		one->idle = one->usable && one->nr_main_threads == 0 &&
			    is_idle(one->busy_share, free_max);
		one->free = one->idle;
		for (unsigned other = one->sibling; other != cpu; other = view->cpus[other].sibling)
			if (!is_idle(view->cpus[other].busy_share, free_max))
				one->sibling_busy = true;
	}
	fill_capacity(input->config, view);
}
