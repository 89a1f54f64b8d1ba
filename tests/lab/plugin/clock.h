/* SPDX-License-Identifier: MIT */
/*
 * The time of the emulated machine, derived from the modelled cycles of its CPUs. The clock never
 * passes the slowest busy CPU, the next timer that QEMU has yet to serve, or the host's own clock.
 * Other load on the host therefore makes a run longer, and changes no second of it.
 *
 * Until it is paced it follows the host's clock. All times are ns; `host_ns` is the host's
 * monotonic clock.
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

/* Updates and returns the clock. It never goes backwards; safe from any thread, and in a signal
 * handler that cannot interrupt a holder of its lock. */
uint64_t lab_clock_read(struct lab_clock *clock, uint64_t host_ns);

/* A CPU becomes busy now, if it is not yet, or at its last position; a CPU becomes idle, and holds
 * up no other. */
void lab_clock_wake(struct lab_clock *clock, unsigned int cpu);
void lab_clock_rest(struct lab_clock *clock, unsigned int cpu);

/* A busy CPU advances by `ns`. Returns its position. */
uint64_t lab_clock_work(struct lab_clock *clock, unsigned int cpu, uint64_t ns);

/* Some CPU is at work, and with it the clock. */
bool lab_clock_is_held(const struct lab_clock *clock);

/* The next timer is due then. */
void lab_clock_expect(struct lab_clock *clock, uint64_t due_ns);

#endif
