/* SPDX-License-Identifier: MIT */
#include <math.h>

#include "build.h"

/* Unknown counts as busy. With free_max = 0 (the paper) only a CPU on which nothing ran is idle. */
static bool is_idle(double busy_share, double free_max)
{
	return busy_share < free_max || busy_share <= 0;
}

static void fill_cpu(const struct nm_snapshot_input *input, unsigned cpu, struct nm_snap_cpu *ret)
{
	const struct nm_cpu *known = &input->topology->cpus[cpu];
	*ret = (struct nm_snap_cpu){
		.node = known->online ? known->node : -1,
		.busy_share = input->busy_share ? input->busy_share[cpu] : (double)NAN,
	};
	ret->usable = ret->node >= 0 && hwloc_bitmap_isset(input->topology->usable, cpu);
}

/* Sorts the threads by main CPU, with a counting sort, which keeps the order of their ids. */
static void group_home_threads(struct nm_snapshot *view, unsigned nr_cpus)
{
	for (size_t i = 0; i < view->nr_threads; i++)
		if (view->threads[i].main_cpu >= 0)
			view->cpus[view->threads[i].main_cpu].homes++;
	unsigned next = 0;
	for (unsigned cpu = 0; cpu < nr_cpus; cpu++) {
		view->cpus[cpu].first_home = next;
		next += view->cpus[cpu].homes;
		view->cpus[cpu].homes = 0;
	}
	for (size_t i = 0; i < view->nr_threads; i++) {
		if (view->threads[i].main_cpu < 0)
			continue;
		struct nm_snap_cpu *cpu = &view->cpus[view->threads[i].main_cpu];
		view->home_threads[cpu->first_home + cpu->homes++] = (uint32_t)i;
	}
}

static int link_siblings(const struct nm_topology *topology, struct nm_snap_cpu *cpus)
{
	nm_autofree unsigned *last = calloc(topology->nr_cpus + 1U, sizeof(*last)); /* + 1 */
	if (!last)
		return -ENOMEM;
	for (unsigned cpu = 0; cpu < topology->nr_cpus; cpu++) {
		int core = topology->cpus[cpu].core;
		cpus[cpu].sibling = cpu;
		if (!topology->cpus[cpu].online || core < 0 || core >= (int)topology->nr_cpus)
			continue;
		if (last[core]) {
			cpus[cpu].sibling = cpus[last[core] - 1].sibling;
			cpus[last[core] - 1].sibling = cpu;
		}
		last[core] = cpu + 1;
	}
	return 0;
}

static void mark_busy_sibling(struct nm_snap_cpu *cpus, unsigned cpu, double free_max)
{
	for (unsigned other = cpus[cpu].sibling; other != cpu; other = cpus[other].sibling)
		if (!is_idle(cpus[other].busy_share, free_max))
			cpus[cpu].sibling_busy = true;
}

int nm_snapshot_fill_cpus(const struct nm_snapshot_input *input,
			  struct nm_snapshot_storage *storage)
{
	struct nm_snapshot *view = &storage->view;
	unsigned nr_cpus = input->topology->nr_cpus;
	double free_max = input->config->threads.free_max;
	for (unsigned cpu = 0; cpu < nr_cpus; cpu++)
		fill_cpu(input, cpu, &view->cpus[cpu]);
	int r = link_siblings(input->topology, view->cpus);
	if (r < 0)
		return r;
	group_home_threads(view, nr_cpus);
	for (unsigned cpu = 0; cpu < nr_cpus; cpu++) {
		struct nm_snap_cpu *one = &view->cpus[cpu];
		one->idle = one->usable && one->homes == 0 && is_idle(one->busy_share, free_max);
		one->free = one->idle;
		mark_busy_sibling(view->cpus, cpu, free_max);
	}
	nm_snapshot_fill_capacity(input->config, view);
	return 0;
}
