/* SPDX-License-Identifier: MIT */
/* How much the performance of a process, or of all, has changed of late without our doing. */
#ifndef NM_POLICY_SPREAD_H
#define NM_POLICY_SPREAD_H

#include "numa-migrd/base.h"

#define NM_SPREAD_CHANGES 8

struct nm_spread {
	double changes[NM_SPREAD_CHANGES]; /* |ln ratio| from one interval to the next, newest last
					    */
	unsigned count;
};

/* Adds the change from `before` to `after`; sums of P that are not above 0 tell nothing. */
void nm_spread_add(struct nm_spread *spread, double before, double after);

/* The spread as a standard deviation, from the median: one change of phase does not blur the next
 * verdicts. 0 where fewer than three changes are known. */
double nm_spread_sigma(const struct nm_spread *spread);

#endif
