/* SPDX-License-Identifier: MIT */
/* The attribute of cgroups: its values, its owner, nested cgroups, and the number of reads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "fake_platform.h"
#include "numa-migrd/tasks.h"

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
}

static void test_nearest_attribute_applies(void **state)
{
	(void)state;
	fake_set_attribute(fake, "/", "observe");
	assert_value("/", NM_STEER_OBSERVE);
	assert_value("/a.slice/b.service", NM_STEER_OBSERVE);
	fake_set_attribute(fake, "/a.slice/b.service", "on");
	assert_value("/a.slice/b.service", NM_STEER_ON);
	assert_value("/a.slice", NM_STEER_OBSERVE);
}

static void test_off_takes_precedence(void **state)
{
	(void)state;
	fake_set_attribute(fake, "/a.slice", "off");
	fake_set_attribute(fake, "/a.slice/b.service", "on");
	assert_value("/a.slice/b.service", NM_STEER_OFF);
}

/* SECURITY: user, attributes */
static void test_only_root_asks(void **state)
{
	(void)state;
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
static void test_only_the_owner_restricts(void **state)
{
	(void)state;
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
static void test_change_of_owner(void **state)
{
	(void)state;
	fake_set_attribute(fake, "/a.slice/b.service", "on");
	assert_value("/a.slice/b.service", NM_STEER_ON);
	fake_own_group(fake, "/a.slice/b.service", 1000);
	assert_value("/a.slice/b.service", NM_STEER_NONE);
}

/* SECURITY: attributes */
static void test_unknown_value_is_observed(void **state)
{
	(void)state;
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
static void test_outside(void **state)
{
	(void)state;
	fake_set_attribute(fake, "/", "off");
	assert_value("/../a.slice", NM_STEER_NONE);
	assert_value("/..", NM_STEER_NONE);
	assert_value("/..a.slice", NM_STEER_OFF);
}

/* A restarted service has a new directory without the attribute. */
/* SECURITY: groups-vanish */
static void test_recreated_cgroup(void **state)
{
	(void)state;
	fake_set_attribute(fake, "/a.slice/b.service", "off");
	assert_value("/a.slice/b.service", NM_STEER_OFF);
	fake_remove_group(fake, "/a.slice/b.service");
	assert_value("/a.slice/b.service", NM_STEER_NONE);
	fake_group(fake, "/a.slice/b.service");
	assert_value("/a.slice/b.service", NM_STEER_NONE);
}

/* Without descriptors the value is unknown. */
static void test_cannot_be_read_now(void **state)
{
	struct nm_steering steering = {.value = NM_STEER_ON};
	(void)state;
	for (unsigned nth = 1; nth <= 2; nth++) {
		fake_fail(fake, FAKE_OPEN, nth, 1, EMFILE);
		assert_int_equal(nm_steer_read(&fake->platform, "/a.slice", &steering), -EMFILE);
		assert_int_equal(steering.value, NM_STEER_ON);
	}
}

/* A directory that the daemon may not open counts as one without the attribute. */
static void test_closed(void **state)
{
	(void)state;
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
static void test_too_deep(void **state)
{
	char path[128];
	(void)state;
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

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values),
		TEST(test_no_attribute),
		TEST(test_nearest_attribute_applies),
		TEST(test_off_takes_precedence),
		TEST(test_only_root_asks),
		TEST(test_only_the_owner_restricts),
		TEST(test_change_of_owner),
		TEST(test_unknown_value_is_observed),
		TEST(test_outside),
		TEST(test_recreated_cgroup),
		TEST(test_cannot_be_read_now),
		TEST(test_closed),
		TEST(test_too_deep),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
