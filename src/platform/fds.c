// SPDX-License-Identifier: MIT
#include "fds.h"

#include <errno.h>
#include <string.h>
#include <sys/un.h>

union control {
	char space[CMSG_SPACE(sizeof(struct nm_fds))];
	struct cmsghdr align;
};

int nm_fds_connect(const char *path, int flags, const struct timeval *limit)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	size_t length = strlen(path);

	if (length >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	memcpy(address.sun_path, path, length);
	nm_auto(nm_closep) int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | flags, 0);
	if (fd < 0)
		return -errno;
	if (limit && (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, limit, sizeof(*limit)) < 0 ||
		      setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, limit, sizeof(*limit)) < 0))
		return -errno;
	if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
		return -errno;
	return nm_take_fd(&fd);
}

int nm_fds_send(int socket, const struct iovec *parts, size_t nr_parts, struct nm_fds fds,
		int flags)
{
	size_t size = fds.second < 0 ? sizeof(fds.first) : sizeof(fds);
	union control control = {0};
	struct msghdr message = {.msg_iov = (struct iovec *)parts, .msg_iovlen = nr_parts};

	if (fds.first >= 0) {
		message.msg_control = &control;
		message.msg_controllen = CMSG_SPACE(size);
		control.align.cmsg_level = SOL_SOCKET;
		control.align.cmsg_type = SCM_RIGHTS;
		control.align.cmsg_len = CMSG_LEN(size);
		memcpy(CMSG_DATA(&control.align), &fds, size);
	}
	return sendmsg(socket, &message, flags | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

ssize_t nm_fds_receive(int socket, struct iovec *parts, size_t nr_parts, int flags,
		       struct nm_fds *ret_fds)
{
	union control control;
	struct msghdr message = {.msg_iov = parts,
				 .msg_iovlen = nr_parts,
				 .msg_control = &control,
				 .msg_controllen = sizeof(control)};
	struct nm_fds fds = {-1, -1};
	ssize_t got;

	do
		got = recvmsg(socket, &message, flags | MSG_CMSG_CLOEXEC);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		return -errno;
	const struct cmsghdr *header = CMSG_FIRSTHDR(&message);
	if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS &&
	    header->cmsg_len <= CMSG_LEN(sizeof(fds)))
		memcpy(&fds, CMSG_DATA(header), header->cmsg_len - CMSG_LEN(0));
	if (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) {
		nm_fds_close(&fds);
		/* The kernel drops descriptors if the process has no number left (unix(7)). */
		return message.msg_flags & MSG_TRUNC ? -EPROTO : -EMFILE;
	}
	*ret_fds = fds;
	return got;
}
