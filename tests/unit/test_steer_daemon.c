/* SPDX-License-Identifier: MIT */
/* The word of control groups through every stage of the daemon, in simulated time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "daemon_fixture.h"

/* A process of two threads in /a.slice and one of one thread elsewhere, far from their memory. */
static void misplace(enum nm_thread_policy policy)
{
	world.daemon.config->threads.policy = policy;
	nm_steer_configure(world.daemon.pipeline.steer, world.daemon.config);
	add_worker(1000, 0, 2);
	add_worker(1000, 1, 2);
	add_worker(1100, 2, 3);
	fake_group(world.fake, "/");
	fake_group(world.fake, "/a.slice");
	fake_move(world.fake, 1000, "/a.slice/x.service");
	fake_move(world.fake, 1100, "/b.slice/y.service");
	fake_sleep(world.fake, 60000);
	world.daemon.last_tick_ns = world.fake->now_ns;
}

static const struct nm_entry *move_of(const char *tid)
{
	return find_entry(0, NM_MESSAGE_DECISION, "TID", tid);
}

static bool has_own_mask(uint32_t tid)
{
	const struct fake_thread *thread = fake_get(world.fake, tid);
	return thread->mask == thread->own;
}

static bool is_leased(uint32_t tid)
{
	return nm_actuator_holds(world.daemon.pipeline.actuator, tid,
				 fake_get(world.fake, tid)->start_ticks);
}

/* Nothing of it is sent, and yet it is seen; the others are none of its business. */
static void observed_is_never_moved(void **state)
{
	(void)state;
	misplace(NM_POLICY_LBMA);
	fake_say(world.fake, "/a.slice", "observe");
	live(40);
	assert_null(move_of("1000"));
	assert_null(move_of("1002"));
	assert_non_null(move_of("1100"));
	assert_int_equal(nm_roster_counts(world.daemon.pipeline.roster).threads_managed, 3);
	assert_int_equal(nm_roster_counts(world.daemon.pipeline.roster).processes_observed, 1);
}

/* Moved and held; said to be left alone, its masks are back after the next interval. */
static void off_is_honoured_within_one_interval(void **state)
{
	(void)state;
	misplace(NM_POLICY_LBMA);
	live(40);
	assert_true(all_at_home());
	assert_true(is_leased(1000) && is_leased(1100));
	fake_say(world.fake, "/a.slice", "off");
	live_one();
	assert_true(has_own_mask(1000) && has_own_mask(1002));
	assert_false(is_leased(1000));
	assert_true(is_leased(1100));
	assert_int_equal(nm_roster_counts(world.daemon.pipeline.roster).processes_off, 1);
	size_t from = world.nr_entries;
	world.workers[0].memory = 1;
	live(40);
	assert_null(find_entry(from, NM_MESSAGE_DECISION, "PID", "1000"));
	fake_say(world.fake, "/a.slice", NULL);
	live(40);
	assert_true(all_at_home());
}

/* The same while it sleeps, by a word of its own service. */
static void observe_ends_leases_of_sleepers(void **state)
{
	(void)state;
	misplace(NM_POLICY_LBMA);
	fake_group(world.fake, "/a.slice/x.service")->uid = 1000;
	live(40);
	assert_true(is_leased(1000));
	size_t workers = world.nr_workers;
	world.workers[0] = world.workers[2];
	world.nr_workers = 1;
	fake_say(world.fake, "/a.slice/x.service", "observe");
	live_one();
	assert_true(has_own_mask(1000) && has_own_mask(1002));
	world.nr_workers = workers - 2;
}

/* A move under judgement is not undone either. */
static void observed_is_not_moved_back(void **state)
{
	(void)state;
	misplace(NM_POLICY_LBMA);
	while (!move_of("1000") && world.nr_entries < 500)
		live_one();
	assert_non_null(move_of("1000"));
	size_t from = world.nr_entries;
	world.workers[0].memory = world.workers[1].memory = 0;
	fake_say(world.fake, "/a.slice", "observe");
	live(20);
	assert_null(find_entry(from, NM_MESSAGE_DECISION, "PID", "1000"));
}

/* ---- a policy of its own ---- */

static void lbma_where_nobody_else_is_moved(void **state)
{
	(void)state;
	misplace(NM_POLICY_NONE);
	fake_say(world.fake, "/a.slice", "lbma");
	live(40);
	assert_non_null(move_of("1000"));
	assert_non_null(move_of("1002"));
	assert_true(has_field(move_of("1000"), "POLICY", "lbma"));
	assert_null(move_of("1100"));
	const struct nm_entry *verdict = find_entry(0, NM_MESSAGE_VERDICT, "DECISION",
						    field_of(move_of("1000"), "DECISION"));
	assert_non_null(verdict);
	assert_true(has_field(verdict, "POLICY", "lbma"));
	assert_true(has_field(verdict, "VERDICT", "improved"));
}

static void lbma_beside_imar2(void **state)
{
	(void)state;
	misplace(NM_POLICY_IMAR2);
	fake_say(world.fake, "/a.slice", "lbma");
	live(60);
	assert_true(all_at_home());
	assert_true(has_field(move_of("1000"), "POLICY", "lbma"));
	assert_true(has_field(move_of("1100"), "POLICY", "imar2"));
	assert_int_equal(world.daemon.tally.rolled_back, 0);
}

