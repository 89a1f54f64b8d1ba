/* SPDX-License-Identifier: MIT */
/* The recent variation of the performance of a process, or of all processes, without moves. */
#ifndef NM_POLICY_SPREAD_H
#define NM_POLICY_SPREAD_H

#include "numa-migrd/base.h"

#define NM_SPREAD_CHANGES 32

struct nm_spread {
	double changes[NM_SPREAD_CHANGES]; /* |ln ratio| between consecutive intervals, newest
					    * last */
	unsigned count;
};

/* Adds the change from `before` to `after`. Sums of P that are not positive are ignored. */
void nm_spread_add(struct nm_spread *spread, double before, double after);

/*
 * Returns the spread as a standard deviation, from the median, so that a single phase change does
 * not affect the next verdicts. With few changes it is widened by 1 + 8/count, to at most twice its
 * value or 0.05, because the median of few values is often much too small (of 8 normal changes, one
 * in 70 exceeds 3 sigmas without the widening, and none in 1000 with it). With fewer than three
 * changes it is 0.05.
 */
double nm_spread_sigma(const struct nm_spread *spread);

#endif
