/* SPDX-License-Identifier: MIT */
/* When a group's memory follows its threads. */
#include "numa-migrd/placement.h"

#define PAGE_BYTES 4096.0
#define STALLED 0.25	/* of the time of a group whose memory is near: what it waits for it; a guess */
#define BOTH 2.0	/* while pages move, who moves them works, and who wants them waits */
/* Of processes that have lived for so long, half become twice as old, and a tenth ten times: Harchol-Balter and Downey,
 * "Exploiting Process Lifetime Distributions for Dynamic Load Balancing", 1997. By that the mean of what is still to
 * come is ln(n) times what was, when nobody is thought to become more than n times as old; here 20. */
#define LIVES_ON 3.0
#define BELIEVED 256.0	/* pages that the first guess of their cost weighs as much as */
#define BELIEVED_NS 5e3 /* for each: some 0.8 GB/s, as migrate_pages(2) was measured to reach: Goglin and
			 * Furmento, "Enabling High-Performance Memory Migration for Multithreaded
			 * Applications on Linux", 2009 */
#define RECENT 65536.0	/* pages after which what was learned before counts half */

double nm_place_lost_cpus(double demand_cpus, double distance)
{
	double longer = STALLED * (distance / NM_DISTANCE_LOCAL - 1);
	return longer > 0 ? demand_cpus * longer / (1 + longer) : 0;
}

double nm_place_to_come(double so_far)
{
	return LIVES_ON * so_far;
}

double nm_place_move_s(const struct nm_place_cost *cost, double bytes)
{
	double page_ns = (BELIEVED * BELIEVED_NS + cost->ns) / (BELIEVED + cost->pages);
	return BOTH * bytes / PAGE_BYTES * page_ns / 1e9;
}

void nm_place_learn_cost(struct nm_place_cost *cost, uint64_t pages, uint64_t ns)
{
	double keep = cost->pages > RECENT ? 0.5 : 1;
	cost->pages = keep * cost->pages + (double)pages;
	cost->ns = keep * cost->ns + (double)ns;
}
