/* SPDX-License-Identifier: MIT */
/*
 * The emulated machine's time, as its CPUs' modelled cycles tell it. The clock never passes the
 * slowest CPU that is at work, nor the next timer that QEMU has yet to serve, nor the host's own
 * clock. So what the host does meanwhile makes a run longer and no second of it different.
 *
 * Until it is paced it goes as the host's. All times are ns; `host_ns` is the host's monotonic
 * clock.
 */
#ifndef NUMA_MIGRD_LAB_CLOCK_H
#define NUMA_MIGRD_LAB_CLOCK_H

#include "../module/numalab.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define LAB_CLOCK_NEVER UINT64_MAX

struct lab_clock_cpu {
	_Atomic uint64_t at_ns; /* how far it has come, while at work */
	atomic_bool busy;
};

struct lab_clock {
	_Atomic uint64_t now_ns;
	uint64_t host_ns; /* when now_ns was brought up to date */
	atomic_flag locked;
	atomic_bool paced;
	_Atomic uint64_t due_ns; /* of the next timer, or LAB_CLOCK_NEVER */
	struct lab_clock_cpu cpus[NUMALAB_MAX_CPUS];
};

/* The clock begins as the host's. */
void lab_clock_begin(struct lab_clock *clock, uint64_t host_ns);

/* From here on the CPUs at work hold it. */
void lab_clock_pace(struct lab_clock *clock);

/* Brings it up to date and tells it. Never backwards; safe from any thread and in a signal handler
 * that no holder of its lock can be interrupted by. */
uint64_t lab_clock_read(struct lab_clock *clock, uint64_t host_ns);

/* A CPU begins to work now, if it does not yet, or where it had come to; a CPU is idle and holds
 * nobody up. */
void lab_clock_wake(struct lab_clock *clock, unsigned int cpu);
void lab_clock_rest(struct lab_clock *clock, unsigned int cpu);

/* A CPU at work has come so much further. Returns where it is. */
uint64_t lab_clock_work(struct lab_clock *clock, unsigned int cpu, uint64_t ns);

/* Some CPU is at work, and with it the clock. */
bool lab_clock_is_held(const struct lab_clock *clock);

/* The next timer is due then. */
void lab_clock_expect(struct lab_clock *clock, uint64_t due_ns);

#endif
