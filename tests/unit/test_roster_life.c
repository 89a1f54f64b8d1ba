/* SPDX-License-Identifier: MIT */
/* Events of known processes and threads. */
#define SET_UP set_up
#define TEAR_DOWN tear_down
#include "../support/test.h"

#include "roster_fixture.h"

/* ---- events ---- */

TEST(test_exit)
{
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
TEST(test_exit_of_all_threads)
{
	run_all(0.5);
	for (uint32_t tid = 100; tid <= 102; tid++)
		fake_exit(fake, tid);
	drain();
	run_none(1);
	assert_null(nm_roster_process(roster, 100));
	assert_non_null(nm_roster_process(roster, 200));
}

TEST(test_churn)
{
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
TEST(the_status_of_others_is_not_read)
{
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
TEST(test_many_groups)
{
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
TEST(test_many_groups_of_threads)
{
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
TEST(test_exec)
{
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

TEST(test_reused_thread_number)
{
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
TEST(test_reused_thread_number_unseen)
{
	run_all(0.5);
	uint64_t start_ticks = member(101)->start_ticks;
	fake_exit(fake, 101);
	fake_clone(fake, 102, 101);
	fake->nr_events = 0;
	for (int i = 0; i < 12; i++)
		run_all(0.5);
	assert_true(member(101)->start_ticks > start_ticks);
}

TEST(test_number_moves_to_other_process)
{
	run_all(0.5);
	fake_exit(fake, 101);
	fake_clone(fake, 200, 101);
	fake->nr_events = 0;
	run_all(0.5);
	assert_int_equal(member(101)->pid, 200);
	assert_ptr_equal(member(101)->process, member(200)->process);
}

TEST(test_reused_process_number_unseen)
{
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
TEST(test_reused_process_number_after_exec)
{
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
TEST(test_record_newer_than_tick)
{
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

TEST(test_silence)
{
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

TEST(test_externally_changed_affinity)
{
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

TEST(test_release)
{
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
TEST(test_released_number_reused)
{
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
TEST(test_release_of_the_idle)
{
	config->targets.min_cpu_percent = 50;
	run_all(0.01);
	assert_int_equal(nm_roster_release(roster, 200), 0);
	run_all(0.9);
	run_all(0.9);
	assert_managed(200, false);
	assert_managed(100, true);
}

/* ---- temporary errors of /proc ---- */

TEST(test_no_descriptors)
{
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

TEST(test_any_call_fails)
{
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

TEST(test_bar)
{
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
TEST(test_hold)
{
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
TEST(test_original_with_offline_cpus)
{
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
TEST(test_bar_does_not_apply_to_a_reused_number)
{
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

TEST(test_new_topology)
{
	struct nm_topology *flat = machine_topology(1, 8);
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
TEST(test_unrestricted_threads)
{
	struct nm_topology *larger = machine_topology(4, 16);
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

RUN_TESTS()
