/* SPDX-License-Identifier: MIT */
#include <math.h>

#include "observe/memory.h"

void nm_exclusivity_add(struct nm_exclusivity *sums, uint32_t most, uint32_t total)
{
	if (total == 0)
		return;
	sums->pages++;
	sums->accesses += total;
	sums->most += most;
	sums->histogram[(20ULL * most + total) / (2ULL * total)]++;
}

double nm_exclusivity_average(const struct nm_exclusivity *sums)
{
	/* The exclusivity of a page, multiplied by its accesses, is the number of accesses by its
	 * main node. */
	return sums->accesses ? (double)sums->most / (double)sums->accesses : (double)NAN;
}
