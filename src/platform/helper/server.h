/* SPDX-License-Identifier: MIT */
/*
 * The server side of the root helper: it serves several clients, each with one request and one
 * reply at a time. Several, because a restarted daemon must not wait for the connection of its
 * predecessor to close. If all slots are used, the oldest client is disconnected.
 */
#ifndef NM_PLATFORM_HELPER_SERVER_H
#define NM_PLATFORM_HELPER_SERVER_H

#include <stdint.h>
#include <sys/types.h>
#include <systemd/sd-event.h>

#include "numa-migrd/base.h"
#include "platform/helper.h"

#define NM_HELPER_CLIENTS_MAX 8

struct nm_helper_server;

struct nm_helper_server_options {
	const struct nm_helper_context *acts; /* must outlive the server */
	int listen_fd;			      /* blocking or not; the caller keeps ownership */
	uid_t permitted; /* user that may connect, other than root; 0: only root */
	uint64_t idle_us; /* the event loop exits with 0 after this time without clients */
	/*
	 * Called for each operation that failed, with its number, and with 0 for other errors: a
	 * peer that may not connect (-EACCES), an invalid message (-EBADMSG), accept4(2), or
	 * restoring the sysctl.
	 */
	void (*on_failure)(void *context, uint32_t act, int error);
	void *context;
};

/*
 * Starts to serve on the event loop, after restoring what a crashed predecessor left changed. The
 * original value of kernel.numa_balancing is also restored when the client that changed it last
 * disconnects. Returns 0 or a negative errno. The caller frees the server before the event loop.
 */
int nm_helper_server_new(sd_event *event, const struct nm_helper_server_options *options,
			 struct nm_helper_server **ret);

/* Closes all connections and restores the sysctl. */
void nm_helper_server_free(struct nm_helper_server *server);
NM_DEFINE_CLEANUP(struct nm_helper_server, nm_helper_server_free);

#endif
