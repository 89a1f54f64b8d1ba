/* SPDX-License-Identifier: MIT */
/* An SPE event of one CPU with its own ring and AUX area. The kernel lets no other event write to
 * these, and requires both to be mapped before the event is enabled. */
#ifndef NUMA_MIGRD_SAMPLE_SPE_RING_H
#define NUMA_MIGRD_SAMPLE_SPE_RING_H

#include "problem.h"
#include "spe_read.h"

struct nm_spe_ring {
	struct nm_event_fds fds;
	unsigned word; /* in the source's hardware list */
	void *map;
	size_t data_bytes;
	uint8_t *aux;
	size_t aux_bytes;
	struct nm_spe_reader reader;
};

/*
 * Opens and maps the event of one word, disabled. `aux_bytes` (a power of two) is halved while the
 * kernel refuses to lock this much memory. Returns 0, or a negative errno and the step that failed.
 */
int nm_spe_ring_open(struct nm_platform *platform, const struct nm_event_request *request,
		     size_t aux_bytes, enum nm_problem_step *ret_step, struct nm_spe_ring **ret);
void nm_spe_ring_close(struct nm_platform *platform, struct nm_spe_ring *ring);

/* Makes the hardware hand over the records that it holds; otherwise it does so only when half of
 * the area is full. */
void nm_spe_ring_flush(struct nm_platform *platform, const struct nm_spe_ring *ring);

/* Reads the available records. `scratch` is at least as large as the area. */
void nm_spe_ring_drain(struct nm_platform *platform, struct nm_spe_ring *ring, uint8_t *scratch,
		       const struct nm_sample_sink *sink, struct nm_ring_counts *counts);

#endif
