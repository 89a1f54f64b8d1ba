/* SPDX-License-Identifier: MIT */
#include <math.h>

#include "numa-migrd/regions.h"

static bool sees_all(enum nm_residency_source source)
{
	return source == NM_RESIDENCY_MAPS;
}

int nm_residency_estimate(const struct nm_residency_reading *reading, unsigned nr_nodes,
			  double *pages, struct nm_residency *ret)
{
	double seen = 0;
	for (unsigned k = 0; k < nr_nodes; k++)
		seen += reading->seen[k];
	if (!(seen > 0) || (!sees_all(reading->source) && !(reading->samples > 0)))
		return -ENODATA;
	for (unsigned k = 0; k < nr_nodes; k++)
		pages[k] = reading->resident * (reading->seen[k] / seen);
	*ret = (struct nm_residency){.source = reading->source,
				     .time_ns = reading->time_ns,
				     .resident = reading->resident,
				     .samples = reading->samples,
				     .pages = pages,
				     .nr_nodes = nr_nodes};
	return 0;
}

/* The node's share with half a sample added on each side, so that it is never 0 or 1. */
static double share_of(const struct nm_residency *residency, int node)
{
	double share = residency->pages[node] / residency->resident;
	return (share * residency->samples + 0.5) / (residency->samples + 1);
}

/* Converts the variance of one sample to the error in pages. */
static double error_of(const struct nm_residency *residency, double variance)
{
	double looked_at = residency->samples / residency->resident;
	bool distinct = residency->source != NM_RESIDENCY_ACCESSES;
	double unseen = distinct ? fmax(0, 1 - looked_at) : 1;
	return residency->resident * sqrt(variance / residency->samples * unseen);
}

static bool is_known(const struct nm_residency *residency)
{
	return residency->source != NM_RESIDENCY_NONE;
}

double nm_residency_error(const struct nm_residency *residency, int node)
{
	if (!is_known(residency))
		return NAN;
	if (sees_all(residency->source) || !(residency->resident > 0))
		return 0;
	double share = share_of(residency, node);
	return error_of(residency, share * (1 - share));
}

double nm_residency_gain_error(const struct nm_residency *residency, int from, int to)
{
	if (!is_known(residency))
		return NAN;
	if (sees_all(residency->source) || !(residency->resident > 0) || from == to)
		return 0;
	double here = share_of(residency, from), there = share_of(residency, to);
	return error_of(residency, here + there - (there - here) * (there - here));
}

uint64_t nm_residency_age_ns(const struct nm_residency *residency, uint64_t now_ns)
{
	return now_ns > residency->time_ns ? now_ns - residency->time_ns : 0;
}

static double error_now(const struct nm_residency *residency, uint64_t now_ns, double drift)
{
	double age_s = (double)nm_residency_age_ns(residency, now_ns) / (double)NM_NSEC_PER_SEC;
	double most = 0;
	for (unsigned k = 0; k < residency->nr_nodes; k++)
		most = fmax(most, nm_residency_error(residency, (int)k));
	return most + drift * age_s * residency->resident;
}

bool nm_residency_better(const struct nm_residency *a, const struct nm_residency *b,
			 uint64_t now_ns, double drift)
{
	if (!is_known(a) || !is_known(b))
		return is_known(a);
	return error_now(a, now_ns, drift) < error_now(b, now_ns, drift);
}
