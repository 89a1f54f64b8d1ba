/* SPDX-License-Identifier: MIT */
/* A connection to one worker. */
#ifndef NUMA_MIGRD_PLATFORM_WORKER_LINK_H
#define NUMA_MIGRD_PLATFORM_WORKER_LINK_H

#include "numa-migrd/file.h"
#include "platform/worker.h"

struct nm_worker_link {
	int fd;	     /* nonblocking; -1: none */
	pid_t child; /* if we started it ourselves; 0: another process did */
	uint32_t pid; /* its PID, known after its first reply; 0: unknown */
	uint64_t start_ticks;
};

#define NM_WORKER_LINK_NONE ((struct nm_worker_link){.fd = -1})

/*
 * Connects to a worker, or starts one; never waits. The first reply is still to come. program NULL:
 * the installed program, or the one beside this program in a build tree. Returns 0 or a negative
 * errno.
 */
int nm_worker_link_open(const char *socket_path, const char *program, struct nm_worker_link *ret);
void nm_worker_link_close(struct nm_worker_link *link);

/* Sends a request. Returns 0; -EPROTO or -ECONNRESET if the connection is no longer usable; or
 * another negative errno. */
int nm_worker_link_send(const struct nm_worker_link *link, const struct nm_worker_call *call);
/*
 * Receives the reply to a request. Returns 0 and the result of the reply in *ret_result; -EAGAIN if
 * it has not arrived yet; -EPROTO or -ECONNRESET as above; or another negative errno.
 */
int nm_worker_link_receive(const struct nm_worker_link *link, struct nm_worker_call *call,
			   int *ret_result);

/* Returns whether the worker is running or waits for a CPU: its operation takes long, but is not
 * blocked. */
bool nm_worker_link_is_at_work(const struct nm_worker_link *link, int proc_fd);

/* Returns whether the connection is readable: a late worker has answered, or has ended. */
bool nm_worker_link_stirs(const struct nm_worker_link *link);

#endif
