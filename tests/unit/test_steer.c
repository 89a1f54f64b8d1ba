/* SPDX-License-Identifier: MIT */
/* The attribute of cgroups: its values, its owner, nested cgroups, and the number of reads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "fake_platform.h"
#include "numa-migrd/tasks.h"

#define SECOND NM_NSEC_PER_SEC
#define REPORTS 64

static struct fake *fake;
static struct nm_config *config;
static struct nm_steer *steer;
static struct {
	enum nm_steer_conflict conflict;
	char cgroup[128], value[128];
} reports[REPORTS];
static unsigned nr_reports;

static void keep_report(void *context, const struct nm_steer_report *report)
{
	(void)context;
	assert_true(nr_reports < REPORTS);
	reports[nr_reports].conflict = report->conflict;
	snprintf(reports[nr_reports].cgroup, sizeof(reports->cgroup), "%s", report->cgroup);
	snprintf(reports[nr_reports].value, sizeof(reports->value), "%s", report->value);
	nr_reports++;
}

static int set_up(void **state)
{
	(void)state;
	fake = fake_new(4);
	nr_reports = 0;
	assert_int_equal(nm_config_default(&config), 0);
	fake_group(fake, "/");
	fake_group(fake, "/a.slice");
	fake_group(fake, "/a.slice/b.service");
	assert_int_equal(nm_steer_new(&fake->platform, config, keep_report, NULL, &steer), 0);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	nm_steer_free(steer);
	assert_int_equal(fake_open_fds(fake), 0);
	nm_config_free(config);
	nm_platform_free(&fake->platform);
	return 0;
}

static void next_tick(void)
{
	fake->now_ns += SECOND;
}

static struct nm_steering look(const char *cgroup)
{
	struct nm_steering steering = {.value = NM_STEER_OFF};
	assert_int_equal(nm_steer_look(steer, cgroup, fake->now_ns, &steering), 0);
	return steering;
}

static void assert_value(const char *cgroup, enum nm_steer_value value)
{
	struct nm_steering steering = look(cgroup);
	if (steering.value != value)
		fail_msg("%s is \"%s\", not \"%s\"", cgroup, nm_steer_name(steering.value),
			 nm_steer_name(value));
}

/* In another tick: the value read before does not count. */
static void assert_next_value(const char *cgroup, enum nm_steer_value value)
{
	next_tick();
	assert_value(cgroup, value);
}

static void assert_reported(enum nm_steer_conflict conflict, const char *cgroup, const char *value)
{
	for (unsigned i = 0; i < nr_reports; i++)
		if (reports[i].conflict == conflict && strcmp(reports[i].cgroup, cgroup) == 0 &&
		    strcmp(reports[i].value, value) == 0)
			return;
	fail_msg("conflict %d of %s, \"%s\", was not reported", (int)conflict, cgroup, value);
}

/* ---- rules ---- */

static enum nm_steer_value value_of(const char *text, size_t length)
{
	enum nm_steer_value value;
	return nm_steer_parse(text, length, &value) < 0 ? NM_STEER_NONE : value;
}

/* SECURITY: attributes */
static void test_values(void **state)
{
	(void)state;
	assert_int_equal(value_of("off", 3), NM_STEER_OFF);
	assert_int_equal(value_of("observe", 7), NM_STEER_OBSERVE);
	assert_int_equal(value_of("on", 2), NM_STEER_ON);
	assert_int_equal(value_of("on \t\n", 5), NM_STEER_ON);
	assert_int_equal(value_of("off\0\0", 5), NM_STEER_OFF);
	static const char *const wrong[] = {"",
					    "\n",
					    "Off",
					    " off",
					    "offf",
					    "o",
					    "on off",
					    "none",
					    "lbma",
					    "auto",
					    "observe_this_and_all_that"};
	for (size_t i = 0; i < NM_ARRAY_SIZE(wrong); i++)
		assert_int_equal(value_of(wrong[i], strlen(wrong[i])), NM_STEER_NONE);
	assert_int_equal(value_of("on\0off", 6), NM_STEER_NONE);
}

/* ---- nested cgroups ---- */

static void test_no_attribute(void **state)
{
	(void)state;
	assert_value("/a.slice/b.service", NM_STEER_NONE);
	assert_value("/", NM_STEER_NONE);
	assert_value("/not/there", NM_STEER_NONE);
	assert_value("", NM_STEER_NONE);
	assert_value(NULL, NM_STEER_NONE);
	assert_int_equal(nr_reports, 0);
}

