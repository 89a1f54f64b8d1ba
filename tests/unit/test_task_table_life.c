/* SPDX-License-Identifier: MIT */
/* Events of known processes and threads. */
#define SET_UP set_up
#define TEAR_DOWN tear_down
#include "../support/test.h"

#include <sched.h>

#include "task_table_words.h"

/* ---- events ---- */

SCRIPT(test_exit,
       "run 0.5; exit 101; drain; unmanaged 101; managed 102; kill 200; drain; threads_known = 2")

/* A managed process is not shown after its last thread has exited. */
SCRIPT(test_exit_of_all_threads,
       "run 0.5; exit 100; exit 101; exit 102; drain; idle 1; is_process 100 = 0",
       "is_process 200 = 1")

/* Short-lived processes leave no entries. */
TEST(test_churn)
{
	for (uint32_t pid = 1000; pid < 3000; pid++) {
		fake_fork(fake, 200, pid);
		run_one(pid, pid, 0.01);
		fake_kill(fake, pid);
		drain();
	}
	assert_true(nm_tasks_counts(tasks).processes_known < 3);
}

/* many_processes 64: twenty of one user, each of this size and in many groups */
WORD(many_processes)
{
	for (uint32_t pid = 1000; pid < 1020; pid++) {
		struct fake_thread *thread = fake_fork(fake, 200, pid);
		thread->rss_kb = (uint64_t)N(0);
		thread->many_groups = true;
		fake_move(fake, pid, "/user.slice/user-1000.slice/session-1.scope");
	}
}

/* The kernel takes long to write the status of a process in many groups: it is read only to plan a
 * home, and for the affinity of a thread that may be moved. */
/* SECURITY: many-groups-of-a-process */
SCRIPT(the_status_of_others_is_not_read,
       "set policy = balance; many_processes 64; run 0.5 12; managed 101; unmanaged 1001",
       "long_statuses = 0; keep n = statuses; run 0.5 12; statuses = n")

/* SECURITY: many-groups-of-a-process */
SCRIPT(test_many_groups,
       "keep size = rss_kb 200; many_processes size; run 0.5; long_statuses = 1; managed 101 1001",
       "run 0.5; long_statuses in 1..2; managed 101 1001; run 0.5; long_statuses in 1..3",
       "managed 101 1001")

WORD(many_threads)
{
	for (uint32_t tid = 1001; tid < 1020; tid++)
		fake_clone(fake, 1000, tid)->many_groups = true;
}

WORD(pin_many_threads)
{
	for (uint32_t tid = 1001; tid < 1020; tid++)
		fake_pin(fake, tid, 0x0f);
}

/* Each thread of a process has its own groups. */
/* SECURITY: many-groups-of-a-process */
SCRIPT(test_many_groups_of_threads,
       "fork 200 1000; move 1000 /user.slice/user-1000.slice/session-1.scope; many_threads",
       "run 0.5; managed 1019; long_statuses = 1; pin_many_threads; run 0.5 11; long_statuses = 2")

/* An exec starts a new program: its threads, age and eligibility are read again. */
SCRIPT(test_exec, "run 0.5; sleep_ms 100; keep begun = now_ns; exec 101; drain; unmanaged 100",
       "threads_known = 1; run 0.5; managed 100; started_ns 100 = begun; keep now = now_ns",
       "adopted_ns 100 = now")

SCRIPT(test_reused_thread_number,
       "run 0.5; keep start = start_ticks 101; exit 101; clone 102 101; drain; unmanaged 101",
       "run 0.5; start_ticks 101 > start")

/* The records were lost: /proc shows it when it is read again. */
SCRIPT(test_reused_thread_number_unseen,
       "run 0.5; keep start = start_ticks 101; exit 101; clone 102 101; lost; run 0.5 12",
       "start_ticks 101 > start")

QUANTITY(same_process, find_managed(U(0))->process == find_managed(U(1))->process)

SCRIPT(test_number_moves_to_other_process, "run 0.5; exit 101; clone 200 101; lost; run 0.5; "
					   "pid_of 101 = 200; same_process 101 200 = 1")

SCRIPT(test_reused_process_number_unseen,
       "run 0.5; kill 200; process 200; set rss_kb 200 = 4; lost; run 0.5 13; unmanaged 200",
       "managed 100")

/* Also if its data was to be read again after an exec. */
SCRIPT(test_reused_process_number_after_exec,
       "run 0.5; exec 200; drain; kill 200; process 200; lost; run 0.5; unmanaged 200; run 0.5",
       "managed 200")

/* Records are read between ticks and may be newer than the next tick. Process 200 is young, so it
 * is checked again. */
SCRIPT(test_record_newer_than_tick,
       "run 0.5; keep now = now_ns; set now_ns = now+5e9; exec 200; drain; set now_ns = now",
       "set rss_kb 200 = 4; run 0.5; unmanaged 200; set rss_kb 200 = 1M; run 0.5; managed 200 100")

/* A thread that moves stays. */
SCRIPT(test_silence,
       "run 0.5; set moving = 101; alone 100 0.9 59; managed 102; alone 100 0.9 2; unmanaged 102",
       "managed 101 100; unmanaged 200; processes_known = 1")

