/* SPDX-License-Identifier: MIT */
/*
 * Who may do what on the bus: an authority of our own answers in polkit's place on a private bus,
 * and callers become other users.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <grp.h>
#include <sys/mman.h>
#include <time.h>

#include "bus_fixture.h"

#define NOBODY 65534
#define GROUP "daemon" /* one that is everywhere, in place of numa-migrd */
#define OF_ONE_MOST 8

/* ---- the authority ---- */

enum answer { ALLOW, DENY, CHALLENGE, SILENCE, FAILURE };

static struct shared {
	enum answer answer;
	_Atomic unsigned asked;
	uint32_t flags;
	char action[64], subject_kind[32], subject[32];
	pid_t polkit;
} * shared;

static int take_question(sd_bus_message *call)
{
	const char *kind, *key, *subject, *action;
	int r = sd_bus_message_enter_container(call, 'r', "sa{sv}");
	if (r >= 0)
		r = sd_bus_message_read(call, "s", &kind);
	if (r >= 0)
		r = sd_bus_message_read(call, "a{sv}", 1, &key, "s", &subject);
	if (r >= 0)
		r = sd_bus_message_exit_container(call);
	if (r >= 0)
		r = sd_bus_message_read(call, "s", &action);
	if (r >= 0)
		r = sd_bus_message_skip(call, "a{ss}");
	if (r >= 0)
		r = sd_bus_message_read(call, "u", &shared->flags);
	if (r < 0)
		return r;
	(void)snprintf(shared->subject_kind, sizeof(shared->subject_kind), "%s", kind);
	(void)snprintf(shared->subject, sizeof(shared->subject), "%s", subject);
	(void)snprintf(shared->action, sizeof(shared->action), "%s", action);
	shared->asked++;
	return 0;
}

static int on_check(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
	(void)userdata;
	int r = take_question(call);
	if (r < 0)
		return r;
	switch (shared->answer) {
	case SILENCE:
		return 1;
	case FAILURE:
		return sd_bus_error_set(error, "org.freedesktop.PolicyKit1.Error.Failed",
					"Action org.numamigrd1.steer is not registered");
	default:
		return sd_bus_reply_method_return(call, "(bba{ss})", shared->answer == ALLOW,
						  shared->answer == CHALLENGE, 0);
	}
}

