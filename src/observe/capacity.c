/* SPDX-License-Identifier: MIT */
/* Computes the capacity of a set of CPUs in cores. */
#include <math.h>
#include <stdlib.h>

#include "numa-migrd/snapshot.h"

#define SIBLING_WORTH_LEAST 0.25

struct capacity {
	unsigned cores, siblings;
};

/* Counts the usable CPUs in the set (NULL: all); the first CPU of each core counts as the core. */
static int count_cores(const struct nm_snapshot *snapshot, hwloc_const_bitmap_t cpus,
		       struct capacity *ret)
{
	const struct nm_topology *topology = snapshot->topology;
	nm_autofree bool *seen = calloc(topology->nr_cpus + 1U, sizeof(*seen));
	struct capacity capacity = {0};
	if (!seen)
		return -ENOMEM;
	for (unsigned cpu = 0; cpu < topology->nr_cpus; cpu++) {
		int core = topology->cpus[cpu].core;
		bool known = core >= 0 && core < (int)topology->nr_cpus;
		if (!snapshot->cpus[cpu].usable || (cpus && !hwloc_bitmap_isset(cpus, cpu)))
			continue;
		capacity.siblings += known && seen[core];
		capacity.cores += !known || !seen[core];
		if (known)
			seen[core] = true;
	}
	*ret = capacity;
	return 0;
}

/* An unknown share counts as fully busy. */
static double busy_cpus(const struct nm_snapshot *snapshot)
{
	double busy = 0;
	for (unsigned cpu = 0; cpu < snapshot->topology->nr_cpus; cpu++)
		if (snapshot->cpus[cpu].usable)
			busy += snapshot->cpus[cpu].busy_share < 1 ? snapshot->cpus[cpu].busy_share
								   : 1;
	return busy;
}

int nm_sibling_worth(const struct nm_snapshot *snapshot, double *ret)
{
	struct capacity all;
	int r = count_cores(snapshot, NULL, &all);
	if (r < 0)
		return r;
	double beyond = busy_cpus(snapshot) - all.cores;
	*ret = all.siblings > 0 ? fmin(fmax(beyond / all.siblings, SIBLING_WORTH_LEAST), 1) : 1;
	return 0;
}

int nm_core_capacity(const struct nm_snapshot *snapshot, hwloc_const_bitmap_t cpus,
		     double sibling_worth, double *ret)
{
	struct capacity capacity;
	int r = count_cores(snapshot, cpus, &capacity);
	if (r < 0)
		return r;
	*ret = capacity.cores + sibling_worth * capacity.siblings;
	return 0;
}
