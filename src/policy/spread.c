/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <string.h>

#include "spread.h"

#define CHANGES_MIN 3
#define UNKNOWN_SIGMA 0.05
#define FEW_CHANGES 8.0
/* Ratio of the standard deviation of a normal distribution to the median of its absolute values. */
#define SIGMA_BY_MEDIAN 1.4826

void nm_spread_add(struct nm_spread *spread, double before, double after)
{
	if (!(before > 0) || !(after > 0))
		return;
	if (spread->count == NM_SPREAD_CHANGES)
		memmove(spread->changes, spread->changes + 1,
			(NM_SPREAD_CHANGES - 1) * sizeof(spread->changes[0]));
	else
		spread->count++;
	spread->changes[spread->count - 1] = fabs(log(after / before));
}

static int compare(const void *left, const void *right)
{
	const double *a = left, *b = right;
	return NM_COMPARE(*a, *b);
}

double nm_spread_sigma(const struct nm_spread *spread)
{
	double sorted[NM_SPREAD_CHANGES];
	unsigned count = spread->count;
	if (count < CHANGES_MIN)
		return UNKNOWN_SIGMA;
	memcpy(sorted, spread->changes, count * sizeof(sorted[0]));
	qsort(sorted, count, sizeof(sorted[0]), compare);
	double median = (sorted[(count - 1) / 2] + sorted[count / 2]) / 2;
	double sigma = SIGMA_BY_MEDIAN * median;
	return fmin(sigma * (1 + FEW_CHANGES / count), fmax(2 * sigma, UNKNOWN_SIGMA));
}
