/* SPDX-License-Identifier: MIT */
/*
 * The cost of other users of a controller or link. A queue counts the lines that it serves in
 * windows of the guest's time; its load in the last ones determines the wait of the next line: with
 * random arrivals and service times that differ a little (M/G/1, the mean of Pollaczek and
 * Khinchine with a squared coefficient of variation of 1.2), 1.1 * service * load / (1 - load).
 *
 * A Xeon Platinum 8269CY reads 59 GB/s from the memory of one of its halves, which has 13 cores:
 * the part of two cores is 64 bytes in 20 cycles of 2.8 GHz. Its loaded latency is 1.2 times the
 * unloaded one at 45 % of the bandwidth, 1.7 times at 87 % and 3.3 times at the end (Intel's Memory
 * Latency Checker); the curve has 1.1, 1.7 and 3.1. The port of a node to the others carries 50 %
 * of its controller. Routes are not modelled, because distances do not determine them.
 */
#ifndef NUMA_MIGRD_LAB_QUEUE_H
#define NUMA_MIGRD_LAB_QUEUE_H

#include <stdatomic.h>
#include <stdint.h>

enum {
	LAB_CONTROLLER_CYCLES = 20,
	LAB_PORT_CYCLES = 40,
	LAB_WINDOW_CYCLES = 40000, /* several times what CPUs may be apart (pace.c) */
	LAB_LOAD_MAX_PERMILLE = 950,
};

struct lab_queue {
	_Atomic uint64_t window;	/* the number of the present one */
	_Atomic uint32_t lines;		/* in it, so far */
	_Atomic uint32_t load_permille; /* of the windows before, the last one counting half */
};

/* Cycles that a line waits at that load. */
uint32_t lab_queue_wait(uint32_t service_cycles, uint32_t load_permille);

/* A line is served at that time, in cycles since whenever. Returns what it waits. Any thread. */
uint32_t lab_queue_serve(struct lab_queue *queue, uint32_t service_cycles, uint64_t now_cycles);

#endif
