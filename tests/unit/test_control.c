/* SPDX-License-Identifier: MIT */
/* The bus object on a private bus with the shipped policy, or with one that allows everything. */
#include <fcntl.h>
#include <grp.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "bus_fixture.h"
#include "report/dump.h"

#define NOBODY 65534
#define GROUP "daemon" /* exists everywhere; used instead of numa-migrd */
#define OWN_PID 4711U

/* ---- the daemon, in a separate process ---- */

static struct shared {
	_Atomic unsigned calls; /* that have reached it */
	bool paused;
} * shared;

static int give_document(void *context)
{
	nm_auto(nm_dump_clear) struct nm_dump dump = {0};
	(void)context;
	shared->calls++;
	int r = nm_dump_open(&dump);
	if (r < 0)
		return r;
	nm_dump_value(&dump, "status", json_pack("{sb}", "paused", shared->paused));
	return nm_dump_finish(&dump);
}

static int do_pause(void *context)
{
	(void)context;
	shared->calls++;
	shared->paused = true;
	return 0;
}

static int do_resume(void *context)
{
	(void)context;
	shared->calls++;
	shared->paused = false;
	return 0;
}

static int do_release(void *context, uint32_t pid)
{
	(void)context;
	shared->calls++;
	if (pid == 1)
		return -EBUSY;
	return pid == OWN_PID ? 0 : -ESRCH;
}

static int do_reload(void *context, char *error, size_t size)
{
	(void)context;
	shared->calls++;
	(void)snprintf(error, size, "/etc/numa-migrd.conf:3: no");
	return -EINVAL;
}

static int do_set_dry_run(void *context, bool wanted)
{
	(void)context;
	shared->calls++;
	return wanted ? 0 : -EACCES;
}

static int do_raise_control(void *context, uint32_t minutes, double percent)
{
	(void)context;
	shared->calls++;
	return minutes == 0 && percent == 0 ? 0 : -EINVAL;
}

static void ignore_bus(void *context, int error)
{
	(void)context;
	(void)error;
}

