/* SPDX-License-Identifier: MIT */
/* The numa-migrd-helper built beside the test: its command line, and a run as systemd starts it,
 * with requests that it refuses. */
#define SET_UP set_up
#define TEAR_DOWN tear_down
#include "../support/test.h"

#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "fixture.h"
#include "platform/helper.h"

#define PROGRAM NM_BINARY_DIR "/src/platform/numa-migrd-helper"

static char root[FIXTURE_PATH / 2];
static char place[FIXTURE_PATH], words[FIXTURE_PATH];

static int set_up(void **state)
{
	(void)state;
	fixture_make(root, sizeof(root));
	snprintf(place, sizeof(place), "%s/socket", root);
	snprintf(words, sizeof(words), "%s/words", root);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	fixture_remove(root);
	return 0;
}

/* Returns its exit status, and its output in `words`. */
static int run(const char *option)
{
	char command[3 * FIXTURE_PATH];
	snprintf(command, sizeof(command), PROGRAM " %s >%s 2>&1", option, words);
	int status = system(command); /* NOLINT(cert-env33-c): our own program, fixed words */
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* Returns how often it logged that text. */
static unsigned count_logged(const char *text)
{
	char all[8192];
	unsigned times = 0;
	FILE *file = fopen(words, "re");
	assert_non_null(file);
	size_t length = fread(all, 1, sizeof(all) - 1, file);
	(void)fclose(file);
	all[length] = '\0';
	for (const char *at = strstr(all, text); at; at = strstr(at + 1, text))
		times++;
	return times;
}

TEST(wrong_words_are_refused)
{
	assert_int_equal(run("now"), EX_USAGE);
	assert_int_equal(count_logged("Usage: numa-migrd-helper"), 1);
	assert_int_equal(run("--nonsense"), EX_USAGE);
	assert_int_equal(run("--help"), EXIT_SUCCESS);
	assert_int_equal(count_logged("Usage: numa-migrd-helper"), 1);
}

TEST(a_missing_socket_is_reported)
{
	assert_int_equal(run(""), EX_USAGE);
	assert_int_equal(count_logged("this program is started by numa-migrd-helper.socket"), 1);
}

static int listen_at(int type)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
	assert_true(fd >= 0 && strlen(place) < sizeof(address.sun_path));
	memcpy(address.sun_path, place, strlen(place) + 1);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(fd, 4), 0);
	return fd;
}

/* As systemd does: the socket is the first descriptor, and the environment names the process. */
static pid_t start(int type)
{
	int fd = listen_at(type);
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		char pid[16];
		int log = open(words, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
		snprintf(pid, sizeof(pid), "%d", (int)getpid());
		setenv("LISTEN_PID", pid, 1);
		setenv("LISTEN_FDS", "1", 1);
		unsetenv("NOTIFY_SOCKET");
		alarm(60);
		if (log < 0 || dup2(log, STDERR_FILENO) < 0 || dup2(fd, SD_LISTEN_FDS_START) < 0 ||
		    fcntl(SD_LISTEN_FDS_START, F_SETFD, 0) < 0)
			_exit(99);
		execl(PROGRAM, PROGRAM, NULL);
		_exit(98);
	}
	close(fd);
	return child;
}

static int exit_of(pid_t child)
{
	int status;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

TEST(another_kind_of_socket_is_refused)
{
	assert_int_equal(exit_of(start(SOCK_STREAM)), EX_USAGE);
	assert_int_equal(count_logged("No listening socket was passed"), 1);
}

/* Each kind of failure is logged once; the last one ends the connection. */
TEST(failures_are_logged_once)
{
	struct nm_helper_request request = {
		.version = NM_HELPER_VERSION, .act = NM_HELPER_NUMA_BALANCING, .value = 2};
	struct nm_event_fds fds = {-1, -1};
	if (geteuid() != 0 || access(NM_HELPER_STATE_PATH, F_OK) == 0) {
		print_message("skipped: this needs root, and no helper of the machine's own\n");
		skip();
	}
	pid_t child = start(SOCK_SEQPACKET);
	int connection = nm_helper_connect(place);
	assert_true(connection >= 0);
	for (unsigned i = 0; i < 3; i++)
		assert_true(nm_helper_call(connection, &request, &fds) < 0);
	request.act = 99;
	for (unsigned i = 0; i < 3; i++)
		assert_true(nm_helper_call(connection, &request, &fds) < 0);
	assert_int_equal(send(connection, "x", 1, MSG_NOSIGNAL), 1);
	char rest;
	assert_int_equal(recv(connection, &rest, 1, 0), 0);
	close(connection);
	assert_int_equal(kill(child, SIGTERM), 0);
	assert_int_equal(exit_of(child), EXIT_SUCCESS);
	assert_int_equal(count_logged("Changing kernel.numa_balancing: "), 1);
	assert_int_equal(count_logged("Unknown act: "), 1);
	assert_int_equal(count_logged("Connection: "), 1);
	assert_int_equal(count_logged("(logged once)"), 3);
}

RUN_TESTS()
