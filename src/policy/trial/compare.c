/* SPDX-License-Identifier: MIT */
/* The statistics of the control group. */
#include <math.h>
#include <stdio.h>

#include "policy/trial.h"

#define MIXTURE_DEVIATION 0.05 /* differences of about this size are found first */
#define ERROR_RATE 0.05

void nm_trial_sum_add(struct nm_trial_sum *sum, double value)
{
	sum->n++;
	sum->sum += value;
	sum->squares += value * value;
}

static double squares_around_mean(const struct nm_trial_sum *sum)
{
	return fmax(sum->squares - sum->sum * sum->sum / sum->n, 0);
}

/* An ordinary interval that is looked at continuously excludes the truth in up to half of all
 * cases. */
static double half_width(double variance)
{
	const double mixture = MIXTURE_DEVIATION * MIXTURE_DEVIATION;
	if (!(variance > 0))
		return 0;
	return sqrt(variance * (1 + variance / mixture) *
		    log((1 + mixture / variance) / (ERROR_RATE * ERROR_RATE)));
}

static void set_half(struct nm_trial_difference *difference)
{
	bool enough = difference->units[NM_TRIAL_CONTROL] >= NM_TRIAL_UNITS_LEAST &&
		      difference->units[NM_TRIAL_TREATED] >= NM_TRIAL_UNITS_LEAST;
	difference->half = enough ? half_width(difference->variance) : (double)NAN;
}

/* The variance is pooled, because a few control units may all lack the rare long runs. */
bool nm_trial_compare(const struct nm_trial_sum sums[NM_TRIAL_ARMS],
		      struct nm_trial_difference *ret)
{
	const struct nm_trial_sum *control = &sums[NM_TRIAL_CONTROL];
	const struct nm_trial_sum *treated = &sums[NM_TRIAL_TREATED];
	if (control->n < 2 || treated->n < 2)
		return false;
	double variance = (squares_around_mean(control) + squares_around_mean(treated)) /
			  (control->n + treated->n - 2);
	*ret = (struct nm_trial_difference){
		.mean = treated->sum / treated->n - control->sum / control->n,
		.variance = variance * (1 / treated->n + 1 / control->n),
		.deviation = sqrt(variance),
		.units = {[NM_TRIAL_CONTROL] = control->n, [NM_TRIAL_TREATED] = treated->n},
	};
	set_half(ret);
	return true;
}

static int by_domain(const void *left, const void *right)
{
	const struct nm_trial_row *a = left, *b = right;
	return NM_COMPARE(a->domain, b->domain);
}

/* Returns the number of rows of the domain at the start of these sorted ones, and their weight. */
static size_t first_domain(const struct nm_trial_row *rows, size_t count, double *ret_weight)
{
	size_t i = 0;
	for (*ret_weight = 0; i < count && rows[i].domain == rows[0].domain; i++)
		*ret_weight += rows[i].weight;
	return i;
}

/* Returns the largest weight with which no domain has more than 1/3 of the reduced sum. */
static double limit_of_a_domain(const struct nm_trial_row *rows, size_t count)
{
	double most = 0, second = 0, others = 0, weight;
	for (size_t i = 0; i < count;) {
		i += first_domain(&rows[i], count - i, &weight);
		others += fmin(weight, second);
		second = fmax(fmin(weight, most), second);
		most = fmax(weight, most);
	}
	if (others == 0) /* fewer than three domains */
		return most;
	return (second + others) / 2 >= second ? (second + others) / 2 : others;
}

/* A clipped mean also varies by no more than that. */
static double bounded_variance(double variance)
{
	return fmin(variance, NM_TRIAL_DIFFERENCE_MOST * NM_TRIAL_DIFFERENCE_MOST);
}

double nm_trial_clip(double difference)
{
	return fmax(fmin(difference, NM_TRIAL_DIFFERENCE_MOST), -NM_TRIAL_DIFFERENCE_MOST);
}

bool nm_trial_total(struct nm_trial_row *rows, size_t count, struct nm_trial_difference *ret)
{
	struct nm_trial_difference total = {0};
	double weights = 0, of_domain = 0;
	for (size_t i = 0; i < count; i++)
		rows[i].weight = 1 / (1 / rows[i].difference.units[NM_TRIAL_CONTROL] +
				      1 / rows[i].difference.units[NM_TRIAL_TREATED]);
	qsort(rows, count, sizeof(*rows), by_domain);
	double limit = limit_of_a_domain(rows, count);
	for (size_t i = 0, end = 0; i < count; i++) {
		if (i == end)
			end += first_domain(&rows[i], count - i, &of_domain);
		double weight = rows[i].weight * fmin(limit / of_domain, 1);
		const struct nm_trial_difference *one = &rows[i].difference;
		weights += weight;
		total.mean += weight * nm_trial_clip(one->mean);
		total.variance += weight * weight * bounded_variance(one->variance);
		total.deviation += weight * one->deviation * one->deviation;
		for (unsigned arm = 0; arm < NM_TRIAL_ARMS; arm++)
			total.units[arm] += one->units[arm];
	}
	if (!(weights > 0))
		return false;
	total.mean /= weights;
	total.variance /= weights * weights;
	total.deviation = sqrt(total.deviation / weights);
	set_half(&total);
	*ret = total;
	return true;
}

double nm_trial_units_needed(double deviation, double control_share)
{
	/* Simulated: 257 units with a deviation of 0.1 and equal arms. */
	const double equal = 257, of = 0.1;
	double relative = deviation / of;
	double least = fmin(control_share, 1 - control_share);
	return fmax(equal * relative * relative / (4 * control_share * (1 - control_share)),
		    NM_TRIAL_UNITS_LEAST / least);
}

static double percent(double logarithm)
{
	return 100 * expm1(logarithm);
}

void nm_trial_describe(const struct nm_trial_difference *difference, char *out, size_t size)
{
	const double *units = difference->units;
	if (isnan(difference->half)) {
		(void)snprintf(out, size,
			       "no comparison: %.0f managed units and %.0f left alone, at least %u "
			       "of each are needed",
			       units[NM_TRIAL_TREATED], units[NM_TRIAL_CONTROL],
			       NM_TRIAL_UNITS_LEAST);
		return;
	}
	double low = percent(difference->mean - difference->half);
	double high = percent(difference->mean + difference->half);
	if (low <= 0 && high >= 0)
		(void)snprintf(out, size,
			       "no difference found in CPU seconds: %+.0f %% (%+.0f to %+.0f %%); "
			       "%.0f and %.0f units",
			       percent(difference->mean), low, high, units[NM_TRIAL_TREATED],
			       units[NM_TRIAL_CONTROL]);
	else
		(void)snprintf(out, size,
			       "a typical process used %.0f %% %s CPU seconds (%.0f to %.0f %%) than "
			       "one left alone on the same machine; %.0f and %.0f units",
			       fabs(percent(difference->mean)), high < 0 ? "fewer" : "more",
			       fmin(fabs(low), fabs(high)), fmax(fabs(low), fabs(high)),
			       units[NM_TRIAL_TREATED], units[NM_TRIAL_CONTROL]);
}
