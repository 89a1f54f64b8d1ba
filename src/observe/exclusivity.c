/* SPDX-License-Identifier: MIT */
#include <math.h>

#include "numa-migrd/exclusivity.h"

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
	/* A page's exclusivity times its accesses is the accesses of its foremost node. */
	return sums->accesses ? (double)sums->most / (double)sums->accesses : (double)NAN;
}
