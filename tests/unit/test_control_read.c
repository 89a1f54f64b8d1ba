/* SPDX-License-Identifier: MIT */
/* Permissions to read, types, and that org.numamigrd1(5) documents all of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "access_fixture.h"

/* ---- permissions ---- */

static const struct {
	const char *method, *types;
} readings[] = {
	{"ListNodes", ""}, {"ListProcesses", ""}, {"Pages", "u"},	   {"Decisions", "tu"},
	{"Explain", "t"},  {"ListThreads", "u"},  {"ExplainProcess", "u"},
	{"Trial", ""},
};

/* SECURITY: group, user */
static void only_the_group_may_read_lists(void **state)
{
	need_root_and_bus(state);
	need(getgrnam(GROUP) != NULL, "there is no group " GROUP);
	for (size_t i = 0; i < NM_ARRAY_SIZE(readings); i++) {
		const char *method = readings[i].method, *types = readings[i].types;
		const char *expected =
			strcmp(method, "Explain") == 0		? NM_BUS_ERROR_NO_SUCH_DECISION
			: strcmp(method, "ListThreads") == 0	? NM_BUS_ERROR_NOT_MANAGED
			: strcmp(method, "ExplainProcess") == 0 ? NM_BUS_ERROR_NO_SUCH_PROCESS
								: "";
		assert_true(user_nobody_gets_error(false, false, method, types,
						   SD_BUS_ERROR_ACCESS_DENIED));
		assert_true(user_nobody_gets_error(true, false, method, types, expected));
		assert_call(method, types, 4711, expected);
	}
	assert_true(user_nobody_gets_error(false, false, "Status", "", ""));
	assert_int_equal(shared->asked, 0);
	/* Commands may be requested by anyone; membership of the group allows none. */
	assert_true(user_nobody_gets_error(false, false, "Pause", "", SD_BUS_ERROR_ACCESS_DENIED));
	assert_true(user_nobody_gets_error(true, false, "Pause", "", SD_BUS_ERROR_ACCESS_DENIED));
	assert_int_equal(shared->asked, 2);
}

