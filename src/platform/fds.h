/* SPDX-License-Identifier: MIT */
/* Messages with descriptors over a unix(7) socket (SCM_RIGHTS). */
#ifndef NUMA_MIGRD_PLATFORM_FDS_H
#define NUMA_MIGRD_PLATFORM_FDS_H

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/types.h>

#include "numa-migrd/file.h"

/* At most two descriptors come with a message; -1: none, or no second one. */
struct nm_fds {
	int first, second;
};

static inline void nm_fds_close(struct nm_fds *fds)
{
	nm_closep(&fds->first);
	nm_closep(&fds->second);
}

/* Connects to a socket of type SOCK_SEQPACKET. `flags`: more flags of socket(2); limit: for each
 * message and for the connection; NULL: none. Returns the descriptor or a negative errno. */
int nm_fds_connect(const char *path, int flags, const struct timeval *limit);

/* Sends a message of some parts. Returns 0 or a negative errno. */
int nm_fds_send(int socket, const struct iovec *parts, size_t nr_parts, struct nm_fds fds,
		int flags);

/*
 * Receives a message into some parts. Returns its size, 0 at the end of the connection, or a
 * negative errno, in which case no descriptor stays open; -EPROTO: the message is longer than the
 * parts; -EMFILE: descriptors were dropped. The caller closes the descriptors.
 */
ssize_t nm_fds_receive(int socket, struct iovec *parts, size_t nr_parts, int flags,
		       struct nm_fds *ret_fds);

#endif
