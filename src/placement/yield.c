/* SPDX-License-Identifier: MIT */
/* Which homes are given up, since they make threads queue while CPUs elsewhere stand idle. */
#include "numa-migrd/placement.h"

#include <stdlib.h>

#define TOO_FULL 1.1   /* demand per core: what queues for longer than a moment */
#define IDLE_CORES 0.9 /* of a node: somebody could run there at once */

static bool has_idle_node(const struct nm_place_view *view, const double *demand)
{
	for (unsigned k = 0; k < view->topology->nr_nodes; k++) {
		const struct nm_place_node *node = &view->nodes[k];
		double used = demand[k] > node->busy_cpus ? demand[k] : node->busy_cpus;
		if (node->cores - used >= IDLE_CORES)
			return true;
	}
	return false;
}

/* Of the groups at home there and not given up yet, the one with the least demand; nr_groups: none. */
static size_t smallest_at(const struct nm_place_view *view, unsigned node, const bool *given_up)
{
	size_t smallest = view->nr_groups;
	for (size_t i = 0; i < view->nr_groups; i++) {
		const struct nm_place_group *group = &view->groups[i];
		if (group->home != (int)node || given_up[i])
			continue;
		if (smallest == view->nr_groups ||
		    group->demand_cpus < view->groups[smallest].demand_cpus)
			smallest = i;
	}
	return smallest;
}

int nm_place_yield(const struct nm_place_view *view, bool *ret)
{
	unsigned nr_nodes = view->topology->nr_nodes;
	nm_autofree double *demand = calloc(nr_nodes, sizeof(*demand));
	if (!demand)
		return -ENOMEM;
	for (size_t i = 0; i < view->nr_groups; i++) {
		ret[i] = false;
		if (view->groups[i].home >= 0)
			demand[view->groups[i].home] += view->groups[i].demand_cpus;
	}
	for (unsigned k = 0; k < nr_nodes; k++) {
		while (demand[k] > TOO_FULL * view->nodes[k].cores && has_idle_node(view, demand)) {
			size_t group = smallest_at(view, k, ret);
			if (group == view->nr_groups)
				break;
			ret[group] = true;
			demand[k] -= view->groups[group].demand_cpus;
		}
	}
	return 0;
}
