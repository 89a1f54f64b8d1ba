/* SPDX-License-Identifier: MIT */
/* The server of the helper and its use by the platform, over a real socket. */
#define SET_UP setup
#define TEAR_DOWN teardown
#include "../support/test.h"

#include <stdint.h>

#include <linux/perf_event.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "../../src/platform/helper/server.h"
#include "helper_fixture.h"
#include "numa-migrd/platform.h"

#define IDLE_US 3600000000ULL /* longer than any test */

struct served {
	struct helper_fixture *f;
	int listen_fd;
	uid_t permitted;
	sd_event *event;
	struct nm_helper_server *server;
	unsigned failures;
	uint32_t last_act;
	int last_error;
};

static void on_failure(void *context, uint32_t act, int error)
{
	struct served *s = context;

	s->failures++;
	s->last_act = act;
	s->last_error = error;
}

static int open_listener(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
	    listen(fd, 16) < 0)
		abort();
	(void)chmod(path, 0777);
	return fd;
}

static void server_start(struct served *s, uint64_t idle_us)
{
	const struct nm_helper_server_options options = {
		.acts = &s->f->context,
		.listen_fd = s->listen_fd,
		.permitted = s->permitted,
		.idle_us = idle_us,
		.on_failure = on_failure,
		.context = s,
	};

	if (sd_event_new(&s->event) < 0 || nm_helper_server_new(s->event, &options, &s->server) < 0)
		abort();
}

static void server_stop(struct served *s)
{
	nm_helper_server_free(s->server);
	s->server = NULL;
	s->event = sd_event_unref(s->event);
}

static int setup(void **state)
{
	void *fixture = NULL;

	if (helper_fixture_setup(&fixture))
		return 1;
	struct served *s = calloc(1, sizeof(*s));
	s->f = fixture;
	(void)chmod(s->f->root, 0711);
	fixture_file(s->f->root, "numa-migrd.conf", CONFIG_BALANCING);
	s->listen_fd = open_listener(s->f->socket);
	s->permitted = geteuid();
	*state = s;
	return 0;
}

static int teardown(void **state)
{
	struct served *s = *state;
	void *fixture = s->f;

	server_stop(s);
	close(s->listen_fd);
	free(s);
	return helper_fixture_teardown(&fixture);
}

/* Runs the server until no work is pending. */
static void settle(struct served *s)
{
	while (sd_event_run(s->event, 0) > 0)
		;
}

static int connect_to(struct served *s)
{
	int fd = nm_helper_connect(s->f->socket);

	assert_true(fd >= 0);
	return fd;
}

/* One exchange without blocking, as client and server share a thread here. */
static int exchange(struct served *s, int fd, const void *message, size_t size,
		    struct nm_helper_reply *reply)
{
	if (send(fd, message, size, MSG_NOSIGNAL) != (ssize_t)size)
		return -errno;
	settle(s);
	ssize_t got = recv(fd, reply, sizeof(*reply), MSG_DONTWAIT);
	if (got < 0)
		return -errno;
	return got == (ssize_t)sizeof(*reply) ? 0 : -ECONNRESET;
}

static int ask(struct served *s, int fd, struct nm_helper_request request)
{
	struct nm_helper_reply reply = {0};
	int r = exchange(s, fd, &request, sizeof(request), &reply);

	assert_int_equal(r, 0);
	assert_int_equal(reply.version, NM_HELPER_VERSION);
	return reply.result;
}

static bool is_closed(int fd)
{
	char byte;

	return recv(fd, &byte, 1, MSG_DONTWAIT) == 0;
}

static const char *sysctl(const struct served *s)
{
	return fixture_read(s->f->root, SYSCTL);
}

