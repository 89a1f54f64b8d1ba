/* SPDX-License-Identifier: MIT */
/* The clocks for timeouts and for reports. Decisions get the time as an argument instead. */
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

/* Returns CLOCK_REALTIME in microseconds. */
static inline uint64_t nm_clock_realtime_usec(void)
{
	struct timespec now;
	(void)clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

#endif
