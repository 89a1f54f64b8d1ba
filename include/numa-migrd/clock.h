/* SPDX-License-Identifier: MIT */
/* The clock for timeouts. Decisions get the time as an argument instead. */
#ifndef NUMA_MIGRD_CLOCK_H
#define NUMA_MIGRD_CLOCK_H

#include <stdint.h>
#include <time.h>

#include "numa-migrd/base.h"

/* Returns CLOCK_MONOTONIC (clock_gettime(2)), which cannot fail. May be called from any thread. */
static inline uint64_t nm_clock_ns(void)
{
	struct timespec now;
	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * NM_NSEC_PER_SEC + (uint64_t)now.tv_nsec;
}

#endif