static void test_nearest_attribute_applies(void **state)
{
	(void)state;
	fake_set_attribute(fake, "/", "observe");
	assert_value("/a.slice/b.service", NM_STEER_OBSERVE);
	fake_set_attribute(fake, "/a.slice/b.service", "on");
	assert_next_value("/a.slice/b.service", NM_STEER_ON);
	assert_value("/a.slice", NM_STEER_OBSERVE);
	assert_int_equal(nr_reports, 0);
}

static void test_off_takes_precedence(void **state)
{
	(void)state;
	fake_set_attribute(fake, "/a.slice", "off");
	fake_set_attribute(fake, "/a.slice/b.service", "on");
	assert_value("/a.slice/b.service", NM_STEER_OFF);
	assert_next_value("/a.slice/b.service", NM_STEER_OFF);
	assert_int_equal(nr_reports, 1);
	assert_reported(NM_STEER_UNDER_OFF, "/a.slice/b.service", "on");
}

/* SECURITY: user, attributes */
static void test_only_root_asks(void **state)
{
	(void)state;
	fake_own_group(fake, "/a.slice/b.service", 1000);
	fake_set_attribute(fake, "/a.slice", "observe");
	fake_set_attribute(fake, "/a.slice/b.service", "on");
	assert_value("/a.slice/b.service", NM_STEER_OBSERVE);
	assert_reported(NM_STEER_NOT_ROOTS, "/a.slice/b.service", "on");
	fake_set_attribute(fake, "/a.slice/b.service", "off");
	assert_next_value("/a.slice/b.service", NM_STEER_OFF);
	/* The same in a directory of root that others may write to. */
	fake_set_attribute(fake, "/a.slice", "on");
	fake_group(fake, "/a.slice")->others_write = true;
	fake_set_attribute(fake, "/a.slice/b.service", NULL);
	assert_next_value("/a.slice/b.service", NM_STEER_NONE);
	assert_reported(NM_STEER_NOT_ROOTS, "/a.slice", "on");
	assert_int_equal(nr_reports, 2);
}

/* A new owner of the directory does not inherit the value set by root for the former one. */
/* SECURITY: attributes */
static void test_change_of_owner(void **state)
{
	(void)state;
	fake_set_attribute(fake, "/a.slice/b.service", "on");
	assert_value("/a.slice/b.service", NM_STEER_ON);
	fake_own_group(fake, "/a.slice/b.service", 1000);
	assert_next_value("/a.slice/b.service", NM_STEER_NONE);
}

/* Users other than root cause one line in the journal, however often they change the value. */
/* SECURITY: many-groups */
static void test_users_cannot_flood_the_journal(void **state)
{
	char value[16];
	(void)state;
	fake_own_group(fake, "/a.slice", 1000);
	for (unsigned i = 0; i < 20; i++) {
		snprintf(value, sizeof(value), "wrong%u", i);
		fake_set_attribute(fake, "/a.slice", i % 2 ? value : "off");
		assert_next_value("/a.slice", i % 2 ? NM_STEER_OBSERVE : NM_STEER_OFF);
	}
	assert_int_equal(nr_reports, 1);
}

/* SECURITY: attributes */
static void test_unknown_value_is_observed(void **state)
{
	(void)state;
	fake_set_attribute(fake, "/a.slice/b.service", "of\x1b[1m");
	assert_value("/a.slice/b.service", NM_STEER_OBSERVE);
	assert_reported(NM_STEER_UNKNOWN, "/a.slice/b.service", "of\\x1b[1m");
	fake_set_attribute(fake, "/a.slice/b.service",
			   "lbma"); /* a policy, which was a valid value once */
	assert_next_value("/a.slice/b.service", NM_STEER_OBSERVE);
	assert_reported(NM_STEER_UNKNOWN, "/a.slice/b.service", "lbma");
	fake_set_attribute(
		fake, "/a.slice/b.service",
		"0123456789012345678901234567890123456789012345678901234567890123456789");
	assert_next_value("/a.slice/b.service", NM_STEER_OBSERVE);
	assert_reported(NM_STEER_UNKNOWN, "/a.slice/b.service", "(too long)");
	assert_int_equal(nm_steer_conflicts(steer), 3);
}

