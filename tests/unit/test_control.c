/* SPDX-License-Identifier: MIT */
/*
 * The bus object on a private bus with the shipped policy, or with one that allows everything. A
 * call is a text: "ok", the text that it returns, or the last part of the name of the error.
 *
 *	root Release u 42 = NoSuchProcess	types and values of the arguments follow the method
 *	nobody .Pause = AccessDenied		without an interface
 *	group unique-name Pause = AccessDenied	to the unique name of the service
 */
#define SET_UP setup_shipped
#define TEAR_DOWN tear_down
#include "../support/test.h"

#include <fcntl.h>
#include <grp.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>

#include "bus_fixture.h"
#include "report/dump.h"

static int tear_down(void **state);
static void wait_for_report(unsigned seconds);
#define SCRIPT_SECOND() wait_for_report(1)
#include "../support/script.h"

#define NOBODY 65534
#define GROUP "daemon" /* exists everywhere; used instead of numa-migrd */
#define FLOOD 2000U

/* With the processes of the test. */
static struct shared {
	_Atomic unsigned calls; /* that have reached the daemon */
	char asked[64];		/* the last change */
	int result;		/* of changes */
	char answer[16384], message[256];
	bool writable; /* the last document */
	unsigned refused;
} * shared;
static struct bus *bus;
static bool is_shipped;

/* ---- the daemon, in a separate process ---- */

static int give_document(void *context)
{
	nm_auto(nm_dump_clear) struct nm_dump dump = {0};
	(void)context;
	shared->calls++;
	int r = nm_dump_open(&dump);
	if (r < 0)
		return r;
	nm_dump_value(&dump, "status", json_pack("{ss}", "asked", shared->asked));
	return nm_dump_finish(&dump);
}

__attribute__((format(printf, 1, 2))) static int note(const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	(void)vsnprintf(shared->asked, sizeof(shared->asked), format, arguments);
	va_end(arguments);
	shared->calls++;
	return shared->result;
}

/* An operation, and what it notes. */
#define OPERATION(name, parameters, ...)                                                           \
	static int name parameters                                                                 \
	{                                                                                          \
		(void)context;                                                                     \
		return note(__VA_ARGS__);                                                          \
	}

OPERATION(do_pause, (void *context), "pause")
OPERATION(do_resume, (void *context), "resume")
OPERATION(do_release, (void *context, uint32_t pid), "release %u", pid)
OPERATION(do_manage, (void *context, uint32_t pid), "manage %u", pid)
OPERATION(do_set_dry_run, (void *context, bool wanted), "dry run %d", wanted)
OPERATION(do_raise_control, (void *context, uint32_t minutes, double percent), "%g %% for %u",
	  percent, minutes)

