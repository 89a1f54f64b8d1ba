/* SPDX-License-Identifier: MIT */
/* What control groups say: words, whose they may be, one under the other, and changes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "fake_platform.h"
#include "numa-migrd/steer.h"

#define SECOND NM_NSEC_PER_SEC
#define TOLD 64

static struct fake *fake;
static struct nm_config *config;
static struct nm_steer *steer;
static struct {
	enum nm_steer_trouble trouble;
	char directory[128], said[128];
	int error;
} told[TOLD];
static unsigned nr_told;
static char changed[256];
static unsigned nr_changed, nr_gone;

static void keep_news(void *context, const struct nm_steer_news *news)
{
	(void)context;
	assert_true(nr_told < TOLD);
	told[nr_told].trouble = news->trouble;
	told[nr_told].error = news->error;
	snprintf(told[nr_told].directory, sizeof(told->directory), "%s", news->directory);
	snprintf(told[nr_told].said, sizeof(told->said), "%s", news->said);
	nr_told++;
}

static void keep_change(void *context, const char *directory, const struct nm_steering *said)
{
	(void)context;
	snprintf(changed, sizeof(changed), "%s", directory);
	nr_changed++;
	nr_gone += said == NULL;
}

static const struct nm_steer_ops ops = {.tell = keep_news, .changed = keep_change};

static void open_steer(void)
{
	assert_int_equal(nm_steer_new(&fake->platform, config, &ops, &steer), 0);
}

static int set_up(void **state)
{
	(void)state;
	fake = fake_new(4);
	nr_told = nr_changed = nr_gone = 0;
	changed[0] = '\0';
	assert_int_equal(nm_config_default(&config), 0);
	fake_group(fake, "/");
	fake_group(fake, "/a.slice");
	fake_group(fake, "/a.slice/b.service");
	open_steer();
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	nm_steer_free(steer);
	assert_int_equal(fake_watches(fake), 0);
	assert_int_equal(fake_open_fds(fake), 0);
	nm_config_free(config);
	nm_platform_free(&fake->platform);
	return 0;
}

static struct nm_steering look(const char *cgroup)
{
	struct nm_steering steering = {.word = NM_STEER_OFF};
	assert_int_equal(nm_steer_look(steer, cgroup, fake->now_ns, &steering), 0);
	return steering;
}

static void assert_word(const char *cgroup, enum nm_steer_word word)
{
	struct nm_steering steering = look(cgroup);
	const char *said = nm_steer_name(&steering);
	assert_non_null(said);
	if (steering.word != word)
		fail_msg("%s is \"%s\", not word %d", cgroup, said, (int)word);
}

static void assert_told(enum nm_steer_trouble trouble, const char *directory, const char *said)
{
	for (unsigned i = 0; i < nr_told; i++)
		if (told[i].trouble == trouble && strcmp(told[i].directory, directory) == 0 &&
		    strcmp(told[i].said, said) == 0)
			return;
	fail_msg("trouble %d was not told of %s, \"%s\"", (int)trouble, directory, said);
}

/* ---- rules ---- */

static enum nm_steer_word word_of(const char *text, size_t length)
{
	struct nm_steering said = {0};
	return nm_steer_parse(text, length, &said) < 0 ? NM_STEER_NONE : said.word;
}

static void test_words(void **state)
{
	struct nm_steering said;
	(void)state;
	assert_int_equal(word_of("off", 3), NM_STEER_OFF);
	assert_int_equal(word_of("observe", 7), NM_STEER_OBSERVE);
	assert_int_equal(word_of("on", 2), NM_STEER_ON);
	assert_int_equal(word_of("on\n", 3), NM_STEER_ON);
	assert_int_equal(word_of("off\0\0", 5), NM_STEER_OFF);
	assert_int_equal(word_of("lbma \t\n", 7), NM_STEER_POLICY);
	assert_int_equal(nm_steer_parse("kmaf", 4, &said), 0);
	assert_int_equal(said.policy, NM_POLICY_KMAF);
	assert_string_equal(nm_steer_name(&said), "kmaf");
	static const char *const wrong[] = {"",	    "\n", "Off",    " off",
					    "offf", "o",  "on off", "observe_this_and_all_that"};
	for (size_t i = 0; i < NM_ARRAY_SIZE(wrong); i++)
		assert_int_equal(word_of(wrong[i], strlen(wrong[i])), NM_STEER_NONE);
	assert_int_equal(word_of("on\0off", 6), NM_STEER_NONE);
}

