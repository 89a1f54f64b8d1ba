/* SPDX-License-Identifier: MIT */
/* numa-migrctl on a terminal: the full screen, lists and colours. The terminal is a pseudo-terminal
 * of 80×24. */
#define SET_UP with_service
#define TEAR_DOWN teardown
#include "../support/test.h"

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>

#include "bus_fixture.h"
#include "fixture.h"

#include "../support/fake_service.h"
#include "../support/run_ctl.h"

#define PATIENCE_S 60

struct terminal {
	int fd;
	pid_t child;
	size_t used;
	char text[1 << 20]; /* all output so far */
};

static int with_service(void **state)
{
	(void)setenv("LC_ALL", "C.UTF-8", 1);
	(void)setenv("TERM", "xterm", 1);
	(void)unsetenv("NO_COLOR");
	return setup(state, open_policy, fake_service);
}

/* Runs it on a new terminal with arguments as in a shell. */
static struct terminal *open_terminal(const char *words)
{
	const struct winsize size = {.ws_row = 24, .ws_col = 80};
	struct terminal *terminal = calloc(1, sizeof(*terminal));
	char path[1024], command[2048];
	assert_non_null(terminal);
	ctl_path(path, sizeof(path));
	(void)snprintf(command, sizeof(command), "exec %s %s", path, words);
	terminal->child = forkpty(&terminal->fd, NULL, NULL, &size);
	if (terminal->child == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)execl("/bin/sh", "sh", "-c", command, (char *)NULL);
		_exit(127);
	}
	assert_true(terminal->child > 0);
	return terminal;
}

/* Reads more output; returns false at its end, or after a long time without output. */
static bool read_more(struct terminal *terminal)
{
	struct pollfd poll_fd = {.fd = terminal->fd, .events = POLLIN};
	if (poll(&poll_fd, 1, PATIENCE_S * 1000) <= 0)
		return false;
	size_t room = sizeof(terminal->text) - 1 - terminal->used;
	ssize_t length = read(terminal->fd, terminal->text + terminal->used, room);
	if (length <= 0)
		return false;
	terminal->used += (size_t)length;
	return true;
}

/* Waits for text after that of the previous wait. */
static void await(struct terminal *terminal, size_t *from, const char *text)
{
	const char *found;
	while (!(found = strstr(terminal->text + *from, text)))
		if (!read_more(terminal))
			fail_msg("\"%s\" did not come: \"%s\"", text, terminal->text + *from);
	*from = (size_t)(found - terminal->text) + strlen(text);
}

static void type(const struct terminal *terminal, const char *keys)
{
	assert_int_equal(write(terminal->fd, keys, strlen(keys)), strlen(keys));
}

