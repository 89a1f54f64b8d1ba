/* SPDX-License-Identifier: MIT */
/* Events of known processes and threads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "roster_fixture.h"

/* ---- events ---- */

static void test_exit(void **state)
{
	(void)state;
	run_all(0.5);
	fake_exit(fake, 101);
	drain();
	assert_managed(101, false);
	assert_managed(102, true);
	fake_kill(fake, 200);
	drain();
	assert_int_equal(nm_roster_counts(roster).threads_known, 2);
}

/* Short-lived processes leave no entries. */
/* A managed process is not shown after its last thread has exited. */
static void test_exit_of_all_threads(void **state)
{
	(void)state;
	run_all(0.5);
	for (uint32_t tid = 100; tid <= 102; tid++)
		fake_exit(fake, tid);
	drain();
	run_none(1);
	assert_null(nm_roster_process(roster, 100));
	assert_non_null(nm_roster_process(roster, 200));
}

static void test_churn(void **state)
{
	(void)state;
	for (uint32_t pid = 1000; pid < 3000; pid++) {
		fake_fork(fake, 200, pid);
		run_one(pid, pid, 0.01);
		fake_kill(fake, pid);
		drain();
	}
	assert_true(nm_roster_counts(roster).processes_known < 3);
}

static void add_user(uint32_t first, unsigned count, uint64_t rss_kb)
{
	for (uint32_t pid = first; pid < first + count; pid++) {
		struct fake_thread *thread = fake_fork(fake, 200, pid);
		thread->rss_kb = rss_kb;
		thread->many_groups = true;
		fake_move(fake, pid, "/user.slice/user-1000.slice/session-1.scope");
	}
}

/* The kernel takes long to write the status of a process in many groups: it is read only to plan a
 * home, and for the affinity of a thread that may be moved. */
/* SECURITY: many-groups-of-a-process */
static void the_status_of_others_is_not_read(void **state)
{
	(void)state;
	config->threads.policy = NM_POLICY_BALANCE;
	add_user(1000, 20, 64);
	for (unsigned interval = 0; interval < 12; interval++)
		run_all(0.5);
	assert_managed(101, true);
	assert_managed(1001, false);
	assert_int_equal(fake->long_statuses, 0);
	unsigned before = fake->statuses;
	for (unsigned interval = 0; interval < 12; interval++)
		run_all(0.5);
	assert_int_equal(fake->statuses, before);
}

/* SECURITY: many-groups-of-a-process */
static void test_many_groups(void **state)
{
	(void)state;
	add_user(1000, 20, fake_get(fake, 200)->rss_kb);
	for (unsigned interval = 1; interval <= 3; interval++) {
		run_all(0.5);
		assert_in_range(fake->long_statuses, 1, interval);
		assert_managed(101, true);
		assert_managed(1001, true);
	}
}

/* Each thread of a process has its own groups. */
/* SECURITY: many-groups-of-a-process */
static void test_many_groups_of_threads(void **state)
{
	(void)state;
	fake_fork(fake, 200, 1000);
	fake_move(fake, 1000, "/user.slice/user-1000.slice/session-1.scope");
	for (uint32_t tid = 1001; tid < 1020; tid++)
		fake_clone(fake, 1000, tid)->many_groups = true;
	run_all(0.5);
	assert_managed(1019, true);
	assert_int_equal(fake->long_statuses, 1);
	for (uint32_t tid = 1001; tid < 1020; tid++)
		fake_pin(fake, tid, 0x0f);
	for (unsigned second = 0; second < 11; second++)
		run_all(0.5);
	assert_int_equal(fake->long_statuses, 2);
}

