/* SPDX-License-Identifier: MIT */
/* The DRAM traffic of a group, as evidence for or against a home. */
#include <math.h>

#include "reach.h"

/* Share of the highest traffic seen from which a controller may be full. Latency rises from about
 * that load: 131 instead of 79 ns at 87 % (Platinum 8269CY, Intel MLC). */
#define NEARLY_FULL 0.8
/* Bytes per second of CPU time. Half a million lines, at 60 ns more for each remote one, wait for
 * 3 % of the time. */
#define LITTLE_TRAFFIC 32e6
/* How much more than the mean of all nodes a node would serve, from which others are better used:
 * between 1, evenly, and the number of nodes. If the memory is spread and other programs keep their
 * nodes, gathering takes less from the program than it gives. */
#define UNEVEN 1.5
#define UNEVEN_SPREAD 2.0

bool nm_place_is_controller_full(const struct nm_place_view *view, unsigned node)
{
	double traffic = view->nodes[node].traffic;
	return traffic >= NM_CONTROLLER_MIN && traffic >= NEARLY_FULL * view->max_traffic;
}

bool nm_place_hardly_uses_memory(const struct nm_place_group *group)
{
	return group->cpu_traffic > 0 && group->cpu_traffic < LITTLE_TRAFFIC;
}

bool nm_place_fills_controller(const struct nm_place_view *view, const struct nm_place_group *group,
			       unsigned node, double cpus, bool on_one_node)
{
	unsigned nr_nodes = view->topology->nr_nodes;
	double own = group->cpu_traffic * cpus, here = own, all = own;
	if (own == 0)
		return false;
	for (unsigned k = 0; k < nr_nodes; k++) {
		double now = fmax(group->traffic, 0) * nm_place_memory_share(view, group, k);
		double others = fmax(view->nodes[k].traffic - now, 0);
		all += others;
		here += k == node ? others : 0;
	}
	double uneven = on_one_node || nr_nodes <= 2 ? UNEVEN : UNEVEN_SPREAD;
	return here > fmax(NEARLY_FULL * view->max_traffic, NM_CONTROLLER_MIN) &&
	       here > uneven * all / nr_nodes;
}