static const sd_bus_vtable authority[] = {
	SD_BUS_VTABLE_START(0),
	SD_BUS_METHOD("CheckAuthorization", "(sa{sv})sa{ss}us", "(bba{ss})", on_check,
		      SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_VTABLE_END,
};

static void serve_polkit(int ready)
{
	sd_bus *bus = NULL;
	int r = sd_bus_open_system(&bus);
	if (r >= 0)
		r = sd_bus_add_object_vtable(bus, NULL, "/org/freedesktop/PolicyKit1/Authority",
					     "org.freedesktop.PolicyKit1.Authority", authority,
					     NULL);
	if (r >= 0)
		r = sd_bus_request_name(bus, "org.freedesktop.PolicyKit1", 0);
	if (r >= 0)
		r = 0;
	if (write(ready, &r, sizeof(r)) != sizeof(r) || r < 0)
		_exit(1);
	for (;;) {
		r = sd_bus_process(bus, NULL);
		if (r == 0)
			r = sd_bus_wait(bus, UINT64_MAX);
		if (r < 0)
			_exit(0);
	}
}

/* ---- the daemon's side ---- */

struct daemon {
	struct nm_control *control;
	bool paused, dry_run;
};

static size_t give_status(void *context, struct nm_status_item *items, size_t room)
{
	(void)context;
	assert_true(room > 0);
	items[0] = (struct nm_status_item){.name = "x", .type = NM_STATUS_UINT, .number = 1};
	return 1;
}

static void write_decision(void *context, const struct nm_show *show)
{
	(void)context;
	nm_show_u64(show, "decision", 17);
	nm_show_i32(show, "from_cpu", -5);
	nm_show_real(show, "before", NAN);
	nm_show_text(show, "comm", "\xe2\x80\xa6");
}

static int do_pause(void *context)
{
	struct daemon *daemon = context;
	daemon->paused = true;
	nm_control_changed(daemon->control);
	nm_control_decision(daemon->control, write_decision, NULL);
	return 0;
}

static int do_resume(void *context)
{
	struct daemon *daemon = context;
	daemon->paused = false;
	nm_control_changed(daemon->control);
	return 0;
}

static int do_release(void *context, uint32_t pid)
{
	(void)context;
	return pid == 4711 ? 0 : -ESRCH;
}

static int do_reload(void *context, char *error, size_t size)
{
	(void)context;
	(void)snprintf(error, size, "/etc/numa-migrd.conf:3: no");
	return -EINVAL;
}

static int do_set_dry_run(void *context, bool wanted)
{
	struct daemon *daemon = context;
	if (!wanted)
		return -EPERM;
	daemon->dry_run = true;
	nm_control_changed(daemon->control);
	return 0;
}

static void give_facts(void *context, struct nm_control_facts *ret)
{
	const struct daemon *daemon = context;
	*ret = (struct nm_control_facts){.version = "1.2",
					 .policy = "imar2",
					 .pages_policy = "none",
					 .source = "ibs",
					 .paused = daemon->paused,
					 .dry_run = daemon->dry_run,
					 .interval_s = 0.5};
}

static void give_counters(void *context, const struct nm_show *show)
{
	(void)context;
	nm_show_u64(show, "decisions", 5000000000);
}

static int give_nodes(void *context, const struct nm_show *show)
{
	(void)context;
	for (uint32_t node = 0; node < 2; node++) {
		show->open(show->context);
		nm_show_u32(show, "node", node);
		nm_show_real(show, "load", node ? NAN : 0.25);
		show->close(show->context);
	}
	return 0;
}

static int give_threads(void *context, uint32_t pid, const struct nm_show *show)
{
	(void)context;
	if (pid)
		return -ESRCH;
	show->open(show->context);
	nm_show_flag(show, "leased", true);
	show->close(show->context);
	return 0;
}

static int give_pages(void *context, uint32_t pid, const struct nm_show *show)
{
	const uint64_t by_node[] = {1, 0, 70};
	(void)context;
	if (pid != 4711)
		return -ESRCH;
	nm_show_u64s(show, "by_node", by_node, 3);
	return 0;
}

static int give_regions(void *context, uint32_t pid, uid_t caller, const struct nm_show *show)
{
	(void)context, (void)pid;
	show->open(show->context);
	nm_show_u32(show, "caller", caller);
	show->close(show->context);
	return 0;
}

static int give_decisions(void *context, uint64_t after, uint32_t most, const struct nm_show *show)
{
	(void)context;
	show->open(show->context);
	nm_show_u64(show, "after", after);
	nm_show_u32(show, "most", most);
	show->close(show->context);
	return 0;
}

static int give_explanation(void *context, uint64_t id, const struct nm_show *show)
{
	(void)context;
	if (id != 17)
		return -ENOENT;
	nm_show_text(show, "reasons", "these");
	return 0;
}

static void ignore_bus(void *context, int error)
{
	(void)context, (void)error;
}

static void serve(int ready)
{
	struct daemon daemon = {0};
	const struct nm_control_ops ops = {
		.context = &daemon,
		.status = give_status,
		.pause = do_pause,
		.resume = do_resume,
		.release = do_release,
		.bus_changed = ignore_bus,
		.facts = give_facts,
		.counters = give_counters,
		.nodes = give_nodes,
		.processes = give_nodes,
		.threads = give_threads,
		.pages = give_pages,
		.regions = give_regions,
		.decisions = give_decisions,
		.explain = give_explanation,
		.reload = do_reload,
		.set_dry_run = do_set_dry_run,
	};
	sd_event *event = NULL;
	int r = sd_event_new(&event);
	if (r >= 0)
		r = nm_control_new(event, &ops, &daemon.control);
	if (write(ready, &r, sizeof(r)) != sizeof(r) || r < 0)
		_exit(1);
	(void)sd_event_loop(event);
	_exit(0);
}

/* ---- the bus ---- */

/* The shipped policy, but for the group's name. */
static bool write_shipped_policy(const char *path)
{
	FILE *from = fopen(NM_SOURCE_DIR "/conf/org.numamigrd1.conf", "re");
	FILE *to = fopen(path, "we");
	char line[512];
	while (from && to && fgets(line, sizeof(line), from)) {
		char *group = strstr(line, "group=\"numa-migrd\"");
		if (group)
			(void)snprintf(group, sizeof(line) - (size_t)(group - line),
				       "group=\"" GROUP "\">\n");
		(void)fputs(line, to);
	}
	bool done = from && to && fclose(to) == 0;
	if (from)
		(void)fclose(from);
	return done;
}

static const char shipped_with[] =
	"<policy context=\"default\"><allow user=\"*\"/><deny own=\"*\"/>"
	"<deny send_type=\"method_call\"/><allow send_destination=\"org.freedesktop.DBus\"/>"
	"<allow send_type=\"method_return\"/><allow send_type=\"error\"/><allow "
	"send_type=\"signal\"/>"
	"<allow receive_type=\"method_call\"/><allow receive_type=\"method_return\"/>"
	"<allow receive_type=\"error\"/><allow receive_type=\"signal\"/></policy>"
	"<policy user=\"root\"><allow own=\"*\"/><allow "
	"send_destination=\"org.freedesktop.PolicyKit1\"/>"
	"</policy><include>/tmp/nm-access-%u.conf</include>";

static bool start_polkit(struct bus *bus)
{
	struct bus authority_bus = *bus;
	bool done = start_server(&authority_bus, serve_polkit);
	shared->polkit = authority_bus.server;
	return done;
}

static int set_up(void **state, const char *policy, enum answer answer)
{
	memset(shared, 0, sizeof(*shared));
	shared->answer = answer;
	int r = setup(state, policy, serve);
	if (r == 0 && *state && !start_polkit(*state))
		return -1;
	return r;
}

static int set_up_shipped(void **state)
{
	char path[64], policy[sizeof(shipped_with) + 64];
	(void)snprintf(path, sizeof(path), "/tmp/nm-access-%u.conf", (unsigned)getpid());
	(void)snprintf(policy, sizeof(policy), shipped_with, (unsigned)getpid());
	if (!write_shipped_policy(path))
		return -1;
	int r = set_up(state, policy, DENY);
	(void)unlink(path);
	return r;
}

static int set_up_allowing(void **state)
{
	return set_up(state, open_policy, ALLOW);
}

static int set_up_silent(void **state)
{
	return set_up(state, open_policy, SILENCE);
}

static int tear_down(void **state)
{
	end(&shared->polkit);
	return teardown(state);
}

static void need_root_and_bus(void **state)
{
	need(*state != NULL, "no dbus-daemon on this machine");
	need(geteuid() == 0, "becoming another user needs root");
}

/* ---- callers ---- */

static sd_bus *connect_bus(void)
{
	sd_bus *bus = NULL;
	assert_true(sd_bus_open_system(&bus) >= 0);
	return bus;
}

/* The error's name, or "". */
static void call(sd_bus *bus, bool interactive, char *name, size_t size, const char *method,
		 const char *types, uint64_t argument)
{
	nm_auto(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
	nm_auto(sd_bus_message_unrefp) sd_bus_message *message = NULL;
	int r = sd_bus_message_new_method_call(bus, &message, NM_BUS_NAME, NM_BUS_PATH,
					       NM_BUS_INTERFACE, method);
	if (r >= 0 && types[0] == 't')
		r = sd_bus_message_append(message, types, argument, 0);
	else if (r >= 0)
		r = sd_bus_message_append(message, types, (uint32_t)argument);
	if (r >= 0)
		r = sd_bus_message_set_allow_interactive_authorization(message, interactive);
	if (r >= 0)
		r = sd_bus_call(bus, message, 10000000, &error, NULL);
	(void)snprintf(name, size, "%s", r >= 0 ? "" : error.name ? error.name : strerror(-r));
}

static void assert_call(const char *method, const char *types, uint64_t argument,
			const char *expected)
{
	nm_auto(sd_bus_flush_close_unrefp) sd_bus *bus = connect_bus();
	char name[128];
	call(bus, false, name, sizeof(name), method, types, argument);
	assert_string_equal(name, expected);
}

/* In a child: nobody, of the group or of none. What it finds is written to standard error. */
static bool become_nobody(bool of_group)
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

static bool nobody_gets(bool of_group, bool interactive, const char *method, const char *types,
			const char *expected)
{
	pid_t child = fork();
	if (child == 0) {
		sd_bus *bus = NULL;
		char name[128] = "no bus";
		if (become_nobody(of_group) && sd_bus_open_system(&bus) >= 0)
			call(bus, interactive, name, sizeof(name), method, types, 4711);
		if (strcmp(name, expected) != 0)
			(void)fprintf(stderr, "%s: \"%s\", not \"%s\"\n", method, name, expected);
		_exit(strcmp(name, expected) == 0 ? 0 : 1);
	}
	return succeeds(child);
}

static bool is_paused(void)
{
	nm_auto(sd_bus_flush_close_unrefp) sd_bus *bus = connect_bus();
	int paused = -1;
	assert_true(sd_bus_get_property_trivial(bus, NM_BUS_NAME, NM_BUS_PATH, NM_BUS_INTERFACE,
						"Paused", NULL, 'b', &paused) >= 0);
	return paused;
}

/* ---- steering ---- */

static void polkit_may_allow(void **state)
{
	need_root_and_bus(state);
	assert_true(nobody_gets(false, false, "Pause", "", ""));
	assert_true(is_paused());
	assert_int_equal(shared->asked, 1);
	assert_string_equal(shared->action, "org.numamigrd1.steer");
	assert_string_equal(shared->subject_kind, "system-bus-name");
	assert_true(shared->subject[0] == ':');
	assert_int_equal(shared->flags, 0);
	assert_true(nobody_gets(false, true, "Resume", "", ""));
	assert_int_equal(shared->flags, 1); /* polkit may ask for a password */
	assert_false(is_paused());
	assert_true(nobody_gets(false, false, "Release", "u", ""));
	assert_true(nobody_gets(false, false, "SetDryRun", "b", ""));
	assert_string_equal(shared->action, "org.numamigrd1.steer");
	assert_true(
		nobody_gets(false, false, "Reload", "", "org.numamigrd1.Error.BadConfiguration"));
	assert_string_equal(shared->action, "org.numamigrd1.reload");
	assert_int_equal(shared->asked, 5);
}

static void polkit_may_refuse(void **state)
{
	need_root_and_bus(state);
	shared->answer = DENY;
	assert_true(nobody_gets(false, true, "Pause", "", SD_BUS_ERROR_ACCESS_DENIED));
	shared->answer = CHALLENGE;
	assert_true(nobody_gets(false, false, "Pause", "",
				SD_BUS_ERROR_INTERACTIVE_AUTHORIZATION_REQUIRED));
	shared->answer = FAILURE;
	assert_true(nobody_gets(false, false, "Pause", "", SD_BUS_ERROR_ACCESS_DENIED));
	assert_int_equal(shared->asked, 3);
	end(&shared->polkit);
	assert_true(nobody_gets(false, false, "Pause", "", SD_BUS_ERROR_ACCESS_DENIED));
	assert_false(is_paused());
}

static void root_needs_no_polkit(void **state)
{
	need_root_and_bus(state);
	assert_call("Pause", "", 0, "");
	assert_true(is_paused());
	assert_call("Resume", "", 0, "");
	assert_call("Release", "u", 4711, "");
	assert_call("Release", "u", 1, NM_BUS_ERROR_NOT_MANAGED);
	assert_call("SetDryRun", "b", 1, "");
	assert_call("SetDryRun", "b", 0, NM_BUS_ERROR_DRY_RUN_FORCED);
	assert_call("Reload", "", 0, NM_BUS_ERROR_BAD_CONFIGURATION);
	assert_int_equal(shared->asked, 0);
}

/* A reload's error is for the one who asked: file, line, and what is wrong. */
static void a_refused_reload_says_where(void **state)
{
	nm_auto(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
	need_root_and_bus(state);
	nm_auto(sd_bus_flush_close_unrefp) sd_bus *bus = connect_bus();
	assert_true(sd_bus_call_method(bus, NM_BUS_NAME, NM_BUS_PATH, NM_BUS_INTERFACE, "Reload",
				       &error, NULL, "") < 0);
	assert_string_equal(error.message, "/etc/numa-migrd.conf:3: no");
}

static int note_error(sd_bus_message *reply, void *userdata, sd_bus_error *error)
{
	unsigned *refused = userdata;
	(void)error;
	*refused += sd_bus_message_is_method_error(reply, SD_BUS_ERROR_LIMITS_EXCEEDED) > 0;
	return 0;
}

/* Asks more often than one may; true when what is beyond that is refused at once. */
static bool flood(unsigned beyond)
{
	sd_bus *bus = NULL;
	unsigned refused = 0;
	if (!become_nobody(false) || sd_bus_open_system(&bus) < 0)
		return false;
	for (unsigned i = 0; i < OF_ONE_MOST + beyond; i++)
		(void)sd_bus_call_method_async(bus, NULL, NM_BUS_NAME, NM_BUS_PATH,
					       NM_BUS_INTERFACE, "Pause", note_error, &refused, "");
	for (time_t start = time(NULL); refused < beyond && time(NULL) < start + 20;)
		if (sd_bus_process(bus, NULL) == 0)
			(void)sd_bus_wait(bus, 100000);
	return refused == beyond;
}

/* Nobody, who waits for polkit. */
static pid_t start_patient(void)
{
	pid_t child = fork();
	if (child != 0)
		return child;
	sd_bus *bus = NULL;
	char name[128];
	if (become_nobody(false) && sd_bus_open_system(&bus) >= 0)
		call(bus, true, name, sizeof(name), "Pause", "", 0);
	_exit(1);
}

static void a_silent_polkit_holds_nobody_else(void **state)
{
	need_root_and_bus(state);
	pid_t patient = start_patient();
	for (unsigned i = 0; i < 1000 && shared->asked == 0; i++)
		(void)usleep(10000);
	assert_int_equal(shared->asked, 1);
	assert_call("Status", "", 0, "");
	assert_call("SetDryRun", "b", 1, "");
	assert_call("Release", "u", 4711, "");
	assert_false(is_paused());
	assert_true(runs(patient));
	end(&patient);
	assert_call("Pause", "", 0, "");
}

static void one_user_asks_only_so_often(void **state)
{
	need_root_and_bus(state);
	pid_t flooder = fork();
	if (flooder == 0)
		_exit(flood(5) ? 0 : 1);
	assert_true(succeeds(flooder));
	for (unsigned i = 0; i < 1000 && shared->asked < OF_ONE_MOST; i++)
		(void)usleep(10000);
	assert_int_equal(shared->asked, OF_ONE_MOST);
	assert_call("Pause", "", 0, "");
}

/* ---- reading ---- */

static const struct {
	const char *method, *types;
} readings[] = {
	{"ListNodes", ""},   {"ListProcesses", ""}, {"Pages", "u"},
	{"Decisions", "tu"}, {"Explain", "t"},	    {"ListThreads", "u"},
};

static void lists_are_for_the_group(void **state)
{
	need_root_and_bus(state);
	need(getgrnam(GROUP) != NULL, "there is no group " GROUP);
	for (size_t i = 0; i < NM_ARRAY_SIZE(readings); i++) {
		const char *method = readings[i].method, *types = readings[i].types;
		const char *expected =
			strcmp(method, "Explain") == 0	     ? NM_BUS_ERROR_NO_SUCH_DECISION
			: strcmp(method, "ListThreads") == 0 ? NM_BUS_ERROR_NOT_MANAGED
							     : "";
		assert_true(nobody_gets(false, false, method, types, SD_BUS_ERROR_ACCESS_DENIED));
		assert_true(nobody_gets(true, false, method, types, expected));
		assert_call(method, types, 4711, expected);
	}
	assert_true(nobody_gets(false, false, "Status", "", ""));
	assert_int_equal(shared->asked, 0);
	/* To steer may be asked for; being of the group allows nothing. */
	assert_true(nobody_gets(false, false, "Pause", "", SD_BUS_ERROR_ACCESS_DENIED));
	assert_true(nobody_gets(true, false, "Pause", "", SD_BUS_ERROR_ACCESS_DENIED));
	assert_int_equal(shared->asked, 2);
}

static bool nobody_reads_properties(void)
{
	pid_t child = fork();
	if (child == 0) {
		sd_bus *bus = NULL;
		double seconds = 0;
		uint32_t version = 0;
		if (!become_nobody(false) || sd_bus_open_system(&bus) < 0)
			_exit(2);
		(void)sd_bus_get_property_trivial(bus, NM_BUS_NAME, NM_BUS_PATH, NM_BUS_INTERFACE,
						  "IntervalSeconds", NULL, 'd', &seconds);
		(void)sd_bus_get_property_trivial(bus, NM_BUS_NAME, NM_BUS_PATH, NM_BUS_INTERFACE,
						  "InterfaceVersion", NULL, 'u', &version);
		_exit(seconds == 0.5 && version == 1 ? 0 : 1);
	}
	return succeeds(child);
}

static void assert_text_property(sd_bus *bus, const char *name, const char *expected)
{
	char *text = NULL;
	assert_true(sd_bus_get_property_string(bus, NM_BUS_NAME, NM_BUS_PATH, NM_BUS_INTERFACE,
					       name, NULL, &text) >= 0);
	assert_string_equal(text, expected);
	free(text);
}

static void properties_are_for_everyone(void **state)
{
	nm_auto(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
	const char *name;
	uint64_t count;
	need_root_and_bus(state);
	assert_true(nobody_reads_properties());
	nm_auto(sd_bus_flush_close_unrefp) sd_bus *bus = connect_bus();
	assert_text_property(bus, "Version", "1.2");
	assert_text_property(bus, "Policy", "imar2");
	assert_text_property(bus, "PagesPolicy", "none");
	assert_text_property(bus, "Source", "ibs");
	assert_true(sd_bus_get_property(bus, NM_BUS_NAME, NM_BUS_PATH, NM_BUS_INTERFACE, "Counters",
					NULL, &reply, "a{st}") >= 0);
	assert_true(sd_bus_message_read(reply, "a{st}", 1, &name, &count) >= 0);
	assert_string_equal(name, "decisions");
	assert_true(count == 5000000000);
}

/* What is unavailable is left out; the rest has the type that is documented. */
static void lists_have_their_types(void **state)
{
	nm_auto(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
	const char *name, *second;
	uint32_t node;
	double load;
	need_root_and_bus(state);
	nm_auto(sd_bus_flush_close_unrefp) sd_bus *bus = connect_bus();
	assert_true(sd_bus_call_method(bus, NM_BUS_NAME, NM_BUS_PATH, NM_BUS_INTERFACE, "ListNodes",
				       NULL, &reply, "") >= 0);
	assert_true(sd_bus_message_enter_container(reply, 'a', "a{sv}") > 0);
	assert_true(sd_bus_message_read(reply, "a{sv}", 2, &name, "u", &node, &second, "d", &load) >
		    0);
	assert_string_equal(name, "node");
	assert_true(node == 0 && load == 0.25);
	assert_true(sd_bus_message_read(reply, "a{sv}", 1, &name, "u", &node) > 0);
	assert_int_equal(node, 1);
	assert_true(sd_bus_message_exit_container(reply) >= 0);
}

/* The uid that the daemon decides by; 0 where there is no answer. */
static uint32_t caller_as_told(sd_bus *bus)
{
	nm_auto(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
	const char *name;
	uint32_t uid = 0;
	if (sd_bus_call_method(bus, NM_BUS_NAME, NM_BUS_PATH, NM_BUS_INTERFACE, "Pages", NULL,
			       &reply, "u", (uint32_t)4711) < 0 ||
	    sd_bus_message_skip(reply, "a{sv}") < 0 ||
	    sd_bus_message_enter_container(reply, 'a', "a{sv}") <= 0 ||
	    sd_bus_message_read(reply, "a{sv}", 1, &name, "u", &uid) < 0)
		return UINT32_MAX;
	return uid;
}

static void addresses_are_decided_by_the_callers_uid(void **state)
{
	need_root_and_bus(state);
	pid_t child = fork();
	if (child == 0) {
		sd_bus *bus = NULL;
		if (!become_nobody(true) || sd_bus_open_system(&bus) < 0)
			_exit(2);
		_exit(caller_as_told(bus) == NOBODY ? 0 : 1);
	}
	assert_true(succeeds(child));
	nm_auto(sd_bus_flush_close_unrefp) sd_bus *bus = connect_bus();
	assert_int_equal(caller_as_told(bus), 0);
	assert_call("Pages", "u", 5, NM_BUS_ERROR_NOT_MANAGED);
}

/* ---- signals ---- */

struct heard {
	unsigned decisions, changes;
};

static int on_decision(sd_bus_message *signal, void *userdata, sd_bus_error *error)
{
	struct heard *heard = userdata;
	const char *id, *from, *comm, *text;
	uint64_t number;
	int32_t cpu;
	(void)error;
	int r = sd_bus_message_read(signal, "a{sv}", 3, &id, "t", &number, &from, "i", &cpu, &comm,
				    "s", &text);
	heard->decisions += r >= 0 && number == 17 && cpu == -5;
	return 0;
}

static int on_change(sd_bus_message *signal, void *userdata, sd_bus_error *error)
{
	struct heard *heard = userdata;
	(void)signal, (void)error;
	heard->changes++;
	return 0;
}

static bool listen_to(sd_bus *bus, struct heard *heard)
{
	return sd_bus_match_signal(bus, NULL, NM_BUS_NAME, NM_BUS_PATH, NM_BUS_INTERFACE,
				   "Decision", on_decision, heard) >= 0 &&
	       sd_bus_match_signal(bus, NULL, NM_BUS_NAME, NM_BUS_PATH,
				   "org.freedesktop.DBus.Properties", "PropertiesChanged",
				   on_change, heard) >= 0;
}

/* The bus keeps the order of one sender: after the second change all that came before is here. */
static void hear(sd_bus *bus, const struct heard *heard)
{
	for (time_t start = time(NULL); heard->changes < 2 && time(NULL) < start + 20;)
		if (sd_bus_process(bus, NULL) == 0)
			(void)sd_bus_wait(bus, 100000);
}

static pid_t start_listener(bool of_group, unsigned decisions, int ready)
{
	pid_t child = fork();
	if (child != 0)
		return child;
	struct heard heard = {0};
	sd_bus *bus = NULL;
	bool listens =
		become_nobody(of_group) && sd_bus_open_system(&bus) >= 0 && listen_to(bus, &heard);
	if (write(ready, &listens, sizeof(listens)) != sizeof(listens) || !listens)
		_exit(2);
	hear(bus, &heard);
	_exit(heard.changes == 2 && heard.decisions == decisions ? 0 : 1);
}

static void signals_reach_those_they_are_for(void **state)
{
	struct heard heard = {0};
	int ready[2];
	bool listens;
	need_root_and_bus(state);
	need(getgrnam(GROUP) != NULL, "there is no group " GROUP);
	nm_auto(sd_bus_flush_close_unrefp) sd_bus *bus = connect_bus();
	assert_int_equal(pipe(ready), 0);
	pid_t member = start_listener(true, 1, ready[1]);
	pid_t stranger = start_listener(false, 0, ready[1]);
	for (int i = 0; i < 2; i++)
		assert_int_equal(read(ready[0], &listens, sizeof(listens)), sizeof(listens));
	assert_true(listen_to(bus, &heard));
	assert_call("Pause", "", 0, "");
	assert_call("Resume", "", 0, "");
	hear(bus, &heard);
	assert_int_equal(heard.changes, 2);
	assert_int_equal(heard.decisions, 1);
	assert_true(succeeds(member));
	assert_true(succeeds(stranger));
	close(ready[0]);
	close(ready[1]);
}

/* ---- introspection and org.numamigrd1(5) ---- */

static char *read_page(void)
{
	FILE *file = fopen(NM_SOURCE_DIR "/man/org.numamigrd1.5", "re");
	char *page = calloc(1, 1 << 16);
	assert_true(file && page);
	assert_true(fread(page, 1, (1 << 16) - 1, file) > 0);
	(void)fclose(file);
	return page;
}

static void assert_documented(const char *page, const char *element, size_t length)
{
	char name[64], line[128];
	const char *start = memmem(element, length, "name=\"", 6);
	assert_non_null(start);
	start += 6;
	(void)snprintf(name, sizeof(name), "%.*s", (int)strcspn(start, "\""), start);
	(void)snprintf(line, sizeof(line), "\n.It Ic %s ", name);
	if (!strstr(page, line))
		fail_msg("org.numamigrd1(5) does not have \"%s\"", name);
}

static void everything_is_documented(void **state)
{
	static const char *const elements[] = {"<method ", "<property ", "<signal "};
	nm_auto(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
	const char *xml;
	unsigned count = 0;
	need_root_and_bus(state);
	nm_auto(sd_bus_flush_close_unrefp) sd_bus *bus = connect_bus();
	assert_true(sd_bus_call_method(bus, NM_BUS_NAME, NM_BUS_PATH,
				       "org.freedesktop.DBus.Introspectable", "Introspect", NULL,
				       &reply, "") >= 0);
	assert_true(sd_bus_message_read(reply, "s", &xml) >= 0);
	const char *own = strstr(xml, "<interface name=\"" NM_BUS_INTERFACE "\"");
	assert_non_null(own);
	nm_autofree char *page = read_page();
	for (size_t i = 0; i < NM_ARRAY_SIZE(elements); i++)
		for (const char *at = strstr(own, elements[i]); at;
		     at = strstr(at + 1, elements[i])) {
			assert_documented(page, at, strcspn(at, ">"));
			count++;
		}
	assert_int_equal(count, 22); /* 12 methods, 9 properties, a signal */
}

#define TEST(name, how) cmocka_unit_test_setup_teardown(name, set_up_##how, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(polkit_may_allow, allowing),
		TEST(polkit_may_refuse, allowing),
		TEST(root_needs_no_polkit, allowing),
		TEST(a_refused_reload_says_where, allowing),
		TEST(a_silent_polkit_holds_nobody_else, silent),
		TEST(one_user_asks_only_so_often, silent),
		TEST(lists_are_for_the_group, shipped),
		TEST(properties_are_for_everyone, shipped),
		TEST(lists_have_their_types, shipped),
		TEST(addresses_are_decided_by_the_callers_uid, shipped),
		TEST(signals_reach_those_they_are_for, shipped),
		TEST(everything_is_documented, shipped),
	};
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (shared == MAP_FAILED)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
