/* SPDX-License-Identifier: MIT */
/*
 * The bus object and numa-migrctl, over a private bus: dbus-daemon with either a policy that allows
 * everything, so that only the daemon itself refuses calls, or the shipped policy.
 */
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <systemd/sd-bus.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "bus_fixture.h"

#define NOBODY 65534
#define OWN_PID 4711U

/* ---- the daemon, in a separate process ---- */

static void give_status(void *context, const struct nm_show *show)
{
	const bool *paused = context;
	nm_show_text(show, "source", "faults \xe2\x80\xa6");
	nm_show_u64(show, "leases", 5000000000);
	nm_show_real(show, "cost_percent", 0.25);
	nm_show_real(show, "latency_ns", NAN);
	nm_show_flag(show, "paused", *paused);
}

static void give_facts(void *context, struct nm_control_facts *ret)
{
	(void)context;
	*ret = (struct nm_control_facts){.version = "1"};
}

static void ignore_request(void *context, const char *method, uid_t uid)
{
	(void)context, (void)method, (void)uid;
}

static int do_pause(void *context)
{
	bool *paused = context;
	if (*paused)
		return -EALREADY;
	*paused = true;
	return 0;
}

static int do_resume(void *context)
{
	bool *paused = context;
	if (!*paused)
		return -EALREADY;
	*paused = false;
	return 0;
}

static int do_release(void *context, uint32_t pid)
{
	(void)context;
	if (pid == 1)
		return -EBUSY;
	return pid == OWN_PID ? 0 : -ESRCH;
}

static void ignore_bus(void *context, int error)
{
	(void)context;
	(void)error;
}

static void serve(int ready)
{
	bool paused = false;
	const struct nm_control_ops ops = {
		.context = &paused,
		.status = give_status,
		.facts = give_facts,
		.asked = ignore_request,
		.pause = do_pause,
		.resume = do_resume,
		.release = do_release,
		.bus_changed = ignore_bus,
	};
	struct nm_control *control = NULL;
	sd_event *event = NULL;
	int r = sd_event_new(&event);
	if (r >= 0)
		r = nm_control_new(event, &ops, &control);
	if (write(ready, &r, sizeof(r)) != sizeof(r) || r < 0)
		_exit(1);
	(void)sd_event_loop(event);
	_exit(0);
}

static int setup_open(void **state)
{
	return setup(state, open_policy, serve);
}

static int setup_shipped(void **state)
{
	return setup(state, shipped_policy, serve);
}

static int setup_without_server(void **state)
{
	return setup(state, open_policy, NULL);
}

/* ---- calls ---- */

