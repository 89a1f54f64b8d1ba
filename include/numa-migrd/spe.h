/* SPDX-License-Identifier: MIT */
/*
 * Arm's Statistical Profiling Extension: bytes of the AUX area → records → samples. Pure; part of
 * sample/. Packet formats: Arm Architecture Reference Manual, "Statistical Profiling Extension
 * Sample Record Specification".
 */
#ifndef NUMA_MIGRD_SPE_H
#define NUMA_MIGRD_SPE_H

#include "numa-migrd/sample.h"

enum nm_spe_operation { NM_SPE_OTHER, NM_SPE_LOAD, NM_SPE_STORE, NM_SPE_BRANCH };

/* One sampled operation; what had no packet is 0. */
struct nm_spe_record {
	uint64_t address; /* virtual, without the tag in its top byte */
	uint64_t physical_address;
	uint64_t ticks;		 /* of the generic timer */
	uint64_t events;	 /* bits as in the events packet */
	uint32_t context;	 /* CONTEXTIDR, by which Linux means the thread */
	uint16_t latency_cycles; /* in all */
	uint16_t source;	 /* as the implementation numbers it */
	uint8_t operation;	 /* enum nm_spe_operation */
	bool has_source, has_context;
};

struct nm_spe_counts {
	uint64_t records;
	uint64_t corrupt; /* bytes that begin no packet: the rest of the piece was skipped */
};

typedef void (*nm_spe_fn)(void *context, const struct nm_spe_record *record);

/*
 * Decodes `size` bytes that begin at byte `offset` of the AUX area (alignment packets refer to it).
 * Calls `each` per whole record, ended by an END or TIMESTAMP packet. Returns the bytes used: an
 * unfinished record at the end is left for the next call, together with what follows it.
 */
size_t nm_spe_decode(const uint8_t *data, size_t size, uint64_t offset, nm_spe_fn each,
		     void *context, struct nm_spe_counts *counts);

/*
 * Fills *ret with kind, address, physical address, latency, level and remote of a load or store.
 * Level and remote come from the data source as the Neoverse cores number it, else from the events.
 * Thread, CPU and time are the caller's: they come from elsewhere. Returns false for an operation
 * that touches no memory, or the kernel's.
 */
bool nm_spe_sample(const struct nm_spe_record *record, struct nm_sample *ret);

#endif
