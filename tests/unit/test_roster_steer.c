/* SPDX-License-Identifier: MIT */
/* Who is managed by the word of a control group. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "roster_fixture.h"

static struct nm_steer *steer;
static unsigned nr_excluded;

static void keep_news(void *context, const struct nm_steer_news *news)
{
	(void)context;
	nr_excluded += news->trouble == NM_STEER_EXCLUDED;
}

static void pass_on(void *context, const char *directory, const struct nm_steering *said)
{
	(void)context, (void)said;
	nm_roster_resteer(roster, directory);
}

/* Process 100 in a service of a slice, 200 elsewhere. */
static int set_up_steered(void **state)
{
	static const struct nm_steer_ops ops = {.tell = keep_news, .changed = pass_on};
	(void)set_up(state);
	nr_excluded = 0;
	fake_group(fake, "/");
	fake_group(fake, "/a.slice");
	fake_group(fake, "/a.slice/x.service");
	fake_move(fake, 100, "/a.slice/x.service");
	fake_move(fake, 200, "/other");
	assert_int_equal(nm_steer_new(&fake->platform, config, &ops, &steer), 0);
	nm_roster_steer(roster, steer);
	return 0;
}

static int tear_down_steered(void **state)
{
	nm_steer_free(steer);
	return tear_down(state);
}

static void reconfigure(void)
{
	nm_steer_configure(steer, config);
	nm_roster_configure(roster, topology, config);
}

static void interval(void)
{
	nm_steer_drain(steer);
	run_all(0.5);
}

/* Within one interval, whatever was said when. */
static void test_off_and_back(void **state)
{
	(void)state;
	interval();
	assert_managed(101, true);
	fake_say(fake, "/a.slice", "off");
	interval();
	assert_managed(101, false);
	assert_managed(200, true);
	assert_int_equal(nm_roster_counts(roster).processes_off, 1);
	assert_int_equal(nm_roster_counts(roster).threads_known, 1);
	fake_say(fake, "/a.slice", NULL);
	interval();
	assert_managed(101, true);
}

/* Also a process that sleeps: its threads may hold leases. */
static void test_off_asleep(void **state)
{
	(void)state;
	interval();
	fake_say(fake, "/a.slice/x.service", "off");
	nm_steer_drain(steer);
	run_none(1);
	assert_managed(101, false);
	assert_managed(200, true);
}

static void test_observe(void **state)
{
	(void)state;
	interval();
	fake_say(fake, "/a.slice", "observe");
	interval();
	assert_managed(101, true);
	assert_true(member(101)->only_watched);
	assert_true(member(101)->barred_until == UINT64_MAX);
	assert_false(member(200)->only_watched);
	assert_int_equal(nm_roster_counts(roster).processes_observed, 1);
	fake_say(fake, "/a.slice", "on");
	interval();
	assert_false(member(101)->only_watched);
	assert_true(member(101)->barred_until == 0);
}

/* It is no member for as long as it holds a mask of ours: who keeps leases gives it back then. */
static void test_observe_ends_leases(void **state)
{
	(void)state;
	interval();
	leased_tid = 101;
	fake_say(fake, "/a.slice", "observe");
	interval();
	assert_managed(101, false);
	assert_managed(102, true);
	leased_tid = 0;
	interval();
	assert_managed(101, true);
}

