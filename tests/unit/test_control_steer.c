/* SPDX-License-Identifier: MIT */
/* Commands are for root and users authorized by polkit, which does not delay other callers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "../support/flood_bus.h"
#include "access_fixture.h"

#define OF_ONE_MOST 8

/* SECURITY: polkit */
static void polkit_may_allow(void **state)
{
	need_root_and_bus(state);
	assert_true(user_nobody_gets_error(false, false, "Pause", "", ""));
	assert_true(is_paused());
	assert_int_equal(shared->asked, 1);
	assert_string_equal(shared->action, "org.numamigrd1.steer");
	assert_string_equal(shared->subject_kind, "system-bus-name");
	assert_true(shared->subject[0] == ':');
	assert_int_equal(shared->flags, 0);
	assert_true(user_nobody_gets_error(false, true, "Resume", "", ""));
	assert_int_equal(shared->flags, 1); /* polkit may request a password */
	assert_false(is_paused());
	assert_true(user_nobody_gets_error(false, false, "Release", "u", ""));
	assert_true(user_nobody_gets_error(false, false, "SetDryRun", "b", ""));
	assert_string_equal(shared->action, "org.numamigrd1.steer");
	assert_true(user_nobody_gets_error(false, false, "Reload", "",
					   "org.numamigrd1.Error.BadConfiguration"));
	assert_string_equal(shared->action, "org.numamigrd1.reload");
	assert_int_equal(shared->asked, 5);
}

/* A reload reads the configuration of root again; the caller cannot choose another file. */
/* SECURITY: polkit */
static void a_reload_takes_no_argument(void **state)
{
	need_root_and_bus(state);
	assert_true(user_nobody_gets_error(false, false, "Reload", "u", SD_BUS_ERROR_INVALID_ARGS));
	assert_int_equal(shared->asked, 0);
	assert_true(user_nobody_gets_error(false, false, "Reload", "",
					   "org.numamigrd1.Error.BadConfiguration"));
	assert_int_equal(shared->asked, 1);
}

/* SECURITY: polkit */
static void polkit_may_refuse(void **state)
{
	need_root_and_bus(state);
	shared->answer = DENY;
	assert_true(user_nobody_gets_error(false, true, "Pause", "", SD_BUS_ERROR_ACCESS_DENIED));
	shared->answer = CHALLENGE;
	assert_true(user_nobody_gets_error(false, false, "Pause", "",
					   SD_BUS_ERROR_INTERACTIVE_AUTHORIZATION_REQUIRED));
	shared->answer = FAILURE;
	assert_true(user_nobody_gets_error(false, false, "Pause", "", SD_BUS_ERROR_ACCESS_DENIED));
	assert_int_equal(shared->asked, 3);
	end(&shared->polkit);
	assert_true(user_nobody_gets_error(false, false, "Pause", "", SD_BUS_ERROR_ACCESS_DENIED));
	assert_false(is_paused());
}

static void root_needs_no_polkit(void **state)
{
	need_root_and_bus(state);
	assert_call("Pause", "", 0, "");
	assert_true(is_paused());
	assert_call("Resume", "", 0, "");
	assert_call("Release", "u", 4711, "");
	assert_call("Release", "u", 1, NM_BUS_ERROR_NO_SUCH_PROCESS);
	assert_call("SetDryRun", "b", 1, "");
	assert_call("SetDryRun", "b", 0, NM_BUS_ERROR_DRY_RUN_FORCED);
	assert_call("Reload", "", 0, NM_BUS_ERROR_BAD_CONFIGURATION);
	assert_int_equal(shared->asked, 0);
}

/* The error of a reload is returned to its caller: file, line and reason. */
static void a_refused_reload_reports_the_line(void **state)
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

/* Sends more calls than permitted; returns true if the excess is refused at once. */
static bool flood(unsigned beyond)
{
	sd_bus *bus = NULL;
	unsigned refused = 0;
	if (!become_user_nobody(false) || sd_bus_open_system(&bus) < 0)
		return false;
	for (unsigned i = 0; i < OF_ONE_MOST + beyond; i++)
		(void)sd_bus_call_method_async(bus, NULL, NM_BUS_NAME, NM_BUS_PATH,
					       NM_BUS_INTERFACE, "Pause", note_error, &refused, "");
	for (time_t start = time(NULL); refused < beyond && time(NULL) < start + 20;)
		if (sd_bus_process(bus, NULL) == 0)
			(void)sd_bus_wait(bus, 100000);
	return refused == beyond;
}

/* A call of user nobody that waits for polkit. */
static pid_t start_patient(void)
{
	pid_t child = fork();
	if (child != 0)
		return child;
	sd_bus *bus = NULL;
	char name[128];
	if (become_user_nobody(false) && sd_bus_open_system(&bus) >= 0)
		call(bus, true, name, sizeof(name), "Pause", "", 0);
	_exit(1);
}

/* SECURITY: bus */
static void a_silent_polkit_does_not_delay_others(void **state)
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

/* SECURITY: bus */
static void requests_of_a_user_are_limited(void **state)
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

/* Excess calls of a user are refused or dropped at low cost, and root is answered. */
/* SECURITY: bus */
static void a_flood_does_not_delay_others(void **state)
{
	pid_t flooders[FLOOD_CONNECTIONS];
	need_root_and_bus(state);
	flood_begin(flooders);
	(void)sleep(2);
	assert_call("Pause", "", 0, "");
	assert_call("Status", "", 0, "");
	flood_end(flooders);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(polkit_may_allow, allowing),
		TEST(a_reload_takes_no_argument, allowing),
		TEST(polkit_may_refuse, allowing),
		TEST(root_needs_no_polkit, allowing),
		TEST(a_refused_reload_reports_the_line, allowing),
		TEST(a_silent_polkit_does_not_delay_others, silent),
		TEST(requests_of_a_user_are_limited, silent),
		TEST(a_flood_does_not_delay_others, silent),
	};
	return share_answers() ? cmocka_run_group_tests(tests, NULL, NULL) : 1;
}