static void test_ignored(void **state)
{
	(void)state;
	fake_set_attribute(fake, "/", "off");
	config->targets.attribute = NM_ATTRIBUTE_IGNORE;
	nm_steer_configure(steer, config);
	assert_value("/a.slice", NM_STEER_NONE);
	assert_int_equal(fake->attribute_reads, 0);
	config->targets.attribute = NM_ATTRIBUTE_ONLY;
	nm_steer_configure(steer, config);
	assert_value("/a.slice", NM_STEER_OFF);
}

/* In the tree of another cgroup namespace. */
/* SECURITY: container */
static void test_outside(void **state)
{
	(void)state;
	fake_set_attribute(fake, "/", "off");
	assert_value("/../a.slice", NM_STEER_NONE);
	assert_value("/..", NM_STEER_NONE);
	assert_value("/..a.slice", NM_STEER_OFF);
	assert_int_equal(nr_reports, 1);
	assert_reported(NM_STEER_OUTSIDE, "/../a.slice", "");
}

static void test_excluded(void **state)
{
	(void)state;
	fake_set_attribute(fake, "/a.slice", "on");
	fake_set_attribute(fake, "/a.slice/b.service", "observe");
	assert_value("/a.slice/b.service", NM_STEER_OBSERVE);
	nm_steer_note_excluded(steer, "/a.slice/b.service");
	nm_steer_note_excluded(steer, "/a.slice/b.service");
	nm_steer_note_excluded(steer, "/elsewhere");
	nm_steer_note_excluded(steer, NULL);
	assert_int_equal(nr_reports, 1);
	assert_reported(NM_STEER_EXCLUDED, "/a.slice", "on");
}

/* A restarted service has a new directory without the attribute. */
/* SECURITY: groups-vanish */
static void test_recreated_cgroup(void **state)
{
	(void)state;
	fake_set_attribute(fake, "/a.slice/b.service", "off");
	assert_value("/a.slice/b.service", NM_STEER_OFF);
	fake_remove_group(fake, "/a.slice/b.service");
	assert_next_value("/a.slice/b.service", NM_STEER_NONE);
	fake_group(fake, "/a.slice/b.service");
	assert_next_value("/a.slice/b.service", NM_STEER_NONE);
}

/* Without descriptors the value is unknown, and the failure is not cached. */
static void test_cannot_be_read_now(void **state)
{
	struct nm_steering steering = {.value = NM_STEER_ON};
	(void)state;
	fake_set_attribute(fake, "/a.slice", "off");
	fake_fail(fake, FAKE_OPEN, 1, 1, EMFILE);
	assert_int_equal(nm_steer_look(steer, "/a.slice", fake->now_ns, &steering), -EMFILE);
	assert_int_equal(steering.value, NM_STEER_ON);
	assert_value("/a.slice", NM_STEER_OFF);
	/* "off" above decides. */
	fake_fail(fake, FAKE_OPEN, 1, 1, EMFILE);
	assert_value("/a.slice/b.service", NM_STEER_OFF);
}

/* A directory that the daemon may not open counts as one without the attribute. */
static void test_closed(void **state)
{
	(void)state;
	fake_set_attribute(fake, "/a.slice/b.service", "off");
	assert_value("/", NM_STEER_NONE);
	fake_fail(fake, FAKE_OPEN, 1, 1, EACCES);
	assert_value("/a.slice/b.service", NM_STEER_OFF);
}

/* ---- number of reads ---- */

static void test_once_in_a_tick(void **state)
{
	(void)state;
	for (int i = 0; i < 10; i++)
		assert_value("/a.slice/b.service", NM_STEER_NONE);
	assert_value("/a.slice", NM_STEER_NONE);
	assert_int_equal(fake->attribute_reads, 3);
	assert_next_value("/a.slice/b.service", NM_STEER_NONE);
	assert_int_equal(fake->attribute_reads, 6);
}

/* A path with this many levels below the root. */
static const char *nested(char *path, size_t size, unsigned levels)
{
	(void)snprintf(path, size, "/a.slice");
	for (unsigned i = 1; i < levels; i++) {
		strncat(path, "/x", size - strlen(path) - 1);
		fake_group(fake, path);
	}
	return path;
}