/* An exec starts a new program: its threads, age and eligibility are read again. */
static void test_exec(void **state)
{
	(void)state;
	run_all(0.5);
	fake_sleep(fake, 100);
	uint64_t exec_ns = fake->now_ns;
	fake_exec(fake, 101);
	drain();
	assert_managed(100, false);
	assert_int_equal(nm_roster_counts(roster).threads_known, 1);
	run_all(0.5);
	assert_managed(100, true);
	assert_int_equal(member(100)->process->started_ns, exec_ns);
	assert_int_equal(member(100)->adopted_ns, fake->now_ns);
}

static void test_reused_thread_number(void **state)
{
	(void)state;
	run_all(0.5);
	uint64_t start_ticks = member(101)->start_ticks;
	fake_exit(fake, 101);
	fake_clone(fake, 102, 101);
	drain();
	assert_managed(101, false);
	run_all(0.5);
	assert_true(member(101)->start_ticks > start_ticks);
}

/* The records were lost: /proc shows it when it is read again. */
static void test_reused_thread_number_unseen(void **state)
{
	(void)state;
	run_all(0.5);
	uint64_t start_ticks = member(101)->start_ticks;
	fake_exit(fake, 101);
	fake_clone(fake, 102, 101);
	fake->nr_events = 0;
	for (int i = 0; i < 12; i++)
		run_all(0.5);
	assert_true(member(101)->start_ticks > start_ticks);
}

static void test_number_moves_to_other_process(void **state)
{
	(void)state;
	run_all(0.5);
	fake_exit(fake, 101);
	fake_clone(fake, 200, 101);
	fake->nr_events = 0;
	run_all(0.5);
	assert_int_equal(member(101)->pid, 200);
	assert_ptr_equal(member(101)->process, member(200)->process);
}

static void test_reused_process_number_unseen(void **state)
{
	(void)state;
	run_all(0.5);
	fake_kill(fake, 200);
	fake_process(fake, 200, 1)->rss_kb = 4;
	fake->nr_events = 0;
	for (int i = 0; i < 13; i++)
		run_all(0.5);
	assert_managed(200, false);
	assert_managed(100, true);
}

/* Also if its data was to be read again after an exec. */
static void test_reused_process_number_after_exec(void **state)
{
	(void)state;
	run_all(0.5);
	fake_exec(fake, 200);
	drain();
	fake_kill(fake, 200);
	fake_process(fake, 200, 1);
	fake->nr_events = 0;
	run_all(0.5);
	assert_managed(200, false);
	run_all(0.5);
	assert_managed(200, true);
}

/* Records are read between ticks and may be newer than the next tick. */
static void test_record_newer_than_tick(void **state)
{
	(void)state;
	run_all(0.5);
	fake->now_ns += 5 * SECOND;
	fake_exec(fake, 200);
	drain();
	fake->now_ns -= 5 * SECOND;
	fake_get(fake, 200)->rss_kb = 4;
	run_all(0.5);
	assert_managed(200, false);
	fake_get(fake, 200)->rss_kb = 1048576;
	run_all(0.5); /* it is young, so it is checked again */
	assert_managed(200, true);
	assert_managed(100, true);
}

static void test_silence(void **state)
{
	(void)state;
	run_all(0.5);
	moving_tid = 101;
	for (int i = 0; i < 59; i++)
		run_one(100, 100, 0.9);
	assert_managed(102, true);
	run_one(100, 100, 0.9);
	run_one(100, 100, 0.9);
	assert_managed(102, false);
	assert_managed(101, true); /* it has a lease */
	assert_managed(100, true);
	assert_managed(200, false);
	assert_int_equal(nm_roster_counts(roster).processes_known, 1);
}

/* ---- released ---- */

static void test_externally_changed_affinity(void **state)
{
	(void)state;
	run_all(0.5);
	nm_roster_give_back(roster, 101, start_of(101));
	nm_roster_give_back(roster, 999, start_of(999));
	assert_managed(101, false);
	assert_managed(102, true);
	for (int i = 0; i < 15; i++)
		run_all(0.5);
	assert_managed(101, false);
	/* Even after a long idle time and through a pause. */
	run_none(70);
	nm_roster_free(roster);
	open_roster();
	run_all(0.5);
	assert_managed(101, false);
	assert_managed(102, true);
	/* The next owner of the number is a different thread. */
	fake_exit(fake, 101);
	fake_clone(fake, 102, 101);
	drain();
	run_all(0.5);
	assert_managed(101, true);
}

