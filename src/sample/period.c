/* SPDX-License-Identifier: MIT */
#include "period.h"

static bool is_prime(uint64_t n)
{
	if (n < 4)
		return n > 1;
	if (n % 2 == 0)
		return false;
	for (uint64_t divisor = 3; divisor * divisor <= n; divisor += 2)
		if (n % divisor == 0)
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

uint64_t nm_period_next(uint64_t period, uint64_t configured, uint64_t maximum, double cost_share,
			double cap_share)
{
	if (cost_share > cap_share)
		return period > maximum / 2 ? maximum : period * 2;
	if (cost_share < cap_share / 3.0)
		return period / 2 < configured ? configured : period / 2;
	return period;
}
