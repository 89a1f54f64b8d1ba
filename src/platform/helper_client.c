// SPDX-License-Identifier: MIT
/* The daemon's side of the helper's socket. */
#include <errno.h>

#include "fds.h"
#include "privileged.h"

#define TIMEOUT_US 500000

int nm_helper_connect(const char *socket_path)
{
	const struct timeval limit = {.tv_usec = TIMEOUT_US};
	int fd = nm_fds_connect(socket_path, 0, &limit);

	return fd == -EAGAIN ? -ETIMEDOUT : fd;
}

/* Receives the reply, and a descriptor or those of an event and its leader. */
static int receive_reply(int socket, struct nm_helper_reply *reply, struct nm_event_fds *ret)
{
	struct iovec part = {reply, sizeof(*reply)};
	struct nm_fds fds = {-1, -1};
	ssize_t got = nm_fds_receive(socket, &part, 1, 0, &fds);

	if (got <= 0)
		return got == 0 ? -ECONNRESET : got == -EAGAIN ? -ETIMEDOUT : (int)got;
	*ret = (struct nm_event_fds){fds.first, fds.second};
	return got == sizeof(*reply) ? 0 : -EPROTO;
}

int nm_helper_call(int socket, const struct nm_helper_request *request,
		   struct nm_event_fds *ret_fds)
{
	nm_auto(nm_event_close) struct nm_event_fds fds = {-1, -1};
	struct nm_helper_reply reply;
	ssize_t sent;

	do
		sent = send(socket, request, sizeof(*request), MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	if (sent < 0)
		return errno == EAGAIN ? -ETIMEDOUT : -errno;
	int r = receive_reply(socket, &reply, &fds);
	if (r < 0)
		return r;
	bool has_fd = fds.event >= 0,
	     wants_fd = reply.result == 0 && request->act != NM_HELPER_NUMA_BALANCING,
	     has_second = fds.leader >= 0 && request->act != NM_HELPER_OPEN_EVENT;
	if (reply.version != NM_HELPER_VERSION || reply.result > 0 || has_fd != wants_fd ||
	    has_second)
		return -EPROTO;
	*ret_fds = nm_take_event(&fds);
	return reply.result;
}