static void test_release(void **state)
{
	(void)state;
	run_all(0.5);
	assert_int_equal(nm_roster_release(roster, 100), 0);
	assert_managed(100, false);
	assert_managed(101, false);
	for (int i = 0; i < 15; i++)
		run_all(0.5);
	assert_managed(100, false);
	run_none(70);
	fake_exec(fake, 100);
	drain();
	run_all(0.5);
	assert_managed(100, false);
	nm_roster_free(roster);
	open_roster();
	run_all(0.5);
	assert_managed(100, false);
	assert_int_equal(nm_roster_release(roster, 999), -ESRCH);
}

/* A release applies to one process, not to its number. */
static void test_released_number_reused(void **state)
{
	(void)state;
	run_all(0.5);
	assert_int_equal(nm_roster_release(roster, 200), 0);
	fake_kill(fake, 200);
	fake_process(fake, 200, 1);
	fake->nr_events = 0;
	for (int i = 0; i < 14; i++)
		run_all(0.5);
	assert_managed(200, true);
}

/* Released before it was ever eligible. */
static void test_release_of_the_idle(void **state)
{
	(void)state;
	config->targets.min_cpu_percent = 50;
	run_all(0.01);
	assert_int_equal(nm_roster_release(roster, 200), 0);
	run_all(0.9);
	run_all(0.9);
	assert_managed(200, false);
	assert_managed(100, true);
}

/* ---- temporary errors of /proc ---- */

static void test_no_descriptors(void **state)
{
	(void)state;
	run_all(0.5);
	assert_int_equal(nm_roster_release(roster, 200), 0);
	run_none(10);
	fake_fail(fake, FAKE_OPEN, 1, 100, EMFILE);
	run_all(0.5);
	fake_calm(fake);
	/* Known data is kept. */
	assert_managed(101, true);
	assert_managed(200, false);
	run_all(0.5);
	assert_managed(101, true);
	assert_managed(200, false);
	assert_int_equal(nm_roster_counts(roster).threads_known, 3);
}

static void test_any_call_fails(void **state)
{
	(void)state;
	for (unsigned nth = 1; nth < 60; nth++) {
		fake_fail(fake, FAKE_OPS, nth, 1, EIO);
		run_all(0.5);
		fake_calm(fake);
		run_none(11);
	}
	run_all(0.5);
	assert_int_equal(nm_roster_counts(roster).threads_managed, 4);
}

/* ---- others ---- */

static void test_bar(void **state)
{
	(void)state;
	run_all(0.5);
	nm_roster_bar(roster, 101, start_of(101), 77);
	nm_roster_bar(roster, 999, start_of(999), 77);
	assert_int_equal(member(101)->barred_until, 77);
	assert_int_equal(member(102)->barred_until, 0);
	run_all(0.5);
	assert_int_equal(member(101)->barred_until, 77);
	nm_roster_bar(roster, 101, start_of(101), 70);
	assert_int_equal(member(101)->barred_until, 77);
	nm_roster_bar(roster, 101, start_of(101), 78);
	assert_int_equal(member(101)->barred_until, 78);
}

/* The end of an evaluation does not end a cooldown. */
static void test_hold(void **state)
{
	(void)state;
	run_all(0.5);
	nm_roster_bar(roster, 101, start_of(101), 77);
	nm_roster_hold(roster, 101, start_of(101), 90);
	nm_roster_hold(roster, 999, start_of(999), 90);
	assert_int_equal(member(101)->held_until, 90);
	nm_roster_hold(roster, 101, start_of(101), 5);
	assert_int_equal(member(101)->held_until, 5);
	assert_int_equal(member(101)->barred_until, 77);
}