static void test_below(void **state)
{
	(void)state;
	assert_true(nm_steer_is_below("/a/b", "/a"));
	assert_true(nm_steer_is_below("/a", "/a"));
	assert_true(nm_steer_is_below("/a", "/"));
	assert_true(nm_steer_is_below("/", "/"));
	assert_false(nm_steer_is_below("/ab", "/a"));
	assert_false(nm_steer_is_below("/a", "/a/b"));
}

/* ---- one under the other ---- */

static void test_nothing_said(void **state)
{
	(void)state;
	assert_word("/a.slice/b.service", NM_STEER_NONE);
	assert_word("/", NM_STEER_NONE);
	assert_word("/not/there", NM_STEER_NONE);
	assert_word(NULL, NM_STEER_NONE);
	assert_int_equal(nr_told, 0);
}

static void test_nearest_wins(void **state)
{
	(void)state;
	fake_say(fake, "/", "observe");
	assert_word("/a.slice/b.service", NM_STEER_OBSERVE);
	fake_say(fake, "/a.slice/b.service", "on");
	nm_steer_drain(steer);
	assert_word("/a.slice/b.service", NM_STEER_ON);
	assert_word("/a.slice", NM_STEER_OBSERVE);
	assert_int_equal(nr_told, 0);
}

static void test_off_wins(void **state)
{
	(void)state;
	fake_say(fake, "/a.slice", "off");
	fake_say(fake, "/a.slice/b.service", "on");
	assert_word("/a.slice/b.service", NM_STEER_OFF);
	assert_word("/a.slice/b.service", NM_STEER_OFF);
	assert_int_equal(nr_told, 1);
	assert_told(NM_STEER_UNDER_OFF, "/a.slice/b.service", "on");
}

/* SECURITY: user, attributes */
static void test_only_root_asks(void **state)
{
	(void)state;
	fake_own_group(fake, "/a.slice/b.service", 1000);
	fake_say(fake, "/a.slice", "observe");
	fake_say(fake, "/a.slice/b.service", "on");
	assert_word("/a.slice/b.service", NM_STEER_OBSERVE);
	assert_told(NM_STEER_NOT_ROOTS, "/a.slice/b.service", "on");
	fake_say(fake, "/a.slice/b.service", "off");
	nm_steer_drain(steer);
	assert_word("/a.slice/b.service", NM_STEER_OFF);
	/* A policy is asking, too; and so is a directory of root's that others may write to. */
	nm_steer_configure(steer, config);
	fake_own_group(fake, "/a.slice/b.service", 0);
	fake_group(fake, "/a.slice/b.service")->others_write = true;
	fake_say(fake, "/a.slice/b.service", "lbma");
	nm_steer_drain(steer);
	assert_word("/a.slice/b.service", NM_STEER_OBSERVE);
	assert_told(NM_STEER_NOT_ROOTS, "/a.slice/b.service", "lbma");
	assert_int_equal(nr_told, 2);
}

/* Who is not root is not heard twice, however often he changes it. */
/* SECURITY: many-groups */
static void test_others_fill_no_journal(void **state)
{
	char word[16];
	(void)state;
	fake_own_group(fake, "/a.slice", 1000);
	for (unsigned i = 0; i < 20; i++) {
		snprintf(word, sizeof(word), "wrong%u", i);
		fake_say(fake, "/a.slice", i % 2 ? word : "off");
		nm_steer_drain(steer);
		assert_word("/a.slice", i % 2 ? NM_STEER_OBSERVE : NM_STEER_OFF);
	}
	assert_int_equal(nr_told, 1);
	assert_int_equal(nr_changed, 19);
	assert_int_equal(nr_gone, 19); /* nothing to tell of any */
}

/* SECURITY: attributes */
static void test_unknown_word_is_observed(void **state)
{
	(void)state;
	fake_say(fake, "/a.slice/b.service", "of\x1b[1m");
	assert_word("/a.slice/b.service", NM_STEER_OBSERVE);
	assert_told(NM_STEER_UNKNOWN, "/a.slice/b.service", "of\\x1b[1m");
	fake_say(fake, "/a.slice/b.service",
		 "0123456789012345678901234567890123456789012345678901234567890123456789");
	nm_steer_drain(steer);
	assert_word("/a.slice/b.service", NM_STEER_OBSERVE);
	assert_told(NM_STEER_UNKNOWN, "/a.slice/b.service", "(too long)");
}

