/* SPDX-License-Identifier: MIT */
#include <math.h>

#include "source.h"

/* Cost of one sample for the sampled thread (+0.5 to 0.6 µs). */
#define SAMPLE_COST_NS 600

static bool is_prime(uint64_t n)
{
	if (n < 4)
		return n > 1;
	if (n % 2 == 0 || n % 3 == 0)
		return false;
	for (uint64_t divisor = 5; divisor * divisor <= n; divisor += 6)
		if (n % divisor == 0 || n % (divisor + 2) == 0)
			return false;
	return true;
}

uint64_t nm_period_prime(uint64_t period, uint64_t maximum)
{
	uint64_t prime = period < maximum ? period : maximum;

	if (prime <= 1)
		return 1;
	while (!is_prime(prime) && prime < maximum)
		prime++;
	while (!is_prime(prime))
		prime--;
	return prime;
}

/* The cost is proportional to the rate: far above the cap, doubling once per interval would take
 * too long. */
static uint64_t factor_for(double cost_share, double cap_share)
{
	enum { FACTOR_MAX = 16 };
	uint64_t factor = 2;

	while (isfinite(cost_share) && factor < FACTOR_MAX &&
	       cost_share > cap_share * (double)factor)
		factor *= 2;
	return factor;
}

uint64_t nm_period_next(uint64_t period, uint64_t configured, uint64_t maximum, double cost_share,
			double cap_share)
{
	if (cost_share > cap_share) {
		uint64_t factor = factor_for(cost_share, cap_share);
		return period > maximum / factor ? maximum : period * factor;
	}
	if (cost_share < cap_share / 3.0)
		return period / 2 < configured ? configured : period / 2;
	return period;
}

/* Samples that were dropped, because they are no memory access or are in the kernel, cost as much
 * as others. */
static uint64_t samples_taken(const struct nm_ring_counts *counts)
{
	return counts->samples + counts->no_access + counts->kernel;
}

struct nm_sampling_cost nm_sampling_cost(const struct nm_ring_counts *before,
					 const struct nm_ring_counts *now, uint64_t drain_ns)
{
	uint64_t samples = samples_taken(now) - samples_taken(before);
	double all = (double)samples + (double)(now->task_events - before->task_events);
	return (struct nm_sampling_cost){
		.drain_ns = all > 0 ? (double)drain_ns * (double)samples / all : (double)drain_ns,
		.caused_ns = samples * SAMPLE_COST_NS,
	};
}