/* Returns its exit status and all output. */
static int close_terminal(struct terminal *terminal)
{
	int status;
	while (read_more(terminal))
		continue;
	assert_int_equal(waitpid(terminal->child, &status, 0), terminal->child);
	close(terminal->fd);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

#define LEAVE_SCREEN "\033[?1049l" /* of xterm: restores the previous screen */

TEST(test_top)
{
	size_t at = 0;
	need_bus(state);
	struct terminal *terminal = open_terminal("top");
	await(terminal, &at, "postgres");
	type(terminal, "t");
	await(terminal, &at, "4712");
	type(terminal, "p");
	await(terminal, &at, "postgres");
	type(terminal, "\r"); /* the first line */
	await(terminal, &at, "threads of process 815");
	type(terminal, "?");
	await(terminal, &at, "choose a line");
	type(terminal, "?");
	type(terminal, "q");
	await(terminal, &at, LEAVE_SCREEN);
	assert_int_equal(close_terminal(terminal), 0);
	free(terminal);
}

TEST(test_top_resized)
{
	const struct winsize small = {.ws_row = 12, .ws_col = 40};
	size_t at = 0;
	need_bus(state);
	struct terminal *terminal = open_terminal("top");
	await(terminal, &at, "postgres");
	assert_int_equal(ioctl(terminal->fd, TIOCSWINSZ, &small), 0);
	await(terminal, &at, "loc\xe2\x80\xa6"); /* the second line, cut */
	type(terminal, "q");
	assert_int_equal(close_terminal(terminal), 0);
	free(terminal);
}

/* When the daemon exits, the screen shows this, keys still work, and updates resume after its
 * restart. */
TEST(test_top_outlives_the_daemon)
{
	struct bus *bus = *state;
	size_t at = 0;
	need_bus(state);
	struct terminal *terminal = open_terminal("top");
	await(terminal, &at, "postgres");
	end(&bus->server);
	await(terminal, &at, "not running");
	type(terminal, "?");
	await(terminal, &at, "choose a line");
	type(terminal, "?");
	assert_true(start_server(bus, fake_service));
	await(terminal, &at, "q quit");
	type(terminal, "q");
	assert_int_equal(close_terminal(terminal), 0);
	free(terminal);
}

TEST(test_top_is_ended)
{
	size_t at = 0;
	need_bus(state);
	struct terminal *terminal = open_terminal("top");
	await(terminal, &at, "postgres");
	assert_int_equal(kill(terminal->child, SIGTERM), 0);
	await(terminal, &at, LEAVE_SCREEN);
	assert_int_equal(close_terminal(terminal), 0);
	free(terminal);
	terminal = open_terminal("top");
	at = 0;
	await(terminal, &at, "postgres");
	type(terminal, "\003"); /* interrupt */
	await(terminal, &at, LEAVE_SCREEN);
	assert_int_equal(close_terminal(terminal), 0);
	free(terminal);
}

/* The bus ends, so no more updates can arrive. */
TEST(test_top_without_bus)
{
	struct bus *bus = *state;
	size_t at = 0;
	need_bus(state);
	struct terminal *terminal = open_terminal("top");
	await(terminal, &at, "postgres");
	end(&bus->daemon);
	await(terminal, &at, LEAVE_SCREEN);
	await(terminal, &at, "connection to the system bus lost");
	assert_int_equal(close_terminal(terminal), 69);
	free(terminal);
}

TEST(test_strange_terminal)
{
	size_t at = 0;
	need_bus(state);
	(void)setenv("TERM", "no-such-terminal", 1);
	struct terminal *terminal = open_terminal("top");
	await(terminal, &at, "is TERM right?");
	assert_int_equal(close_terminal(terminal), 1);
	free(terminal);
}

/* ---- lists on a terminal ---- */

static void assert_on_terminal(const char *words, const char *expected, const char *unexpected)
{
	struct terminal *terminal = open_terminal(words);
	assert_int_equal(close_terminal(terminal), 0);
	if (!strstr(terminal->text, expected) || (unexpected && strstr(terminal->text, unexpected)))
		fail_msg("%s: \"%s\"", words, terminal->text);
	free(terminal);
}

/* The findings, and so the exit status of doctor, depend on this machine. */
TEST(test_findings_on_terminal)
{
	need_bus(state);
	struct terminal *terminal = open_terminal("doctor");
	assert_true(close_terminal(terminal) <= 1);
	assert_non_null(strstr(terminal->text, "\033[1mbalancing:\033[0m"));
	free(terminal);
	terminal = open_terminal("doctor --color=never");
	assert_true(close_terminal(terminal) <= 1);
	assert_non_null(strstr(terminal->text, " balancing: "));
	assert_null(strstr(terminal->text, "\033["));
	free(terminal);
}

TEST(test_an_empty_list_says_where_to_look)
{
	char text[1024];
	need_bus(state);
	assert_on_terminal("threads 816", "numa-migrctl doctor", NULL);
	assert_on_terminal("threads", "4712", "numa-migrctl doctor");
	assert_int_equal(ctl("threads 816", text, sizeof(text)), 0); /* not a terminal */
	assert_null(strstr(text, "doctor"));
}

TEST(test_colour_on_terminal)
{
	need_bus(state);
	assert_on_terminal("decisions", "\033[32mimproved", NULL);
	assert_on_terminal("decisions --color=never", "improved", "\033[");
	(void)setenv("NO_COLOR", "1", 1);
	assert_on_terminal("decisions", "improved", "\033[");
	(void)setenv("NO_COLOR", "", 1); /* the same as unset */
	assert_on_terminal("decisions", "\033[32mimproved", NULL);
	(void)setenv("TERM", "dumb", 1);
	assert_on_terminal("decisions", "improved", "\033[");
}

RUN_TESTS()