static void test_policies(void **state)
{
	(void)state;
	fake_say(fake, "/a.slice", "kmaf");
	assert_word("/a.slice", NM_STEER_OBSERVE);
	assert_told(NM_STEER_NOT_FREE, "/a.slice", "kmaf");
	assert_word("/a.slice", NM_STEER_OBSERVE);
	assert_int_equal(nr_told, 1);
	config->threads.policy = NM_POLICY_KMAF;
	nm_steer_configure(steer, config);
	assert_word("/a.slice", NM_STEER_POLICY);
	assert_int_equal(look("/a.slice").policy, NM_POLICY_KMAF);
	fake_say(fake, "/a.slice", "none");
	nm_steer_drain(steer);
	struct nm_steering none = look("/a.slice");
	assert_true(nm_steer_holds_threads(&none) && !nm_steer_holds_pages(&none));
}

static void test_ignored(void **state)
{
	(void)state;
	fake_say(fake, "/", "off");
	config->targets.attribute = NM_ATTRIBUTE_IGNORE;
	nm_steer_configure(steer, config);
	assert_word("/a.slice", NM_STEER_NONE);
	assert_int_equal(fake->attribute_reads, 0);
	config->targets.attribute = NM_ATTRIBUTE_ONLY;
	nm_steer_configure(steer, config);
	assert_word("/a.slice", NM_STEER_OFF);
}

/* In another cgroup namespace's tree. */
/* SECURITY: container */
static void test_outside(void **state)
{
	(void)state;
	fake_say(fake, "/", "off");
	assert_word("/../a.slice", NM_STEER_NONE);
	assert_word("/../../b", NM_STEER_NONE);
	assert_int_equal(nr_told, 1);
	assert_told(NM_STEER_OUTSIDE, "/../a.slice", "");
}

static void test_excluded(void **state)
{
	(void)state;
	fake_say(fake, "/a.slice", "on");
	fake_say(fake, "/a.slice/b.service", "observe");
	assert_word("/a.slice/b.service", NM_STEER_OBSERVE);
	nm_steer_note_excluded(steer, "/a.slice/b.service");
	nm_steer_note_excluded(steer, "/a.slice/b.service");
	nm_steer_note_excluded(steer, "/elsewhere");
	assert_int_equal(nr_told, 1);
	assert_told(NM_STEER_EXCLUDED, "/a.slice", "on");
}

/* ---- changes ---- */

/* Each directory is read once; then the kernel tells. */
static void test_no_polling(void **state)
{
	(void)state;
	for (int i = 0; i < 10; i++)
		assert_word("/a.slice/b.service", NM_STEER_NONE);
	assert_int_equal(fake->attribute_reads, 3);
	assert_int_equal(nm_steer_counts(steer).watched, 3);
	for (int i = 0; i < 10; i++)
		nm_steer_drain(steer);
	assert_int_equal(fake->attribute_reads, 3);
}

static void test_change(void **state)
{
	(void)state;
	assert_word("/a.slice/b.service", NM_STEER_NONE);
	fake_say(fake, "/a.slice", "observe");
	fake_say(fake, "/a.slice", "off");
	assert_word("/a.slice/b.service", NM_STEER_NONE);
	nm_steer_drain(steer);
	assert_int_equal(nr_changed, 1);
	assert_string_equal(changed, "/a.slice");
	assert_int_equal(fake->attribute_reads, 4);
	assert_word("/a.slice/b.service", NM_STEER_OFF);
	/* Said again, and another attribute of it: nothing changes. */
	fake_say(fake, "/a.slice", "off");
	nm_steer_drain(steer);
	assert_int_equal(nr_changed, 1);
	fake_say(fake, "/a.slice", NULL);
	nm_steer_drain(steer);
	assert_int_equal(nr_changed, 2);
	assert_word("/a.slice/b.service", NM_STEER_NONE);
}

static void say_off(struct fake *machine)
{
	fake_say(machine, "/a.slice", "off");
}

/* Just after it was read, and before anything else could have been done. */
static void test_change_at_the_first_look(void **state)
{
	(void)state;
	assert_word("/", NM_STEER_NONE);
	fake->after_attribute_read = say_off;
	assert_word("/a.slice", NM_STEER_NONE);
	nm_steer_drain(steer);
	assert_word("/a.slice", NM_STEER_OFF);
}

/* Whoever gets the directory must not inherit what root said of another's. */
/* SECURITY: attributes */
static void test_change_of_owner(void **state)
{
	(void)state;
	fake_say(fake, "/a.slice/b.service", "on");
	assert_word("/a.slice/b.service", NM_STEER_ON);
	fake_own_group(fake, "/a.slice/b.service", 1000);
	nm_steer_drain(steer);
	assert_int_equal(nr_changed, 1);
	assert_word("/a.slice/b.service", NM_STEER_NONE);
}

