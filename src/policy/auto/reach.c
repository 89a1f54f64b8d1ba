/* SPDX-License-Identifier: MIT */
/* The CPUs that a group may use, the location of its memory, and the part of it that can follow. */
#include "reach.h"

#include <math.h>

/* CPUs used in the interval, and CPU time used so far, from which a thread that is not moved is
 * assumed to use the memory of its node; and the share of the memory there from which it counts. */
#define FIXED_USES_CPUS 0.05
#define FIXED_USES_S 0.1
#define FIXED_USES_SHARE 0.05
#define FARTHER 0.5 /* mean distance by which memory may move away from such threads */

/* ---- CPUs ---- */

double nm_place_room(const struct nm_place_view *view, const struct nm_place_group *group,
		     unsigned node)
{
	double cores = view->nodes[node].cores;
	return group->room ? fmin(group->room[node], cores) : cores;
}

double nm_place_load_within(const struct nm_place_group *group, unsigned node, double load)
{
	return group->beyond ? fmax(load - group->beyond[node], 0) : load;
}

bool nm_place_is_restricted(const struct nm_place_view *view, const struct nm_place_group *group)
{
	for (unsigned k = 0; group->room && k < view->topology->nr_nodes; k++)
		if (nm_place_room(view, group, k) < view->nodes[k].cores)
			return true;
	return false;
}

/* ---- memory ---- */

/* Returns the distribution of its memory over nodes. If it is not known, memory is assumed to be
 * where the threads have run, because they touched it first. */
static const double *memory_parts(const struct nm_place_group *group)
{
	if (group->memory_on)
		return group->memory_on;
	return group->has_run_on ? group->has_run_on : group->ran_on;
}

double nm_place_memory_share(const struct nm_place_view *view, const struct nm_place_group *group,
			     unsigned node)
{
	const double *parts = memory_parts(group);
	double total = group->memory_on ? 1 : nm_place_sum(parts, view->topology->nr_nodes);
	return total > 0 ? parts[node] / total : 0;
}

double nm_place_distance_from(const struct nm_place_view *view, const struct nm_place_group *group,
			      unsigned from)
{
	const double *parts = memory_parts(group);
	double distance = 0, total = 0;
	for (unsigned k = 0; k < view->topology->nr_nodes; k++) {
		distance += parts[k] * nm_topology_distance(view->topology, (int)from, (int)k);
		total += parts[k];
	}
	return total > 0 ? distance / total : NM_DISTANCE_LOCAL;
}

double nm_place_distance(const struct nm_place_view *view, const struct nm_place_group *group)
{
	unsigned nr_nodes = view->topology->nr_nodes;
	double ran = nm_place_sum(group->ran_on, nr_nodes), distance = 0;
	for (unsigned k = 0; k < nr_nodes; k++)
		if (group->ran_on[k] > 0)
			distance += group->ran_on[k] / ran * nm_place_distance_from(view, group, k);
	return ran > 0 ? distance : NAN;
}

/* Returns the part of the memory on this node that stays there, except memory that is pinned for
 * devices or locked. */
static double part_that_stays(const struct nm_place_view *view, const struct nm_place_group *group,
			      unsigned node)
{
	if (view->nodes[node].is_device)
		return 1;
	return group->stays_on ? group->stays_on[node] : 0;
}

double nm_place_staying_share(const struct nm_place_view *view, const struct nm_place_group *group,
			      unsigned node)
{
	if (view->memory_stays || group->memory_stays ||
	    (group->may_hold && !group->may_hold[node]))
		return 1;
	double stays = 0;
	for (unsigned k = 0; k < view->topology->nr_nodes; k++)
		if (k != node)
			stays += nm_place_memory_share(view, group, k) *
				 part_that_stays(view, group, k);
	return stays + (1 - stays) * group->pinned_share;
}

double nm_place_following_share(const struct nm_place_view *view,
				const struct nm_place_group *group, unsigned node)
{
	double all = 0, here = 0;
	if (!group->stays_on)
		return nm_place_memory_share(view, group, node);
	for (unsigned k = 0; k < view->topology->nr_nodes; k++) {
		double follows = nm_place_memory_share(view, group, k) * (1 - group->stays_on[k]);
		all += follows;
		here = k == node ? follows : here;
	}
	return all > 0 ? here / all : 0;
}

/* Returns the mean distance from a home on this node after the memory that can follow has done so.
 */
double nm_place_final_distance(const struct nm_place_view *view, const struct nm_place_group *group,
			       unsigned home)
{
	double stays = nm_place_staying_share(view, group, home), distance = 0;
	if (stays == 0)
		return NM_DISTANCE_LOCAL;
	if (stays == 1)
		return nm_place_distance_from(view, group, home);
	for (unsigned k = 0; k < view->topology->nr_nodes; k++) {
		double part = part_that_stays(view, group, k);
		double held = part + (1 - part) * group->pinned_share;
		distance += nm_place_memory_share(view, group, k) *
			    (held * nm_topology_distance(view->topology, (int)home, (int)k) +
			     (1 - held) * NM_DISTANCE_LOCAL);
	}
	return fmax(distance, NM_DISTANCE_LOCAL);
}

/* Returns whether a home on this node would take memory away from threads that cannot follow it. It
 * is not known which of the memory of their process on their node they use. */
bool nm_place_takes_memory_away(const struct nm_place_view *view,
				const struct nm_place_group *group, unsigned home)
{
	if (!group->fixed_on || nm_place_staying_share(view, group, home) == 1)
		return false;
	for (unsigned k = 0; k < view->topology->nr_nodes; k++) {
		bool uses = group->fixed_on[k] >= FIXED_USES_CPUS ||
			    (group->fixed_has_run_on && group->fixed_has_run_on[k] >= FIXED_USES_S);
		if (k != home && uses &&
		    (nm_place_memory_share(view, group, k) >= FIXED_USES_SHARE ||
		     nm_topology_distance(view->topology, (int)k, (int)home) >
			     nm_place_distance_from(view, group, k) + FARTHER))
			return true;
	}
	return false;
}