static int do_reload(void *context, char *error, size_t size)
{
	(void)context;
	if (shared->result == -EINVAL)
		(void)snprintf(error, size, "/etc/numa-migrd.conf:3: no");
	return note("reload");
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
		.manage = do_manage,
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

static int set_up(void **state, const char *policy, bus_server_fn server)
{
	*shared = (struct shared){0};
	int r = setup(state, policy, server);
	bus = *state;
	return r;
}

static int setup_open(void **state)
{
	is_shipped = false;
	return set_up(state, open_policy, serve);
}

static int setup_without_server(void **state)
{
	return set_up(state, open_policy, NULL);
}

/* The shipped policy for another group. */
static int setup_shipped(void **state)
{
	static const char before[] = "<policy context=\"default\"><allow user=\"*\"/>"
				     "<deny own=\"*\"/><deny send_type=\"method_call\"/>"
				     "<allow send_destination=\"org.freedesktop.DBus\"/>"
				     "<allow send_type=\"method_return\"/>"
				     "<allow send_type=\"error\"/><allow receive_sender=\"*\"/>"
				     "</policy>";
	static const char old[] = "group=\"numa-migrd\"";
	char shipped[8192] = "", text[sizeof(shipped) + sizeof(before)];
	FILE *file = fopen(NM_SOURCE_DIR "/conf/org.numamigrd1.conf", "re");
	assert_true(file && fread(shipped, 1, sizeof(shipped) - 1, file) > 0);
	(void)fclose(file);
	char *group = strstr(shipped, old), *end = strstr(shipped, "</busconfig>");
	assert_true(group && end && !strstr(group + 1, old));
	*group = *end = '\0';
	(void)snprintf(text, sizeof(text), "%s%sgroup=\"" GROUP "\"%s", before,
		       strstr(shipped, "<busconfig>") + strlen("<busconfig>"), group + strlen(old));
	is_shipped = true;
	return set_up(state, text, serve);
}

/* ---- calls ---- */

static bool become(const char *user)
{
	const struct group *group = strcmp(user, "group") == 0 ? getgrnam(GROUP) : NULL;
	gid_t gid = group ? group->gr_gid : NOBODY;
	return strcmp(user, "root") == 0 ||
	       (setgroups(group ? 1 : 0, &gid) == 0 && setresgid(NOBODY, NOBODY, NOBODY) == 0 &&
		setresuid(NOBODY, NOBODY, NOBODY) == 0);
}

__attribute__((format(printf, 1, 2))) static void answer(const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	(void)vsnprintf(shared->answer, sizeof(shared->answer), format, arguments);
	va_end(arguments);
}

/* A reader cannot be surprised by a change of the file while it reads. */
static void read_document(int fd)
{
	const int seals = F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL;
	char text[1024] = "";
	shared->writable = (fcntl(fd, F_GET_SEALS) & seals) != seals ||
			   pwrite(fd, "x", 1, 0) >= 0 || ftruncate(fd, 0) == 0;
	if (pread(fd, text, sizeof(text) - 1, 0) > 0)
		answer("%s", text);
}

static void call_method(sd_bus *over, const char *destination, const struct step *step, unsigned at)
{
	nm_auto(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
	nm_auto(sd_bus_message_unrefp) sd_bus_message *call = NULL, *reply = NULL;
	char *name = step->word[at++], *dot = strrchr(name, '.');
	const char *interface = dot == name ? NULL : dot ? name : NM_BUS_INTERFACE, *text;
	int fd;
	if (dot)
		*dot = '\0';
	int r = sd_bus_message_new_method_call(over, &call, destination, NM_BUS_PATH, interface,
					       dot ? dot + 1 : name);
	const bool has_types = at < step->count && !strchr("=~!", *step->word[at]);
	const char *types = has_types ? step->word[at++] : "";
	for (; *types && r >= 0; types++) {
		const double value = strtod(step->word[at++], NULL);
		const uint32_t number = (uint32_t)value;
		r = sd_bus_message_append_basic(
			call, *types, *types == 'd' ? (const void *)&value : (const void *)&number);
	}
	if (r >= 0)
		r = sd_bus_call(over, call, 10000000, &error, &reply);
	const char *problem = error.name ? strrchr(error.name, '.') + 1 : strerror(-r);
	answer("%s", r < 0 ? problem : "ok");
	(void)snprintf(shared->message, sizeof(shared->message), "%s",
		       error.message ? error.message : "");
	if (reply && sd_bus_message_read(reply, "h", &fd) > 0)
		read_document(fd);
	else if (reply && sd_bus_message_read(reply, "s", &text) > 0)
		answer("%s", text);
}

/* Calls by the unique name end at the bus, too. */
static void call_unique_name(sd_bus *over, const struct step *step)
{
	nm_auto(sd_bus_creds_unrefp) sd_bus_creds *creds = NULL;
	const char *name;
	if (sd_bus_get_name_creds(over, NM_BUS_NAME, SD_BUS_CREDS_UNIQUE_NAME, &creds) >= 0 &&
	    sd_bus_creds_get_unique_name(creds, &name) >= 0)
		call_method(over, name, step, 1);
}

/* Signals that the service waits for, and its methods as signals. */
static int send_signal(sd_bus *over, unsigned number)
{
	static const char *const signals[][2] = {
		{"org.freedesktop.DBus", "NameOwnerChanged"},
		{"org.freedesktop.DBus", "NameLost"},
		{NM_BUS_INTERFACE, "Pause"},
	};
	nm_auto(sd_bus_message_unrefp) sd_bus_message *signal = NULL;
	const char *const *words = signals[number % NM_ARRAY_SIZE(signals)];
	int r = sd_bus_message_new_signal(over, &signal, NM_BUS_PATH, words[0], words[1]);
	if (r >= 0)
		r = sd_bus_message_set_destination(signal, NM_BUS_NAME);
	if (r >= 0)
		r = sd_bus_message_append(signal, "sss", NM_BUS_NAME, ":1.1", "");
	return r < 0 ? r : sd_bus_send(over, signal, NULL);
}

static int count_refusal(sd_bus_message *reply, void *userdata, sd_bus_error *error)
{
	(void)userdata;
	(void)error;
	shared->refused += sd_bus_message_is_method_error(reply, SD_BUS_ERROR_ACCESS_DENIED) > 0;
	return 0;
}

/* Calls without waiting for the answers. */
static void flood(sd_bus *over)
{
	static const char *const methods[] = {"Dump", "Pause", "Resume"};
	int r = 0;
	for (unsigned i = 0; i < FLOOD && r >= 0; i++)
		r = sd_bus_call_method_async(over, NULL, NM_BUS_NAME, NM_BUS_PATH, NM_BUS_INTERFACE,
					     methods[i % 3], count_refusal, NULL, "");
	while (r >= 0 && shared->refused < FLOOD) {
		r = sd_bus_process(over, NULL);
		if (r == 0 && sd_bus_wait(over, 10000000) <= 0)
			break;
	}
}

static void make_call(sd_bus *over, const struct step *step)
{
	if (step_has(step, "flood")) {
		flood(over);
	} else if (step_has(step, "unique-name")) {
		call_unique_name(over, step);
	} else if (step_has(step, "take-name")) {
		int r = sd_bus_request_name(over, NM_BUS_NAME, 0);
		answer("%s", r < 0 ? strerrorname_np(-r) : "ok");
	} else if (step_has(step, "signals")) {
		int r = 0;
		for (unsigned i = 0; i < 300 && r >= 0; i++)
			r = send_signal(over, i);
		answer("%s", r < 0 || sd_bus_flush(over) < 0 ? "not sent" : "sent");
	} else {
		call_method(over, NM_BUS_NAME, step, 0);
	}
}

/* The first word is the user that the child becomes. */
static pid_t begin_call(const struct step *step)
{
	need(bus != NULL, "no dbus-daemon on this machine");
	need(!is_shipped || geteuid() == 0, "becoming another user needs root");
	need(getgrnam(GROUP) != NULL, "there is no group " GROUP);
	answer("not called");
	pid_t child = fork();
	if (child == 0) {
		sd_bus *over;
		if (become(step->name) && sd_bus_open_system(&over) >= 0)
			make_call(over, step);
		_exit(0);
	}
	return child;
}

static const char *call(const struct step *step)
{
	assert_true(waitpid(begin_call(step), NULL, 0) > 0);
	return shared->answer;
}

TEXT(root, call(step))
TEXT(group, call(step))
TEXT(nobody, call(step))
TEXT(message, shared->message)
TEXT(asked, shared->asked)
KNOB(result, shared->result)
QUANTITY(calls, shared->calls)
QUANTITY(writable, shared->writable)

static pid_t flooder;

WORD(begin)
{
	struct step of_user = *step;
	of_user.name = step->word[0];
	flooder = begin_call(&of_user);
}

QUANTITY(refused, (waitpid(flooder, NULL, 0), shared->refused))

/* SECURITY: bus */
SCRIPT(root_changes, "root Resume = ok; asked = resume; root Pause = ok; asked = pause",
       "root Release u 42 = ok; asked = release 42; root Manage u 43 = ok; asked = manage 43",
       "root SetDryRun b 1 = ok; asked = dry run 1; root SetDryRun b 0 = ok; asked = dry run 0",
       "root RaiseControl ud 60 12.5 = ok; asked = 12.5 % for 60; root Reload = ok; asked = reload",
       "calls = 8; root Release = InvalidArgs; root Reload u 1 = InvalidArgs; calls = 8",
       "set result = EIO; root Pause = IOError; message ~ not every CPU affinity",
       "root Reload = IOError; message !~ numa-migrd.conf; set result = EBUSY; root Resume = EBUSY",
       "root Release u 1 = EBUSY; root RaiseControl ud 60 50 = TrialRunning; set result = ESRCH",
       "root Release u 42 = NoSuchProcess; root Manage u 42 = NoSuchProcess; set result = EINVAL",
       "root Reload = BadConfiguration; message = /etc/numa-migrd.conf:3: no",
       "root RaiseControl ud 5 0 = InvalidArgs; message ~ 11 to 10080; set result = EACCES",
       "root SetDryRun b 0 = DryRunForced; message ~ general.dry_run; set result = EPERM",
       "root SetDryRun b 0 = DryRunForced; message ~ --dry-run; set result = EAGAIN",
       "root RaiseControl ud 60 50 = Paused; set result = EROFS",
       "root RaiseControl ud 60 50 = NothingToCompare; message ~ dry run; set result = ENODEV",
       "root RaiseControl ud 60 50 = NothingToCompare; message ~ one node; set result = EOPNOTSUPP",
       "root RaiseControl ud 60 50 = NothingToCompare; message ~ threads.policy")

/* ---- permissions ---- */

#define MAY_NOT_CHANGE(user)                                                                       \
	user " Pause = AccessDenied; " user " Resume = AccessDenied; " user                        \
	     " Release u 42 = AccessDenied; " user " Manage u 42 = AccessDenied; " user            \
	     " Reload = AccessDenied; " user " SetDryRun b 1 = AccessDenied; " user                \
	     " RaiseControl ud 0 0 = AccessDenied"

/* SECURITY: user */
SCRIPT(others_are_refused_by_the_bus,
       "nobody Dump = AccessDenied; nobody unique-name Pause = AccessDenied",
       MAY_NOT_CHANGE("nobody"), "calls = 0; root Pause = ok; calls = 1")

/* SECURITY: group */
SCRIPT(the_group_may_only_read, "group Dump ~ status; calls = 1", MAY_NOT_CHANGE("group"),
       "calls = 1")

/* The rules of the bus name the interface; a call may leave it out. */
/* SECURITY: other-interfaces */
SCRIPT(other_interfaces_are_refused,
       "nobody org.freedesktop.DBus.Introspectable.Introspect = AccessDenied",
       "nobody org.freedesktop.DBus.Peer.Ping = AccessDenied; nobody .Pause = AccessDenied",
       "nobody org.freedesktop.DBus.Properties.GetAll = AccessDenied; nobody .Dump = AccessDenied",
       "group org.freedesktop.DBus.Properties.Set = AccessDenied; group .Pause = AccessDenied",
       "group .Reload = AccessDenied; calls = 0")

/* SECURITY: signals */
SCRIPT(signals_of_others_change_nothing, "nobody signals = sent; root Pause = ok; calls = 1")

/* While the service is stopped, too. */
/* SECURITY: bus-name */
SCRIPT(others_cannot_take_the_name, "group take-name = EACCES")

/* SECURITY: bus */
SCRIPT(a_flood_ends_at_the_bus, "begin nobody flood; root Pause = ok; refused = 2000; calls = 1")

/* ---- loss and return of the bus ---- */

/* Reports to the daemon, on a loop of the test. */
static struct {
	sd_event *event;
	struct nm_control *control;
	int error; /* of the last report */
	unsigned reports, rounds;
	int deaf; /* holds the socket of the bus, and never answers */
} watch;

static int tear_down(void **state)
{
	nm_control_free(watch.control);
	sd_event_unref(watch.event);
	memset(&watch, 0, sizeof(watch));
	return teardown(state);
}

static int setup_without_bus(void **state)
{
	setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path=/nonexistent/bus", 1);
	*state = bus = NULL;
	return 0;
}

static void note_bus(void *context, int error)
{
	(void)context;
	watch.error = error;
	watch.reports++;
}

WORD(connect)
{
	const struct nm_control_ops ops = {.dump = give_document, .bus_changed = note_bus};
	need(bus != NULL || step_has(step, "nowhere"), "no dbus-daemon on this machine");
	assert_int_equal(sd_event_new(&watch.event), 0);
	assert_int_equal(nm_control_new(watch.event, &ops, &watch.control), 0);
}

/* Runs the loop for N seconds, or until the next report. */
static void wait_for_report(unsigned seconds)
{
	const unsigned reports = watch.reports;
	const time_t end = time(NULL) + seconds;
	while (time(NULL) < end && watch.reports == reports) {
		assert_true(watch.event ? sd_event_run(watch.event, 200000) >= 0
					: usleep(200000) == 0);
		watch.rounds++;
	}
}

ACTION(run, watch.rounds = 0; wait_for_report(U(0)))
ACTION(end_bus, end(&bus->daemon))
ACTION(end_server, end(&bus->server))

WORD(hold_socket)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s/bus", bus->folder);
	(void)unlink(address.sun_path);
	watch.deaf = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(watch.deaf, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(watch.deaf, 8), 0);
}

WORD(start_bus)
{
	char path[128];
	(void)snprintf(path, sizeof(path), "%s/bus", bus->folder);
	if (watch.deaf && close(watch.deaf) == 0)
		(void)unlink(path);
	assert_true(start_bus(bus));
}

static const char *call_text(const char *text)
{
	struct step step = {.line = 0};
	(void)snprintf(step.text, sizeof(step.text), "%s", text);
	script_split(&step);
	return call(&step);
}

QUANTITY(error, watch.error)
QUANTITY(reports, watch.reports)
QUANTITY(rounds, watch.rounds)
QUANTITY(answers, strcmp(call_text("root Resume"), "ok") == 0)

#undef SET_UP
#define SET_UP setup_open

SCRIPT(a_document_is_sealed_and_shows_changes,
       "root Dump ~ \"asked\":\"\"; writable = 0; root Resume = ok; root Dump ~ resume",
       "root Dump ~ resume; calls = 3")

SCRIPT(a_second_daemon_gets_the_name_later,
       "connect; reports = 1; error = EEXIST; end_server; until error = 0 within 60s")

SCRIPT(the_object_returns_with_the_bus,
       "answers = 1; end_bus; start_bus; until answers = 1 within 30s")

#undef SET_UP
#define SET_UP setup_without_bus

/* The loop must not spin: the test itself causes five iterations a second. */
SCRIPT(without_a_bus_the_service_waits,
       "connect nowhere; reports = 1; error = ENOENT; run 4; reports = 1; rounds in 1..60")

#undef SET_UP
#define SET_UP setup_without_server

SCRIPT(a_restarted_bus_is_used_again, "connect; reports = 0",
       "each 2: keep n = reports; end_bus; until error = ECONNRESET within 30s; run 2; "
       "rounds in 1..60; reports = n+1; start_bus; until error = 0 within 60s; reports = n+2")

SCRIPT(a_bus_that_never_answers_does_not_block,
       "connect; end_bus; hold_socket; until error = ECONNRESET within 30s; run 4",
       "rounds in 2..60; start_bus; until error = 0 within 90s")

/* ---- introspection and org.numamigrd1(5) ---- */

#undef SET_UP
#define SET_UP setup_open

/* Each of the eight methods is refused above. */
TEST(every_method_is_documented)
{
	char page[1 << 16] = "", line[128];
	unsigned count = 0;
	FILE *file = fopen(NM_SOURCE_DIR "/man/org.numamigrd1.5", "re");
	assert_true(file && fread(page, 1, sizeof(page) - 1, file) > 0);
	(void)fclose(file);
	const char *own = strstr(call_text("root org.freedesktop.DBus.Introspectable.Introspect"),
				 "<interface name=\"" NM_BUS_INTERFACE "\"");
	assert_non_null(own);
	assert_null(strstr(own, "<property ")); /* the policy names methods only */
	for (const char *at = own; (at = strstr(at, "<method name=\"")); count++) {
		at += strlen("<method name=\"");
		(void)snprintf(line, sizeof(line), "\n.It Ic %.*s No ", (int)strcspn(at, "\""), at);
		if (!strstr(page, line))
			fail_msg("org.numamigrd1(5) lacks:%s", line);
	}
	assert_int_equal(count, 8);
}

int main(void)
{
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	return shared == MAP_FAILED ? 1 : RUN_REGISTERED(NULL, NULL);
}
