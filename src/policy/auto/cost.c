/* SPDX-License-Identifier: MIT */
/* Decides when the memory of a group follows its threads. */
#include "numa-migrd/placement.h"

#define PAGE_BYTES 4096.0
#define STALLED_SHARE                                                                              \
	0.25 /* share of its time that a group with local memory waits for memory; an              \
	      * estimate */
#define MOVER_AND_USERS 2.0 /* while pages move, the mover works and their users wait */
/*
 * Of processes of a certain age, half reach twice that age, and 10 % ten times that age:
 * Harchol-Balter and Downey, "Exploiting Process Lifetime Distributions for Dynamic Load
 * Balancing", 1997. Therefore the mean remaining lifetime is ln(n) times the age, if no process is
 * assumed to reach more than n times its age; here n is 20.
 */
#define LIFETIME_FACTOR 3.0
#define PRIOR_PAGES 256.0 /* weight of the initial estimate of the cost, in pages */
#define PRIOR_PAGE_NS                                                                              \
	5e3	       /* estimate per page: about 0.8 GB/s, as measured for migrate_pages(2):     \
			* Goglin and Furmento, "Enabling High-Performance Memory Migration for     \
			* Multithreaded Applications on Linux", 2009 */
#define RECENT 65536.0 /* number of pages after which earlier measurements are halved */

double nm_place_lost_cpus(double demand_cpus, double distance)
{
	double longer = STALLED_SHARE * (distance / NM_DISTANCE_LOCAL - 1);
	return longer > 0 ? demand_cpus * longer / (1 + longer) : 0;
}

double nm_place_expected_rest(double so_far)
{
	return LIFETIME_FACTOR * so_far;
}

double nm_place_migration_cost_s(const struct nm_place_cost *cost, double bytes)
{
	double page_ns = (PRIOR_PAGES * PRIOR_PAGE_NS + cost->ns) / (PRIOR_PAGES + cost->pages);
	return MOVER_AND_USERS * bytes / PAGE_BYTES * page_ns / 1e9;
}

void nm_place_add_cost(struct nm_place_cost *cost, uint64_t pages, uint64_t ns)
{
	double keep = cost->pages > RECENT ? 0.5 : 1;
	cost->pages = keep * cost->pages + (double)pages;
	cost->ns = keep * cost->ns + (double)ns;
}