/* Calls one method; returns 0 or -errno, and the name of the error in `name`. */
static int call(const char *method, const uint32_t *pid, char *name, size_t size)
{
	nm_auto(sd_bus_flush_close_unrefp) sd_bus *bus = NULL;
	nm_auto(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
	name[0] = '\0';
	int r = sd_bus_open_system(&bus);
	if (r < 0)
		return r;
	if (pid)
		r = sd_bus_call_method(bus, NM_BUS_NAME, NM_BUS_PATH, NM_BUS_INTERFACE, method,
				       &error, NULL, "u", *pid);
	else
		r = sd_bus_call_method(bus, NM_BUS_NAME, NM_BUS_PATH, NM_BUS_INTERFACE, method,
				       &error, NULL, "");
	(void)snprintf(name, size, "%s", error.name ? error.name : "");
	return r < 0 ? r : 0;
}

static void assert_call(const char *method, const uint32_t *pid, const char *error_name)
{
	char name[128];
	int r = call(method, pid, name, sizeof(name));
	assert_string_equal(name, error_name);
	assert_true((r < 0) == (error_name[0] != '\0'));
}

/* Makes the same call as another user in a child; returns true if it failed with the error. */
static bool user_nobody_gets_error(const char *method, const char *error_name)
{
	int status;
	pid_t child = fork();
	if (child == 0) {
		char name[128];
		if (setresuid(NOBODY, NOBODY, NOBODY) < 0)
			_exit(2);
		(void)call(method, NULL, name, sizeof(name));
		_exit(strcmp(name, error_name) == 0 ? 0 : 1);
	}
	return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void test_root_steers(void **state)
{
	const uint32_t managed = OWN_PID, unknown = 42, busy = 1;
	need_bus(state);
	need(geteuid() == 0, "commands need root, but this test runs as another user");
	assert_call("Resume", NULL, "org.numamigrd1.Error.AlreadyRunning");
	assert_call("Pause", NULL, "");
	assert_call("Pause", NULL, "org.numamigrd1.Error.AlreadyPaused");
	assert_call("Resume", NULL, "");
	assert_call("Release", &managed, "");
	assert_call("Release", &unknown, "org.numamigrd1.Error.NoSuchProcess");
	assert_call("Release", &busy, "System.Error.EBUSY");
	assert_call("Release", NULL, SD_BUS_ERROR_INVALID_ARGS);
	assert_call("Status", NULL, "");
}

static void test_daemon_refuses_others(void **state)
{
	need_bus(state);
	need(geteuid() == 0, "becoming another user needs root");
	assert_true(user_nobody_gets_error("Status", ""));
	assert_true(user_nobody_gets_error("Pause", SD_BUS_ERROR_ACCESS_DENIED));
	assert_true(user_nobody_gets_error("Resume", SD_BUS_ERROR_ACCESS_DENIED));
	assert_call("Resume", NULL, "org.numamigrd1.Error.AlreadyRunning"); /* nothing was done */
}

/* SECURITY: user */
static void test_shipped_policy(void **state)
{
	need_bus(state);
	need(geteuid() == 0, "only root and numa-migrd may own the name under the shipped policy");
	assert_true(user_nobody_gets_error("Status", ""));
	assert_true(user_nobody_gets_error("Pause", SD_BUS_ERROR_ACCESS_DENIED));
	assert_call("Pause", NULL, "");
	assert_call("Resume", NULL, "");
}

/* ---- loss and return of the bus ---- */

/* Status of the bus reported to the daemon, on a loop of the test. */
struct link {
	sd_event *event;
	struct nm_control *control;
	int error;	 /* last reported error */
	unsigned reports; /* number of reports */
	unsigned rounds; /* iterations of the loop */
	bool paused;
};

static void note_bus(void *context, int error)
{
	struct link *link = context;
	link->error = error;
	link->reports++;
}

static void link_open(struct link *link)
{
	const struct nm_control_ops ops = {
		.context = link,
		.status = give_status,
		.facts = give_facts,
		.asked = ignore_request,
		.pause = do_pause,
		.resume = do_resume,
		.release = do_release,
		.bus_changed = note_bus,
	};
	*link = (struct link){.error = 1};
	assert_int_equal(sd_event_new(&link->event), 0);
	assert_int_equal(nm_control_new(link->event, &ops, &link->control), 0);
}

static void link_close(struct link *link)
{
	nm_control_free(link->control);
	sd_event_unref(link->event);
}

/* Runs the loop for N ms, or until the next report. */
static void link_run(struct link *link, unsigned seconds)
{
	unsigned reports = link->reports;
	time_t end = time(NULL) + seconds;
	while (time(NULL) < end && link->reports == reports) {
		assert_true(sd_event_run(link->event, 200000) >= 0);
		link->rounds++;
	}
}

static void test_second_daemon_is_refused(void **state)
{
	struct link link;
	need_bus(state);
	link_open(&link);
	assert_int_equal(link.reports, 1);
	assert_int_equal(link.error, -EEXIST);
	/* It gets the name once that is available. */
	struct bus *bus = *state;
	end(&bus->server);
	link_run(&link, 60);
	assert_int_equal(link.error, 0);
	link_close(&link);
}

/* The loop must not spin: the test itself causes five iterations a second. */
static void test_no_bus(void **state)
{
	struct link link;
	(void)state;
	setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path=/nonexistent/bus", 1);
	link_open(&link);
	assert_int_equal(link.reports, 1);
	assert_int_equal(link.error, -ENOENT);
	link_run(&link, 4);
	assert_int_equal(link.reports, 1);
	assert_in_range(link.rounds, 1, 60);
	link_close(&link);
	nm_control_free(NULL);
}

static void test_restarted_bus(void **state)
{
	struct link link;
	struct bus *bus = *state;
	need_bus(state);
	link_open(&link);
	assert_int_equal(link.reports, 0);
	for (unsigned time = 0; time < 2; time++) {
		end(&bus->daemon);
		link_run(&link, 30);
		assert_int_equal(link.error, -ECONNRESET);
		link.rounds = 0;
		link_run(&link, 2);
		assert_in_range(link.rounds, 1, 60);
		assert_int_equal(link.reports, 2 * time + 1);
		assert_true(start_bus(bus));
		link_run(&link, 60);
		assert_int_equal(link.error, 0);
		assert_int_equal(link.reports, 2 * time + 2);
	}
	link_close(&link);
}

/* A process holds the socket and never answers; the loop must not block. */
static void test_unresponsive_bus(void **state)
{
	struct link link;
	struct bus *bus = *state;
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	need_bus(state);
	link_open(&link);
	end(&bus->daemon);
	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s/bus", bus->folder);
	(void)unlink(address.sun_path);
	int deaf = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(deaf, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(deaf, 8), 0);
	link_run(&link, 30);
	assert_int_equal(link.error, -ECONNRESET);
	link.rounds = 0;
	link_run(&link, 4);
	assert_in_range(link.rounds, 2, 60); /* the loop continued and did not spin */
	close(deaf);
	(void)unlink(address.sun_path);
	assert_true(start_bus(bus));
	link_run(&link, 90);
	assert_int_equal(link.error, 0);
	link_close(&link);
}

/* Its object answers as before. */
static void test_bus_object_returns(void **state)
{
	struct bus *bus = *state;
	char name[128];
	int r = -1;
	need_bus(state);
	assert_call("Status", NULL, "");
	end(&bus->daemon);
	assert_true(start_bus(bus));
	for (unsigned i = 0; i < 300 && r < 0; i++) {
		r = call("Status", NULL, name, sizeof(name));
		(void)usleep(100000);
	}
	assert_int_equal(r, 0);
}

/* ---- numa-migrctl on the same bus ---- */

/* Runs the program built beside this test; returns its exit status, and both output streams in
 * `text`. */
static int ctl(const char *arguments, char *text, size_t size)
{
	char self[512], command[1024], rest[4096];
	ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
	assert_true(length > 0);
	self[length] = '\0';
	*strrchr(self, '/') = '\0';
	(void)snprintf(command, sizeof(command), "%s/../../src/ctl/numa-migrctl", self);
	need(access(command, X_OK) == 0, "numa-migrctl is not built");
	(void)snprintf(command + strlen(command), sizeof(command) - strlen(command), " %s 2>&1",
		       arguments);
	FILE *pipe = popen(command, "re"); /* NOLINT(cert-env33-c): our own program, fixed words */
	assert_non_null(pipe);
	size_t used = fread(text, 1, size - 1, pipe);
	text[used] = '\0';
	while (fread(rest, 1, sizeof(rest), pipe) > 0)
		; /* or it ends by SIGPIPE */
	return WEXITSTATUS(pclose(pipe));
}

static void assert_ctl(const char *arguments, int status, const char *says)
{
	char text[4096];
	int found = ctl(arguments, text, sizeof(text));
	if (found != status || !strstr(text, says))
		fail_msg("numa-migrctl %s: exit %d, \"%s\"", arguments, found, text);
}

static void test_ctl_usage(void **state)
{
	(void)state;
	assert_ctl("", 64, "a command is missing");
	assert_ctl("dance", 64, "no such command: dance");
	assert_ctl("--bad", 64, "--help");
	assert_ctl("status twice", 64, "one argument too many: twice");
	assert_ctl("release", 64, "needs a process id");
	assert_ctl("release 12x", 64, "not a process id: 12x");
	assert_ctl("release -1", 64, "");
	assert_ctl("release 0", 64, "not a process id");
	assert_ctl("release 99999999999999999999", 64, "not a process id");
	assert_ctl("--help", 0, "Usage: numa-migrctl");
	assert_ctl("--version", 0, "numa-migrctl ");
}

static void test_ctl_commands(void **state)
{
	need_bus(state);
	assert_ctl("status", 0, "source: faults \xe2\x80\xa6");
	assert_ctl("status", 0, "leases: 5000000000");
	assert_ctl("status", 0, "cost_percent: 0.25");
	assert_ctl("status --json", 0, "\"leases\": 5000000000");
	assert_ctl("status --json", 0, "\"paused\": false");
	char text[4096];
	(void)ctl("status", text, sizeof(text));
	assert_null(strstr(text, "latency_ns")); /* unavailable: left out */
	need(geteuid() == 0, "commands need root, but this test runs as another user");
	assert_ctl("pause", 0, "");
	assert_ctl("pause", 1, "paused already");
	assert_ctl("--json resume", 0, "{\"version\": 1, \"result\": \"resumed\"}");
	assert_ctl("release 42", 1, "there is no process 42");
	assert_ctl("release 4711", 0, "");
}

/* One object without other output; numbers are JSON numbers. */
static void test_ctl_json_is_whole(void **state)
{
	char text[4096];
	need_bus(state);
	assert_int_equal(ctl("status --json", text, sizeof(text)), 0);
	assert_string_equal(text, "{\n"
				  "  \"version\": 1,\n"
				  "  \"status\": {\n"
				  "    \"source\": \"faults \xe2\x80\xa6\",\n"
				  "    \"leases\": 5000000000,\n"
				  "    \"cost_percent\": 0.25,\n"
				  "    \"paused\": false\n"
				  "  }\n"
				  "}\n");
}

/* In a child as user nobody: the exit status of numa-migrctl, or 126 if the user may not run it. */
static int ctl_as_user_nobody(const char *arguments, const char *says)
{
	int status;
	pid_t child = fork();
	if (child == 0) {
		char text[4096];
		if (setresuid(NOBODY, NOBODY, NOBODY) < 0)
			_exit(99);
		int found = ctl(arguments, text, sizeof(text));
		_exit(found == 126 || strstr(text, says) ? found : 98);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void test_ctl_is_refused_to_others(void **state)
{
	char text[4096];
	need_bus(state);
	need(geteuid() == 0, "becoming another user needs root");
	(void)ctl("--version", text, sizeof(text)); /* skips if it was not built */
	int status = ctl_as_user_nobody("status", "leases: 5000000000");
	need(status != 126 && status != 127, "user nobody may not run the built programs");
	assert_int_equal(status, 0);
	assert_int_equal(
		ctl_as_user_nobody("pause", "only an administrator may control numa-migrd"), 77);
	assert_int_equal(
		ctl_as_user_nobody("release 4711", "only an administrator may control numa-migrd"),
		77);
	assert_ctl("status", 0, "paused: no");
}

static void test_ctl_without_daemon(void **state)
{
	need_bus(state);
	assert_ctl("status", 69, "numa-migrd is not running: systemctl start numa-migrd");
	setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path=/nonexistent/bus", 1);
	assert_ctl("status", 69, "the system bus is not running");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_root_steers, setup_open, teardown),
		cmocka_unit_test_setup_teardown(test_daemon_refuses_others, setup_open, teardown),
		cmocka_unit_test_setup_teardown(test_shipped_policy, setup_shipped, teardown),
		cmocka_unit_test_setup_teardown(test_second_daemon_is_refused, setup_open,
						teardown),
		cmocka_unit_test(test_no_bus),
		cmocka_unit_test_setup_teardown(test_restarted_bus, setup_without_server, teardown),
		cmocka_unit_test_setup_teardown(test_unresponsive_bus, setup_without_server,
						teardown),
		cmocka_unit_test_setup_teardown(test_bus_object_returns, setup_open, teardown),
		cmocka_unit_test(test_ctl_usage),
		cmocka_unit_test_setup_teardown(test_ctl_commands, setup_open, teardown),
		cmocka_unit_test_setup_teardown(test_ctl_json_is_whole, setup_open, teardown),
		cmocka_unit_test_setup_teardown(test_ctl_is_refused_to_others, setup_open,
						teardown),
		cmocka_unit_test_setup_teardown(test_ctl_without_daemon, setup_without_server,
						teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
