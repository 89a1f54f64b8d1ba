/* SPDX-License-Identifier: MIT */
/* SPE packets as written by the hardware, and the records by which the kernel announces them. */
#ifndef NUMA_MIGRD_TESTS_SPE_RECORDS_H
#define NUMA_MIGRD_TESTS_SPE_RECORDS_H

#include "records.h"

/* One user-space load from DRAM, 64 bytes including padding; context 0: no such packet. */
struct spe_load {
	uint64_t address, ticks;
	uint32_t context;
};

enum { SPE_LOAD_BYTES = 64 };

static inline size_t spe_put(uint8_t *at, uint8_t header, uint64_t payload, size_t bytes)
{
	at[0] = header;
	memcpy(at + 1, &payload, bytes);
	return 1 + bytes;
}

static inline void spe_load_write(uint8_t bytes[SPE_LOAD_BYTES], const struct spe_load *load)
{
	size_t at = 0;

	memset(bytes, 0, SPE_LOAD_BYTES);
	at += spe_put(bytes + at, 0x49, 0, 1);
	at += spe_put(bytes + at, 0xb2, load->address, 8);
	at += spe_put(bytes + at, 0x98, 321, 2);
	at += spe_put(bytes + at, 0x43, 0x0e, 1);
	if (load->context)
		(void)spe_put(bytes + at, 0x64, load->context, 4);
	(void)spe_put(bytes + SPE_LOAD_BYTES - 9, 0x71, load->ticks, 8);
}

/* Writes it at an ever increasing position, wrapping at the end of the area. */
static inline void spe_load_put(uint8_t *aux, size_t aux_bytes, uint64_t offset,
				const struct spe_load *load)
{
	struct record_ring area = {.bytes = aux, .size = aux_bytes, .head = offset};
	uint8_t bytes[SPE_LOAD_BYTES];

	spe_load_write(bytes, load);
	record_put(&area, bytes, sizeof(bytes));
}

static inline void record_aux(struct record_ring *ring, uint64_t offset, uint64_t bytes,
			      uint64_t flags, uint64_t time)
{
	record_header(ring, PERF_RECORD_AUX, 0, 56);
	record_put_u64(ring, offset);
	record_put_u64(ring, bytes);
	record_put_u64(ring, flags);
	record_trailer(ring, 1, 1, time, 7);
}

static inline void record_switch(struct record_ring *ring, bool out, uint32_t pid, uint32_t tid,
				 uint64_t time)
{
	record_header(ring, PERF_RECORD_SWITCH_CPU_WIDE, out ? PERF_RECORD_MISC_SWITCH_OUT : 0, 40);
	record_put_u32(ring, 999, 999); /* the other thread */
	record_trailer(ring, pid, tid, time, 7);
}

static inline void record_itrace_start(struct record_ring *ring, uint32_t pid, uint32_t tid,
				       uint64_t time)
{
	record_header(ring, PERF_RECORD_ITRACE_START, 0, 40);
	record_put_u32(ring, pid, tid);
	record_trailer(ring, 0, 0, time, 7);
}

#endif