/* sched_getaffinity(2) omits offline CPUs; the restored affinity includes them. */
static void test_original_with_offline_cpus(void **state)
{
	(void)state;
	fake_pin(fake, 101, fake_cpus(0, 5));
	fake->online = fake->all & ~fake_cpus(4, 4);
	hwloc_bitmap_clr(topology->online, 4);
	run_all(0.5);
	assert_int_equal(fake_from_bitmap(member(101)->original), fake_cpus(0, 5));
	assert_false(member(101)->unrestricted);
	hwloc_const_bitmap_t original = member(101)->original;
	run_none(11);
	run_all(0.5);
	assert_ptr_equal(member(101)->original, original); /* unchanged */
}

/* A decision about a thread does not affect another one with its number. */
static void test_bar_does_not_apply_to_a_reused_number(void **state)
{
	(void)state;
	uint64_t earlier = start_of(101);
	fake_exit(fake, 101);
	fake_sleep(fake, 100);
	fake_clone(fake, 100, 101);
	fake->nr_events = 0;
	run_all(0.5);
	nm_roster_bar(roster, 101, earlier, 77);
	nm_roster_hold(roster, 101, earlier, 90);
	nm_roster_give_back(roster, 101, earlier);
	assert_int_equal(member(101)->barred_until, 0);
	assert_int_equal(member(101)->held_until, 0);
	assert_managed(101, true);
	fake_pin(fake, 101, fake_cpus(0, 1));
	nm_roster_recheck(roster, 101, earlier);
	run_all(0.5);
	assert_managed(101, true);
	nm_roster_recheck(roster, 101, start_of(101));
	run_all(0.5);
	assert_managed(101, false);
}

static void test_new_topology(void **state)
{
	struct nm_topology *flat = machine_topology(1, 8);
	(void)state;
	run_all(0.5);
	nm_roster_configure(roster, flat, config);
	run_all(0.5);
	assert_managed(100, false); /* a single node leaves no choice */
	nm_roster_configure(roster, topology, config);
	run_all(0.5);
	assert_managed(100, true);
	nm_topology_free(flat);
}

/* Threads that may run on every usable CPU: reported with the affinity, and again when the CPUs
 * change. */
static void test_unrestricted_threads(void **state)
{
	struct nm_topology *larger = machine_topology(4, 16);
	(void)state;
	fake_pin(fake, 101, fake_cpus(0, 5));
	run_all(0.5);
	assert_true(member(102)->everywhere);
	assert_false(member(101)->everywhere);
	nm_roster_configure(roster, larger, config);
	assert_false(member(102)->everywhere);
	nm_roster_configure(roster, topology, config);
	assert_true(member(102)->everywhere);
	nm_topology_free(larger);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_exit),
		TEST(test_exit_of_all_threads),
		TEST(test_churn),
		TEST(the_status_of_others_is_not_read),
		TEST(test_many_groups),
		TEST(test_many_groups_of_threads),
		TEST(test_exec),
		TEST(test_reused_thread_number),
		TEST(test_reused_thread_number_unseen),
		TEST(test_number_moves_to_other_process),
		TEST(test_reused_process_number_unseen),
		TEST(test_reused_process_number_after_exec),
		TEST(test_record_newer_than_tick),
		TEST(test_silence),
		TEST(test_externally_changed_affinity),
		TEST(test_release),
		TEST(test_released_number_reused),
		TEST(test_release_of_the_idle),
		TEST(test_no_descriptors),
		TEST(test_any_call_fails),
		TEST(test_unrestricted_threads),
		TEST(test_bar),
		TEST(test_hold),
		TEST(test_original_with_offline_cpus),
		TEST(test_bar_does_not_apply_to_a_reused_number),
		TEST(test_new_topology),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
