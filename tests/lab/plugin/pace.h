/* SPDX-License-Identifier: MIT */
/*
 * Holds the emulated CPUs to a number of modelled cycles a microsecond of the guest's own clock
 * (clock.h), and hands QEMU that clock in place of the host's (interpose.c): so a second of the
 * guest is a second of the modelled machine.
 */
#ifndef NUMA_MIGRD_LAB_PACE_H
#define NUMA_MIGRD_LAB_PACE_H

#include "clock.h"

/* The following functions are called by the CPU's own thread only. */

/* Starts the clock with `mhz` cycles per microsecond. */
void lab_pace_begin(unsigned int mhz);

/* Charges cycles to the CPU, which count at its next block. */
void lab_pace_charge(unsigned int vcpu, uint64_t cycles);

/*
 * Begins a block of instructions, of one cycle each. Once the clock is paced, a CPU that is ahead
 * of the slowest waits here for some time. Returns by how many ns it is further ahead than
 * permitted, beyond earlier results: such a run is not exact.
 */
uint64_t lab_pace_block(unsigned int vcpu, uint64_t instructions);

uint64_t lab_pace_cycles(unsigned int vcpu);

/* From any thread. */
struct lab_clock *lab_pace_clock(void);
uint64_t lab_pace_now_ns(void);
uint64_t lab_pace_tsc(void);

/* Returns the clock in cycles, as of its last update. */
uint64_t lab_pace_now_cycles(void);

/* ---- interpose.c ---- */

/* Hands QEMU the clock; false: the plugin is not in LD_PRELOAD, or this QEMU's counter cannot be
 * replaced. */
bool lab_interpose(void);

/* The timer that is waited for is due: wakes who waits for it, once. */
void lab_interpose_due(void);

/* The CPU whose thread this is will wait until it is woken. */
void lab_interpose_rest(unsigned int vcpu);

#endif