/* A service that is started again: the attribute is gone with the old directory. */
/* SECURITY: groups-vanish */
static void test_made_anew(void **state)
{
	(void)state;
	fake_say(fake, "/a.slice/b.service", "off");
	assert_word("/a.slice/b.service", NM_STEER_OFF);
	fake_remove_group(fake, "/a.slice/b.service");
	fake_group(fake, "/a.slice/b.service");
	nm_steer_drain(steer);
	assert_int_equal(nr_gone, 1);
	assert_string_equal(changed, "/a.slice/b.service");
	assert_word("/a.slice/b.service", NM_STEER_NONE);
	fake_say(fake, "/a.slice/b.service", "observe");
	nm_steer_drain(steer);
	assert_word("/a.slice/b.service", NM_STEER_OBSERVE);
}

static void test_overflow(void **state)
{
	(void)state;
	assert_word("/a.slice/b.service", NM_STEER_NONE);
	fake_say(fake, "/a.slice", "off");
	fake->watch_length = 0;
	fake_watch_event(fake, -1, IN_Q_OVERFLOW, NULL);
	nm_steer_drain(steer);
	assert_int_equal(nr_changed, 1);
	assert_word("/a.slice/b.service", NM_STEER_OFF);
}

static void test_forgotten(void **state)
{
	(void)state;
	assert_word("/a.slice/b.service", NM_STEER_NONE);
	fake_sleep(fake, 100000);
	assert_word("/a.slice", NM_STEER_NONE);
	fake_sleep(fake, 100000);
	nm_steer_tend(steer, fake->now_ns);
	assert_int_equal(nm_steer_counts(steer).directories, 2);
	assert_int_equal(fake_watches(fake), 2);
	fake_sleep(fake, 121000);
	nm_steer_tend(steer, fake->now_ns);
	assert_int_equal(nm_steer_counts(steer).directories, 0);
	nm_steer_drain(steer);
	assert_int_equal(nr_changed, 0);
}

/* Short of descriptors: what was said goes on, and who is new waits. */
static void test_cannot_be_told_now(void **state)
{
	struct nm_steering steering = {.word = NM_STEER_ON};
	(void)state;
	fake_say(fake, "/a.slice", "off");
	assert_word("/a.slice", NM_STEER_OFF);
	fake_say(fake, "/a.slice", "observe");
	fake_fail(fake, FAKE_OPEN, 1, 2, EMFILE);
	nm_steer_drain(steer);
	assert_int_equal(nr_changed, 0);
	assert_int_equal(nm_steer_look(steer, "/a.slice", fake->now_ns, &steering), -EMFILE);
	assert_int_equal(steering.word, NM_STEER_ON);
	nm_steer_drain(steer);
	assert_int_equal(nr_changed, 1);
	assert_word("/a.slice", NM_STEER_OBSERVE);
	/* One that we may not look into is no such trouble. */
	fake_fail(fake, FAKE_OPEN, 1, 1, EACCES);
	assert_word("/a.slice/b.service", NM_STEER_OBSERVE);
}

/* ---- where nothing can be watched ---- */

static void assert_read_each_time(const char *blamed, int error)
{
	assert_word("/a.slice", NM_STEER_NONE);
	fake_say(fake, "/a.slice", "off");
	nm_steer_drain(steer);
	assert_word("/a.slice", NM_STEER_OFF);
	fake_say(fake, "/a.slice", NULL);
	assert_word("/a.slice", NM_STEER_NONE);
	assert_int_equal(nr_told, 1);
	assert_told(NM_STEER_UNWATCHED, blamed, "");
	assert_int_equal(told[0].error, error);
	assert_int_equal(nm_steer_counts(steer).watched, 0);
}

static void test_no_inotify(void **state)
{
	(void)state;
	nm_steer_free(steer);
	fake->watch_refused = EMFILE;
	open_steer();
	assert_read_each_time("/", -EMFILE);
}

static void test_no_more_watches(void **state)
{
	(void)state;
	fake->watches_full = true;
	assert_read_each_time("/", -ENOSPC);
}

