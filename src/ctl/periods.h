/* SPDX-License-Identifier: MIT */
/*
 * A trial of a service: periods with and without numa-migrd in random order, and a test by
 * permutation (Edgington 1980), which needs no distribution: if numa-migrd had no effect, every
 * other order would have been as likely. Pure; the generator is seeded.
 */
#ifndef NM_CTL_PERIODS_H
#define NM_CTL_PERIODS_H

#include "numa-migrd/base.h"

#define NM_PERIODS_LEAST 6U   /* of each kind; of 924 orders then, at least 47 are as extreme */
#define NM_PERIODS_MOST 1000U /* of both kinds */

struct nm_period {
	bool with;    /* managed */
	double value; /* of the measure; above 0 */
};

/* Draws the half of the periods that is with numa-migrd. */
void nm_periods_draw(struct nm_rng *rng, struct nm_period *periods, size_t count);

struct nm_periods_result {
	size_t with, without;
	/* The change of the geometric mean by numa-migrd (0.1: 10 % more), and an interval that
	 * contains the true one with a probability of 95 %; NaN: too few periods. */
	double change, low, high;
};

/* The interval contains each change that the test does not refuse at 5 %. */
void nm_periods_compare(struct nm_rng *rng, const struct nm_period *periods, size_t count,
			struct nm_periods_result *ret);

#define NM_PERIODS_TEXT_BYTES 256
/* Writes the result as a sentence. */
void nm_periods_describe(const struct nm_periods_result *result, char *out, size_t size);

#endif
