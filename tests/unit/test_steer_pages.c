/* SPDX-License-Identifier: MIT */
/* Attributes of cgroups and pages: the values that prevent page moves. */
#define SET_UP open_pages
#define TEAR_DOWN world_close
#include "../support/test.h"

#include "page_daemon_fixture.h"

#define PAGES 24

/* A thread on node 0 whose pages are all on node 2. */
static void begin_in_group(const char *value)
{
	make_space(PAGES, 2);
	add_user(1000, 0, 0, PAGES);
	fake_group(world.fake, "/");
	fake_move(world.fake, 1000, "/a.slice");
	fake_set_attribute(world.fake, "/a.slice", value);
	begin();
}

TEST(observed_pages_stay_and_are_counted)
{
	begin_in_group("observe");
	live(30);
	assert_int_equal(pages_on(2), PAGES);
	assert_int_equal(tally()->decisions, 0);
	assert_int_equal(nm_pages_counts(nm_memory_pages(world.daemon.pipeline.memory)).tracked,
			 PAGES);
	fake_set_attribute(world.fake, "/a.slice", "on");
	live_until_on(0, PAGES, 30);
}

TEST(pages_of_excluded_processes_are_ignored)
{
	begin_in_group("off");
	live(30);
	assert_int_equal(pages_on(2), PAGES);
	assert_int_equal(nm_pages_counts(nm_memory_pages(world.daemon.pipeline.memory)).tracked, 0);
}

/* Pages in the queue of the mover when the attribute is set are not moved. */
TEST(queued_pages_are_dropped)
{
	begin_in_group(NULL);
	fake_mover.asleep = true;
	for (unsigned i = 0; i < 30 && fake_mover.nr_waiting == 0; i++)
		live_one();
	assert_true(fake_mover.nr_waiting > 0);
	fake_set_attribute(world.fake, "/a.slice", "observe");
	live(10);
	fake_mover.asleep = false;
	live(20);
	assert_int_equal(pages_on(2), PAGES);
}

RUN_TESTS()
