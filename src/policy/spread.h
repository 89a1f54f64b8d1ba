/* SPDX-License-Identifier: MIT */
/* How much the performance of a process, or of all, has changed of late without our doing. */
#ifndef NM_POLICY_SPREAD_H
#define NM_POLICY_SPREAD_H

#include "numa-migrd/base.h"

#define NM_SPREAD_CHANGES 32

struct nm_spread {
	double changes[NM_SPREAD_CHANGES]; /* |ln ratio| from one interval to the next, newest last
					    */
	unsigned count;
};

/* Adds the change from `before` to `after`; sums of P that are not above 0 tell nothing. */
void nm_spread_add(struct nm_spread *spread, double before, double after);

/*
 * The spread as a standard deviation, from the median: one change of phase does not blur the next
 * verdicts. The fewer changes are known, the wider it is told, by 1 + 8/count but not beyond twice
 * or a twentieth: a median of few is often far too small (of 8 normal changes, one in 70 is beyond
 * 3 sigmas untold, and none in 1000 told so). With fewer than three it is a twentieth.
 */
double nm_spread_sigma(const struct nm_spread *spread);

#endif
