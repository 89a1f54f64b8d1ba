/* SPDX-License-Identifier: MIT */
/* general.record: the whole daemon from start to end, in a file that can be replayed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "../support/run_replay.h"
#include "whole_daemon_fixture.h"

#define LONG 60 /* seconds, after which what did not happen will not */

static struct world *world;
static char path[FIXTURE_PATH + 32];

static int set_up(void **state)
{
	(void)state;
	world = world_new();
	world_worker(world, 100, 1);
	world_worker(world, 101, 0);
	fake_sleep(world->fake, 60000);
	(void)snprintf(path, sizeof(path), "%s/recording", world->root);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	world_free(world);
	return 0;
}

static void stop_when_leased(struct world *w)
{
	w->seen_leased = w->seen_leased || world_leased(w, 100);
	if (w->seen_leased || w->seconds > LONG)
		raise(SIGTERM);
}

static void stop_after_a_while(struct world *w)
{
	if (w->seconds > LONG)
		raise(SIGTERM);
}

static void run(const char *more, world_fn each_second)
{
	char text[1024];
	(void)snprintf(text, sizeof(text),
		       "general: { interval_s = 0.1; seed = 1; record = \"%s\"; %s };\n"
		       "targets: { min_cpu_percent = 0; min_rss_mb = 1; };\n",
		       path, more);
	world_configure(world, text);
	world->each_second = each_second;
	assert_int_equal(world_run(world), EXIT_SUCCESS);
}

static unsigned count(enum nm_recorded_kind kind, char *ret_end, size_t size)
{
	char error[256];
	unsigned found = 0;
	struct nm_recorded record;
	nm_auto(nm_recording_freep) struct nm_recording *recording = NULL;
	assert_int_equal(nm_recording_open(open(path, O_RDONLY), error, sizeof(error), &recording),
			 0);
	while (nm_recording_next(recording, &record) > 0) {
		found += record.kind == kind;
		if (record.kind == NM_RECORDED_END)
			(void)snprintf(ret_end, size, "%s", record.end);
	}
	return found;
}

static void a_life_is_recorded(void **state)
{
	char end[128] = "";
	struct stat about;
	(void)state;
	run("", stop_when_leased);
	assert_true(world->seen_leased);
	world_assert_said(world, "recording into ");
	assert_int_equal(stat(path, &about), 0);
	assert_int_equal(about.st_mode & 0777, 0600);
	assert_int_equal(count(NM_RECORDED_DECISION, end, sizeof(end)), 1);
	assert_string_equal(end, "numa-migrd has stopped");
	assert_replays(path);
}

static void names_may_be_hashed(void **state)
{
	char end[128] = "", said[4096];
	(void)state;
	run("record_hashed = true;", stop_when_leased);
	assert_int_equal(count(NM_RECORDED_DECISION, end, sizeof(end)), 1);
	assert_int_equal(count(NM_RECORDED_ANSWER, end, sizeof(end)), 0);
	assert_int_equal(run_replay(path, said, sizeof(said)), 1);
}

static void a_file_is_never_written_over(void **state)
{
	(void)state;
	fixture_file(world->root, "recording", "mine");
	run("", stop_when_leased);
	assert_true(world->seen_leased); /* it does its work all the same */
	world_assert_said(world, "a recording is never written over");
}

static void its_size_has_a_limit(void **state)
{
	char end[128] = "";
	struct stat about;
	(void)state;
	for (unsigned i = 102; i < 106; i++)
		world_worker(world, i, i % NODES);
	run("record_mb = 1;", stop_after_a_while);
	assert_int_equal(stat(path, &about), 0);
	assert_true(about.st_size <= 1 << 20);
	(void)count(NM_RECORDED_END, end, sizeof(end));
	assert_true(end[0] != '\0');
	assert_replays(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_life_is_recorded, set_up, tear_down),
		cmocka_unit_test_setup_teardown(names_may_be_hashed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_file_is_never_written_over, set_up, tear_down),
		cmocka_unit_test_setup_teardown(its_size_has_a_limit, set_up, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
