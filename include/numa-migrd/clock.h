/* SPDX-License-Identifier: MIT */
/* The clock of what waits and has an end. What decides is given the time instead. */
#ifndef NUMA_MIGRD_CLOCK_H
#define NUMA_MIGRD_CLOCK_H

#include <stdint.h>
#include <time.h>

#include "numa-migrd/base.h"

/* CLOCK_MONOTONIC (clock_gettime(2)), which does not fail. Any thread. */
static inline uint64_t nm_clock_ns(void)
{
	struct timespec now;
	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * NM_NSEC_PER_SEC + (uint64_t)now.tv_nsec;
}

#endif
