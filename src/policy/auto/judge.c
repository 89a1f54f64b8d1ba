/* SPDX-License-Identifier: MIT */
/* Judges whether a placement helped. */
#include "numa-migrd/placement.h"

#include <math.h>
#include <stdlib.h>

#define MIN_RUN_S 0.2	   /* minimum CPU time for values per CPU time */
#define WAITS_LONGER 1.2   /* factor relative to before */
#define WAITS_MIN 0.05	   /* seconds per second of CPU time; less is ignored */
#define NOISE_SIGMAS 2

static bool is_by_performance(const struct nm_place_measure *before,
			      const struct nm_place_measure *after)
{
	return before->performance > 0 && after->performance > 0 && before->run_s >= MIN_RUN_S &&
	       after->run_s >= MIN_RUN_S;
}

static bool is_by_distance(const struct nm_place_measure *before,
			   const struct nm_place_measure *after)
{
	return before->accesses >= NM_PLACE_MIN_ACCESSES &&
	       after->accesses >= NM_PLACE_MIN_ACCESSES && before->distance > 0 &&
	       after->distance > 0;
}

static double delay(const struct nm_place_measure *measure)
{
	return measure->run_s >= MIN_RUN_S ? measure->delay_s / measure->run_s : NAN;
}

/* Relative to the mean. */
static double noise(double mean, double variance)
{
	return mean > 0 && variance > 0 ? sqrt(variance) / mean : 0;
}

static bool waits_longer(const struct nm_place_measure *before,
			 const struct nm_place_measure *after,
			 const struct nm_place_context *context)
{
	double expected = delay(before) + fmax(context->waiting_drift, 0);
	return context->cpus_idle && delay(after) > WAITS_LONGER * expected + WAITS_MIN;
}

struct nm_place_verdict nm_place_judge(const struct nm_place_measure *before,
				       const struct nm_place_measure *after,
				       const struct nm_place_context *context)
{
	struct nm_place_verdict verdict = {.change = NAN, .judged_by = NM_PLACE_BY_NOTHING};
	double deviation = 0;
	if (waits_longer(before, after, context)) {
		verdict.kind = NM_VERDICT_ROLLED_BACK;
		verdict.change = delay(before) - delay(after);
		verdict.judged_by = NM_PLACE_BY_DELAY;
		return verdict;
	}
	if (is_by_performance(before, after)) {
		verdict.change =
			after->performance / before->performance - 1 - context->performance_drift;
		verdict.judged_by = NM_PLACE_BY_PERFORMANCE;
		deviation = noise(before->performance, before->performance_variance);
	} else if (is_by_distance(before, after)) {
		verdict.change = before->distance / after->distance - 1 - context->distance_drift;
		verdict.judged_by = NM_PLACE_BY_DISTANCE;
		deviation = noise(before->distance, before->distance_variance);
	}
	double min_change = fmax(context->tolerance, NOISE_SIGMAS * deviation);
	verdict.kind = nm_judge_change(verdict.change, min_change, min_change);
	return verdict;
}

/* ---- changes of other processes ---- */

static int by_value(const void *one, const void *other)
{
	const struct nm_place_change *a = one, *b = other;
	return NM_COMPARE(a->value, b->value);
}

static int by_domain_and_value(const void *one, const void *other)
{
	const struct nm_place_change *a = one, *b = other;
	return NM_COMPARE(a->domain, b->domain) ?: by_value(one, other);
}

/* Replaces the changes of each domain by their median. Returns their number. */
static size_t take_medians(struct nm_place_change *changes, size_t count)
{
	size_t medians = 0;
	qsort(changes, count, sizeof(*changes), by_domain_and_value);
	for (size_t first = 0, end; first < count; first = end) {
		const uint64_t domain = changes[first].domain;
		for (end = first; end < count && changes[end].domain == domain;)
			end++;
		changes[medians++] = changes[(first + end) / 2];
	}
	return medians;
}

double nm_place_domain_median(struct nm_place_change *changes, size_t count, double otherwise)
{
	if (count == 0)
		return otherwise;
	count = take_medians(changes, count);
	qsort(changes, count, sizeof(*changes), by_value);
	return changes[count / 2].value;
}
