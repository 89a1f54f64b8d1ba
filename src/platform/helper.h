/* SPDX-License-Identifier: MIT */
/*
 * The privileged operations and their protocol, part of platform/: two operations behind a
 * private SOCK_SEQPACKET socket. Each request is validated again. The root helper
 * (platform/helper/) serves them over the socket; the same functions serve requests in-process if
 * the daemon runs as root.
 *
 * Each request gets one reply. Both have a fixed size and native byte order, because both ends
 * belong to one package on one machine. Another version is rejected with -EPROTO.
 */
#ifndef NUMA_MIGRD_HELPER_H
#define NUMA_MIGRD_HELPER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "numa-migrd/base.h"
#include "numa-migrd/config.h"
#include "platform/event.h"

#define NM_HELPER_VERSION 4U
#define NM_HELPER_SOCKET_PATH "/run/numa-migrd-helper.sock"
#define NM_HELPER_STATE_PATH "/run/numa-migrd-helper/numa_balancing"

enum nm_helper_act {
	NM_HELPER_OPEN_EVENT = 1, /* kind, index, cpu, period, source, load_latency → descriptors
				   * (SCM_RIGHTS) */
	NM_HELPER_NUMA_BALANCING, /* value 0/1: set; -1: restore */
};

struct nm_helper_request {
	uint32_t version;
	uint32_t act;
	int32_t cpu;
	uint32_t kind;
	uint64_t period;
	int32_t value;
	/* For hardware events. sampling.event is read from root's configuration,
	 * never from the request. */
	uint32_t index, source, load_latency;
};

struct nm_helper_reply {
	uint32_t version;
	int32_t result; /* 0 or negative errno */
};

/*
 * The environment of the operations: root's configuration and the storage of the old sysctl value.
 */
struct nm_helper_context {
	struct nm_config_files config; /* root's: only root can have written it; path NULL: none */
	const char *state_path; /* file that stores the original value of the sysctl while it is
				 * changed */
	int proc_fd;		/* /proc */
	int root_fd;		/* /; used only for OPEN_EVENT */
};

/*
 * Validates and performs one request in this process. Returns the result for the reply. *ret_fds
 * gets a new event, otherwise -1 in both fields. -EINVAL: not in the fixed list; -EPERM: root's
 * configuration does not allow it.
 */
int nm_helper_serve(const struct nm_helper_context *context,
		    const struct nm_helper_request *request, struct nm_event_fds *ret_fds);

/*
 * Restores kernel.numa_balancing if the state file shows that it was changed, and removes the file.
 * A value that another program has set since stays. Returns 0, also if there was nothing to do;
 * -EINVAL for an invalid state file, which is removed; or the negative errno of the sysctl, in
 * which case the file stays.
 */
int nm_helper_restore(const struct nm_helper_context *context);

/* ---- client ---- */

/* Connects to the socket of the helper. Returns the descriptor or a negative errno (-ENOENT or
 * -ECONNREFUSED: not installed or masked). */
int nm_helper_connect(const char *socket_path);

/*
 * Sends one request and receives its reply; each step is limited to 0.5 s (-ETIMEDOUT). No
 * operation of the helper waits for another process or takes a memory map lock of one, so only a
 * stopped or starved helper exceeds the limit. *ret_fds is as for nm_helper_serve(), and is not
 * changed if the exchange itself fails, including -EMFILE (no free descriptors). -EPIPE,
 * -ECONNRESET: the helper has exited, connect again. -ETIMEDOUT, -EPROTO: close the connection,
 * because its replies can no longer be matched with requests.
 */
int nm_helper_call(int socket, const struct nm_helper_request *request,
		   struct nm_event_fds *ret_fds);

#endif
