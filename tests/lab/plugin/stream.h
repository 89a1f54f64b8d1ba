/* SPDX-License-Identifier: MIT */
/*
 * Prefetching by the processor: lines of a page that are read or written in sequence. After two in
 * a row the next ones are requested, as many at a time that a line takes 10 % of its latency, the
 * limit of a core with ten line fill buffers (Intel's Haswell to Skylake: Optimization Reference
 * Manual, section on the memory subsystem). Waits in queues are not shortened. Without this a
 * copied page would cost ten times as much, and no policy could afford to move any.
 */
#ifndef NUMA_MIGRD_LAB_STREAM_H
#define NUMA_MIGRD_LAB_STREAM_H

#include <stdbool.h>
#include <stdint.h>

enum {
	LAB_STREAMS = 16,     /* that a CPU follows at a time */
	LAB_STREAM_PAGE = 64, /* lines; streams end with their page */
	LAB_STREAM_AT_ONCE = 10,
};

struct lab_streams {
	uint64_t next[LAB_STREAMS]; /* the line that would continue it; 0: none */
	bool known[LAB_STREAMS];    /* two were in a row */
	unsigned int oldest;
};

/* A CPU's L1 misses that line, by its number. True: it is on its way already. */
bool lab_stream_follow(struct lab_streams *streams, uint64_t line);

#endif
