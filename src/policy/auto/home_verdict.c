/* SPDX-License-Identifier: MIT */
/* The changes of a process since it was assigned a home. */
#include "policy/placement.h"

#include <math.h>
#include <stdlib.h>

#define MIN_RUN_S 0.2	 /* minimum CPU time for values per CPU time */
#define WAITS_LONGER 1.2 /* factor relative to before */
#define WAITS_MIN 0.05	 /* seconds per second of CPU time; less is ignored */
#define NOISE_SIGMAS 2
#define SAME_THREADS 0.75

static double delay(const struct nm_place_measure *measure)
{
	return measure->run_s >= MIN_RUN_S ? measure->delay_s / measure->run_s : NAN;
}

/* Without idle CPUs elsewhere, waiting could not be avoided. */
static struct nm_change delay_change(const struct nm_place_measure *before,
				     const struct nm_place_measure *after,
				     const struct nm_place_context *context)
{
	double expected = delay(before) + fmax(context->waiting_drift, 0);
	double most = WAITS_LONGER * expected + WAITS_MIN - delay(before);
	return nm_change_of(delay(before) - delay(after), INFINITY,
			    context->cpus_idle ? most : INFINITY);
}

/* Returns the standard error of a mean, relative to it. */
static double error_of(double mean, double variance, double intervals)
{
	return intervals >= 1 && variance > 0 ? sqrt(variance / intervals) / mean : 0;
}

/* A change that the noise hides is not known, and neither is its absence. The noise falls with the
 * square root of the intervals. */
static struct nm_change relative_change(double value, double error,
					const struct nm_place_measure *before,
					const struct nm_place_measure *after,
					const struct nm_place_context *context)
{
	double limit = context->tolerance, noise = NOISE_SIGMAS * error;
	double measured = fmin(before->intervals, after->intervals);
	if (noise > fmax(limit, fabs(value) - limit))
		return (struct nm_change){.needed = measured * noise * noise / limit / limit};
	return nm_change_of(value, limit, limit);
}

static struct nm_change performance_change(const struct nm_place_measure *before,
					   const struct nm_place_measure *after,
					   const struct nm_place_context *context)
{
	if (!(before->performance > 0 && after->performance > 0 && before->run_s >= MIN_RUN_S &&
	      after->run_s >= MIN_RUN_S))
		return (struct nm_change){0};
	double error = hypot(
		error_of(before->performance, before->performance_variance, before->intervals),
		error_of(after->performance, after->performance_variance, after->intervals));
	return relative_change(after->performance / before->performance - 1 -
				       context->performance_drift,
			       error, before, after, context);
}

/* All accesses may be near, and wait for the controller that all threads use. */
static struct nm_change distance_change(const struct nm_place_measure *before,
					const struct nm_place_measure *after,
					const struct nm_place_context *context)
{
	if (!(before->accesses >= NM_PLACE_MIN_ACCESSES &&
	      after->accesses >= NM_PLACE_MIN_ACCESSES && before->distance > 0 &&
	      after->distance > 0))
		return (struct nm_change){0};
	double error =
		hypot(error_of(before->distance, before->distance_variance, before->intervals),
		      error_of(after->distance, after->distance_variance, after->intervals));
	struct nm_change change =
		relative_change(before->distance / after->distance - 1 - context->distance_drift,
				error, before, after, context);
	if (context->controller_full)
		change.rise = INFINITY;
	return change;
}

static bool is_same_program(const struct nm_place_measure *before,
			    const struct nm_place_measure *after)
{
	return after->threads >= SAME_THREADS * before->threads &&
	       before->threads >= SAME_THREADS * after->threads;
}

struct nm_judgement nm_place_judge(const struct nm_place_measure *before,
				   const struct nm_place_measure *after,
				   const struct nm_place_context *context)
{
	struct nm_change changes[NM_MEASURES] = {[NM_BY_DELAY] =
							 delay_change(before, after, context)};
	if (is_same_program(before, after)) {
		changes[NM_BY_PERFORMANCE] = performance_change(before, after, context);
		changes[NM_BY_DISTANCE] = distance_change(before, after, context);
	}
	struct nm_judgement ret = nm_judge_by(nm_policy_ops(NM_POLICY_AUTO)->judged_by, changes);
	/* Verdicts on homes only report. Homes that were rolled back by them gained nothing in sum;
	 * what bars a program is its control group. */
	if (ret.kind == NM_VERDICT_ROLLED_BACK)
		ret.kind = NM_VERDICT_WORSE;
	return ret;
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
