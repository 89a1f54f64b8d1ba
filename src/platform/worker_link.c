// SPDX-License-Identifier: MIT
/* Connections to workers. No function here waits. */
#include "worker_link.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "fds.h"
#include "numa-migrd/proc.h"

/* ---- opening a connection ---- */

/* In a build tree, the program is in a folder beside ours. */
static const char *built_program(char *path, size_t size)
{
	ssize_t length = readlink("/proc/self/exe", path, size - 1);

	if (length < 0)
		return NULL;
	path[length] = '\0';
	char *name = strrchr(path, '/');
	if (!name || (size_t)(name - path) + sizeof("/../worker/numa-migrd-worker") > size)
		return NULL;
	strcpy(name, "/../worker/numa-migrd-worker");
	return access(path, X_OK) == 0 ? path : NULL;
}

/* The worker has a session of its own, so that keys pressed in our terminal do not end it. */
static int spawn(const char *program, int socket, pid_t *ret)
{
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attributes;
	char *arguments[] = {(char *)program, NULL};

	posix_spawn_file_actions_init(&files);
	posix_spawnattr_init(&attributes);
	int error = posix_spawn_file_actions_adddup2(&files, socket, STDIN_FILENO);
	if (!error)
		error = posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
	if (!error)
		error = posix_spawn(ret, program, &files, &attributes, arguments, environ);
	posix_spawn_file_actions_destroy(&files);
	posix_spawnattr_destroy(&attributes);
	return -error;
}

static int start_program(const char *program, struct nm_worker_link *ret)
{
	char path[PATH_MAX];
	int ends[2];
	struct nm_worker_link started = NM_WORKER_LINK_NONE;

	if (!program)
		program = built_program(path, sizeof(path));
	if (!program)
		program = NM_WORKER_PROGRAM;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	int r = fcntl(ends[0], F_SETFL, O_NONBLOCK) < 0 ? -errno : 0;
	if (r == 0)
		r = spawn(program, ends[1], &started.child);
	close(ends[1]);
	if (r < 0) {
		close(ends[0]);
		return r;
	}
	started.fd = ends[0];
	*ret = started;
	return 0;
}

int nm_worker_link_open(const char *socket_path, const char *program, struct nm_worker_link *ret)
{
	int fd = socket_path ? nm_fds_connect(socket_path, SOCK_NONBLOCK, NULL) : -ENOENT;

	if (fd == -ENOENT || fd == -ECONNREFUSED)
		return start_program(program, ret);
	if (fd < 0)
		return fd;
	*ret = (struct nm_worker_link){.fd = fd};
	return 0;
}

void nm_worker_link_close(struct nm_worker_link *link)
{
	nm_closep(&link->fd);
	link->fd = -1;
}

bool nm_worker_link_stirs(const struct nm_worker_link *link)
{
	struct pollfd end = {.fd = link->fd, .events = POLLIN};

	return poll(&end, 1, 0) > 0;
}

/* ---- one exchange ---- */

int nm_worker_link_send(const struct nm_worker_link *link, const struct nm_worker_call *call)
{
	const struct iovec parts[] = {
		{(void *)&call->request, sizeof(call->request)},
		{(void *)call->arguments, call->arguments_size},
	};
	int r = nm_fds_send(link->fd, parts, NM_ARRAY_SIZE(parts), (struct nm_fds){-1, -1},
			    MSG_DONTWAIT);

	return r == -EAGAIN ? -EPROTO : r == -EPIPE ? -ECONNRESET : r;
}

int nm_worker_link_receive(const struct nm_worker_link *link, struct nm_worker_call *call,
			   int *ret_result)
{
	nm_auto(nm_fds_close) struct nm_fds fds = {-1, -1};
	struct nm_worker_reply reply;
	struct iovec parts[] = {{&reply, sizeof(reply)}, {call->body, call->body_size}};
	ssize_t got = nm_fds_receive(link->fd, parts, NM_ARRAY_SIZE(parts), MSG_DONTWAIT, &fds);

	if (got <= 0)
		return got < 0 ? (int)got : -ECONNRESET;
	if ((size_t)got < sizeof(reply) || reply.version != NM_WORKER_VERSION ||
	    reply.bytes != (size_t)got - sizeof(reply) || fds.first >= 0)
		return -EPROTO;
	call->body_size = reply.bytes;
	call->held_ns = reply.held_ns;
	*ret_result = reply.result;
	return 0;
}

bool nm_worker_link_is_at_work(const struct nm_worker_link *link, int proc_fd)
{
	struct nm_proc_stat stat;
	char path[32];

	(void)snprintf(path, sizeof(path), "%u/stat", link->pid);
	return link->pid > 0 && nm_proc_stat_at(proc_fd, path, &stat) == 0 &&
	       stat.start_ticks == link->start_ticks && stat.state == 'R';
}