static void test_policy_none(void **state)
{
	(void)state;
	fake_say(fake, "/a.slice", "none");
	interval();
	assert_true(member(101)->only_watched);
	assert_int_equal(nm_roster_counts(roster).processes_observed, 0);
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

static void test_on_includes(void **state)
{
	(void)state;
	include("prog200");
	interval();
	assert_managed(101, false);
	fake_say(fake, "/a.slice", "on");
	interval();
	assert_managed(101, true);
	assert_managed(200, true);
}

static void test_exclude_wins(void **state)
{
	(void)state;
	fake_say(fake, "/a.slice", "on");
	include("prog100");
	config->targets.exclude = config->targets.include;
	config->targets.include = (struct nm_target_list){0};
	reconfigure();
	interval();
	interval();
	assert_managed(101, false);
	assert_int_equal(nr_excluded, 1);
}

static void test_only(void **state)
{
	(void)state;
	config->targets.attribute = NM_ATTRIBUTE_ONLY;
	include("prog*");
	interval();
	assert_managed(101, false);
	assert_managed(200, false);
	fake_say(fake, "/a.slice", "lbma");
	interval();
	assert_managed(101, true);
	assert_managed(200, false);
}

/* Whoever owns a directory keeps processes out of something; only root brings them in. */
/* SECURITY: user, attributes */
static void test_others_bring_nobody_in(void **state)
{
	static const char *const words[] = {"observe", "on", "lbma", "rubbish", "of\x1b[1m"};
	(void)state;
	fake_own_group(fake, "/a.slice/x.service", 1000);
	for (int only = 0; only < 2; only++) {
		if (only)
			config->targets.attribute = NM_ATTRIBUTE_ONLY;
		else
			include("other");
		for (unsigned i = 0; i < sizeof(words) / sizeof(*words); i++) {
			fake_say(fake, "/a.slice", NULL);
			fake_say(fake, "/a.slice/x.service", words[i]);
			reconfigure();
			interval();
			assert_managed(101, false);
			assert_int_equal(nm_roster_counts(roster).processes_observed, 0);
			/* What root asks for, they can still turn into looking on. */
			fake_say(fake, "/a.slice", "on");
			interval();
			assert_managed(101, true);
			assert_true(member(101)->only_watched ==
				    (i != 1 && i != 2)); /* their "on" and policies are nothing */
		}
	}
}

/* What root said there is no longer root's word once the directory is somebody else's. */
static void test_a_word_goes_with_its_owner(void **state)
{
	(void)state;
	include("other");
	fake_say(fake, "/a.slice/x.service", "observe");
	reconfigure();
	interval();
	assert_managed(101, true);
	fake_own_group(fake, "/a.slice/x.service", 1000);
	interval();
	assert_managed(101, false);
}

static void test_ignore(void **state)
{
	(void)state;
	fake_say(fake, "/a.slice", "off");
	config->targets.attribute = NM_ATTRIBUTE_IGNORE;
	reconfigure();
	interval();
	assert_managed(101, true);
}

/* Worth it or not is another question. */
static void test_on_but_small(void **state)
{
	(void)state;
	fake_get(fake, 100)->rss_kb = 1024;
	fake_say(fake, "/a.slice", "on");
	interval();
	assert_managed(101, false);
}

/* Pages of a watched process are not write-protected to see its writes. */
static void test_no_injection(void **state)
{
	const struct nm_inject_target *targets;
	(void)state;
	include("prog*");
	interval();
	assert_int_equal(nm_roster_inject_targets(roster, &targets), 2);
	fake_say(fake, "/a.slice", "observe");
	interval();
	assert_int_equal(nm_roster_inject_targets(roster, &targets), 1);
	assert_int_equal(targets[0].pid, 200);
}

/* One that moves to another group is seen when it is looked at again. */
static void test_moved(void **state)
{
	(void)state;
	fake_group(fake, "/off");
	fake_say(fake, "/off", "off");
	interval();
	fake_move(fake, 100, "/off");
	run_none(10);
	interval();
	assert_managed(101, false);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up_steered, tear_down_steered)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_off_and_back),
		TEST(test_off_asleep),
		TEST(test_observe),
		TEST(test_observe_ends_leases),
		TEST(test_policy_none),
		TEST(test_on_includes),
		TEST(test_exclude_wins),
		TEST(test_only),
		TEST(test_ignore),
		TEST(test_others_bring_nobody_in),
		TEST(test_a_word_goes_with_its_owner),
		TEST(test_on_but_small),
		TEST(test_no_injection),
		TEST(test_moved),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
