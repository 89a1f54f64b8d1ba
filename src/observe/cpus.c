/* SPDX-License-Identifier: MIT */
#include <math.h>

#include "build.h"

static double busy_share_of(const struct nm_snapshot_input *input, unsigned cpu)
{
	return input->busy_share ? input->busy_share[cpu] : (double)NAN;
}

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
		.busy_share = busy_share_of(input, cpu),
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

/* Returns the counter of busy CPUs of this CPU's core, or NULL for a CPU without one. */
static unsigned *core_counter(const struct nm_topology *topology, unsigned *counters, unsigned cpu)
{
	int core = topology->cpus[cpu].core;
	if (!topology->cpus[cpu].online || core < 0 || core >= (int)topology->nr_cpus)
		return NULL;
	return &counters[core];
}

static int mark_siblings(const struct nm_snapshot_input *input, struct nm_snap_cpu *cpus)
{
	const struct nm_topology *topology = input->topology;
	double free_max = input->config->threads.free_max;
	nm_autofree unsigned *busy = calloc(topology->nr_cpus + 1, sizeof(*busy));
	if (!busy)
		return -ENOMEM;
	for (unsigned cpu = 0; cpu < topology->nr_cpus; cpu++) {
		unsigned *counter = core_counter(topology, busy, cpu);
		if (counter && !is_idle(cpus[cpu].busy_share, free_max))
			(*counter)++;
	}
	for (unsigned cpu = 0; cpu < topology->nr_cpus; cpu++) {
		const unsigned *counter = core_counter(topology, busy, cpu);
		unsigned own = !is_idle(cpus[cpu].busy_share, free_max);
		cpus[cpu].sibling_busy = counter && *counter > own;
	}
	return 0;
}

int nm_snapshot_fill_cpus(const struct nm_snapshot_input *input,
			  struct nm_snapshot_storage *storage)
{
	struct nm_snapshot *view = &storage->view;
	unsigned nr_cpus = input->topology->nr_cpus;
	for (unsigned cpu = 0; cpu < nr_cpus; cpu++)
		fill_cpu(input, cpu, &view->cpus[cpu]);
	group_home_threads(view, nr_cpus);
	for (unsigned cpu = 0; cpu < nr_cpus; cpu++) {
		struct nm_snap_cpu *one = &view->cpus[cpu];
		one->idle = one->usable && one->homes == 0 &&
			    is_idle(one->busy_share, input->config->threads.free_max);
		one->free = one->idle;
	}
	nm_snapshot_fill_free(input->config, view);
	return mark_siblings(input, view->cpus);
}
