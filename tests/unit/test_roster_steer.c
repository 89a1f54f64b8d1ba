/* SPDX-License-Identifier: MIT */
/* Attributes of cgroups: which processes are managed, and how soon a change applies. */
#define SET_UP set_up_attributes
#define TEAR_DOWN tear_down
#include "../support/test.h"

#include "roster_fixture.h"

/* Process 100 in a service of a slice, 200 elsewhere. */
static int set_up_attributes(void **state)
{
	(void)set_up(state);
	fake_group(fake, "/");
	fake_group(fake, "/a.slice");
	fake_group(fake, "/a.slice/x.service");
	fake_move(fake, 100, "/a.slice/x.service");
	fake_move(fake, 200, "/other");
	return 0;
}

static void reconfigure(void)
{
	nm_roster_configure(roster, topology, config);
}

static void interval(void)
{
	run_all(0.5);
}

/* The latest time at which a change of an attribute applies. */
static void ten_seconds(void)
{
	for (unsigned i = 0; i < 10; i++)
		interval();
}

TEST(test_off_and_back)
{
	interval();
	assert_managed(101, true);
	fake_set_attribute(fake, "/a.slice", "off");
	ten_seconds();
	assert_managed(101, false);
	assert_managed(200, true);
	assert_int_equal(nm_roster_counts(roster).processes_off, 1);
	assert_int_equal(nm_roster_counts(roster).threads_known, 1);
	fake_set_attribute(fake, "/a.slice", NULL);
	ten_seconds();
	assert_managed(101, true);
}

/* Also for a sleeping process, as its threads may be assigned. */
TEST(test_off_asleep)
{
	interval();
	fake_set_attribute(fake, "/a.slice/x.service", "off");
	run_none(10);
	assert_managed(101, false);
	assert_managed(200, true);
}

/* Sleep alone changes nothing: the process keeps its assignments. */
TEST(test_asleep)
{
	interval();
	run_none(30);
	assert_managed(101, true);
	assert_managed(200, true);
}

/* The attributes are read when a process is checked, once in ten seconds, also if it sleeps. */
/* SECURITY: many-groups */
TEST(test_reads_in_ten_seconds)
{
	fake_group(fake, "/other");
	interval();
	assert_int_equal(fake->attribute_reads, 5);
	run_none(40);
	assert_in_range(fake->attribute_reads, 5 + 4 * 5, 5 + 5 * 5);
}

/* With longer intervals the attribute is read in each. */
TEST(test_long_intervals)
{
	interval();
	for (unsigned i = 0; i < 4; i++) {
		fake_set_attribute(fake, "/a.slice", i % 2 ? NULL : "off");
		fake_sleep(fake, 7000);
		interval();
		assert_managed(101, i % 2);
	}
}

/* Attributes of a process that is too small to be managed are not read. */
TEST(test_attributes_of_small_processes_are_not_read)
{
	fake_set_attribute(fake, "/a.slice", "off");
	run_all(0.01);
	run_all(0.01);
	assert_int_equal(fake->attribute_reads, 0);
	fake_get(fake, 100)->rss_kb = 1024;
	fake_get(fake, 200)->rss_kb = 1024;
	ten_seconds();
	assert_int_equal(fake->attribute_reads, 0);
}

TEST(test_observe)
{
	interval();
	fake_set_attribute(fake, "/a.slice", "observe");
	ten_seconds();
	assert_managed(101, true);
	assert_true(member(101)->only_watched);
	assert_true(member(101)->barred_until == UINT64_MAX);
	assert_false(member(200)->only_watched);
	assert_int_equal(nm_roster_counts(roster).processes_observed, 1);
	fake_set_attribute(fake, "/a.slice", "on");
	ten_seconds();
	assert_false(member(101)->only_watched);
	assert_true(member(101)->barred_until == 0);
}

static void include(const char *command)
{
	struct nm_target_list *list = &config->targets.include;
	list->items = calloc(1, sizeof(*list->items));
	assert_non_null(list->items);
	list->items[0].command = strdup(command);
	list->count = 1;
	reconfigure();
}

TEST(test_on_includes)
{
	include("prog200");
	interval();
	assert_managed(101, false);
	fake_set_attribute(fake, "/a.slice", "on");
	ten_seconds();
	assert_managed(101, true);
	assert_managed(200, true);
}

TEST(test_exclude_takes_precedence)
{
	fake_set_attribute(fake, "/a.slice", "on");
	include("prog100");
	config->targets.exclude = config->targets.include;
	config->targets.include = (struct nm_target_list){0};
	reconfigure();
	interval();
	interval();
	assert_managed(101, false);
}

TEST(test_only)
{
	config->targets.cgroup_attribute = NM_ATTRIBUTE_ONLY;
	include("prog*");
	interval();
	assert_managed(101, false);
	assert_managed(200, false);
	fake_set_attribute(fake, "/a.slice", "on");
	ten_seconds();
	assert_managed(101, true);
	assert_managed(200, false);
}

/* The owner of a directory can only exclude processes; only root includes them. */
/* SECURITY: user, attributes */
TEST(test_only_root_includes_processes)
{
	static const char *const words[] = {"observe", "on", "lbma", "rubbish", "of\x1b[1m"};
	fake_own_group(fake, "/a.slice/x.service", 1000);
	for (int only = 0; only < 2; only++) {
		if (only)
			config->targets.cgroup_attribute = NM_ATTRIBUTE_ONLY;
		else
			include("other");
		for (unsigned i = 0; i < sizeof(words) / sizeof(*words); i++) {
			fake_set_attribute(fake, "/a.slice", NULL);
			fake_set_attribute(fake, "/a.slice/x.service", words[i]);
			reconfigure();
			interval();
			assert_managed(101, false);
			assert_int_equal(nm_roster_counts(roster).processes_observed, 0);
			/* Users may restrict processes included by root to observing. */
			fake_set_attribute(fake, "/a.slice", "on");
			ten_seconds();
			assert_managed(101, true);
			assert_true(member(101)->only_watched ==
				    (i != 1)); /* their "on" is ignored */
		}
	}
}

/* An attribute set by root expires when another user becomes owner of the directory. */
TEST(test_an_attribute_expires_with_its_owner)
{
	include("other");
	fake_set_attribute(fake, "/a.slice/x.service", "observe");
	reconfigure();
	interval();
	assert_managed(101, true);
	fake_own_group(fake, "/a.slice/x.service", 1000);
	ten_seconds();
	assert_managed(101, false);
}

TEST(test_ignore)
{
	fake_set_attribute(fake, "/a.slice", "off");
	config->targets.cgroup_attribute = NM_ATTRIBUTE_IGNORE;
	reconfigure();
	interval();
	assert_managed(101, true);
	assert_int_equal(fake->attribute_reads, 0);
}

/* Eligibility by size is still required. */
TEST(test_on_does_not_override_size)
{
	fake_get(fake, 100)->rss_kb = 1024;
	fake_set_attribute(fake, "/a.slice", "on");
	ten_seconds();
	assert_managed(101, false);
}

/* A process that moves to another group is detected at its next check. */
TEST(test_moved)
{
	fake_group(fake, "/off");
	fake_set_attribute(fake, "/off", "off");
	ten_seconds();
	fake_move(fake, 100, "/off");
	run_none(10);
	interval();
	assert_managed(101, false);
}

RUN_TESTS()
