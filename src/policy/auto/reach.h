/* SPDX-License-Identifier: MIT */
/* The location of the memory of a group, the part of it that can follow its threads, and its
 * traffic. Pure. */
#ifndef NM_POLICY_AUTO_REACH_H
#define NM_POLICY_AUTO_REACH_H

#include "policy/placement.h"

#define NM_PLACE_MOSTLY 0.5 /* share of its memory whose location decides */

static inline double nm_place_sum(const double *values, unsigned count)
{
	double total = 0;
	for (unsigned i = 0; i < count; i++)
		total += values[i];
	return total;
}

/* Returns the share of the memory on this node, as far as its location is known. */
double nm_place_memory_share(const struct nm_place_view *view, const struct nm_place_group *group,
			     unsigned node);
/* The same for the memory that can follow the group. */
double nm_place_following_share(const struct nm_place_view *view,
				const struct nm_place_group *group, unsigned node);
/* Return the mean SLIT distance from the CPUs of this node to the memory: where it is now, and
 * after the part that can follow has been moved there. */
double nm_place_distance_from(const struct nm_place_view *view, const struct nm_place_group *group,
			      unsigned from);
double nm_place_final_distance(const struct nm_place_view *view, const struct nm_place_group *group,
			       unsigned home);
/* Returns whether a home on this node would take memory away from threads that are not moved. */
bool nm_place_takes_memory_away(const struct nm_place_view *view,
				const struct nm_place_group *group, unsigned home);

#endif
