/* SPDX-License-Identifier: MIT */
/* The whole daemon on a synthetic machine, and a client that queries and controls it on a private
 * bus. */
#define SET_UP set_up
#define TEAR_DOWN tear_down
#include "../support/test.h"

#include <signal.h>
#include <time.h>

#include "bus_fixture.h"
#include "dump_fixture.h"
#include "fake_mover.h"
#include "whole_daemon_fixture.h"

enum { PATIENCE_S = 60 };

static struct world *world;
static sd_bus *client;
static pid_t service;

/* ---- the daemon, in a separate process ---- */

static pid_t start_service(void)
{
	pid_t child = fork();
	if (child != 0)
		return child;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)world_mute(world);
	_exit(nm_daemon_run(&world->options));
}

/* Sends SIGTERM; returns the exit status. */
static int stop_service(void)
{
	int status = -1;
	(void)kill(service, SIGTERM);
	if (waitpid(service, &status, 0) != service || !WIFEXITED(status))
		return -1;
	service = 0;
	return WEXITSTATUS(status);
}

static bool is_there(void)
{
	return sd_bus_get_name_creds(client, NM_BUS_NAME, 0, NULL) >= 0;
}

static void wait_a_little(void)
{
	while (sd_bus_process(client, NULL) > 0)
		;
	(void)usleep(50000);
}

static int set_up(void **state)
{
	world = world_new();
	fake_mover = (struct fake_mover){0};
	world_worker(world, 100, 1);
	world_worker(world, 101, 0);
	fake_sleep(world->fake, 60000);
	int r = setup(state, open_policy, NULL);
	if (r < 0 || !*state)
		return r;
	service = start_service();
	if (sd_bus_open_system(&client) < 0)
		return -1;
	for (time_t end_s = time(NULL) + PATIENCE_S; !is_there() && time(NULL) < end_s;)
		wait_a_little();
	return 0;
}

static int tear_down(void **state)
{
	shown_clear();
	end(&service);
	client = sd_bus_flush_close_unref(client);
	int r = teardown(state);
	world_free(world);
	return r;
}

/* ---- the client ---- */

/* Returns the name of the error, or "". */
static const char *call(const char *method, const char *types, uint32_t argument)
{
	static char name[128];
	nm_auto(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
	int r = sd_bus_call_method(client, NM_BUS_NAME, NM_BUS_PATH, NM_BUS_INTERFACE, method,
				   &error, NULL, types, argument);
	(void)snprintf(name, sizeof(name), "%s", r >= 0 ? "" : error.name);
	return name;
}

static void ask(const char *section)
{
	nm_auto(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
	int fd;
	assert_true(sd_bus_call_method(client, NM_BUS_NAME, NM_BUS_PATH, NM_BUS_INTERFACE, "Dump",
				       NULL, &reply, "") >= 0);
	assert_true(sd_bus_message_read(reply, "h", &fd) > 0);
	show_document(dup(fd), section);
}

static size_t count_rows(const char *section)
{
	ask(section);
	return shown.rows;
}

static unsigned count_assigned(void)
{
	unsigned assigned = 0;
	ask("threads");
	for (unsigned row = 1; row <= shown.rows; row++)
		assigned += shown_value(row, "assigned_node") != NULL;
	return assigned;
}

static bool wait_for_a_move(void)
{
	time_t end_s = time(NULL) + PATIENCE_S;
	while (count_assigned() == 0 && time(NULL) < end_s)
		wait_a_little();
	return count_assigned() > 0;
}

static bool status_flag(const char *name)
{
	ask("status");
	return json_is_true(shown_value(0, name));
}

static void skip_without_service(void **state)
{
	need(*state != NULL, "no dbus-daemon on this machine");
	need(geteuid() == 0, "commands need root, but this test runs as another user");
	assert_true(is_there());
}

TEST(a_client_sees_decisions_and_verdicts)
{
	skip_without_service(state);
	assert_true(wait_for_a_move());
	assert_int_equal(count_rows("threads"), 2);
	assert_int_equal(count_rows("processes"), 2);
	assert_int_equal(count_rows("nodes"), NODES);
	assert_int_equal(count_rows("decisions"), 1);
	assert_true(json_array_size(shown_value(1, "candidates")) > 0);
	assert_int_equal(stop_service(), 0);
	assert_null(fake_trace(world->fake));
}

TEST(a_client_issues_commands)
{
	skip_without_service(state);
	assert_true(wait_for_a_move());
	assert_string_equal(call("SetDryRun", "b", true), "");
	assert_true(status_flag("dry_run"));
	assert_null(fake_trace(world->fake)); /* every affinity is restored before the reply */
	assert_string_equal(call("Pause", "", 0), "");
	assert_true(status_flag("paused"));
	assert_int_equal(count_rows("threads"), 0);
	assert_int_equal(count_rows("nodes"), 0);
	assert_string_equal(call("Reload", "", 0), ""); /* ends the dry run */
	assert_false(status_flag("dry_run"));
	fake_get(world->fake, 100)->processor = 0;
	assert_string_equal(call("Resume", "", 0), "");
	assert_true(wait_for_a_move());
	assert_string_equal(call("Release", "u", 100), "");
	assert_null(fake_trace(world->fake));
	assert_string_equal(call("Manage", "u", 100), "");
	assert_string_equal(call("Manage", "u", 100), "");
	world_configure(world, "verify: { control_percent = -1; };\n");
	assert_string_equal(call("Reload", "", 0), NM_BUS_ERROR_BAD_CONFIGURATION);
	assert_int_equal(stop_service(), 0);
	world_assert_logged(world, "Released PID 100");
	world_assert_logged(world, "PID 100 is managed again");
}

/* Affinities that a pause failed to restore are restored by the stop. */
TEST(a_stop_restores_after_an_incomplete_pause)
{
	skip_without_service(state);
	assert_true(wait_for_a_move());
	fake_fail(world->fake, FAKE_SET, 2, 1000000, EPERM); /* the next one narrows */
	fake_get(world->fake, 100)->processor = 0;
	for (time_t end_s = time(NULL) + PATIENCE_S;
	     !fake_trace(world->fake) && time(NULL) < end_s;)
		wait_a_little();
	assert_string_not_equal(call("Pause", "", 0), "");
	fake_calm(world->fake);
	assert_non_null(fake_trace(world->fake));
	assert_int_equal(stop_service(), 0);
	assert_null(fake_trace(world->fake));
}

int main(void)
{
	umask(022);
	return RUN_REGISTERED(NULL, NULL);
}