TEST(answers_carry_the_error)
{
	struct served *s = *state;
	struct nm_helper_request request = helper_fixture_balancing(7);

	server_start(s, IDLE_US);
	int fd = connect_to(s);
	assert_int_equal(ask(s, fd, request), -EINVAL);
	assert_int_equal(s->last_act, NM_HELPER_NUMA_BALANCING);
	assert_int_equal(s->last_error, -EINVAL);
	request.version = 99;
	assert_int_equal(ask(s, fd, request), -EPROTO);
	assert_int_equal(s->failures, 2);
	assert_false(is_closed(fd));
	close(fd);
}

TEST(no_request_ends_the_connection)
{
	struct served *s = *state;
	char bytes[sizeof(struct nm_helper_request) + 1];
	const size_t sizes[] = {1, sizeof(bytes) - 2, sizeof(bytes)};
	struct nm_helper_reply reply = {0};

	server_start(s, IDLE_US);
	memset(bytes, 0xa5, sizeof(bytes));
	for (size_t i = 0; i < NM_ARRAY_SIZE(sizes); i++) {
		int fd = connect_to(s);
		assert_int_equal(exchange(s, fd, bytes, sizes[i], &reply), -ECONNRESET);
		assert_int_equal(s->last_error, -EBADMSG);
		close(fd);
	}
	int fd = connect_to(s);
	assert_int_equal(exchange(s, fd, bytes, sizeof(bytes) - 1, &reply), 0);
	assert_int_equal(reply.result, -EPROTO);
	close(fd);
}

/* A client that sends without reading cannot block the helper. */
TEST(unread_replies_end_the_connection)
{
	struct served *s = *state;
	struct nm_helper_request request = helper_fixture_balancing(7);
	const struct nm_helper_request probe = helper_fixture_balancing(-1);

	server_start(s, IDLE_US);
	int lazy = connect_to(s), other = connect_to(s);
	ssize_t sent;
	do {
		sent = send(lazy, &request, sizeof(request), MSG_NOSIGNAL | MSG_DONTWAIT);
		settle(s);
	} while (sent > 0);
	assert_int_equal(errno, EPIPE);
	assert_int_equal(ask(s, other, probe), 0);
	close(lazy);
	close(other);
}

/* SECURITY: balancing */
TEST(the_sysctl_is_restored_with_its_client)
{
	struct served *s = *state;

	SKIP_UNLESS_ROOT();
	server_start(s, IDLE_US);
	int bystander = connect_to(s), owner = connect_to(s);
	assert_int_equal(ask(s, owner, helper_fixture_balancing(1)), 0);
	assert_string_equal(sysctl(s), "1\n");
	close(bystander);
	settle(s);
	assert_string_equal(sysctl(s), "1\n");
	close(owner);
	settle(s);
	assert_string_equal(sysctl(s), "0\n");
}

TEST(a_restarted_daemon_adopts_the_state)
{
	struct served *s = *state;

	SKIP_UNLESS_ROOT();
	server_start(s, IDLE_US);
	int before = connect_to(s), after = connect_to(s);
	assert_int_equal(ask(s, before, helper_fixture_balancing(1)), 0);
	assert_int_equal(ask(s, after, helper_fixture_balancing(1)), 0);
	close(before);
	settle(s);
	assert_string_equal(sysctl(s), "1\n");
	close(after);
	settle(s);
	assert_string_equal(sysctl(s), "0\n");
}

TEST(ending_restores)
{
	struct served *s = *state;

	SKIP_UNLESS_ROOT();
	server_start(s, IDLE_US);
	int fd = connect_to(s);
	assert_int_equal(ask(s, fd, helper_fixture_balancing(1)), 0);
	server_stop(s);
	assert_string_equal(sysctl(s), "0\n");
	assert_true(is_closed(fd));
	close(fd);
}

TEST(starting_restores)
{
	struct served *s = *state;

	fixture_file(s->f->root, SYSCTL, "1\n");
	fixture_file(s->f->root, "run/numa_balancing", "0 1\n");
	server_start(s, IDLE_US);
	assert_string_equal(sysctl(s), "0\n");
	assert_int_equal(s->failures, 0);
}

