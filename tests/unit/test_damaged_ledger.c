/* SPDX-License-Identifier: MIT */
/* A ledger with unreadable lines: the others are replayed, and the damage is reported. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <signal.h>
#include <sys/resource.h>

#include "actuate_fixture.h"

/* Threads 101 to 103 of process 100 have leases on nodes 1 to 3, and the daemon has exited. */
static int set_up(void **state)
{
	(void)set_up_two_processes(state);
	for (unsigned node = 1; node < 4; node++)
		world_lease(world, 100 + node, node);
	nm_actuator_free(world->actuator);
	world->actuator = NULL;
	return 0;
}

static int restore(struct nm_restoration *ret)
{
	return nm_restore(&fake->platform, world->topology, world->directory, WORLD_BOOT,
			  world_on_event, world, ret);
}

/* Overwrites the beginning of a line (counted from 1); returns the resulting file. */
static void damage(unsigned number, char *ret, size_t size)
{
	snprintf(ret, size, "%s", fixture_read(world->root, NM_LEDGER_NAME));
	char *line = ret;
	for (unsigned i = 1; i < number; i++)
		line = strchr(line, '\n') + 1;
	memcpy(line, "give ?", 6);
	int fd = openat(world->directory, NM_LEDGER_NAME, O_WRONLY | O_TRUNC | O_CLOEXEC);
	assert_int_equal(write(fd, ret, strlen(ret)), strlen(ret));
	close(fd);
}

static void a_whole_ledger_has_no_damage(void **state)
{
	struct nm_restoration found;
	(void)state;
	assert_int_equal(restore(&found), 3);
	assert_int_equal(found.bad_lines, 0);
	assert_int_equal(found.first_bad_line, 0);
	assert_int_equal(faccessat(world->directory, NM_LEDGER_DAMAGED, F_OK, 0), -1);
}

/* SECURITY: ledger */
static void readable_lines_are_restored_and_others_reported(void **state)
{
	struct nm_restoration found;
	char text[4096];
	(void)state;
	damage(2, text, sizeof(text));
	damage(3, text, sizeof(text));
	assert_int_equal(restore(&found), 1);
	assert_int_equal(found.failed, 0);
	assert_int_equal(found.bad_lines, 2);
	assert_int_equal(found.first_bad_line, 2);
	assert_int_equal(found.kept, 0);
	assert_int_equal(world_mask(world, 103), fake_cpus(0, 7));
	assert_int_equal(world_mask(world, 101), world_node(1));
	assert_string_equal(fixture_read(world->root, NM_LEDGER_DAMAGED), text);
	assert_int_equal(faccessat(world->directory, NM_LEDGER_NAME, F_OK, 0), -1);
}

static void the_latest_damaged_file_is_kept(void **state)
{
	struct nm_restoration found;
	char text[4096];
	(void)state;
	fixture_file(world->root, NM_LEDGER_DAMAGED, "an earlier one, and a good deal longer");
	damage(4, text, sizeof(text));
	assert_int_equal(restore(&found), 2);
	assert_int_equal(found.first_bad_line, 4);
	assert_string_equal(fixture_read(world->root, NM_LEDGER_DAMAGED), text);
}

/* Refused lines stay in the ledger, damaged ones do not: damage is reported once. */
static void damage_is_reported_once(void **state)
{
	struct nm_restoration found;
	char text[4096];
	(void)state;
	damage(2, text, sizeof(text));
	fake_fail(fake, FAKE_SET, 1, 1, EPERM);
	assert_int_equal(restore(&found), 1);
	assert_int_equal(found.failed, 1);
	assert_int_equal(found.bad_lines, 1);
	assert_int_equal(restore(&found), 1);
	assert_int_equal(found.failed, 0);
	assert_int_equal(found.bad_lines, 0);
	assert_string_equal(fixture_read(world->root, NM_LEDGER_DAMAGED), text);
}

static void a_failed_copy_does_not_stop_the_replay(void **state)
{
	struct nm_restoration found;
	char text[4096];
	struct rlimit old;
	(void)state;
	damage(2, text, sizeof(text));
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	struct rlimit limit = {.rlim_cur = 16, .rlim_max = old.rlim_max};
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	int r = restore(&found);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	signal(SIGXFSZ, SIG_DFL);
	assert_int_equal(r, 2);
	assert_int_equal(found.bad_lines, 1);
	assert_int_equal(found.kept, -EFBIG);
	assert_int_equal(faccessat(world->directory, NM_LEDGER_DAMAGED, F_OK, 0), -1);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_whole_ledger_has_no_damage),
		TEST(readable_lines_are_restored_and_others_reported),
		TEST(the_latest_damaged_file_is_kept),
		TEST(damage_is_reported_once),
		TEST(a_failed_copy_does_not_stop_the_replay),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
