/* SPDX-License-Identifier: MIT */
/* Whether a placement helped. */
#include "numa-migrd/placement.h"

#include <math.h>

#define CLEARLY 0.05	   /* relative change that is told from nothing */
#define LEAST_ACCESSES 30  /* for a mean distance that tells something */
#define LEAST_RUN_S 0.2	   /* CPU time behind a figure per CPU time */
#define WAITS_LONGER 0.2   /* seconds of waiting more for each second of CPU time */

static bool is_by_performance(const struct nm_place_measure *before,
			      const struct nm_place_measure *after)
{
	return before->performance > 0 && after->performance > 0 && before->run_s >= LEAST_RUN_S &&
	       after->run_s >= LEAST_RUN_S;
}

static bool is_by_distance(const struct nm_place_measure *before,
			   const struct nm_place_measure *after)
{
	return before->accesses >= LEAST_ACCESSES && after->accesses >= LEAST_ACCESSES &&
	       before->distance > 0 && after->distance > 0;
}

static double delay(const struct nm_place_measure *measure)
{
	return measure->run_s >= LEAST_RUN_S ? measure->delay_s / measure->run_s : NAN;
}

static enum nm_place_outcome outcome_of(double change)
{
	if (isnan(change))
		return NM_PLACE_INCONCLUSIVE;
	if (change > CLEARLY)
		return NM_PLACE_IMPROVED;
	return change < -CLEARLY ? NM_PLACE_WORSE : NM_PLACE_NEUTRAL;
}

struct nm_place_verdict nm_place_judge(const struct nm_place_measure *before,
				       const struct nm_place_measure *after, double drift)
{
	struct nm_place_verdict verdict = {.change = NAN, .judged_by = "nothing that was seen"};
	double waits = delay(after) - delay(before);
	if (waits > WAITS_LONGER) {
		verdict.outcome = NM_PLACE_WORSE;
		verdict.change = -waits;
		verdict.judged_by = "waiting for CPUs";
		return verdict;
	}
	if (is_by_performance(before, after)) {
		verdict.change = after->performance / before->performance - 1 - drift;
		verdict.judged_by = "performance";
	} else if (is_by_distance(before, after)) {
		verdict.change = before->distance / after->distance - 1 - drift;
		verdict.judged_by = "distance of memory";
	}
	verdict.outcome = outcome_of(verdict.change);
	return verdict;
}