static bool properties_are_denied_to_nobody(void)
{
	pid_t child = fork();
	if (child == 0) {
		sd_bus *bus = NULL;
		uint32_t version = 0;
		if (!become_user_nobody(false) || sd_bus_open_system(&bus) < 0)
			_exit(2);
		(void)sd_bus_get_property_trivial(bus, NM_BUS_NAME, NM_BUS_PATH, NM_BUS_INTERFACE,
						  "InterfaceVersion", NULL, 'u', &version);
		_exit(version == 2 ? 0 : 1);
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

static void anyone_may_read_properties(void **state)
{
	need_root_and_bus(state);
	assert_true(properties_are_denied_to_nobody());
	nm_auto(sd_bus_flush_close_unrefp) sd_bus *bus = connect_bus();
	assert_text_property(bus, "Version", "1.2");
	assert_text_property(bus, "Source", "ibs");
}

/* Unavailable values are omitted; others have their documented type. */
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

/* The bus would disconnect a sender that exceeds its limit. */
static void overlong_answers_are_refused(void **state)
{
	need_root_and_bus(state);
	assert_call("ListThreads", "u", 25000, "");
	assert_call("ListThreads", "u", 25001, SD_BUS_ERROR_LIMITS_EXCEEDED);
	assert_call("ListThreads", "u", 0, "");
}

/* One of these costs as much as hundreds of short answers. */
static bool is_refused_soon(const char *method, const char *types)
{
	nm_auto(sd_bus_flush_close_unrefp) sd_bus *bus = connect_bus();
	char name[128] = "";
	for (unsigned i = 0; i < 100 && strcmp(name, SD_BUS_ERROR_LIMITS_EXCEEDED) != 0; i++)
		call(bus, false, name, sizeof(name), method, types, 24000);
	return strcmp(name, SD_BUS_ERROR_LIMITS_EXCEEDED) == 0;
}

/* The limit applies to one second, in which a build with sanitizers does not write enough
 * answers. */
static bool takes_long(const char *method, const char *types)
{
	nm_auto(sd_bus_flush_close_unrefp) sd_bus *bus = connect_bus();
	char name[128] = "";
	uint64_t before_ns = nm_clock_ns();
	call(bus, false, name, sizeof(name), method, types, 24000);
	return nm_clock_ns() - before_ns > NM_NSEC_PER_SEC / 4;
}

/* SECURITY: bus */
static void long_lists_count_against_their_caller(void **state)
{
	need_root_and_bus(state);
	if (takes_long("ListThreads", "u"))
		skip();
	assert_true(is_refused_soon("ListThreads", "u"));
	assert_true(is_refused_soon("Decisions", "tu"));
	assert_true(is_refused_soon("Pages", "u"));
	/* Other callers are not charged. */
	assert_call("Decisions", "tu", 4711, "");
}

static void an_explanation_has_a_list_in_it(void **state)
{
	nm_auto(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
	const char *reasons, *these, *candidates, *one, *other;
	uint32_t first, second;
	need_root_and_bus(state);
	nm_auto(sd_bus_flush_close_unrefp) sd_bus *bus = connect_bus();
	assert_true(sd_bus_call_method(bus, NM_BUS_NAME, NM_BUS_PATH, NM_BUS_INTERFACE, "Explain",
				       NULL, &reply, "t", UINT64_C(17)) >= 0);
	assert_true(sd_bus_message_read(reply, "a{sv}", 2, &reasons, "s", &these, &candidates,
					"aa{sv}", 2, 1, &one, "u", &first, 1, &other, "u",
					&second) > 0);
	assert_string_equal(candidates, "candidates");
	assert_true(first == 70 && second == 71);
}

/* Returns the uid that the daemon uses; 0 without an answer. */
static uint32_t caller_as_reported(sd_bus *bus)
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

/* SECURITY: group, cap-perfmon */
static void addresses_are_decided_by_the_callers_uid(void **state)
{
	need_root_and_bus(state);
	pid_t child = fork();
	if (child == 0) {
		sd_bus *bus = NULL;
		if (!become_user_nobody(true) || sd_bus_open_system(&bus) < 0)
			_exit(2);
		_exit(caller_as_reported(bus) == NOBODY ? 0 : 1);
	}
	assert_true(succeeds(child));
	nm_auto(sd_bus_flush_close_unrefp) sd_bus *bus = connect_bus();
	assert_int_equal(caller_as_reported(bus), 0);
	assert_call("Pages", "u", 5, NM_BUS_ERROR_NOT_MANAGED);
}

/* ---- signals ---- */

static int on_change(sd_bus_message *signal, void *userdata, sd_bus_error *error)
{
	unsigned *changes = userdata;
	(void)signal, (void)error;
	++*changes;
	return 0;
}

static void a_change_is_signalled_once(void **state)
{
	unsigned changes = 0;
	need_root_and_bus(state);
	nm_auto(sd_bus_flush_close_unrefp) sd_bus *bus = connect_bus();
	assert_true(sd_bus_match_signal(bus, NULL, NM_BUS_NAME, NM_BUS_PATH,
					"org.freedesktop.DBus.Properties", "PropertiesChanged",
					on_change, &changes) >= 0);
	assert_call("Pause", "", 0, "");
	assert_call("Resume", "", 0, "");
	/* The bus preserves the order of one sender, so earlier signals have arrived with this
	 * answer. */
	assert_call("Pause", "", 0, "");
	for (int r = 1; r > 0;)
		r = sd_bus_process(bus, NULL);
	assert_int_equal(changes, 3);
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
	assert_int_equal(count, 20); /* 15 methods, 5 properties */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(only_the_group_may_read_lists, shipped),
		TEST(anyone_may_read_properties, shipped),
		TEST(lists_have_their_types, shipped),
		TEST(overlong_answers_are_refused, shipped),
		TEST(long_lists_count_against_their_caller, shipped),
		TEST(an_explanation_has_a_list_in_it, shipped),
		TEST(addresses_are_decided_by_the_callers_uid, shipped),
		TEST(a_change_is_signalled_once, shipped),
		TEST(everything_is_documented, shipped),
	};
	return share_answers() ? cmocka_run_group_tests(tests, NULL, NULL) : 1;
}
