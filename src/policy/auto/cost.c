/* SPDX-License-Identifier: MIT */
/* The cost of moving memory, and the time for which it pays. */
#include <math.h>

#include "policy/placement.h"

#define PAGE_BYTES 4096.0
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
#define NEAR 4.0       /* what is learned stays within this factor of the estimate */
#define RECENT 65536.0 /* number of pages after which earlier measurements are halved */

double nm_place_expected_rest(double so_far)
{
	return LIFETIME_FACTOR * so_far;
}

double nm_place_migration_cost_s(double page_ns, double bytes)
{
	return MOVER_AND_USERS * bytes / PAGE_BYTES * (page_ns > 0 ? page_ns : PRIOR_PAGE_NS) / 1e9;
}

static unsigned domain_index(struct nm_place_cost *cost, uint64_t domain)
{
	for (unsigned i = 0; i < cost->nr_domains; i++)
		if (cost->domains[i].domain == domain)
			return i;
	unsigned i = cost->nr_domains;
	if (i < NM_PLACE_COST_DOMAINS)
		cost->nr_domains++;
	else
		i = cost->next++ % NM_PLACE_COST_DOMAINS;
	cost->domains[i].domain = domain;
	cost->domains[i].pages = cost->domains[i].ns = 0;
	return i;
}

/* Returns the cost of a page in the domain at which half of the domains cost no more. */
static double median_page_ns(const struct nm_place_cost *cost)
{
	double page_ns[NM_PLACE_COST_DOMAINS];
	for (unsigned i = 0; i < cost->nr_domains; i++) {
		double mean = (PRIOR_PAGES * PRIOR_PAGE_NS + cost->domains[i].ns) /
			      (PRIOR_PAGES + cost->domains[i].pages);
		unsigned k = i;
		for (; k > 0 && page_ns[k - 1] > mean; k--)
			page_ns[k] = page_ns[k - 1];
		page_ns[k] = mean;
	}
	return page_ns[(cost->nr_domains - 1) / 2];
}

void nm_place_add_cost(struct nm_place_cost *cost, uint64_t domain, uint64_t pages, uint64_t ns)
{
	unsigned i = domain_index(cost, domain);
	double keep = cost->domains[i].pages > RECENT ? 0.5 : 1;
	cost->domains[i].pages = keep * cost->domains[i].pages + (double)pages;
	cost->domains[i].ns = keep * cost->domains[i].ns + (double)ns;
	cost->page_ns =
		fmin(fmax(median_page_ns(cost), PRIOR_PAGE_NS / NEAR), PRIOR_PAGE_NS * NEAR);
}
