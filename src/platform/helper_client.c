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

int nm_helper_call(int socket, const struct nm_helper_request *request,
		   struct nm_event_fds *ret_fds)
{
	nm_auto(nm_fds_close) struct nm_fds fds = {-1, -1};
	struct nm_helper_reply reply = {0};
	struct iovec part = {&reply, sizeof(reply)};
	ssize_t sent;

	do
		sent = send(socket, request, sizeof(*request), MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	if (sent < 0)
		return errno == EAGAIN ? -ETIMEDOUT : -errno;
	ssize_t got = nm_fds_receive(socket, &part, 1, 0, &fds);
	if (got <= 0)
		return got == 0 ? -ECONNRESET : got == -EAGAIN ? -ETIMEDOUT : (int)got;
	bool has_fd = fds.first >= 0,
	     wants_fd = reply.result == 0 && request->act == NM_HELPER_OPEN_EVENT;
	if (got != sizeof(reply) || reply.version != NM_HELPER_VERSION || reply.result > 0 ||
	    has_fd != wants_fd)
		return -EPROTO;
	*ret_fds = (struct nm_event_fds){nm_take_fd(&fds.first), nm_take_fd(&fds.second)};
	return reply.result;
}
