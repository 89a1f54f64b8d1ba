/* SPDX-License-Identifier: MIT */
/* The attribute of cgroups: its values, its owner, nested cgroups, and the number of reads. */
#define SET_UP set_up
#define TEAR_DOWN tear_down
#include "../support/test.h"

#include "fake_platform.h"
#include "tasks/tasks.h"

static struct fake *fake;

static int set_up(void **state)
{
	(void)state;
	fake = fake_new(4);
	fake_group(fake, "/");
	fake_group(fake, "/a.slice");
	fake_group(fake, "/a.slice/b.service");
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	assert_int_equal(fake_open_fds(fake), 0);
	nm_platform_free(&fake->platform);
	return 0;
}

static void assert_value(const char *cgroup, enum nm_steer_value value)
{
	struct nm_steering steering = {.value = NM_STEER_OFF};
	assert_int_equal(nm_steer_read(&fake->platform, cgroup, &steering), 0);
	if (steering.value != value)
		fail_msg("%s is \"%s\", not \"%s\"", cgroup, nm_steer_name(steering.value),
			 nm_steer_name(value));
}

/* ---- rules ---- */

static enum nm_steer_value value_of(const char *text, size_t length)
{
	enum nm_steer_value value;
	return nm_steer_parse(text, length, &value) < 0 ? NM_STEER_NONE : value;
}

/* SECURITY: attributes */
TEST_BETWEEN(NULL, NULL, test_values)
{
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

TEST(test_no_attribute)
{
	assert_value("/a.slice/b.service", NM_STEER_NONE);
	assert_value("/", NM_STEER_NONE);
	assert_value("/not/there", NM_STEER_NONE);
	assert_value("", NM_STEER_NONE);
	assert_value(NULL, NM_STEER_NONE);
}

TEST(test_nearest_attribute_applies)
{
	fake_set_attribute(fake, "/", "observe");
	assert_value("/", NM_STEER_OBSERVE);
	assert_value("/a.slice/b.service", NM_STEER_OBSERVE);
	fake_set_attribute(fake, "/a.slice/b.service", "on");
	assert_value("/a.slice/b.service", NM_STEER_ON);
	assert_value("/a.slice", NM_STEER_OBSERVE);
}

TEST(test_off_takes_precedence)
{
	fake_set_attribute(fake, "/a.slice", "off");
	fake_set_attribute(fake, "/a.slice/b.service", "on");
	assert_value("/a.slice/b.service", NM_STEER_OFF);
}

/* SECURITY: user, attributes */
TEST(test_only_root_asks)
{
	fake_own_group(fake, "/a.slice/b.service", 1000);
	fake_set_attribute(fake, "/a.slice", "observe");
	fake_set_attribute(fake, "/a.slice/b.service", "on");
	assert_value("/a.slice/b.service", NM_STEER_OBSERVE);
	fake_set_attribute(fake, "/a.slice/b.service", "off");
	assert_value("/a.slice/b.service", NM_STEER_OFF);
	/* The same in a directory of root that others may write to. */
	fake_set_attribute(fake, "/a.slice", "on");
	fake_group(fake, "/a.slice")->others_write = true;
	fake_set_attribute(fake, "/a.slice/b.service", NULL);
	assert_value("/a.slice/b.service", NM_STEER_NONE);
}

/* Another user's directory above the cgroup restricts nothing. */
/* SECURITY: attributes */
TEST(test_only_the_owner_restricts)
{
	fake_own_group(fake, "/a.slice", 1000);
	fake_set_attribute(fake, "/a.slice", "off");
	assert_value("/a.slice/b.service", NM_STEER_NONE);
	fake_own_group(fake, "/a.slice/b.service", 1001);
	assert_value("/a.slice/b.service", NM_STEER_NONE);
	fake_own_group(fake, "/a.slice/b.service", 1000);
	assert_value("/a.slice/b.service", NM_STEER_OFF);
	assert_value("/a.slice", NM_STEER_OFF);
}

/* A new owner of the directory does not inherit the value set by root for the former one. */
/* SECURITY: attributes */
TEST(test_change_of_owner)
{
	fake_set_attribute(fake, "/a.slice/b.service", "on");
	assert_value("/a.slice/b.service", NM_STEER_ON);
	fake_own_group(fake, "/a.slice/b.service", 1000);
	assert_value("/a.slice/b.service", NM_STEER_NONE);
}

/* SECURITY: attributes */
TEST(test_unknown_value_is_observed)
{
	static const char *const unknown[] = {
		"of\x1b[1m", "lbma" /* a policy, which was a valid value once */,
		"0123456789012345678901234567890123456789012345678901234567890123456789"};
	for (size_t i = 0; i < NM_ARRAY_SIZE(unknown); i++) {
		fake_set_attribute(fake, "/a.slice/b.service", unknown[i]);
		assert_value("/a.slice/b.service", NM_STEER_OBSERVE);
	}
}

/* In the tree of another cgroup namespace. */
/* SECURITY: container */
TEST(test_outside)
{
	fake_set_attribute(fake, "/", "off");
	assert_value("/../a.slice", NM_STEER_NONE);
	assert_value("/..", NM_STEER_NONE);
	assert_value("/..a.slice", NM_STEER_OFF);
}

/* A restarted service has a new directory without the attribute. */
/* SECURITY: groups-vanish */
TEST(test_recreated_cgroup)
{
	fake_set_attribute(fake, "/a.slice/b.service", "off");
	assert_value("/a.slice/b.service", NM_STEER_OFF);
	fake_remove_group(fake, "/a.slice/b.service");
	assert_value("/a.slice/b.service", NM_STEER_NONE);
	fake_group(fake, "/a.slice/b.service");
	assert_value("/a.slice/b.service", NM_STEER_NONE);
}

/* Without descriptors the value is unknown. */
TEST(test_cannot_be_read_now)
{
	struct nm_steering steering = {.value = NM_STEER_ON};
	for (unsigned nth = 1; nth <= 2; nth++) {
		fake_fail(fake, FAKE_OPEN, nth, 1, EMFILE);
		assert_int_equal(nm_steer_read(&fake->platform, "/a.slice", &steering), -EMFILE);
		assert_int_equal(steering.value, NM_STEER_ON);
	}
}

/* A directory that the daemon may not open counts as one without the attribute. */
TEST(test_closed)
{
	fake_set_attribute(fake, "/a.slice/b.service", "off");
	fake_set_attribute(fake, "/", "observe");
	fake_fail(fake, FAKE_OPEN, 1, 1, EACCES);
	assert_value("/a.slice/b.service", NM_STEER_OBSERVE);
}

/* ---- number of reads ---- */

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
TEST(test_too_deep)
{
	char path[128];
	fake_set_attribute(fake, "/a.slice", "on");
	assert_value(nested(path, sizeof(path), 32), NM_STEER_ON);
	assert_int_equal(fake->attribute_reads, 33);
	fake->attribute_reads = 0;
	assert_value(nested(path, sizeof(path), 40), NM_STEER_OBSERVE);
	assert_int_equal(fake->attribute_reads, 33);
	assert_value(nested(path, sizeof(path), 33), NM_STEER_OBSERVE);
	fake_set_attribute(fake, "/a.slice", "off");
	assert_value(path, NM_STEER_OFF);
}

RUN_TESTS()