/* ---- released ---- */

/* Even after a long idle time and through a pause. The next owner of the number is a different
 * thread. */
SCRIPT(test_externally_changed_affinity,
       "run 0.5; give_back 101; give_back 999; unmanaged 101; managed 102; run 0.5 15",
       "unmanaged 101; idle 70; reopen; run 0.5; unmanaged 101; managed 102; exit 101",
       "clone 102 101; drain; run 0.5; managed 101")

SCRIPT(test_release,
       "run 0.5; release 100 = 0; unmanaged 100 101; run 0.5 15; unmanaged 100; idle 70; exec 100",
       "drain; run 0.5; unmanaged 100; reopen; run 0.5; unmanaged 100; release 999 = ESRCH")

/* A release applies to one process, not to its number. */
SCRIPT(test_released_number_reused,
       "run 0.5; release 200 = 0; kill 200; process 200; lost; run 0.5 14; managed 200")

/* Released before it was ever eligible. */
SCRIPT(test_release_of_the_idle,
       "set min_cpu_percent = 50; run 0.01; release 200 = 0; run 0.9 2; unmanaged 200; managed 100")

/* ---- temporary errors of /proc ---- */

ACTION(no_descriptors, fake_fail(fake, FAKE_OPEN, 1, 100, EMFILE))

/* Known data is kept. */
SCRIPT(test_no_descriptors,
       "run 0.5; release 200 = 0; idle 10; no_descriptors; run 0.5; calm; managed 101",
       "unmanaged 200; run 0.5; managed 101; unmanaged 200; threads_known = 3")

TEST(test_any_call_fails)
{
	for (unsigned nth = 1; nth < 60; nth++) {
		fake_fail(fake, FAKE_OPS, nth, 1, EIO);
		run_all(0.5);
		fake_calm(fake);
		run_none(11);
	}
	run_all(0.5);
	assert_int_equal(nm_tasks_counts(tasks).threads_managed, 4);
}

/* ---- others ---- */

SCRIPT(test_bar,
       "run 0.5; bar 101 77; bar 999 77; barred_until 101 = 77; barred_until 102 = 0; run 0.5",
       "barred_until 101 = 77; bar 101 70; barred_until 101 = 77; bar 101 78; barred_until 101 = "
       "78")

/* The end of an evaluation does not end a cooldown. */
SCRIPT(test_hold, "run 0.5; bar 101 77; hold 101 90; hold 999 90; held_until 101 = 90; hold 101 5",
       "held_until 101 = 5; barred_until 101 = 77")

WORD(cpu_4_is_off)
{
	fake->online = fake->all & ~fake_cpus(4, 4);
	hwloc_bitmap_clr(topology->online, 4);
}

QUANTITY(original_place, (uintptr_t)managed_of(step)->original)

/* sched_getaffinity(2) omits offline CPUs; the restored affinity includes them, and is not read
 * again. */
SCRIPT(test_original_with_offline_cpus,
       "pin 101 0-5; cpu_4_is_off; run 0.5; original 101 = 63; unrestricted 101 = 0",
       "keep place = original_place 101; idle 11; run 0.5; original_place 101 = place")

static uint64_t earlier;

ACTION(note_start, earlier = start_of(U(0)))
ACTION(recheck_earlier, nm_tasks_recheck(tasks, 101, earlier))

WORD(affect_earlier)
{
	nm_tasks_back_off(tasks, 101, earlier, 77);
	nm_tasks_delay(tasks, 101, earlier, 90);
	nm_tasks_give_back(tasks, 101, earlier);
}

/* A decision about a thread does not affect another one with its number. */
SCRIPT(test_bar_does_not_apply_to_a_reused_number,
       "note_start 101; exit 101; sleep_ms 100; clone 100 101; lost; run 0.5; affect_earlier",
       "barred_until 101 = 0; held_until 101 = 0; managed 101; pin 101 0-1; recheck_earlier",
       "run 0.5; managed 101; recheck 101; run 0.5; unmanaged 101")

/* configure_as 1 8: nodes, CPUs */
WORD(configure_as)
{
	struct nm_topology *other = machine_topology(U(0), U(1));
	nm_tasks_configure(tasks, other, config);
	if (U(0) == 1)
		run_all(0.5);
	else
		assert_false(find_managed(102)->everywhere);
	check_managed(&(struct step){.number = {100}, .nr_numbers = 1}, U(0) > 1);
	nm_tasks_configure(tasks, topology, config);
	nm_topology_free(other);
}

/* A single node leaves no choice. */
SCRIPT(test_new_topology, "run 0.5; configure_as 1 8; run 0.5; managed 100")

/* Threads that may run on every usable CPU: reported with the affinity, and again when the CPUs
 * change. */
SCRIPT(test_unrestricted_threads,
       "pin 101 0-5; run 0.5; everywhere 102 = 1; everywhere 101 = 0; configure_as 4 16",
       "everywhere 102 = 1")

RUN_TESTS()
