/* SPDX-License-Identifier: MIT */
#ifndef NUMA_MIGRD_SAMPLE_PERIOD_H
#define NUMA_MIGRD_SAMPLE_PERIOD_H

#include "numa-migrd/sample.h"

/* The ranges accepted by nm_event_attr(). */
/* The node of each thread must be known even during storms of page faults: at least 20 samples per
 * second. */
#define NM_CLOCK_PERIOD_MAX (50 * NM_NSEC_PER_MSEC)
#define NM_CYCLES_PERIOD_MAX 100000000000ULL
#define NM_FAULT_PERIOD_MAX 1000000ULL
#define NM_HARDWARE_PERIOD_MAX 1000000000000ULL

/* Returns the first prime from `period` up, or the last one below `maximum`; 1 stays 1. A round
 * period would be in step with the loops of programs, and always sample the same part of them. */
uint64_t nm_period_prime(uint64_t period, uint64_t maximum);

#endif
