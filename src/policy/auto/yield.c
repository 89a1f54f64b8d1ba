/* SPDX-License-Identifier: MIT */
/* Selects homes to give up, because they make threads queue while CPUs on other nodes are idle. */
#include "policy/placement.h"

#include <stdlib.h>

#define TOO_FULL 1.1 /* demand per core above which tasks queue for more than a moment */
#define IDLE_CORES                                                                                 \
	0.9 /* idle cores that another thread needs to run at once; also the excess                \
	     * demand of one queueing thread */

/* Of a node with this number of cores, or the part of it that a group may use. */
static bool is_idle_beside(double cores, double used)
{
	return cores - used >= IDLE_CORES;
}

static bool has_idle_core(const struct nm_place_node *node, double demand)
{
	double used = demand > node->busy_cpus ? demand : node->busy_cpus;
	return is_idle_beside(node->cores, used);
}

/*
 * Returns the maximum demand of a node, which is more than that accepted when homes are assigned.
 */
static double max_demand_of(double cores)
{
	double tenth = TOO_FULL * cores, thread = cores + IDLE_CORES;
	return tenth > thread ? tenth : thread;
}

static bool has_idle_node(const struct nm_place_view *view, const double *demand)
{
	for (unsigned k = 0; k < view->topology->nr_nodes; k++)
		if (has_idle_core(&view->nodes[k], demand[k]))
			return true;
	return false;
}

bool nm_place_could_run_elsewhere(const struct nm_place_view *view,
				  const struct nm_place_group *group)
{
	for (unsigned k = 0; k < view->topology->nr_nodes; k++)
		if ((int)k != group->home && group->allowed[k] &&
		    is_idle_beside(nm_place_room(view, group, k),
				   nm_place_load_within(group, k, view->nodes[k].busy_cpus)))
			return true;
	return false;
}

/* Returns whether a group that may use a part of its node only is queued there, while it could run
 * on another one. */
static bool exceeds_room(const struct nm_place_view *view, const struct nm_place_group *group,
			 const double *demand)
{
	if (group->home < 0 || !nm_place_is_restricted(view, group))
		return false;
	unsigned home = (unsigned)group->home;
	if (nm_place_load_within(group, home, demand[home]) <=
	    max_demand_of(nm_place_room(view, group, home)))
		return false;
	for (unsigned k = 0; k < view->topology->nr_nodes; k++) {
		double used =
			demand[k] > view->nodes[k].busy_cpus ? demand[k] : view->nodes[k].busy_cpus;
		if (k != home && group->allowed[k] &&
		    is_idle_beside(nm_place_room(view, group, k),
				   nm_place_load_within(group, k, used)))
			return true;
	}
	return false;
}

static double movable_demand(const struct nm_place_group *group)
{
	return group->demand_cpus - group->fixed_cpus;
}

/*
 * Computes the CPUs in demand on each node: by its homes, and by other tasks that must run there. A
 * group without a home that may use all nodes does not count: the scheduler moves it to idle CPUs.
 */
static void fill_demand(const struct nm_place_view *view, double *demand)
{
	for (unsigned k = 0; k < view->topology->nr_nodes; k++) {
		double others = view->nodes[k].busy_cpus, wanted = 0;
		for (size_t i = 0; i < view->nr_groups; i++) {
			const struct nm_place_group *group = &view->groups[i];
			double fixed = group->fixed_on ? group->fixed_on[k] : 0;
			if (group->home == (int)k)
				wanted += movable_demand(group);
			if (group->home >= 0 || nm_place_is_unrestricted(view, group))
				others -= group->ran_on[k] - fixed;
		}
		demand[k] = wanted + (others > 0 ? others : 0);
	}
}

/* A group that exceeds the node on its own is first, then the one with the least demand. */
static bool yields_before(const struct nm_place_group *a, const struct nm_place_group *b,
			  double most)
{
	double a_cpus = movable_demand(a), b_cpus = movable_demand(b);
	bool a_alone = a_cpus > most, b_alone = b_cpus > most;
	return a_alone != b_alone ? a_alone : a_cpus < b_cpus;
}

/* Returns the next group with a home there that has not been selected; nr_groups: none. */
static size_t next_at(const struct nm_place_view *view, unsigned node, const bool *given_up)
{
	double most = max_demand_of(view->nodes[node].cores);
	size_t next = view->nr_groups;
	for (size_t i = 0; i < view->nr_groups; i++) {
		const struct nm_place_group *group = &view->groups[i];
		if (group->home != (int)node || given_up[i])
			continue;
		if (next == view->nr_groups || yields_before(group, &view->groups[next], most))
			next = i;
	}
	return next;
}

void nm_place_yield(const struct nm_place_view *view, bool *ret)
{
	unsigned nr_nodes = view->topology->nr_nodes;
	nm_autofree double *demand = nm_must(calloc(nr_nodes, sizeof(*demand)));
	fill_demand(view, demand);
	for (size_t i = 0; i < view->nr_groups; i++) {
		ret[i] = exceeds_room(view, &view->groups[i], demand);
		if (ret[i])
			demand[view->groups[i].home] -= movable_demand(&view->groups[i]);
	}
	for (unsigned k = 0; k < nr_nodes; k++) {
		while (demand[k] > max_demand_of(view->nodes[k].cores) &&
		       has_idle_node(view, demand)) {
			size_t group = next_at(view, k, ret);
			if (group == view->nr_groups)
				break;
			ret[group] = true;
			demand[k] -= movable_demand(&view->groups[group]);
		}
	}
}
