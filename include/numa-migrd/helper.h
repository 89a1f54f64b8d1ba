/* SPDX-License-Identifier: MIT */
/*
 * The privileged acts and their protocol (design section 3), part of platform/: three acts behind a
 * private SOCK_SEQPACKET socket, each request re-validated. The root helper (helper/) serves them over
 * the socket; the same functions serve in-process when the daemon itself runs as root.
 *
 * One request, one reply, both fixed-size and native-endian (both ends are one package on one machine):
 * a version that does not match is refused with -EPROTO.
 */
#ifndef NUMA_MIGRD_HELPER_H
#define NUMA_MIGRD_HELPER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "numa-migrd/base.h"
#include "numa-migrd/event.h"

#define NM_HELPER_VERSION 3U
#define NM_HELPER_SOCKET_PATH "/run/numa-migrd-helper.sock"
#define NM_HELPER_STATE_PATH "/run/numa-migrd-helper/numa_balancing"

enum nm_helper_act {
	NM_HELPER_OPEN_EVENT = 1,   /* kind, index, cpu, period, source, load_latency → fds by SCM_RIGHTS */
	NM_HELPER_CLEAR_REFS,       /* pid, start_ticks → its clear_refs, open for writing, likewise */
	NM_HELPER_NUMA_BALANCING,   /* value 0/1: set; -1: restore */
};

struct nm_helper_request {
	uint32_t version;
	uint32_t act;
	int32_t cpu;
	uint32_t kind;
	uint64_t period;
	int32_t pid;
	int32_t value;
	uint64_t start_ticks;
	/* of hardware events; what sampling.pmu and sampling.event name is read from root's
	 * configuration, not from here */
	uint32_t index, source, load_latency;
};

struct nm_helper_reply {
	uint32_t version;
	int32_t result; /* 0 or negative errno */
};

/* What the acts need to know of root's wishes and where the old sysctl value is kept. */
struct nm_helper_context {
	const char *config_path; /* root's configuration: must be owned by root and not writable by others */
	const char *state_path;  /* file that holds the sysctl's old value while it is changed */
	int proc_fd;             /* /proc */
	int root_fd;             /* /; only for OPEN_EVENT */
	pid_t requester;         /* may clear its own soft-dirty bits, target or not; 0: nobody */
	uint64_t requester_ticks; /* its start time: the number alone may be another process's by
				     now */
	struct nm_helper_rate
		*rate;	 /* how much clear_refs may still be done; NULL: as much as is asked */
	uint64_t now_ns; /* for that */
};

/* What clear_refs has cost lately, for sampling.soft_dirty_mb_s of root's configuration. Zero at
 * first. */
struct nm_helper_rate {
	double bytes; /* that may still be protected; below 0: too many were */
	uint64_t last_ns;
};

/*
 * Validates and performs one request in this process. Returns the reply's result; a new event in
 * *ret_fds, or another descriptor as its `event` (else -1 twice). -EINVAL outside the fixed list, -EPERM
 * where root's configuration does not allow it or does not target the process, -EAGAIN beyond its rate,
 * -ESRCH for a pid that is no longer that process, -EBUSY, -EFBIG (nm_platform_ops.ask).
 */
int nm_helper_serve(const struct nm_helper_context *context,
		    const struct nm_helper_request *request, struct nm_event_fds *ret_fds);

/*
 * Puts kernel.numa_balancing back if the state file says it was changed, and forgets it; a value that
 * somebody else has set since stays. Returns 0, also if there was nothing; -EINVAL for a state file that
 * cannot be read (it is removed); -errno of the sysctl (the state file stays). Helper: at start, when the
 * client that set it disconnects, at the end; daemon run as root: numa-migrd --restore.
 */
int nm_helper_restore(const struct nm_helper_context *context);

/* ---- client ---- */

/* Connects to the helper's socket. Returns the fd or -errno (-ENOENT/-ECONNREFUSED: not installed or masked). */
int nm_helper_connect(const char *socket_path);

/*
 * One request and its reply, at most half a second each (-ETIMEDOUT): no act of the helper waits for
 * another process, or takes the lock of one's memory map, so that only a helper that is stopped or has no
 * CPU is late. *ret_fds as for nm_helper_serve(), untouched where
 * the exchange itself failed, also by -EMFILE: no room for the descriptors. -EPIPE, -ECONNRESET: the helper ended, connect again; -ETIMEDOUT, -EPROTO:
 * close the connection, its replies can no longer be told apart.
 */
int nm_helper_call(int socket, const struct nm_helper_request *request,
		   struct nm_event_fds *ret_fds);

#endif
