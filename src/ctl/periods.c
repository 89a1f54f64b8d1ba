/* SPDX-License-Identifier: MIT */
#include "periods.h"

#include <math.h>
#include <stdio.h>

#define ORDERS 4000U /* drawn for the test */
#define REFUSED 0.05
#define EQUAL 1e-9 /* differences of logarithms that count as equal */
#define BISECTIONS 60
#define LARGEST_CHANGE 20 /* logarithm of a change that no measure shows */

void nm_periods_draw(struct nm_rng *rng, struct nm_period *periods, size_t count)
{
	for (size_t i = 0; i < count; i++)
		periods[i].with = i < count / 2;
	for (size_t i = count; i > 1; i--) {
		size_t k = nm_rng_below(rng, i);
		bool with = periods[i - 1].with;
		periods[i - 1].with = periods[k].with;
		periods[k].with = with;
	}
}

/*
 * The difference of the means in another order of the periods, if the true difference is x, is
 * base - x * slope: only the values of periods with numa-migrd contain x.
 */
struct order {
	double base, slope;
};

static struct order order_of(const struct nm_period *periods, const bool *with, size_t count)
{
	double base[2] = {0}, slope[2] = {0};
	size_t n[2] = {0};
	for (size_t i = 0; i < count; i++) {
		base[with[i]] += log(periods[i].value);
		slope[with[i]] += periods[i].with;
		n[with[i]]++;
	}
	return (struct order){
		.base = base[1] / (double)n[1] - base[0] / (double)n[0],
		.slope = slope[1] / (double)n[1] - slope[0] / (double)n[0],
	};
}

static void shuffle(struct nm_rng *rng, bool *with, size_t count)
{
	for (size_t i = count; i > 1; i--) {
		size_t k = nm_rng_below(rng, i);
		bool other = with[i - 1];
		with[i - 1] = with[k];
		with[k] = other;
	}
}

/* Returns true if at most 5 % of all orders, with the real one, have as large a difference as the
 * real one. */
static bool refuses(const struct order *orders, double difference, double x)
{
	unsigned extreme = 1;
	for (unsigned i = 0; i < ORDERS; i++)
		extreme +=
			fabs(orders[i].base - x * orders[i].slope) >= fabs(difference - x) - EQUAL;
	return extreme <= REFUSED * (ORDERS + 1);
}

/* Returns the end of the interval in this direction. */
static double find_end(const struct order *orders, double difference, double direction)
{
	double inside = 0, outside = LARGEST_CHANGE;
	for (unsigned i = 0; i < BISECTIONS; i++) {
		double middle = (inside + outside) / 2;
		if (refuses(orders, difference, difference + direction * middle))
			outside = middle;
		else
			inside = middle;
	}
	return difference + direction * outside;
}

void nm_periods_compare(struct nm_rng *rng, const struct nm_period *periods, size_t count,
			struct nm_periods_result *ret)
{
	nm_autofree struct order *orders = nm_must(calloc(ORDERS, sizeof(*orders)));
	nm_autofree bool *with = nm_must(calloc(count + 1, sizeof(*with)));
	*ret = (struct nm_periods_result){
		.change = (double)NAN, .low = (double)NAN, .high = (double)NAN};
	for (size_t i = 0; i < count; i++) {
		with[i] = periods[i].with;
		ret->with += periods[i].with;
	}
	ret->without = count - ret->with;
	if (ret->with < NM_PERIODS_LEAST || ret->without < NM_PERIODS_LEAST)
		return;
	double difference = order_of(periods, with, count).base;
	for (unsigned i = 0; i < ORDERS; i++) {
		shuffle(rng, with, count);
		orders[i] = order_of(periods, with, count);
	}
	ret->change = expm1(difference);
	ret->low = expm1(find_end(orders, difference, -1));
	ret->high = expm1(find_end(orders, difference, 1));
}

void nm_periods_describe(const struct nm_periods_result *result, char *out, size_t size)
{
	if (isnan(result->low))
		(void)snprintf(
			out, size,
			"too few periods: %zu with numa-migrd and %zu without, at least %u of "
			"each are needed",
			result->with, result->without, NM_PERIODS_LEAST);
	else if (result->low <= 0 && result->high >= 0)
		(void)snprintf(out, size,
			       "no difference found: the measure changed by %+.1f %% (%+.1f to "
			       "%+.1f %%) with numa-migrd; %zu and %zu periods",
			       100 * result->change, 100 * result->low, 100 * result->high,
			       result->with, result->without);
	else
		(void)snprintf(
			out, size,
			"the measure was %.1f %% %s with numa-migrd (%+.1f to %+.1f %%); %zu "
			"and %zu periods",
			100 * fabs(result->change), result->change > 0 ? "larger" : "smaller",
			100 * result->low, 100 * result->high, result->with, result->without);
}
