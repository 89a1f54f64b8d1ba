/* SPDX-License-Identifier: MIT */
/*
 * The bus object on a private bus, with a fake polkit and callers that become other users. Include
 * after cmocka.h.
 */
#ifndef NM_TEST_ACCESS_FIXTURE_H
#define NM_TEST_ACCESS_FIXTURE_H

#include <grp.h>
#include <math.h>
#include <sys/mman.h>
#include <time.h>

#include "../support/serve_bus.h"
#include "bus_fixture.h"

#define NOBODY 65534
#define GROUP "daemon" /* exists everywhere; used instead of numa-migrd */

/* ---- the fake polkit ---- */

enum answer { ALLOW, DENY, CHALLENGE, SILENCE, FAILURE };

static struct shared {
	enum answer answer;
	_Atomic unsigned asked;
	uint32_t flags;
	char action[64], subject_kind[32], subject[32];
	pid_t polkit;
} * shared;

static inline int take_query(sd_bus_message *call)
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

static inline int on_check(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
	(void)userdata;
	int r = take_query(call);
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

static inline void serve_polkit(int ready)
{
	sd_bus *bus = NULL;
	int r = sd_bus_open_system(&bus);
	if (r >= 0)
		r = sd_bus_add_object_vtable(bus, NULL, "/org/freedesktop/PolicyKit1/Authority",
					     "org.freedesktop.PolicyKit1.Authority", authority,
					     NULL);
	serve_bus(bus, r, "org.freedesktop.PolicyKit1", ready);
}

/* ---- the side of the daemon ---- */

struct daemon {
	struct nm_control *control;
	bool paused, dry_run;
};

static inline void give_status(void *context, const struct nm_show *show)
{
	(void)context;
	nm_show_u64(show, "x", 1);
}

static inline void ignore_request(void *context, const char *method, uid_t uid)
{
	(void)context, (void)method, (void)uid;
}

static inline int do_pause(void *context)
{
	struct daemon *daemon = context;
	daemon->paused = true;
	nm_control_changed(daemon->control);
	nm_control_changed(daemon->control); /* no change since, so no further signal */
	return 0;
}

static inline int do_resume(void *context)
{
	struct daemon *daemon = context;
	daemon->paused = false;
	nm_control_changed(daemon->control);
	return 0;
}

static inline int do_release(void *context, uint32_t pid)
{
	(void)context;
	return pid == 4711 ? 0 : -ESRCH;
}

static inline int do_reload(void *context, char *error, size_t size)
{
	(void)context;
	(void)snprintf(error, size, "/etc/numa-migrd.conf:3: no");
	return -EINVAL;
}

static inline int do_set_dry_run(void *context, bool wanted, uid_t uid)
{
	struct daemon *daemon = context;
	if (!wanted)
		return uid == getuid() ? -EPERM : -EACCES;
	daemon->dry_run = true;
	nm_control_changed(daemon->control);
	return 0;
}

static inline int do_raise_control(void *context, uint32_t minutes, double percent, uid_t uid)
{
	(void)context, (void)percent;
	if (minutes == 7)
		return -EACCES;
	return minutes == 5 ? -EINVAL : uid == getuid() ? 0 : -EIO;
}

static inline int give_trial(void *context, const struct nm_show *show)
{
	(void)context;
	nm_show_u64(show, "remaining_s", 0);
	nm_show_text(show, "result", "no difference");
	return 0;
}

static inline void give_facts(void *context, struct nm_control_facts *ret)
{
	const struct daemon *daemon = context;
	*ret = (struct nm_control_facts){.version = "1.2",
					 .source = "ibs",
					 .paused = daemon->paused,
					 .dry_run = daemon->dry_run};
}

static inline int give_nodes(void *context, const struct nm_show *show)
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

/* A row of maximum length. */
static inline void give_whole_thread(const struct nm_show *show)
{
	static const char *const figures[] = {
		"local_share",	    "accesses",		  "latency_cycles", "intensity",
		"operations_per_s", "instructions_per_s", "performance",    "relative_performance",
		"run_share",
	};
	static const char *const numbers[] = {"tid", "pid", "cpu", "node", "preferred_node"};
	show->open(show->context);
	nm_show_text(show, "comm",
		     "\\x1b\\x1b\\x1b\\x1b\\x1b\\x1b\\x1b\\x1b"
		     "\\x1b\\x1b\\x1b\\x1b\\x1b\\x1b\\x1b");
	for (size_t i = 0; i < NM_ARRAY_SIZE(numbers); i++)
		nm_show_u32(show, numbers[i], 4194304);
	for (size_t i = 0; i < NM_ARRAY_SIZE(figures); i++)
		nm_show_real(show, figures[i], 0.5);
	nm_show_flag(show, "leased", true);
	nm_show_u64(show, "last_decision", UINT64_MAX);
	show->close(show->context);
}

/* A process with as many threads as its number. */
#define GIVEN_MANY 20000U

static inline int give_threads(void *context, uint32_t pid, const struct nm_show *show)
{
	(void)context;
	for (uint32_t i = 0; pid >= GIVEN_MANY && i < pid; i++)
		give_whole_thread(show);
	if (pid)
		return pid >= GIVEN_MANY ? 0 : -ESRCH;
	show->open(show->context);
	nm_show_flag(show, "leased", true);
	show->close(show->context);
	return 0;
}

static inline int give_pages(void *context, uint32_t pid, const struct nm_show *show)
{
	const uint64_t by_node[] = {1, 0, 70};
	(void)context;
	if (pid != 4711 && pid < GIVEN_MANY)
		return -ESRCH;
	nm_show_u64s(show, "by_node", by_node, 3);
	return 0;
}

static inline int give_regions(void *context, uint32_t pid, uid_t caller,
			       const struct nm_show *show)
{
	uint32_t count = pid >= GIVEN_MANY ? pid : 1;
	(void)context;
	while (count-- > 0) {
		show->open(show->context);
		nm_show_u32(show, "caller", caller);
		show->close(show->context);
	}
	return 0;
}

static inline int give_decisions(void *context, uint64_t after, uint32_t most,
				 const struct nm_show *show)
{
	uint64_t count = after >= GIVEN_MANY ? after : 1;
	(void)context;
	while (count-- > 0) {
		show->open(show->context);
		nm_show_u64(show, "after", after);
		nm_show_u32(show, "most", most);
		show->close(show->context);
	}
	return 0;
}

static inline int give_explanation(void *context, uint64_t id, const struct nm_show *show)
{
	(void)context;
	if (id != 17)
		return -ENOENT;
	nm_show_text(show, "reasons", "these");
	show->begin(show->context, "candidates");
	for (uint32_t i = 0; i < 2; i++) {
		show->open(show->context);
		nm_show_u32(show, "partner_tid", 70 + i);
		show->close(show->context);
	}
	show->end(show->context);
	return 0;
}

static inline int give_reason(void *context, uint32_t pid, const struct nm_show *show)
{
	(void)context, (void)pid, (void)show;
	return -ESRCH;
}

static inline void ignore_bus(void *context, int error)
{
	(void)context, (void)error;
}

static inline void serve(int ready)
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
		.nodes = give_nodes,
		.processes = give_nodes,
		.threads = give_threads,
		.pages = give_pages,
		.regions = give_regions,
		.decisions = give_decisions,
		.explain = give_explanation,
		.explain_process = give_reason,
		.reload = do_reload,
		.set_dry_run = do_set_dry_run,
		.raise_control = do_raise_control,
		.trial = give_trial,
		.trial_programs = give_nodes,
		.asked = ignore_request,
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

/* The shipped policy with another group. */
static inline bool write_shipped_policy(const char *path)
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

__attribute__((unused)) static const char shipped_with[] =
	"<policy context=\"default\"><allow user=\"*\"/><deny own=\"*\"/>"
	"<deny send_type=\"method_call\"/><allow send_destination=\"org.freedesktop.DBus\"/>"
	"<allow send_type=\"method_return\"/><allow send_type=\"error\"/><allow "
	"send_type=\"signal\"/>"
	"<allow receive_type=\"method_call\"/><allow receive_type=\"method_return\"/>"
	"<allow receive_type=\"error\"/><allow receive_type=\"signal\"/></policy>"
	"<policy user=\"root\"><allow own=\"*\"/><allow "
	"send_destination=\"org.freedesktop.PolicyKit1\"/>"
	"</policy><include>/tmp/nm-access-%u.conf</include>";

static inline bool start_polkit(struct bus *bus)
{
	struct bus authority_bus = *bus;
	bool done = start_server(&authority_bus, serve_polkit);
	shared->polkit = authority_bus.server;
	return done;
}

static inline int set_up(void **state, const char *policy, enum answer answer)
{
	memset(shared, 0, sizeof(*shared));
	shared->answer = answer;
	int r = setup(state, policy, serve);
	if (r == 0 && *state && !start_polkit(*state))
		return -1;
	return r;
}

static inline int set_up_shipped(void **state)
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

static inline int set_up_allowing(void **state)
{
	return set_up(state, open_policy, ALLOW);
}

static inline int set_up_silent(void **state)
{
	return set_up(state, open_policy, SILENCE);
}

static inline int tear_down(void **state)
{
	end(&shared->polkit);
	return teardown(state);
}

static inline void need_root_and_bus(void **state)
{
	need(*state != NULL, "no dbus-daemon on this machine");
	need(geteuid() == 0, "becoming another user needs root");
}

/* ---- callers ---- */

static inline sd_bus *connect_bus(void)
{
	sd_bus *bus = NULL;
	assert_true(sd_bus_open_system(&bus) >= 0);
	return bus;
}

/* Returns the name of the error, or "". */
static inline void call(sd_bus *bus, bool interactive, char *name, size_t size, const char *method,
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

static inline void assert_call(const char *method, const char *types, uint64_t argument,
			       const char *expected)
{
	nm_auto(sd_bus_flush_close_unrefp) sd_bus *bus = connect_bus();
	char name[128];
	call(bus, false, name, sizeof(name), method, types, argument);
	assert_string_equal(name, expected);
}

/* In a child: becomes user nobody, in the group or in none. Failures are written to standard
 * error. */
static inline bool become_user_nobody(bool of_group)
{
	const struct group *group = getgrnam(GROUP);
	gid_t gid = of_group && group ? group->gr_gid : NOBODY;
	return setgroups(of_group ? 1 : 0, &gid) == 0 && setresgid(NOBODY, NOBODY, NOBODY) == 0 &&
	       setresuid(NOBODY, NOBODY, NOBODY) == 0;
}

static inline bool succeeds(pid_t child)
{
	int status;
	return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static inline bool user_nobody_gets_error(bool of_group, bool interactive, const char *method,
					  const char *types, const char *expected)
{
	pid_t child = fork();
	if (child == 0) {
		sd_bus *bus = NULL;
		char name[128] = "no bus";
		if (become_user_nobody(of_group) && sd_bus_open_system(&bus) >= 0)
			call(bus, interactive, name, sizeof(name), method, types, 4711);
		if (strcmp(name, expected) != 0)
			(void)fprintf(stderr, "%s: \"%s\", not \"%s\"\n", method, name, expected);
		_exit(strcmp(name, expected) == 0 ? 0 : 1);
	}
	return succeeds(child);
}

static inline bool is_paused(void)
{
	nm_auto(sd_bus_flush_close_unrefp) sd_bus *bus = connect_bus();
	int paused = -1;
	assert_true(sd_bus_get_property_trivial(bus, NM_BUS_NAME, NM_BUS_PATH, NM_BUS_INTERFACE,
						"Paused", NULL, 'b', &paused) >= 0);
	return paused;
}

/* Call first in main(). */
static inline bool share_answers(void)
{
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	return shared != MAP_FAILED;
}

#define TEST(name, how) cmocka_unit_test_setup_teardown(name, set_up_##how, tear_down)

#endif