TEST(the_oldest_excess_connection_is_closed)
{
	struct served *s = *state;
	int fds[NM_HELPER_CLIENTS_MAX + 1] = {0};

	server_start(s, IDLE_US);
	for (size_t i = 0; i < NM_ARRAY_SIZE(fds); i++) {
		fds[i] = connect_to(s);
		settle(s);
	}
	assert_true(is_closed(fds[0]));
	for (size_t i = 1; i < NM_ARRAY_SIZE(fds); i++)
		assert_int_equal(ask(s, fds[i], helper_fixture_balancing(-1)), 0);
	for (size_t i = 0; i < NM_ARRAY_SIZE(fds); i++)
		close(fds[i]);
}

/* SECURITY: helper-socket, open-event */
TEST(unauthorized_clients_are_rejected)
{
	struct served *s = *state;
	int status;

	SKIP_UNLESS_ROOT();
	server_start(s, IDLE_US);
	pid_t other_user = fork();
	if (other_user == 0) {
		char byte;
		if (setuid(65534) < 0)
			_exit(2);
		int fd = nm_helper_connect(s->f->socket);
		_exit(fd < 0 ? 3 : recv(fd, &byte, 1, 0) != 0);
	}
	while (s->failures == 0)
		assert_true(sd_event_run(s->event, 5000000) > 0);
	assert_int_equal(s->last_error, -EACCES);
	assert_int_equal(waitpid(other_user, &status, 0), other_user);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* SECURITY: helper-itself */
TEST(the_server_exits_without_clients)
{
	struct served *s = *state;

	server_start(s, 1000);
	close(connect_to(s));
	assert_int_equal(sd_event_loop(s->event), 0);
}

static int event_open_directly(void)
{
	struct perf_event_attr attr;

	if (nm_event_attr(NM_EVENT_CLOCK, 10000000, &attr) < 0)
		return -1;
	return (int)syscall(SYS_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);
}

/* ---- with the platform, the server in a separate process ---- */

/* Serves until stop_server(). SIGTERM is blocked before the fork, so that it does not arrive
 * early. */
static pid_t fork_server(struct served *s)
{
	sigset_t term;

	sigemptyset(&term);
	sigaddset(&term, SIGTERM);
	assert_int_equal(sigprocmask(SIG_BLOCK, &term, NULL), 0);
	pid_t child = fork();
	if (child == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* also if the test fails */
		server_start(s, IDLE_US);
		int r = sd_event_add_signal(s->event, NULL, SIGTERM, NULL, NULL);
		r = r < 0 ? r : sd_event_loop(s->event);
		server_stop(s);
		_exit(r != 0);
	}
	assert_true(child > 0);
	return child;
}

static void stop_server(pid_t server)
{
	int status;

	assert_int_equal(kill(server, SIGTERM), 0);
	assert_int_equal(waitpid(server, &status, 0), server);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static struct nm_platform *platform_of(struct served *s)
{
	const struct nm_platform_options options = {.root_path = s->f->root,
						    .helper_socket = s->f->socket};
	struct nm_platform *platform = NULL;

	assert_int_equal(nm_platform_linux_new(&options, &platform), 0);
	return platform;
}

TEST(a_killed_helper_is_replaced)
{
	struct served *s = *state;
	int status;

	SKIP_UNLESS_ROOT();
	pid_t first = fork_server(s);
	struct nm_platform *platform = platform_of(s);
	assert_int_equal(platform->ops->numa_balancing_set(platform, 1), 0);
	assert_string_equal(sysctl(s), "1\n");
	assert_int_equal(kill(first, SIGKILL), 0);
	assert_int_equal(waitpid(first, &status, 0), first);

	/* The second one restores the sysctl, and is not used before the next request. */
	pid_t second = fork_server(s);
	assert_int_equal(platform->ops->numa_balancing_set(platform, 1), 0);
	assert_string_equal(sysctl(s), "1\n");
	nm_platform_free(platform);
	stop_server(second);
	assert_string_equal(sysctl(s), "0\n");
}

TEST(a_withdrawn_permission_is_reported)
{
	struct served *s = *state;
	int status;

	SKIP_UNLESS_ROOT();
	pid_t first = fork_server(s);
	struct nm_platform *platform = platform_of(s);
	assert_int_equal(platform->ops->numa_balancing_set(platform, 1), 0);
	assert_int_equal(kill(first, SIGKILL), 0);
	assert_int_equal(waitpid(first, &status, 0), first);
	fixture_file(s->f->root, "numa-migrd.conf", "");
	pid_t second = fork_server(s);
	assert_int_equal(platform->ops->numa_balancing_set(platform, 1), -EPERM);
	assert_string_equal(sysctl(s), "0\n");
	nm_platform_free(platform);
	stop_server(second);
}

static unsigned connections(int listening)
{
	unsigned count = 0;

	for (int fd; (fd = accept(listening, NULL, NULL)) >= 0; close(fd))
		count++;
	return count;
}

/* Its deadline ends the call, and for a while it is not used again. */
TEST(a_helper_that_never_answers_rests)
{
	struct served *s = *state;
	struct nm_platform *platform = platform_of(s);

	assert_int_equal(platform->ops->numa_balancing_set(platform, 1), -ETIMEDOUT);
	assert_int_equal(connections(s->listen_fd), 1);
	assert_int_equal(platform->ops->numa_balancing_set(platform, 1), -ETIMEDOUT);
	assert_int_equal(connections(s->listen_fd), 0);
	nm_platform_free(platform);
}

TEST(without_helper_the_acts_fail)
{
	struct served *s = *state;

	close(s->listen_fd);
	s->listen_fd = -1;
	struct nm_platform *platform = platform_of(s);
	assert_int_equal(platform->ops->numa_balancing_set(platform, 1), -ECONNREFUSED);
	assert_int_equal(unlink(s->f->socket), 0);
	assert_int_equal(platform->ops->numa_balancing_set(platform, 1), -ENOENT);
	nm_platform_free(platform);
}

TEST(an_event_comes_through)
{
	const struct nm_helper_request request = helper_fixture_event(NM_EVENT_CLOCK, 10000000);
	struct served *s = *state;
	struct nm_event_fds event = {-1, -1};
	uint64_t id = 0;

	pid_t server = fork_server(s);
	int fd = connect_to(s);
	int r = nm_helper_call(fd, &request, &event);
	int identified = r == 0 ? ioctl(event.event, PERF_EVENT_IOC_ID, &id) : -1;
	close(fd);
	stop_server(server);
	if (r < 0) {
		print_message("this kernel opens no cpu-clock event for us (%s): skipped\n",
			      strerror(-r));
		skip();
	}
	assert_int_equal(identified, 0);
	assert_true(fcntl(event.event, F_GETFD) & FD_CLOEXEC);
	close(event.event);
	assert_int_equal(event.leader, -1);
}

/* As the user of the daemon at perf_event_paranoid 3: refused by the kernel, opened by the
 * helper. */
TEST(a_refused_event_is_opened_by_the_helper)
{
	struct served *s = *state;
	int status;

	SKIP_UNLESS_ROOT();
	s->permitted = 65534;
	pid_t server = fork_server(s);
	pid_t client = fork();
	if (client == 0) {
		struct nm_platform *p = platform_of(s);
		if (setuid(s->permitted) < 0 || event_open_directly() >= 0)
			_exit(77);
		int fd = p->ops->event_open(p, NM_EVENT_CLOCK, 0, 10000000);
		nm_platform_free(p);
		_exit(fd < 0);
	}
	assert_int_equal(waitpid(client, &status, 0), client);
	assert_true(WIFEXITED(status));
	int code = WEXITSTATUS(status);
	stop_server(server);
	if (code == 77) {
		print_message("this kernel lets any user open events: skipped\n");
		skip();
	}
	assert_int_equal(code, 0);
}

RUN_TESTS()