/* SECURITY: many-groups */
static void test_too_deep(void **state)
{
	char path[128];
	(void)state;
	fake_set_attribute(fake, "/a.slice", "on");
	assert_value(nested(path, sizeof(path), 32), NM_STEER_ON);
	assert_int_equal(nr_reports, 0);
	assert_value(nested(path, sizeof(path), 33), NM_STEER_OBSERVE);
	assert_value(nested(path, sizeof(path), 40), NM_STEER_OBSERVE);
	assert_int_equal(nr_reports, 1);
	assert_reported(NM_STEER_TOO_DEEP, nested(path, sizeof(path), 33), "");
	assert_int_equal(fake->attribute_reads, 33);
	fake_set_attribute(fake, "/a.slice", "off");
	assert_next_value(path, NM_STEER_OFF);
}

static const char *numbered(char *path, size_t size, unsigned number)
{
	(void)snprintf(path, size, "/a.slice/%u", number);
	return path;
}

static void reply_as_user(unsigned number, const char *value)
{
	char path[32];
	fake_set_attribute(fake, numbered(path, sizeof(path), number), value);
	fake_own_group(fake, path, 1000);
}

/* Cgroups of one user get a share of the reads of each tick, and others do not wait for them. */
/* SECURITY: many-groups */
static void test_attributes_of_users_are_read_gradually(void **state)
{
	struct nm_steering steering;
	unsigned known = 0;
	char path[32];
	(void)state;
	fake_own_group(fake, "/a.slice", 1000);
	for (unsigned i = 0; i < 300; i++)
		reply_as_user(i, "off");
	fake_set_attribute(fake, "/b.slice", "observe");
	for (unsigned i = 0; i < 300; i++) {
		int r = nm_steer_look(steer, numbered(path, sizeof(path), i), fake->now_ns,
				      &steering);
		assert_true(r == 0 || r == -EAGAIN);
		known += r == 0;
	}
	assert_int_equal(known, 63); /* beside /a.slice */
	assert_int_equal(fake->attribute_reads, 65);
	assert_value("/b.slice", NM_STEER_OBSERVE);
	next_tick();
	for (unsigned i = 200; i < 263; i++)
		assert_value(numbered(path, sizeof(path), i), NM_STEER_OFF);
}

/* Values set by root above them apply at once. */
/* SECURITY: many-groups */
static void test_a_restriction_applies_without_delay(void **state)
{
	struct nm_steering steering;
	char path[32];
	(void)state;
	fake_own_group(fake, "/a.slice", 1000);
	fake_set_attribute(fake, "/", "observe");
	for (unsigned i = 0; i < 300; i++)
		reply_as_user(i, NULL);
	for (unsigned i = 0; i < 300; i++) {
		(void)nm_steer_look(steer, numbered(path, sizeof(path), i), fake->now_ns,
				    &steering);
		assert_value(path, NM_STEER_OBSERVE);
	}
	assert_true(fake->attribute_reads <= 65);
}

/* One directory after another, each with an unknown value. */
/* SECURITY: many-groups */
static void test_reports_about_users_are_limited(void **state)
{
	char path[32];
	(void)state;
	for (unsigned i = 0; i < 40; i++) {
		reply_as_user(i, "rubbish");
		assert_value(numbered(path, sizeof(path), i), NM_STEER_OBSERVE);
	}
	assert_int_equal(nr_reports, 16);
	fake_set_attribute(fake, "/a.slice/b.service", "nonsense");
	assert_value("/a.slice/b.service", NM_STEER_OBSERVE);
	assert_reported(NM_STEER_UNKNOWN, "/a.slice/b.service",
			"nonsense"); /* root is not limited */
	fake->now_ns += 61 * SECOND;
	reply_as_user(40, "rubbish");
	assert_value("/a.slice/40", NM_STEER_OBSERVE);
	assert_int_equal(nr_reports, 18);
	assert_int_equal(nm_steer_conflicts(steer), 18);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values),
		TEST(test_no_attribute),
		TEST(test_nearest_attribute_applies),
		TEST(test_off_takes_precedence),
		TEST(test_only_root_asks),
		TEST(test_change_of_owner),
		TEST(test_users_cannot_flood_the_journal),
		TEST(test_unknown_value_is_observed),
		TEST(test_ignored),
		TEST(test_outside),
		TEST(test_excluded),
		TEST(test_recreated_cgroup),
		TEST(test_cannot_be_read_now),
		TEST(test_closed),
		TEST(test_once_in_a_tick),
		TEST(test_too_deep),
		TEST(test_attributes_of_users_are_read_gradually),
		TEST(test_a_restriction_applies_without_delay),
		TEST(test_reports_about_users_are_limited),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
