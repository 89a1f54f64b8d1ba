/* SPDX-License-Identifier: MIT */
/*
 * Combines the output of an SPE event: its ring reports which piece of the AUX area is ready, and
 * which thread ran on the CPU at which time; the area contains the records. Pure.
 * perf_event_open(2), PERF_RECORD_AUX and PERF_RECORD_SWITCH_CPU_WIDE; kernel,
 * drivers/perf/arm_spe_pmu.c.
 */
#ifndef NUMA_MIGRD_SAMPLE_SPE_READ_H
#define NUMA_MIGRD_SAMPLE_SPE_READ_H

#include "spe.h"

/* Converts ticks of the generic timer to perf's clock: perf_event_mmap_page, cap_user_time_zero. */
struct nm_spe_clock {
	bool known;
	bool wraps; /* only the bits of `mask` are valid, relative to `cycles`
		     * (cap_user_time_short) */
	uint16_t shift;
	uint32_t mult;
	uint64_t zero_ns, cycles, mask;
};

uint64_t nm_spe_time_ns(const struct nm_spe_clock *clock, uint64_t ticks);

/* This thread ran on the CPU from time_ns on. */
struct nm_spe_turn {
	uint64_t time_ns;
	uint32_t pid, tid;
};

struct nm_spe_reader {
	uint32_t cpu;
	enum nm_spe_sources sources; /* of that CPU */
	struct nm_spe_clock clock;
	bool stopped;		   /* the kernel ran out of space and has disabled the event */
	struct nm_spe_turn *turns; /* since the last piece; the first is from before it */
	size_t nr_turns, capacity;
	bool carried; /* the first turn is from before the last piece */
};

struct nm_spe_areas {
	const uint8_t *ring; /* records */
	size_t ring_bytes;   /* both sizes are powers of two */
	const uint8_t *aux;
	size_t aux_bytes;
	uint8_t *scratch; /* aux_bytes of scratch space, for pieces that wrap around */
};

/*
 * Reads the records in [tail, head) of the ring and returns head. A sample is assigned to the
 * thread in its context packet, if that has had a turn; otherwise to the thread that ran at its
 * time; and if neither is known, to the only thread that had a turn. Samples without a thread count
 * as `unknown`; a piece that the hardware or the kernel truncated counts as one lost record.
 */
uint64_t nm_spe_read(struct nm_spe_reader *reader, const struct nm_spe_areas *areas, uint64_t tail,
		     uint64_t head, const struct nm_sample_sink *sink,
		     struct nm_ring_counts *counts);

static inline void nm_spe_reader_clear(struct nm_spe_reader *reader)
{
	free(reader->turns);
	*reader = (struct nm_spe_reader){0};
}

#endif
