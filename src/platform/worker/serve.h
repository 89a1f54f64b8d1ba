/* SPDX-License-Identifier: MIT */
/* The worker's side of worker.h: numa-migrd-worker performs the requests of the client at its
 * socket. */
#ifndef NM_PLATFORM_WORKER_SERVE_H
#define NM_PLATFORM_WORKER_SERVE_H

#include "numa-migrd/worker.h"

/* The result of a request. `body` belongs to the caller of nm_worker_perform(). */
struct nm_worker_outcome {
	int result;
	uint32_t bytes; /* size of the body */
	int fd;		/* -1: none; the caller closes it */
};

/*
 * Performs an order, below an open /proc, for the client at this socket (-1: one that stays).
 * `body` has room for NM_WORKER_BODY_MOST bytes, aligned to 8. `fd` is the descriptor that came
 * with the order, or -1; the caller keeps it. The result is -EPERM if the descriptor belongs to
 * another file than the operation requires.
 */
void nm_worker_perform(int proc_fd, int socket, const struct nm_worker_order *order, int fd,
		       void *body, struct nm_worker_outcome *ret);

/* Serves the socket until the other end is closed. Returns 0 or a negative errno. Called by the
 * program. */
int nm_worker_serve(int proc_fd, int socket);

#endif
