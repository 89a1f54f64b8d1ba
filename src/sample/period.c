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

uint64_t nm_source_period(const struct nm_source *source, enum nm_event_kind kind)
{
	switch (kind) {
	case NM_EVENT_CLOCK:
		return nm_period_prime(source->run_ns, NM_CLOCK_PERIOD_MAX);
	case NM_EVENT_CYCLES:
		return nm_period_prime((uint64_t)((double)source->run_ns * source->cycles_per_ns),
				       NM_CYCLES_PERIOD_MAX);
	default:
		return nm_period_prime(source->faults, NM_FAULT_PERIOD_MAX);
	}
}

/* Returns a period with about one hundred samples per second on a busy CPU. */
static uint64_t default_period(const struct nm_event_word *word)
{
	switch (word->kind) {
	case NM_EVENT_INSTRUCTIONS:
		return 20000000;
	case NM_EVENT_FLOPS:
		return 5000000;
	case NM_EVENT_DRAM:
		return 500000;
	case NM_EVENT_STORE:
		return 100000;
	default:
		return word->period_multiple > 1 || word->aux ? 0x40000 : 1000;
	}
}

/* IBS and SPE, which add randomness themselves, need no prime. */
uint64_t nm_source_word_period(const struct nm_source *source, const struct nm_event_word *word)
{
	uint64_t base = word->period ? word->period : default_period(word);

	base *= source->hardware_scale;
	if (word->period_multiple > 1)
		base -= base % word->period_multiple;
	if (word->period_multiple > 1 || word->aux)
		return base;
	return nm_period_prime(base, NM_HARDWARE_PERIOD_MAX);
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
