/* SPDX-License-Identifier: MIT */
/* Reads the mappings of a process for the mover, in several jobs. */
#ifndef NM_PLATFORM_WORKER_READING_H
#define NM_PLATFORM_WORKER_READING_H

#include "platform/page_jobs.h"
#include "query.h"

/* A reading that is not complete; initially `fd` is -1, and all else zero. */
struct nm_reading {
	int32_t pid; /* 0: none */
	uint64_t start_ticks;
	int fd;	     /* of the file that is being read; -1: it is not open yet */
	size_t next; /* the first mapping that was not sent */
	struct nm_maps maps;
};

/*
 * Reads on for the budget, or until a piece of mappings is full. Returns 0; -ESTALE: this process
 * is not being read; -EFBIG: it has more than NM_MAPPINGS_MOST; -ECANCELED: the client has closed
 * the connection; or another negative errno, with which the reading has ended.
 */
int nm_reading_go_on(struct nm_reading *reading, const struct nm_job *job,
		     const struct nm_mappings_order *order, struct nm_mappings_piece *ret);
void nm_reading_end(struct nm_reading *reading);

#endif
