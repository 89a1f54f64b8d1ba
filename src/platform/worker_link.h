/* SPDX-License-Identifier: MIT */
/* One connection to one worker. */
#ifndef NUMA_MIGRD_PLATFORM_WORKER_LINK_H
#define NUMA_MIGRD_PLATFORM_WORKER_LINK_H

#include "numa-migrd/file.h"
#include "numa-migrd/worker.h"

struct nm_worker_link {
	int fd;	     /* nonblocking; -1: none */
	pid_t child; /* that we started ourselves; 0: somebody else did */
	uint32_t pid; /* its own, once it has said its first word; 0: not known */
	uint64_t start_ticks;
};

#define NM_WORKER_LINK_NONE ((struct nm_worker_link){.fd = -1})

/*
 * Connects to a worker, or starts one; never waits. The first word is still to come.
 * program NULL: as it is installed, or beside this program where that was built.
 */
int nm_worker_link_open(const char *socket_path, const char *program, struct nm_worker_link *ret);
void nm_worker_link_close(struct nm_worker_link *link);

/* Sends a request. -EPROTO, -ECONNRESET: the connection is of no more use; -errno. */
int nm_worker_link_send(const struct nm_worker_link *link, const struct nm_worker_call *call);
/*
 * Receives its reply. 0: *ret_result is the reply's result; -EAGAIN: it has not come yet; -EPROTO, -ECONNRESET as
 * above; -errno.
 */
int nm_worker_link_receive(const struct nm_worker_link *link, struct nm_worker_call *call,
			   int *ret_result);

/* It is on a CPU or wants one: what it was asked takes long, and nobody holds it up. */
bool nm_worker_link_is_at_work(const struct nm_worker_link *link, int proc_fd);

/* Something came, or its end: a worker that was late answers now, or has ended. */
bool nm_worker_link_stirs(const struct nm_worker_link *link);

#endif
