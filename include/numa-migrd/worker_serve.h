/* SPDX-License-Identifier: MIT */
/* The worker's end of worker.h: what numa-migrd-worker does for the client of its socket. */
#ifndef NUMA_MIGRD_WORKER_SERVE_H
#define NUMA_MIGRD_WORKER_SERVE_H

#include "numa-migrd/worker.h"

/* What a request brought; `body` belongs to the caller of nm_worker_perform(). */
struct nm_worker_outcome {
	int result;
	uint32_t bytes; /* of the body */
	int fd;		/* or -1; the caller closes */
	uint64_t held_ns; /* nm_worker_serve(): how long it took */
};

/*
 * Does what an order says, below an open /proc. body: room for NM_WORKER_BODY_MOST bytes, at a
 * multiple of 8. fd: what came with the order, or -1; it stays the caller's. -EPERM: a descriptor of
 * another file than the act is about.
 */
void nm_worker_perform(int proc_fd, const struct nm_worker_order *order, int fd, void *body,
		       struct nm_worker_outcome *ret);

/* Serves the socket until its other end is closed. 0 or -errno. The program. */
int nm_worker_serve(int proc_fd, int socket);

#endif
