// SPDX-License-Identifier: MIT
#include "server.h"
#include "numa-migrd/base.h"

#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../fds.h"
#include "../privileged.h"

struct client {
	struct nm_helper_server *server;
	sd_event_source *source; /* owns the connection; NULL: not used */
	uint64_t number;	 /* in order of arrival */
};

struct nm_helper_server {
	struct nm_helper_server_options options;
	sd_event_source *listener, *idle;
	uint64_t arrivals;
	struct client *balancing_owner; /* client that last changed the sysctl */
	struct client clients[NM_HELPER_CLIENTS_MAX];
};

static void failed(struct nm_helper_server *server, uint32_t act, int error)
{
	if (error < 0 && server->options.on_failure)
		server->options.on_failure(server->options.context, act, error);
}

static void idle_watch(struct nm_helper_server *server)
{
	for (size_t i = 0; i < NM_HELPER_CLIENTS_MAX; i++)
		if (server->clients[i].source) {
			(void)sd_event_source_set_enabled(server->idle, SD_EVENT_OFF);
			return;
		}
	(void)sd_event_source_set_time_relative(server->idle, server->options.idle_us);
	(void)sd_event_source_set_enabled(server->idle, SD_EVENT_ONESHOT);
}

static void client_close(struct client *client)
{
	struct nm_helper_server *server = client->server;

	client->source = sd_event_source_disable_unref(client->source);
	if (server->balancing_owner != client)
		return;
	server->balancing_owner = NULL;
	failed(server, 0, nm_helper_restore(server->options.acts));
}

/* ---- requests ---- */

static int serve(struct client *client, int socket, const struct nm_helper_request *request)
{
	struct nm_helper_server *server = client->server;
	nm_auto(nm_event_close) struct nm_event_fds fds = {-1, -1};
	struct nm_helper_reply reply = {.version = NM_HELPER_VERSION};
	const struct iovec part = {&reply, sizeof(reply)};

	reply.result = nm_helper_serve(server->options.acts, request, &fds);
	failed(server, request->act, reply.result);
	if (request->act == NM_HELPER_NUMA_BALANCING && reply.result == 0)
		server->balancing_owner = request->value == -1 ? NULL : client;
	/* Does not wait for a client that does not read its replies. */
	return nm_fds_send(socket, &part, 1, (struct nm_fds){fds.event, fds.leader}, MSG_DONTWAIT);
}

/* Returns 0 if the client may continue. There is no room for descriptors that a client attaches,
 * and the kernel closes them. */
static int serve_one(struct client *client, int socket)
{
	struct nm_helper_request request;
	ssize_t got = recv(socket, &request, sizeof(request), MSG_DONTWAIT | MSG_TRUNC);

	if (got < 0)
		return errno == EINTR || errno == EAGAIN ? 0 : -errno;
	if (got == 0)
		return -ECONNRESET;
	if ((size_t)got == sizeof(request))
		return serve(client, socket, &request);
	failed(client->server, 0, -EBADMSG);
	return -EBADMSG;
}

static int on_client(sd_event_source *source, int fd, uint32_t revents, void *context)
{
	struct client *client = context;

	(void)source;
	if (!(revents & EPOLLIN) || serve_one(client, fd) < 0) {
		client_close(client);
		idle_watch(client->server);
	}
	return 0;
}

/* ---- connections ---- */

/* Returns an unused slot, or the one of the oldest client. */
static struct client *make_place(struct nm_helper_server *server)
{
	struct client *oldest = &server->clients[0];

	for (size_t i = 0; i < NM_HELPER_CLIENTS_MAX; i++) {
		struct client *client = &server->clients[i];
		if (!client->source)
			return client;
		if (client->number < oldest->number)
			oldest = client;
	}
	client_close(oldest);
	return oldest;
}

/* On success the event source owns the connection. */
static int adopt(struct nm_helper_server *server, sd_event *event, int socket)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);

	if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
		return -errno;
	if (peer.uid != 0 && peer.uid != server->options.permitted)
		return -EACCES;
	struct client *client = make_place(server);
	int r = sd_event_add_io(event, &client->source, socket, EPOLLIN, on_client, client);
	if (r < 0)
		return r;
	(void)sd_event_source_set_io_fd_own(client->source, 1);
	client->number = ++server->arrivals;
	idle_watch(server);
	return 0;
}

static int on_connection(sd_event_source *listener, int fd, uint32_t revents, void *context)
{
	struct nm_helper_server *server = context;
	int socket = accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

	(void)revents;
	if (socket < 0) {
		failed(server, 0, errno == EAGAIN ? 0 : -errno);
		return 0;
	}
	int r = adopt(server, sd_event_source_get_event(listener), socket);
	if (r < 0)
		close(socket);
	failed(server, 0, r);
	return 0;
}

static int on_idle(sd_event_source *source, uint64_t now_us, void *context)
{
	(void)now_us, (void)context;
	return sd_event_exit(sd_event_source_get_event(source), 0);
}

/* ---- creation and destruction ---- */

void nm_helper_server_free(struct nm_helper_server *server)
{
	if (!server)
		return;
	for (size_t i = 0; i < NM_HELPER_CLIENTS_MAX; i++)
		client_close(&server->clients[i]);
	sd_event_source_disable_unref(server->listener);
	sd_event_source_disable_unref(server->idle);
	free(server);
}

int nm_helper_server_new(sd_event *event, const struct nm_helper_server_options *options,
			 struct nm_helper_server **ret)
{
	nm_auto(nm_helper_server_freep) struct nm_helper_server *server =
		nm_must(calloc(1, sizeof(*server)));

	server->options = *options;
	for (size_t i = 0; i < NM_HELPER_CLIENTS_MAX; i++)
		server->clients[i].server = server;
	failed(server, 0, nm_helper_restore(options->acts));
	int r = sd_event_add_io(event, &server->listener, options->listen_fd, EPOLLIN,
				on_connection, server);
	if (r >= 0)
		r = sd_event_add_time_relative(event, &server->idle, CLOCK_MONOTONIC,
					       options->idle_us, 0, on_idle, server);
	if (r < 0)
		return r;
	*ret = NM_TAKE(server);
	return 0;
}
