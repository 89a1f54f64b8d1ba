/* SPDX-License-Identifier: MIT */
/* numa-migrctl on a terminal: the full screen, lists and colours. The terminal is a pseudo-terminal
 * of 80×24. */
#define SET_UP with_service
#define TEAR_DOWN close_and_tear_down
#include "../support/test.h"

#include <poll.h>
#include <pty.h>
#include <sys/ioctl.h>

#include "bus_fixture.h"

#include "../support/fake_service.h"
#include "../support/run_ctl.h"
#include "../support/script.h"

#define PATIENCE_S 60

static struct bus *bus;

static struct terminal {
	int fd;
	pid_t child;
	size_t used, awaited;
	char text[1 << 20]; /* all output so far */
} terminal;

static int with_service(void **state)
{
	(void)setenv("TERM", "xterm", 1);
	(void)unsetenv("NO_COLOR");
	int r = begin_ctl(state, fake_service);
	bus = *state;
	return r;
}

/* Reads more output; returns false at its end, or after a long time without output. */
static bool read_more(void)
{
	struct pollfd poll_fd = {.fd = terminal.fd, .events = POLLIN};
	if (poll(&poll_fd, 1, PATIENCE_S * 1000) <= 0)
		return false;
	size_t room = sizeof(terminal.text) - 1 - terminal.used;
	ssize_t length = read(terminal.fd, terminal.text + terminal.used, room);
	if (length <= 0)
		return false;
	terminal.used += (size_t)length;
	return true;
}

/* Returns its exit status, after all output. */
static int close_terminal(void)
{
	int status;
	while (read_more())
		continue;
	assert_int_equal(waitpid(terminal.child, &status, 0), terminal.child);
	close(terminal.fd);
	terminal.child = 0;
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static int close_and_tear_down(void **state)
{
	if (terminal.child > 0) {
		end(&terminal.child);
		close(terminal.fd);
	}
	return teardown(state);
}

/* ---- words ---- */

/* open top: with arguments as in a shell */
WORD(open)
{
	const struct winsize size = {.ws_row = 24, .ws_col = 80};
	char path[1024], command[2048];
	need(bus != NULL, "no dbus-daemon on this machine");
	ctl_path(path, sizeof(path));
	(void)snprintf(command, sizeof(command), "exec %s %s", path, step_rest(step));
	memset(&terminal, 0, sizeof(terminal));
	terminal.child = forkpty(&terminal.fd, NULL, NULL, &size);
	if (terminal.child == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)execl("/bin/sh", "sh", "-c", command, (char *)NULL);
		_exit(127);
	}
	assert_true(terminal.child > 0);
}

/* await TEXT: after that of the previous wait */
WORD(await)
{
	const char *text = step_rest(step), *found;
	while (!(found = strstr(terminal.text + terminal.awaited, text)))
		if (!read_more())
			script_fail(step, "found %s", terminal.text + terminal.awaited);
	terminal.awaited = (size_t)(found - terminal.text) + strlen(text);
}

ACTION(type, assert_int_equal(write(terminal.fd, step_rest(step), strlen(step_rest(step))),
			      strlen(step_rest(step))))

WORD(resize)
{
	const struct winsize size = {.ws_row = (unsigned short)N(0),
				     .ws_col = (unsigned short)N(1)};
	assert_int_equal(ioctl(terminal.fd, TIOCSWINSZ, &size), 0);
}

ACTION(terminate, assert_int_equal(kill(terminal.child, SIGTERM), 0))
ACTION(end_service, end(&bus->server))
ACTION(start_service, assert_true(start_server(bus, fake_service)))
ACTION(end_bus, end(&bus->daemon))
/* environment NO_COLOR 1 */
ACTION(environment, (void)setenv(step->word[0], step->count > 1 ? step->word[1] : "", 1))
QUANTITY(exits, close_terminal())
TEXT(output, terminal.text)

/* ---- the full screen ---- */

#define LEAVE "\033[?1049l" /* of xterm: restores the previous screen */

SCRIPT(test_top, "open top; await postgres; type t; await 4712; type p; await postgres",
       "type \r; await threads of process 815; type ?; await choose a line; type ?q",
       "await " LEAVE "; exits = 0")

/* The second line is cut. */
SCRIPT(test_top_resized, "open top; await postgres; resize 12 40; await loc…; type q; exits = 0")

/* When the daemon exits, the screen shows this, keys still work, and updates resume after its
 * restart. */
SCRIPT(test_top_outlives_the_daemon,
       "open top; await postgres; end_service; await not running; type ?; await choose a line",
       "type ?; start_service; await q quit; type t; await 4712; type q; exits = 0")

/* By a signal, or by the key for it. */
SCRIPT(test_top_is_ended, "open top; await postgres; terminate; await " LEAVE "; exits = 0",
       "open top; await postgres; type \003; await " LEAVE "; exits = 0")

/* The bus ends, so no more updates can arrive. */
SCRIPT(test_top_without_bus, "open top; await postgres; end_bus; await " LEAVE,
       "await connection to the system bus lost; exits = 69")

SCRIPT(test_strange_terminal,
       "environment TERM no-such-terminal; open top; await is TERM right?; exits = 1")

/* ---- lists on a terminal ---- */

/* The findings, and so the exit status of doctor, depend on this machine. */
SCRIPT(test_findings_on_terminal, "open doctor; exits <= 1; output ~ \033[1mbalancing:\033[0m",
       "open doctor --color=never; exits <= 1; output ~  balancing: ; output !~ \033[")

SCRIPT(test_an_empty_list_says_where_to_look,
       "open threads 816; exits = 0; output ~ numa-migrctl doctor",
       "open threads; exits = 0; output ~ 4712; output !~ numa-migrctl doctor")

TEST(an_empty_list_that_is_no_terminal_says_nothing)
{
	char text[1024];
	need_bus(state);
	assert_int_equal(ctl("threads 816", text, sizeof(text)), 0);
	assert_null(strstr(text, "doctor"));
}

SCRIPT(test_colour_on_terminal, "open decisions; exits = 0; output ~ \033[32mimproved",
       "open decisions --color=never; exits = 0; output ~ improved; output !~ \033[",
       "environment NO_COLOR 1; open decisions; exits = 0; output ~ improved; output !~ \033[",
       /* The same as unset. */
       "environment NO_COLOR; open decisions; exits = 0; output ~ \033[32mimproved",
       "environment TERM dumb; open decisions; exits = 0; output ~ improved; output !~ \033[")

RUN_TESTS()
