/* SPDX-License-Identifier: MIT */
/*
 * What an SPE event leaves behind, put together: its ring tells which piece of the AUX area is
 * ready and which thread had the CPU when; the area holds the records. Pure. perf_event_open(2),
 * PERF_RECORD_AUX and PERF_RECORD_SWITCH_CPU_WIDE; kernel, drivers/perf/arm_spe_pmu.c.
 */
#ifndef NUMA_MIGRD_SAMPLE_SPE_READ_H
#define NUMA_MIGRD_SAMPLE_SPE_READ_H

#include "numa-migrd/spe.h"

/* From the ticks of the generic timer to perf's clock: perf_event_mmap_page, cap_user_time_zero. */
struct nm_spe_clock {
	bool known;
	bool wraps; /* only the bits of `mask` count, from `cycles` on (cap_user_time_short) */
	uint16_t shift;
	uint32_t mult;
	uint64_t zero_ns, cycles, mask;
};

uint64_t nm_spe_time_ns(const struct nm_spe_clock *clock, uint64_t ticks);

/* From time_ns on this thread had the CPU. */
struct nm_spe_turn {
	uint64_t time_ns;
	uint32_t pid, tid;
};

struct nm_spe_reader {
	uint32_t cpu;
	struct nm_spe_clock clock;
	bool stopped;		   /* the kernel ran out of room and has disabled the event */
	struct nm_spe_turn *turns; /* since the last piece, the first from before it */
	size_t nr_turns, capacity;
	bool carried; /* the first one is */
};

struct nm_spe_areas {
	const uint8_t *ring; /* of records */
	size_t ring_bytes;   /* powers of two, both */
	const uint8_t *aux;
	size_t aux_bytes;
	uint8_t *scratch; /* of aux_bytes, for pieces that wrap */
};

/*
 * Reads the records in [tail, head) of the ring; returns head. A sample goes to the thread that its
 * context packet names, if that has had a turn; else to the one whose turn it was at its time; and
 * where neither is known, to the only one that had a turn. What is nobody's counts as `unknown`, a
 * piece that the hardware or the kernel cut short as one lost record.
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