/* Somebody who makes groups without end: the first are remembered, the others read each time. */
/* SECURITY: many-groups */
static void test_too_many(void **state)
{
	char path[96];
	(void)state;
	for (unsigned i = 0; i < 5000; i++) {
		snprintf(path, sizeof(path), "/a.slice/b.service/%u", i);
		assert_word(path, NM_STEER_NONE);
	}
	assert_true(nm_steer_counts(steer).directories <= 4096);
	fake_say(fake, "/a.slice", "off");
	nm_steer_drain(steer);
	assert_word(path, NM_STEER_OFF);
	assert_int_equal(nr_told, 1);
	assert_told(NM_STEER_UNWATCHED, "/a.slice/b.service/4093", "");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

/* A path so many groups below the root. */
static const char *nested(char *path, size_t size, unsigned levels)
{
	(void)snprintf(path, size, "/a.slice");
	for (unsigned i = 1; i < levels; i++)
		strncat(path, "/x", size - strlen(path) - 1);
	return path;
}

static void test_too_deep(void **state)
{
	char path[128];
	(void)state;
	fake_say(fake, "/a.slice", "on");
	assert_word(nested(path, sizeof(path), 32), NM_STEER_ON);
	assert_int_equal(nr_told, 0);
	assert_word(nested(path, sizeof(path), 33), NM_STEER_OBSERVE);
	assert_word(nested(path, sizeof(path), 40), NM_STEER_OBSERVE);
	assert_int_equal(nr_told, 1);
	assert_told(NM_STEER_TOO_DEEP, nested(path, sizeof(path), 33), "");
	assert_true(nm_steer_counts(steer).directories <= 33);
	fake_say(fake, "/a.slice", "off");
	nm_steer_drain(steer);
	assert_word(nested(path, sizeof(path), 40), NM_STEER_OFF);
}

static const char *numbered(char *path, size_t size, unsigned number)
{
	(void)snprintf(path, size, "/a.slice/%u", number);
	return path;
}

static void say_as_user(unsigned number, const char *said)
{
	char path[32];
	struct fake_group *group = fake_group(fake, numbered(path, sizeof(path), number));
	group->uid = 1000;
	group->says = true;
	(void)snprintf(group->said, sizeof(group->said), "%s", said);
}

/* One directory after another, each with a word that is none. */
static void test_others_say_so_much_in_a_minute(void **state)
{
	char path[32];
	(void)state;
	for (unsigned i = 0; i < 40; i++) {
		say_as_user(i, "rubbish");
		assert_word(numbered(path, sizeof(path), i), NM_STEER_OBSERVE);
	}
	assert_int_equal(nr_told, 16);
	assert_int_equal(nm_steer_counts(steer).troubles, 40);
	fake_say(fake, "/a.slice/b.service", "nonsense");
	assert_word("/a.slice/b.service", NM_STEER_OBSERVE);
	assert_told(NM_STEER_UNKNOWN, "/a.slice/b.service", "nonsense"); /* root's is */
	fake->now_ns += 61 * SECOND;
	nm_steer_tend(steer, fake->now_ns);
	say_as_user(40, "rubbish");
	assert_word("/a.slice/40", NM_STEER_OBSERVE);
	assert_int_equal(nr_told, 18);
}

/* What is root's is heeded at once, the rest when it is asked for. */
static void test_others_change_so_many_at_once(void **state)
{
	char path[32];
	(void)state;
	for (unsigned i = 0; i < 300; i++) {
		say_as_user(i, "observe");
		assert_word(numbered(path, sizeof(path), i), NM_STEER_OBSERVE);
	}
	assert_word("/a.slice/b.service", NM_STEER_NONE);
	for (unsigned i = 0; i < 300; i++)
		say_as_user(i, "off");
	fake_group(fake, "/a.slice/b.service")->says = true;
	(void)snprintf(fake_group(fake, "/a.slice/b.service")->said, sizeof(fake->groups[0].said),
		       "off");
	fake_watch_event(fake, -1, IN_Q_OVERFLOW, NULL);
	nm_steer_drain(steer);
	assert_int_equal(nr_changed, 257);
	assert_string_equal(changed, "/a.slice/b.service");
	for (unsigned i = 0; i < 300; i++)
		assert_word(numbered(path, sizeof(path), i), NM_STEER_OFF);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_below),
		TEST(test_nothing_said),
		TEST(test_nearest_wins),
		TEST(test_off_wins),
		TEST(test_only_root_asks),
		TEST(test_others_fill_no_journal),
		TEST(test_unknown_word_is_observed),
		TEST(test_policies),
		TEST(test_ignored),
		TEST(test_outside),
		TEST(test_excluded),
		TEST(test_no_polling),
		TEST(test_change),
		TEST(test_change_at_the_first_look),
		TEST(test_change_of_owner),
		TEST(test_made_anew),
		TEST(test_overflow),
		TEST(test_forgotten),
		TEST(test_cannot_be_told_now),
		TEST(test_no_inotify),
		TEST(test_no_more_watches),
		TEST(test_too_many),
		TEST(test_too_deep),
		TEST(test_others_say_so_much_in_a_minute),
		TEST(test_others_change_so_many_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
