/* SPDX-License-Identifier: MIT */
/*
 * An SPE event of one CPU with its own ring and AUX area: the kernel lets no other event write to
 * these, and wants both mapped before the event is enabled.
 */
#ifndef NUMA_MIGRD_SAMPLE_SPE_RING_H
#define NUMA_MIGRD_SAMPLE_SPE_RING_H

#include "problem.h"
#include "spe_read.h"

struct nm_spe_ring {
	struct nm_event_fds fds;
	unsigned word; /* of the source's hardware list */
	void *map;
	size_t data_bytes;
	uint8_t *aux;
	size_t aux_bytes;
	struct nm_spe_reader reader;
};

/*
 * Opens and maps the event of one word, still disabled. `aux_bytes` (a power of two) is halved
 * where the kernel lets us lock no more. Returns 0 or -errno, then with the step that failed.
 */
int nm_spe_ring_open(struct nm_platform *platform, const struct nm_event_request *request,
		     size_t aux_bytes, enum nm_problem_step *ret_step, struct nm_spe_ring **ret);
void nm_spe_ring_close(struct nm_platform *platform, struct nm_spe_ring *ring);

/* Has the hardware hand over what it holds back: it does so on its own only when half is full. */
void nm_spe_ring_flush(struct nm_platform *platform, const struct nm_spe_ring *ring);

/* Reads what is there; scratch: of the area's size at least. */
void nm_spe_ring_drain(struct nm_platform *platform, struct nm_spe_ring *ring, uint8_t *scratch,
		       const struct nm_sample_sink *sink, struct nm_ring_counts *counts);

#endif
