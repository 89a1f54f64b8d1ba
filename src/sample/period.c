/* SPDX-License-Identifier: MIT */
#include <math.h>

#include "source.h"

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
