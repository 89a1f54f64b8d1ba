/* SPDX-License-Identifier: MIT */
/* The worker's side of worker.h: numa-migrd-worker performs the requests of the client at its
 * socket. */
#ifndef NM_PLATFORM_WORKER_SERVE_H
#define NM_PLATFORM_WORKER_SERVE_H

#include "platform/worker.h"
#include "reading.h"

struct nm_worker {
	int proc_fd, socket; /* an open /proc; socket -1: of a client that stays, for tests */
	struct nm_reading reading;
};

/* The result of a request. */
struct nm_worker_outcome {
	int result;
	uint32_t bytes; /* size of the body */
};

/* Performs an order. `body` has room for NM_WORKER_BODY_MOST bytes, aligned to 8. */
void nm_worker_perform(struct nm_worker *worker, const struct nm_worker_order *order, void *body,
		       struct nm_worker_outcome *ret);

/* Serves the socket until the other end is closed. Returns 0 or a negative errno. */
int nm_worker_serve(int proc_fd, int socket);

#endif
