// SPDX-License-Identifier: MIT
/* The daemon's side of the helper's socket (unix(7), SCM_RIGHTS). */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include "privileged.h"

#define TIMEOUT_US 500000

int nm_helper_connect(const char *socket_path)
{
	nm_auto(nm_closep) int fd = -1;
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	const struct timeval limit = {.tv_usec = TIMEOUT_US};

	size_t length = strlen(socket_path);

	if (length >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	memcpy(address.sun_path, socket_path, length);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)) < 0)
		return -errno;
	if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
		return errno == EAGAIN ? -ETIMEDOUT : -errno;
	return nm_take_fd(&fd);
}

/* Returns one descriptor, or those of an event and its leader. */
static struct nm_event_fds received_fds(struct msghdr *message)
{
	struct nm_event_fds fds = {-1, -1};

	for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		if (c->cmsg_len == CMSG_LEN(sizeof(int)))
			memcpy(&fds.event, CMSG_DATA(c), sizeof(int));
		else if (c->cmsg_len == CMSG_LEN(sizeof(fds)))
			memcpy(&fds, CMSG_DATA(c), sizeof(fds));
	}
	return fds;
}

static int receive_reply(int socket, struct nm_helper_reply *reply, struct nm_event_fds *ret_fds)
{
	union {
		char space[CMSG_SPACE(sizeof(struct nm_event_fds))];
		struct cmsghdr align;
	} control;
	struct iovec part = {.iov_base = reply, .iov_len = sizeof(*reply)};
	struct msghdr message = {.msg_iov = &part,
				 .msg_iovlen = 1,
				 .msg_control = &control,
				 .msg_controllen = sizeof(control)};
	ssize_t got;

	do
		got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		return errno == EAGAIN ? -ETIMEDOUT : -errno;
	if (got == 0)
		return -ECONNRESET;
	*ret_fds = received_fds(&message);
	if ((size_t)got != sizeof(*reply) || (message.msg_flags & MSG_TRUNC))
		return -EPROTO;
	/* The kernel drops descriptors if the process has no number left for them (unix(7)). */
	return message.msg_flags & MSG_CTRUNC ? -EMFILE : 0;
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