static void serve(int ready)
{
	const struct nm_control_ops ops = {
		.dump = give_document,
		.pause = do_pause,
		.resume = do_resume,
		.release = do_release,
		.manage = do_release,
		.reload = do_reload,
		.set_dry_run = do_set_dry_run,
		.raise_control = do_raise_control,
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

/* ---- the bus ---- */

static int setup_open(void **state)
{
	*shared = (struct shared){0};
	return setup(state, open_policy, serve);
}

static int setup_without_server(void **state)
{
	return setup(state, open_policy, NULL);
}

/* The shipped policy for another group. */
static bool write_shipped_policy(const char *path)
{
	FILE *from = fopen(NM_SOURCE_DIR "/conf/org.numamigrd1.conf", "re");
	FILE *to = fopen(path, "we");
	unsigned groups = 0;
	char line[512];
	while (from && to && fgets(line, sizeof(line), from)) {
		char *group = strstr(line, "group=\"numa-migrd\"");
		if (group) {
			(void)snprintf(group, sizeof(line) - (size_t)(group - line),
				       "group=\"" GROUP "\">\n");
			groups++;
		}
		(void)fputs(line, to);
	}
	bool done = from && to && groups == 1 && fclose(to) == 0;
	if (from)
		(void)fclose(from);
	return done;
}

static int setup_shipped(void **state)
{
	static const char policy[] =
		"<policy context=\"default\"><allow user=\"*\"/><deny own=\"*\"/>"
		"<deny send_type=\"method_call\"/><allow "
		"send_destination=\"org.freedesktop.DBus\"/>"
		"<allow send_type=\"method_return\"/><allow send_type=\"error\"/>"
		"<allow receive_sender=\"*\"/></policy>"
		"<include>/tmp/nm-access-%u.conf</include>";
	char path[64], text[sizeof(policy) + 64];
	*shared = (struct shared){0};
	(void)snprintf(path, sizeof(path), "/tmp/nm-access-%u.conf", (unsigned)getpid());
	(void)snprintf(text, sizeof(text), policy, (unsigned)getpid());
	int r = write_shipped_policy(path) ? setup(state, text, serve) : -1;
	(void)unlink(path);
	return r;
}

static void need_root_and_bus(void **state)
{
	need_bus(state);
	need(geteuid() == 0, "becoming another user needs root");
}

/* ---- calls ---- */

static const struct {
	const char *method, *types;
} methods[] = {
	{"Dump", ""},	 {"Pause", ""},	 {"Resume", ""},     {"Release", "u"},
	{"Manage", "u"}, {"Reload", ""}, {"SetDryRun", "b"}, {"RaiseControl", "ud"},
};

/* Returns the name of the error, or "". */
static const char *call_over(sd_bus *bus, const char *destination, const char *method,
			     const char *types, uint32_t argument)
{
	static char name[128];
	nm_auto(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
	nm_auto(sd_bus_message_unrefp) sd_bus_message *call = NULL;
	int r = sd_bus_message_new_method_call(bus, &call, destination, NM_BUS_PATH,
					       NM_BUS_INTERFACE, method);
	if (r >= 0 && strcmp(types, "ud") == 0)
		r = sd_bus_message_append(call, types, argument, 0.0);
	else if (r >= 0)
		r = sd_bus_message_append(call, types, argument);
	if (r >= 0)
		r = sd_bus_call(bus, call, 10000000, &error, NULL);
	(void)snprintf(name, sizeof(name), "%s",
		       r >= 0	    ? ""
		       : error.name ? error.name
				    : strerror(-r));
	return name;
}

static const char *call(const char *method, const char *types, uint32_t argument)
{
	nm_auto(sd_bus_flush_close_unrefp) sd_bus *bus = NULL;
	if (sd_bus_open_system(&bus) < 0)
		return "no bus";
	return call_over(bus, NM_BUS_NAME, method, types, argument);
}

static void assert_call(const char *method, const char *types, uint32_t argument, const char *error)
{
	assert_string_equal(call(method, types, argument), error);
}

/* In a child: becomes user nobody, in the group or in none. */
static bool become_user_nobody(bool of_group)
{
	const struct group *group = getgrnam(GROUP);
	gid_t gid = of_group && group ? group->gr_gid : NOBODY;
	return setgroups(of_group ? 1 : 0, &gid) == 0 && setresgid(NOBODY, NOBODY, NOBODY) == 0 &&
	       setresuid(NOBODY, NOBODY, NOBODY) == 0;
}

static bool succeeds(pid_t child)
{
	int status;
	return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static bool nobody_gets(bool of_group, const char *method, const char *types, const char *error)
{
	pid_t child = fork();
	if (child == 0) {
		const char *name =
			become_user_nobody(of_group) ? call(method, types, OWN_PID) : "still root";
		if (strcmp(name, error) != 0)
			(void)fprintf(stderr, "%s: \"%s\", not \"%s\"\n", method, name, error);
		_exit(strcmp(name, error) == 0 ? 0 : 1);
	}
	return succeeds(child);
}

/* SECURITY: bus */
static void root_changes(void **state)
{
	need_root_and_bus(state);
	assert_call("Resume", "", 0, "");
	assert_call("Pause", "", 0, "");
	assert_call("Pause", "", 0, "");
	assert_call("Resume", "", 0, "");
	assert_call("Release", "u", OWN_PID, "");
	assert_call("Release", "u", 42, NM_BUS_ERROR_NO_SUCH_PROCESS);
	assert_call("Release", "u", 1, "System.Error.EBUSY");
	assert_call("Release", "", 0, SD_BUS_ERROR_INVALID_ARGS);
	assert_call("Manage", "u", OWN_PID, "");
	assert_call("Manage", "u", 42, NM_BUS_ERROR_NO_SUCH_PROCESS);
	assert_call("Reload", "", 0, NM_BUS_ERROR_BAD_CONFIGURATION);
	assert_call("Reload", "u", 1, SD_BUS_ERROR_INVALID_ARGS); /* no other file */
	assert_call("SetDryRun", "b", 1, "");
	assert_call("SetDryRun", "b", 0, NM_BUS_ERROR_DRY_RUN_FORCED);
	assert_call("RaiseControl", "ud", 0, "");
	assert_call("RaiseControl", "ud", 5, SD_BUS_ERROR_INVALID_ARGS);
}

/* A reader cannot be surprised by a change of the file while it reads. */
static void a_dump_is_sealed(void **state)
{
	nm_auto(sd_bus_flush_close_unrefp) sd_bus *bus = NULL;
	nm_auto(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
	int fd;
	need_bus(state);
	assert_true(sd_bus_open_system(&bus) >= 0);
	assert_true(sd_bus_call_method(bus, NM_BUS_NAME, NM_BUS_PATH, NM_BUS_INTERFACE, "Dump",
				       NULL, &reply, "") >= 0);
	assert_true(sd_bus_message_read(reply, "h", &fd) > 0);
	const int seals = F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL;
	assert_int_equal(fcntl(fd, F_GET_SEALS) & seals, seals);
	assert_int_equal(pwrite(fd, "x", 1, 0), -1);
	assert_int_equal(ftruncate(fd, 0), -1); /* others have the same document */
	json_t *document = json_loadfd(fd, 0, NULL);
	assert_true(json_is_object(json_object_get(document, "status")));
	json_decref(document);
}

/* ---- permissions ---- */

/* Calls by the unique name end at the bus, too. */
static bool nobody_is_refused_by_unique_name(void)
{
	nm_auto(sd_bus_flush_close_unrefp) sd_bus *bus = NULL;
	nm_auto(sd_bus_creds_unrefp) sd_bus_creds *creds = NULL;
	const char *name;
	pid_t child = fork();
	if (child != 0)
		return succeeds(child);
	if (!become_user_nobody(false) || sd_bus_open_system(&bus) < 0 ||
	    sd_bus_get_name_creds(bus, NM_BUS_NAME, SD_BUS_CREDS_UNIQUE_NAME, &creds) < 0 ||
	    sd_bus_creds_get_unique_name(creds, &name) < 0)
		_exit(2);
	_exit(strcmp(call_over(bus, name, "Pause", "", 0), SD_BUS_ERROR_ACCESS_DENIED) != 0);
}

/* SECURITY: user */
static void others_are_refused_by_the_bus(void **state)
{
	need_root_and_bus(state);
	for (size_t i = 0; i < NM_ARRAY_SIZE(methods); i++)
		assert_true(nobody_gets(false, methods[i].method, methods[i].types,
					SD_BUS_ERROR_ACCESS_DENIED));
	assert_true(nobody_is_refused_by_unique_name());
	assert_int_equal(shared->calls, 0);
	assert_call("Pause", "", 0, "");
	assert_int_equal(shared->calls, 1);
}

/* SECURITY: group */
static void the_group_may_only_read(void **state)
{
	need_root_and_bus(state);
	need(getgrnam(GROUP) != NULL, "there is no group " GROUP);
	assert_true(nobody_gets(true, "Dump", "", ""));
	assert_int_equal(shared->calls, 1);
	for (size_t i = 1; i < NM_ARRAY_SIZE(methods); i++)
		assert_true(nobody_gets(true, methods[i].method, methods[i].types,
					SD_BUS_ERROR_ACCESS_DENIED));
	assert_int_equal(shared->calls, 1);
}

/* Calls a method of any interface, or of none; returns the name of the error, or "". */
static const char *call_of_interface(const char *interface, const char *method)
{
	static char name[128];
	nm_auto(sd_bus_flush_close_unrefp) sd_bus *bus = NULL;
	nm_auto(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
	if (sd_bus_open_system(&bus) < 0)
		return "no bus";
	(void)sd_bus_call_method(bus, NM_BUS_NAME, NM_BUS_PATH, interface, method, &error, NULL,
				 "");
	(void)snprintf(name, sizeof(name), "%s", error.name ? error.name : "");
	return name;
}

/* The rules of the bus name the interface; a call may leave it out. */
/* SECURITY: other-interfaces */
static void other_interfaces_are_refused(void **state)
{
	static const struct {
		bool of_group;
		const char *interface, *method;
	} calls[] = {
		{false, "org.freedesktop.DBus.Introspectable", "Introspect"},
		{false, "org.freedesktop.DBus.Peer", "Ping"},
		{false, "org.freedesktop.DBus.Properties", "GetAll"},
		{false, NULL, "Pause"},
		{false, NULL, "Dump"},
		{true, "org.freedesktop.DBus.Properties", "Set"},
		{true, NULL, "Pause"},
		{true, NULL, "Reload"},
	};
	need_root_and_bus(state);
	need(getgrnam(GROUP) != NULL, "there is no group " GROUP);
	for (size_t i = 0; i < NM_ARRAY_SIZE(calls); i++) {
		pid_t child = fork();
		if (child == 0)
			_exit(!become_user_nobody(calls[i].of_group) ||
			      strcmp(call_of_interface(calls[i].interface, calls[i].method),
				     SD_BUS_ERROR_ACCESS_DENIED) != 0);
		assert_true(succeeds(child));
	}
	assert_int_equal(shared->calls, 0);
}

/* Signals that the service waits for, and its methods as signals. */
static int send_signals(void)
{
	static const char *const signals[][2] = {
		{"org.freedesktop.DBus", "NameOwnerChanged"},
		{"org.freedesktop.DBus", "NameLost"},
		{NM_BUS_INTERFACE, "Pause"},
	};
	nm_auto(sd_bus_flush_close_unrefp) sd_bus *bus = NULL;
	if (sd_bus_open_system(&bus) < 0)
		return -ENOTCONN;
	for (unsigned i = 0; i < 300; i++) {
		nm_auto(sd_bus_message_unrefp) sd_bus_message *signal = NULL;
		const char *const *words = signals[i % NM_ARRAY_SIZE(signals)];
		int r = sd_bus_message_new_signal(bus, &signal, NM_BUS_PATH, words[0], words[1]);
		if (r >= 0)
			r = sd_bus_message_set_destination(signal, NM_BUS_NAME);
		if (r >= 0)
			r = sd_bus_message_append(signal, "sss", NM_BUS_NAME, ":1.1", "");
		if (r >= 0)
			r = sd_bus_send(bus, signal, NULL);
		if (r < 0)
			return r;
	}
	return sd_bus_flush(bus);
}

/* SECURITY: signals */
static void signals_of_others_change_nothing(void **state)
{
	need_root_and_bus(state);
	pid_t child = fork();
	if (child == 0)
		_exit(!become_user_nobody(false) || send_signals() < 0);
	assert_true(succeeds(child));
	assert_call("Pause", "", 0, "");
	assert_int_equal(shared->calls, 1); /* that of root */
}

/* While the service is stopped, too. */
/* SECURITY: bus-name */
static void others_cannot_take_the_name(void **state)
{
	need_root_and_bus(state);
	pid_t child = fork();
	if (child == 0) {
		sd_bus *bus = NULL;
		if (!become_user_nobody(true) || sd_bus_open_system(&bus) < 0)
			_exit(2);
		_exit(sd_bus_request_name(bus, NM_BUS_NAME, 0) == -EACCES ? 0 : 1);
	}
	assert_true(succeeds(child));
}

#define FLOOD 2000U

static int count_refusal(sd_bus_message *reply, void *userdata, sd_bus_error *error)
{
	unsigned *refused = userdata;
	(void)error;
	*refused += sd_bus_message_is_method_error(reply, SD_BUS_ERROR_ACCESS_DENIED) > 0;
	return 0;
}

/* Calls without waiting for the answers; returns the number of those refused. */
static unsigned flood(sd_bus *bus)
{
	unsigned refused = 0;
	for (unsigned i = 0; i < FLOOD; i++)
		if (sd_bus_call_method_async(bus, NULL, NM_BUS_NAME, NM_BUS_PATH, NM_BUS_INTERFACE,
					     methods[i % 3].method, count_refusal, &refused,
					     "") < 0)
			return 0;
	while (refused < FLOOD) {
		int r = sd_bus_process(bus, NULL);
		if (r < 0 || (r == 0 && sd_bus_wait(bus, 10000000) <= 0))
			return refused;
	}
	return refused;
}

/* SECURITY: bus */
static void a_flood_ends_at_the_bus(void **state)
{
	need_root_and_bus(state);
	pid_t child = fork();
	if (child == 0) {
		sd_bus *bus = NULL;
		if (!become_user_nobody(false) || sd_bus_open_system(&bus) < 0)
			_exit(2);
		_exit(flood(bus) == FLOOD ? 0 : 1);
	}
	assert_call("Pause", "", 0, "");
	assert_true(succeeds(child));
	assert_int_equal(shared->calls, 1); /* that of root */
}

/* ---- loss and return of the bus ---- */

/* Status of the bus reported to the daemon, on a loop of the test. */
struct link {
	sd_event *event;
	struct nm_control *control;
	int error;	 /* last reported error */
	unsigned reports; /* number of reports */
	unsigned rounds;  /* iterations of the loop */
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
		.dump = give_document,
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
	const char *name = "";
	need_bus(state);
	assert_call("Manage", "u", 42, NM_BUS_ERROR_NO_SUCH_PROCESS);
	end(&bus->daemon);
	assert_true(start_bus(bus));
	for (unsigned i = 0; i < 300 && strcmp(name, NM_BUS_ERROR_NO_SUCH_PROCESS) != 0; i++) {
		name = call("Manage", "u", 42);
		(void)usleep(100000);
	}
	assert_string_equal(name, NM_BUS_ERROR_NO_SUCH_PROCESS);
}

/* ---- introspection and org.numamigrd1(5) ---- */

static void everything_is_documented(void **state)
{
	nm_auto(sd_bus_flush_close_unrefp) sd_bus *bus = NULL;
	nm_auto(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
	nm_autofree char *page = calloc(1, 1 << 16);
	const char *xml;
	unsigned count = 0;
	need_bus(state);
	FILE *file = fopen(NM_SOURCE_DIR "/man/org.numamigrd1.5", "re");
	assert_true(file && page && fread(page, 1, (1 << 16) - 1, file) > 0);
	(void)fclose(file);
	assert_true(sd_bus_open_system(&bus) >= 0);
	assert_true(sd_bus_call_method(bus, NM_BUS_NAME, NM_BUS_PATH,
				       "org.freedesktop.DBus.Introspectable", "Introspect", NULL,
				       &reply, "") >= 0);
	assert_true(sd_bus_message_read(reply, "s", &xml) >= 0);
	const char *own = strstr(xml, "<interface name=\"" NM_BUS_INTERFACE "\"");
	assert_non_null(own);
	assert_null(strstr(own, "<property ")); /* the policy names methods only */
	for (const char *at = own; (at = strstr(at, "<method name=\"")); count++) {
		char line[128];
		at += strlen("<method name=\"");
		(void)snprintf(line, sizeof(line), "\n.It Ic %.*s No ", (int)strcspn(at, "\""), at);
		if (!strstr(page, line))
			fail_msg("org.numamigrd1(5) lacks:%s", line);
	}
	assert_int_equal(count, NM_ARRAY_SIZE(methods));
}

int main(void)
{
#define ON(name, how) cmocka_unit_test_setup_teardown(name, setup_##how, teardown)
	const struct CMUnitTest tests[] = {
		ON(root_changes, shipped),
		ON(a_dump_is_sealed, open),
		ON(others_are_refused_by_the_bus, shipped),
		ON(the_group_may_only_read, shipped),
		ON(other_interfaces_are_refused, shipped),
		ON(signals_of_others_change_nothing, shipped),
		ON(others_cannot_take_the_name, shipped),
		ON(a_flood_ends_at_the_bus, shipped),
		ON(test_second_daemon_is_refused, open),
		cmocka_unit_test(test_no_bus),
		ON(test_restarted_bus, without_server),
		ON(test_unresponsive_bus, without_server),
		ON(test_bus_object_returns, open),
		ON(everything_is_documented, open),
	};
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	return shared == MAP_FAILED ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
