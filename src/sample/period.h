/* SPDX-License-Identifier: MIT */
#ifndef NUMA_MIGRD_SAMPLE_PERIOD_H
#define NUMA_MIGRD_SAMPLE_PERIOD_H

#include "numa-migrd/sample.h"

/* The ranges that nm_event_attr() takes. */
/* Where threads run must still be known when faults come in storms: 20 samples a second at least. */
#define NM_CLOCK_PERIOD_MAX (50 * NM_NSEC_PER_MSEC)
#define NM_CYCLES_PERIOD_MAX 100000000000ULL
#define NM_FAULT_PERIOD_MAX 1000000ULL
#define NM_HARDWARE_PERIOD_MAX 1000000000000ULL

/*
 * The first prime from `period` up, or the last one below `maximum`; 1 stays 1. A round period
 * beats in step with programs' own loops and would see always the same part of them.
 */
uint64_t nm_period_prime(uint64_t period, uint64_t maximum);

#endif
