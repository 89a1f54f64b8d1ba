/* SPDX-License-Identifier: MIT */
#include <math.h>

#include "observe/regions.h"

#define CONTENTION_SHARE 0.7 /* share of all accesses from which a node counts as overloaded */

struct nm_contention nm_contention_of(const double *traffic, unsigned nr_nodes)
{
	struct nm_contention contention = {.imbalance = NAN, .busiest = -1};
	double sum = 0;
	unsigned busiest = 0;

	for (unsigned k = 0; k < nr_nodes; k++) {
		sum += traffic[k];
		if (traffic[k] > traffic[busiest])
			busiest = k;
	}
	if (sum < NM_CONTENTION_LEAST)
		return contention;
	contention.imbalance = nm_imbalance(traffic, nr_nodes);
	if (contention.imbalance > NM_REGION_IMBALANCE &&
	    traffic[busiest] >= CONTENTION_SHARE * sum)
		contention.busiest = (int)busiest;
	return contention;
}

int nm_contention_target(const struct nm_region *region, unsigned nr_nodes,
			 const struct nm_contention *contention, const struct nm_config *config)
{
	int target = nm_region_target(region, nr_nodes, contention->imbalance, config);

	if (target != NM_REGION_NOWHERE || contention->busiest < 0 ||
	    region->node != contention->busiest || region->second < 0)
		return target;
	/* A region that can be split may consist of parts that single nodes use, and so may its
	 * halves. */
	if (!region->whole || !(region->by_halves < NM_REGION_EXCLUSIVITY) ||
	    region->end - region->start < NM_REGION_LEAST_BYTES ||
	    region->samples < NM_REGION_LEAST_SAMPLES)
		return NM_REGION_NOWHERE;
	return region->second;
}