/* By its own rules: that others of its process are faster is no excuse. */
static void lbma_beside_imar2_is_undone_by_lbma(void **state)
{
	(void)state;
	misplace(NM_POLICY_IMAR2);
	fake_say(world.fake, "/a.slice", "lbma");
	/* Of its memory some is where it is, more elsewhere, and after the move all on a third. */
	world.space = (struct space){.start = 0x7f0000000000, .count = 10};
	memset(world.space.home + 3, 2, 7);
	world.workers[0].space = &world.space;
	world.workers[0].to = world.space.count;
	for (int i = 0; i < 40 && !move_of("1000"); i++)
		live_one();
	assert_non_null(move_of("1000"));
	size_t from = world.nr_entries;
	memset(world.space.home, 1, world.space.count);
	live(8);
	const struct nm_entry *back = find_entry(from, NM_MESSAGE_DECISION, "KIND", "rollback");
	assert_non_null(back);
	assert_true(has_field(back, "TID", "1000"));
	assert_true(has_field(back, "POLICY", "lbma"));
}

/* Told once, however long it goes on, and nothing is moved meanwhile. */
static void a_policy_that_is_not_free_is_refused_once(void **state)
{
	unsigned told = 0;
	(void)state;
	misplace(NM_POLICY_LBMA);
	fake_say(world.fake, "/a.slice", "kmaf");
	live(40);
	assert_null(move_of("1000"));
	assert_non_null(move_of("1100"));
	for (size_t i = 0; i < world.nr_entries; i++)
		told += strstr(world.entries[i].text, "cannot be had for some") != NULL;
	assert_int_equal(told, 1);
}

/* A reload forgets what was said; it is asked for again at once, also for who sleeps. */
static void a_reload_hears_all_of_it_again(void **state)
{
	char path[sizeof(world.root) + 16], error[256];
	(void)state;
	misplace(NM_POLICY_LBMA);
	live(40);
	assert_true(is_leased(1000));
	fixture_file(world.root, "numa-migrd.conf", "targets: { min_cpu_percent = 0; };");
	(void)snprintf(path, sizeof(path), "%s/numa-migrd.conf", world.root);
	world.daemon.options.config_path = path;
	assert_int_equal(nm_command_reload(&world.daemon, error, sizeof(error)), 0);
	world.workers[0] = world.workers[2];
	world.nr_workers = 1;
	live_one();
	assert_true(is_leased(1000));
	fake_say(world.fake, "/a.slice", "off");
	live_one();
	assert_true(has_own_mask(1000) && has_own_mask(1002));
}

/* ---- what the journal says ---- */

static void changes_are_told(void **state)
{
	bool off = false, gone = false;
	(void)state;
	misplace(NM_POLICY_LBMA);
	live(2);
	fake_say(world.fake, "/a.slice", "off");
	live(2);
	fake_say(world.fake, "/a.slice", NULL);
	live(2);
	for (size_t i = 0; i < world.nr_entries; i++) {
		const char *text = world.entries[i].text;
		off = off || strstr(text, "/a.slice: user.numa-migrd counts as \"off\"");
		gone = gone || strstr(text, "/a.slice no longer says anything");
	}
	assert_true(off && gone);
}

static void assert_told(const char *words)
{
	for (size_t i = 0; i < world.nr_entries; i++)
		if (strstr(world.entries[i].text, words))
			return;
	fail_msg("not told: %s", words);
}

static void what_counts_for_nothing_is_told(void **state)
{
	(void)state;
	misplace(NM_POLICY_LBMA);
	fake_group(world.fake, "/a.slice")->uid = 1000;
	fake_say(world.fake, "/a.slice", "on");
	fake_say(world.fake, "/b.slice", "off");
	fake_say(world.fake, "/b.slice/y.service", "on");
	live(2);
	assert_told("/a.slice: user.numa-migrd is \"on\", but others than root may write");
	assert_told("/b.slice/y.service: user.numa-migrd is \"on\", but a group above it says off");
}

static void what_cannot_be_read_is_told(void **state)
{
	char nested[33 * 2 + 1] = "";
	(void)state;
	misplace(NM_POLICY_LBMA);
	for (unsigned i = 0; i < 33; i++)
		strcat(nested, "/x");
	fake_move(world.fake, 1000, nested);
	fake_move(world.fake, 1100, "/../b");
	live(2);
	assert_told("/x has more than 32 others above it");
	assert_told("control group /../b is outside of this service's own cgroup namespace");
}

static void exclusion_wins_and_is_told(void **state)
{
	char path[sizeof(world.root) + 16];
	(void)state;
	misplace(NM_POLICY_LBMA);
	snprintf(fake_get(world.fake, 1100)->comm, sizeof(fake_get(world.fake, 1100)->comm), "db");
	fixture_file(world.root, "numa-migrd.conf",
		     "targets: { min_cpu_percent = 0; exclude = ( { command = \"db\"; } ); };");
	(void)snprintf(path, sizeof(path), "%s/numa-migrd.conf", world.root);
	world.daemon.options.config_path = path;
	assert_int_equal(nm_command_reload(&world.daemon, NULL, 0), 0);
	fake_say(world.fake, "/b.slice", "on");
	live(20);
	assert_null(move_of("1100"));
	assert_told("/b.slice: user.numa-migrd is \"on\", but targets.exclude matches");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, world_open, world_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(observed_is_never_moved),
		TEST(off_is_honoured_within_one_interval),
		TEST(observe_ends_leases_of_sleepers),
		TEST(observed_is_not_moved_back),
		TEST(lbma_where_nobody_else_is_moved),
		TEST(lbma_beside_imar2),
		TEST(lbma_beside_imar2_is_undone_by_lbma),
		TEST(a_policy_that_is_not_free_is_refused_once),
		TEST(a_reload_hears_all_of_it_again),
		TEST(changes_are_told),
		TEST(what_counts_for_nothing_is_told),
		TEST(what_cannot_be_read_is_told),
		TEST(exclusion_wins_and_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
