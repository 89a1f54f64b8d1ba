/* SPDX-License-Identifier: MIT */
/* The server of the helper and its use by the platform, over a real socket. Clients are numbers. */
#define SET_UP set_up
#define TEAR_DOWN tear_down
#include "../support/test.h"

#include <linux/perf_event.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "../../src/platform/helper/server.h"
#include "../support/script.h"
#include "helper_fixture.h"
#include "numa-migrd/platform.h"

#define IDLE_US 3600000000ULL /* longer than any test */

static struct helper_fixture *f;
static int listen_fd, clients[NM_HELPER_CLIENTS_MAX + 1];
static uid_t permitted;
static sd_event *event;
static struct nm_helper_server *server;
static unsigned failures;
static uint32_t last_act, version;
static int last_error;
static pid_t process; /* of a server, if it is one of its own */
static struct nm_platform *platform;

static void on_failure(void *context, uint32_t act, int error)
{
	(void)context;
	failures++;
	last_act = act;
	last_error = error;
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

static void start_server(uint64_t idle_us)
{
	const struct nm_helper_server_options options = {
		.acts = &f->context,
		.listen_fd = listen_fd,
		.permitted = permitted,
		.idle_us = idle_us,
		.on_failure = on_failure,
	};

	if (sd_event_new(&event) < 0 || nm_helper_server_new(event, &options, &server) < 0)
		abort();
}

static void stop_server(void)
{
	nm_helper_server_free(server);
	server = NULL;
	event = sd_event_unref(event);
}

static int set_up(void **state)
{
	if (helper_fixture_setup(state))
		return 1;
	f = *state;
	(void)chmod(f->root, 0711);
	fixture_file(f->root, "numa-migrd.conf", CONFIG_BALANCING);
	listen_fd = open_listener(f->socket);
	permitted = geteuid();
	failures = 0;
	version = NM_HELPER_VERSION;
	process = 0;
	memset(clients, -1, sizeof(clients));
	return 0;
}

static int tear_down(void **state)
{
	nm_platform_free(platform);
	platform = NULL;
	for (size_t i = 0; i < NM_ARRAY_SIZE(clients); i++)
		if (clients[i] >= 0)
			close(clients[i]);
	stop_server();
	if (listen_fd >= 0)
		close(listen_fd);
	return helper_fixture_teardown(state);
}

/* ---- a server in this process ---- */

/* Runs the server until no work is pending. */
static void settle(void)
{
	while (sd_event_run(event, 0) > 0)
		;
}

static void connect_client(unsigned client)
{
	clients[client] = nm_helper_connect(f->socket);
	assert_true(clients[client] >= 0);
}

/* One exchange without blocking, as client and server share a thread here. Returns the result. */
static int exchange(unsigned client, const void *message, size_t size)
{
	struct nm_helper_reply reply = {0};
	if (send(clients[client], message, size, MSG_NOSIGNAL) != (ssize_t)size)
		return -errno;
	settle();
	ssize_t got = recv(clients[client], &reply, sizeof(reply), MSG_DONTWAIT);
	if (got < 0)
		return -errno;
	if (got != (ssize_t)sizeof(reply))
		return -ECONNRESET;
	assert_int_equal(reply.version, NM_HELPER_VERSION);
	return reply.result;
}

static int ask(unsigned client, int value)
{
	struct nm_helper_request request = helper_fixture_balancing(value);
	request.version = version;
	return exchange(client, &request, sizeof(request));
}

static int send_bytes(unsigned client, size_t size)
{
	char bytes[sizeof(struct nm_helper_request) + 1];
	memset(bytes, 0xa5, sizeof(bytes));
	return exchange(client, bytes, size);
}

/* A client that sends without reading. */
static int send_until_it_fails(unsigned client)
{
	const struct nm_helper_request request = helper_fixture_balancing(7);
	ssize_t sent;
	do {
		sent = send(clients[client], &request, sizeof(request),
			    MSG_NOSIGNAL | MSG_DONTWAIT);
		settle();
	} while (sent > 0);
	return -errno;
}

static bool is_closed(unsigned client)
{
	char byte;
	return recv(clients[client], &byte, 1, MSG_DONTWAIT) == 0;
}

static const char *sysctl(void)
{
	static char text[16];
	snprintf(text, sizeof(text), "%s", fixture_read(f->root, SYSCTL));
	text[strcspn(text, "\n")] = '\0';
	return text;
}

WORD(as_root)
{
	SKIP_UNLESS_ROOT();
}

ACTION(serve, start_server(step->count ? U(0) : IDLE_US))
ACTION(end, stop_server())
ACTION(settle, settle())
/* connect 0-1: clients */
WORD(connect)
{
	for (unsigned i = U(0); i <= (step->nr_numbers > 1 ? U(1) : U(0)); i++) {
		connect_client(i);
		settle();
	}
}

WORD(close)
{
	close(clients[U(0)]);
	clients[U(0)] = -1;
	settle();
}

/* file run/numa_balancing 0 1: a line, or an empty file */
WORD(file)
{
	char line[128] = "";
	if (step->count > 1)
		snprintf(line, sizeof(line), "%s\n", strchr(step_rest(step), ' ') + 1);
	fixture_file(f->root, step->word[0], line);
}

QUANTITY(ask, ask(U(0), (int)N(1)))
QUANTITY(send, send_bytes(U(0), (size_t)U(1)))
QUANTITY(flood, send_until_it_fails(U(0)))
QUANTITY(closed, is_closed(U(0)))
QUANTITY(loop, sd_event_loop(event))
TEXT(sysctl, sysctl())
KNOB(version, version)
QUANTITY(failures, failures)
QUANTITY(last_error, last_error)
QUANTITY(last_act, last_act)
NAMES(last_act, {"balancing", NM_HELPER_NUMA_BALANCING})

SCRIPT(answers_carry_the_error,
       "serve; connect 0; ask 0 7 = EINVAL; last_act = balancing; last_error = EINVAL",
       "set version = 99; ask 0 7 = EPROTO; failures = 2; closed 0 = 0")

TEST(no_request_ends_the_connection)
{
	const size_t size = sizeof(struct nm_helper_request);
	const size_t sizes[] = {1, size - 1, size + 1};
	start_server(IDLE_US);
	for (size_t i = 0; i < NM_ARRAY_SIZE(sizes); i++) {
		connect_client((unsigned)i);
		assert_int_equal(send_bytes((unsigned)i, sizes[i]), -ECONNRESET);
		assert_int_equal(last_error, -EBADMSG);
	}
	connect_client(3);
	assert_int_equal(send_bytes(3, size), -EPROTO);
}

/* A client that sends without reading cannot block the helper. */
SCRIPT(unread_replies_end_the_connection, "serve; connect 0-1; flood 0 = EPIPE; ask 1 -1 = 0")

/* SECURITY: balancing */
SCRIPT(the_sysctl_is_restored_with_its_client,
       "as_root; serve; connect 0-1; ask 1 1 = 0; ask 0 7 = EINVAL; sysctl = 1; close 0",
       "sysctl = 1; close 1", "sysctl = 0")

SCRIPT(a_restarted_daemon_adopts_the_state,
       "as_root; serve; connect 0-1; ask 0 1 = 0; ask 1 1 = 0; close 0; sysctl = 1; close 1",
       "sysctl = 0")

SCRIPT(ending_restores, "as_root; serve; connect 0; ask 0 1 = 0; end; sysctl = 0; closed 0 = 1")

SCRIPT(starting_restores,
       "file " SYSCTL " 1; file run/numa_balancing 0 1; serve; sysctl = 0; failures = 0")

TEST(the_oldest_excess_connection_is_closed)
{
	start_server(IDLE_US);
	for (unsigned i = 0; i <= NM_HELPER_CLIENTS_MAX; i++) {
		connect_client(i);
		settle();
	}
	assert_true(is_closed(0));
	for (unsigned i = 1; i <= NM_HELPER_CLIENTS_MAX; i++)
		assert_int_equal(ask(i, -1), 0);
}

/* SECURITY: helper-itself */
SCRIPT(the_server_exits_without_clients, "serve 1000; connect 0; close 0; loop = 0")

/* SECURITY: helper-socket, open-event */
TEST(unauthorized_clients_are_rejected)
{
	int status;

	SKIP_UNLESS_ROOT();
	start_server(IDLE_US);
	pid_t other_user = fork();
	if (other_user == 0) {
		char byte;
		if (setuid(65534) < 0)
			_exit(2);
		int fd = nm_helper_connect(f->socket);
		_exit(fd < 0 ? 3 : recv(fd, &byte, 1, 0) != 0);
	}
	while (failures == 0)
		assert_true(sd_event_run(event, 5000000) > 0);
	assert_int_equal(last_error, -EACCES);
	assert_int_equal(waitpid(other_user, &status, 0), other_user);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* ---- with the platform, the server in a separate process ---- */

/* Serves until SIGTERM, which is blocked before the fork, so that it does not arrive early. */
static void fork_server(void)
{
	sigset_t term;

	sigemptyset(&term);
	sigaddset(&term, SIGTERM);
	assert_int_equal(sigprocmask(SIG_BLOCK, &term, NULL), 0);
	process = fork();
	if (process == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* also if the test fails */
		start_server(IDLE_US);
		int r = sd_event_add_signal(event, NULL, SIGTERM, NULL, NULL);
		r = r < 0 ? r : sd_event_loop(event);
		stop_server();
		_exit(r != 0);
	}
	assert_true(process > 0);
}

/* Ends the server. After SIGTERM it succeeds. */
static void end_process(int signal)
{
	int status;
	assert_int_equal(kill(process, signal), 0);
	assert_int_equal(waitpid(process, &status, 0), process);
	assert_int_equal(status, signal == SIGTERM ? 0 : signal);
}

static void open_platform(void)
{
	const struct nm_platform_options options = {.root_path = f->root,
						    .helper_socket = f->socket};
	assert_int_equal(nm_platform_linux_new(&options, &platform), 0);
}

/* The number of connections that were not accepted. */
static unsigned count_connections(void)
{
	unsigned count = 0;
	for (int fd; (fd = accept(listen_fd, NULL, NULL)) >= 0; close(fd))
		count++;
	return count;
}

ACTION(fork, fork_server())
ACTION(kill, end_process(SIGKILL))
ACTION(terminate, end_process(SIGTERM))
ACTION(platform, open_platform())
ACTION(free_platform, nm_platform_free(NM_TAKE(platform)))
ACTION(stop_listening, close(listen_fd); listen_fd = -1)
ACTION(remove_socket, assert_int_equal(unlink(f->socket), 0))
QUANTITY(balancing, platform->ops->numa_balancing_set(platform, (int)N(0)))
QUANTITY(connections, count_connections())

/* The second one restores the sysctl, and is not used before the next request. */
SCRIPT(a_killed_helper_is_replaced,
       "as_root; fork; platform; balancing 1 = 0; sysctl = 1; kill; fork; balancing 1 = 0",
       "sysctl = 1; free_platform; terminate; sysctl = 0")

SCRIPT(a_withdrawn_permission_is_reported,
       "as_root; fork; platform; balancing 1 = 0; kill; file numa-migrd.conf; fork",
       "balancing 1 = EPERM; sysctl = 0; free_platform; terminate")

/* Its deadline ends the call, and for a while it is not used again. */
SCRIPT(a_helper_that_never_answers_rests,
       "platform; balancing 1 = ETIMEDOUT; connections = 1; balancing 1 = ETIMEDOUT",
       "connections = 0")

SCRIPT(without_helper_the_acts_fail,
       "stop_listening; platform; balancing 1 = ECONNREFUSED; remove_socket; balancing 1 = ENOENT")

TEST(an_event_comes_through)
{
	const struct nm_helper_request request = helper_fixture_event(NM_EVENT_CLOCK, 10000000);
	struct nm_event_fds fds = {-1, -1};
	uint64_t id = 0;

	fork_server();
	connect_client(0);
	int r = nm_helper_call(clients[0], &request, &fds);
	int identified = r == 0 ? ioctl(fds.event, PERF_EVENT_IOC_ID, &id) : -1;
	end_process(SIGTERM);
	if (r < 0) {
		print_message("this kernel opens no cpu-clock event for us (%s): skipped\n",
			      strerror(-r));
		skip();
	}
	assert_int_equal(identified, 0);
	assert_true(fcntl(fds.event, F_GETFD) & FD_CLOEXEC);
	close(fds.event);
	assert_int_equal(fds.leader, -1);
}

static int event_open_directly(void)
{
	struct perf_event_attr attr;

	if (nm_event_attr(NM_EVENT_CLOCK, 10000000, &attr) < 0)
		return -1;
	return (int)syscall(SYS_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);
}

/* As the user of the daemon at perf_event_paranoid 3: refused by the kernel, opened by the
 * helper. */
TEST(a_refused_event_is_opened_by_the_helper)
{
	int status;

	SKIP_UNLESS_ROOT();
	permitted = 65534;
	fork_server();
	pid_t client = fork();
	if (client == 0) {
		open_platform();
		if (setuid(permitted) < 0 || event_open_directly() >= 0)
			_exit(77);
		int fd = platform->ops->event_open(platform, NM_EVENT_CLOCK, 0, 10000000);
		nm_platform_free(platform);
		_exit(fd < 0);
	}
	assert_int_equal(waitpid(client, &status, 0), client);
	assert_true(WIFEXITED(status));
	int code = WEXITSTATUS(status);
	end_process(SIGTERM);
	if (code == 77) {
		print_message("this kernel lets any user open events: skipped\n");
		skip();
	}
	assert_int_equal(code, 0);
}

RUN_TESTS()
