/* SPDX-License-Identifier: MIT */
/*
 * Decodes Arm's Statistical Profiling Extension: bytes of the AUX area into records, and records
 * into samples. Pure; part of sample/. Packet formats: Arm Architecture Reference Manual,
 * "Statistical Profiling Extension Sample Record Specification".
 */
#ifndef NM_SAMPLE_SPE_H
#define NM_SAMPLE_SPE_H

#include "sample/sample.h"

enum nm_spe_operation { NM_SPE_OTHER, NM_SPE_LOAD, NM_SPE_STORE, NM_SPE_BRANCH };

/* One sampled operation. A field without a packet is 0. */
struct nm_spe_record {
	uint64_t address; /* virtual, without the tag in its top byte */
	uint64_t physical_address;
	uint64_t ticks;		 /* of the generic timer */
	uint64_t events;	 /* bits as in the events packet */
	uint32_t context;	 /* CONTEXTIDR, which Linux sets to the thread id */
	uint16_t latency_cycles; /* total latency */
	uint16_t source;	 /* implementation-defined number */
	uint8_t operation;	 /* enum nm_spe_operation */
	bool has_source, has_context;
};

struct nm_spe_counts {
	uint64_t records;
	uint64_t corrupt; /* invalid packets: the rest of the data was skipped */
};

typedef void (*nm_spe_fn)(void *context, const struct nm_spe_record *record);

/*
 * Decodes `size` bytes that begin at byte `offset` of the AUX area (alignment packets refer to it).
 * Calls `each` for each complete record, which ends with an END or TIMESTAMP packet. Returns the
 * number of bytes consumed; the caller passes an incomplete record at the end again, together with
 * the bytes that follow it.
 */
size_t nm_spe_decode(const uint8_t *data, size_t size, uint64_t offset, nm_spe_fn each,
		     void *context, struct nm_spe_counts *counts);

/* The numberings of data sources, which each maker of CPUs defines (tools/perf/util/arm-spe.c). */
enum nm_spe_sources {
	NM_SPE_SOURCES_UNKNOWN,
	NM_SPE_SOURCES_ARM, /* Neoverse and Cortex cores */
	NM_SPE_SOURCES_AMPEREONE,
	NM_SPE_SOURCES_HIP12,
};

/* Returns the numbering of the CPU with this MIDR_EL1; 0: not known. */
enum nm_spe_sources nm_spe_sources_of(uint64_t midr);

/*
 * Fills *ret with the kind, address, physical address, latency, level and remote flag of a load or
 * store. Level and remote flag come from the data source if its numbering is known, otherwise from
 * the architected events. The caller sets thread, CPU and time. Returns false for an operation that
 * accesses no memory, or kernel memory.
 */
bool nm_spe_sample(const struct nm_spe_record *record, enum nm_spe_sources sources,
		   struct nm_sample *ret);

#endif
