/* SPDX-License-Identifier: MIT */
/*
 * The root helper's end of the socket: several clients at a time, each one request and one reply
 * after another. Several, because a restarted daemon must not wait for the connection of its dead
 * predecessor; when all places are taken the oldest client goes.
 */
#ifndef NUMA_MIGRD_HELPER_SERVER_H
#define NUMA_MIGRD_HELPER_SERVER_H

#include <stdint.h>
#include <sys/types.h>
#include <systemd/sd-event.h>

#include "numa-migrd/base.h"
#include "numa-migrd/helper.h"

#define NM_HELPER_CLIENTS_MAX 8

struct nm_helper_server;

struct nm_helper_server_options {
	const struct nm_helper_context *acts; /* outlives the server */
	int listen_fd;			      /* non-blocking or not; stays the caller's */
	uid_t permitted;		      /* may connect, besides root; 0: only root */
	uint64_t idle_us; /* the event loop exits with 0 after so long without clients */
	/*
	 * Told of each act that failed, and with act 0 of what went wrong around them: a peer that
	 * may not connect (-EACCES), a message that is no request (-EBADMSG), accept4(2), the
	 * sysctl's restoration.
	 */
	void (*on_failure)(void *context, uint32_t act, int error);
	void *context;
};

/*
 * Starts to serve on `event`'s loop, after having put back what a dead predecessor left changed.
 * The old value of kernel.numa_balancing also returns when the client that changed it last goes.
 * Returns 0 or -errno. The caller frees (before the loop). Called by the helper's main and the
 * tests.
 */
int nm_helper_server_new(sd_event *event, const struct nm_helper_server_options *options,
			 struct nm_helper_server **ret);

/* Closes every connection and puts the sysctl back. */
void nm_helper_server_free(struct nm_helper_server *server);
NM_DEFINE_CLEANUP(struct nm_helper_server, nm_helper_server_free);

#endif
