/* SPDX-License-Identifier: MIT */
/* Which threads are managed. */
#define SET_UP set_up
#define TEAR_DOWN tear_down
#include "../support/test.h"

#include <sched.h>

#include "task_table_words.h"

/* ---- adoption ---- */

SCRIPT(test_adoption, "run 0.5; pid_of 101 = 100; keep start = ticks 101; start_ticks 101 = start",
       "original 101 = 255; unrestricted 101 = 1; keep now = now_ns; adopted_ns 101 = now",
       "named 101 = prog100; process_uid 101 = 1000; cpu_share 101 > 1.4; processes_managed = 2",
       "threads_managed = 4; threads_known = 4; run 0.5; threads_known = 4")

/* The age of a process is that in /proc, on our own clock. */
SCRIPT(test_process_age, "run 0.5; started_ns 100 in 999e9..1001e9")

/* If rounding changed the start time with each read, it would look like a new program each time. */
SCRIPT(test_a_start_time_is_stable,
       "run 0.5; keep start = started_ns 100; sleep_ms 11003; run 0.5; started_ns 100 = start",
       "sleep_ms 11006; run 0.5; started_ns 100 = start; sleep_ms 11009; run 0.5",
       "started_ns 100 = start")

/* Three threads together are eligible, one is not. */
SCRIPT(test_too_little_cpu_time,
       "set min_cpu_percent = 50; run 0.1; unmanaged 100 200; run 0.3 2; idle 11; run 0.4 2",
       "managed 100; unmanaged 200")

/* No thread far below the threshold is read. */
SCRIPT(test_idle_is_not_read, "set min_cpu_percent = 50; run 0.01; opens = 0")

/* Once managed, a process stays managed down to 50 % of the threshold. */
SCRIPT(test_no_flicker,
       "set min_cpu_percent = 50; alone 200 0.6; managed 200; alone 200 0.3 30; managed 200",
       "alone 200 0.2 30; unmanaged 200")

/* 25 % of the cache are 4 MiB, and the count may lack 1 MiB. Samples show which of the larger
 * processes use memory. */
SCRIPT(test_too_small_for_a_home,
       "set policy = auto; set rss_kb 200 = 3000; run 0.5; managed 100; unmanaged 200",
       "set rss_kb 200 = 4224; idle 10; run 0.5; managed 200")

/* Only status counts them, and is not read for small processes without a pool of them. */
SCRIPT(huge_pages_count_as_memory,
       "set policy = auto; set rss_kb 200 = 2052; set hugetlb_kb 200 = 65536; alone 200 0.5",
       "unmanaged 200; statuses = 0; set pool_kb = 81920; idle 10; alone 200 0.5; managed 200",
       "rss_bytes 200 = 69210112")

/* A young process is checked in every interval, as its memory is still growing. */
SCRIPT(test_young_grows,
       "process 300; set rss_kb 300 = 1024; run 0.5; unmanaged 300; set rss_kb 300 = 1M; run 0.5",
       "managed 300")

/* Managed processes grow too: the size of their memory is read again whenever their age has
 * doubled. */
SCRIPT(test_memory_of_young_processes_is_read,
       "process 300; set rss_kb 300 = 65536; run 0.5; managed 300; set rss_kb 300 = 1M; run 0.5 2",
       "rss_bytes 300 = 1G")

SCRIPT(test_configured_size,
       "set min_rss_mb = 2000; run 0.5; unmanaged 100; set min_rss_mb = 1; configure; run 0.5",
       "managed 100")

SCRIPT(test_unknown_cpu_share, "run nan; managed 100; cpu_share 100 = nan")

TEST(test_vanished)
{
	struct nm_sampled_thread sampled[] = {
		{.pid = 100, .tid = 101, .stats.run_samples = 1, .stats.run_share = 0.9},
		{.pid = 100, .tid = 150, .stats.run_samples = 1, .stats.run_share = 0.9},
		{.pid = 900, .tid = 900, .stats.run_samples = 1, .stats.run_share = 0.9},
		{.pid = UINT32_MAX,
		 .tid = UINT32_MAX,
		 .stats.run_samples = 1,
		 .stats.run_share = 0.9},
	};
	assert_int_equal(nm_tasks_update(tasks, sampled, NM_ARRAY_SIZE(sampled), fake->now_ns), 0);
	run_script(
		(const char *const[]){"managed 101; processes_known = 1; threads_known = 1", NULL});
}

/* ---- targets ---- */

SCRIPT(test_include_by_command, "include command prog1*; run 0.5; managed 101; unmanaged 200")

SCRIPT(test_exclude_takes_precedence,
       "include command prog*; exclude command prog200; run 0.5; managed 100; unmanaged 200")

SCRIPT(test_by_unit, "move 100 /system.slice/db@one.service/worker; move 200 /user.slice/db.scope",
       "include unit db@*.service; run 0.5; managed 100; unmanaged 200")

/* All conditions of a target must hold. */
ACTION(of_root, config->targets.exclude.items[0].has_uid = true)

SCRIPT(test_by_user,
       "set uid 200 = 0; exclude command prog*; of_root; run 0.5; managed 100; unmanaged 200",
       "include user 1000; configure; run 0.5; managed 100")

TEST(test_hostile_name)
{
	snprintf(fake_get(fake, 100)->comm, 16, ") R 1\n\x1b[2J\xff");
	run_script((const char *const[]){"exclude command )?R?1*; run 0.5; unmanaged 100", NULL});
	config->targets.exclude.items[0].command[0] = 'x';
	nm_tasks_configure(tasks, topology, config);
	run_all(0.5);
	const char *comm = find_managed(100)->process->comm;
	for (const char *c = comm; *c; c++)
		assert_true(*c >= ' ' && (unsigned char)*c < 0x7f);
}

/* A new name may match other targets. */
SCRIPT(test_rename,
       "exclude command quiet; run 0.5; managed 100; name 100 quiet; report_name 100; drain",
       "run 0.5; unmanaged 100; threads_known = 1")

/* ---- unmanaged threads ---- */

KNOB(kernel_thread, fake_get(fake, U(0))->flags)
NAMES(kernel_thread, {"yes", FAKE_KTHREAD})

SCRIPT(test_kernel_threads, "set kernel_thread 200 = yes; run 0.5; unmanaged 200")

/* Scheduling policies also change to ordinary and back. */
SCRIPT(test_realtime_threads,
       "set policy = lbma; set scheduler 101 = fifo; set scheduler 102 = deadline",
       "set scheduler 200 = rr; run 0.5; managed 100; unmanaged 101 102 200",
       "set scheduler 101 = other; set scheduler 100 = fifo; idle 10; run 0.5; managed 101",
       "unmanaged 100")

QUANTITY(own_pid, getpid())

SCRIPT(test_ourselves,
       "keep own = own_pid; process own; name 200 numa-migrd-help; run 0.5; unmanaged own 200",
       "managed 100")

ACTION(in_group, snprintf(fake_get(fake, U(0))->cgroup, FAKE_CGROUP_BYTES, "%s", step->word[1]))

/* A process started by systemd for us has its unit before its name. */
SCRIPT(test_ourselves_by_unit,
       "name 100 (d-worker); "
       "in_group 100 /system.slice/system-numa\\x2dmigrd.slice/numa-migrd-worker@7.service",
       "in_group 200 /system.slice/numa-migrd-helper.service; run 0.5; unmanaged 100 200")

/* To one node, and to two. */
SCRIPT(test_pinned,
       "set policy = lbma; pin 101 2-3; pin 102 3-4; run 0.5; unmanaged 101; managed 102",
       "original 102 = 24; unrestricted 102 = 0")

KNOB(task_flags, fake_get(fake, U(0))->flags)
NAMES(task_flags, {"io_worker", NM_PROC_NO_AFFINITY | 0x10}, {"user_worker", 0x4000})

/* The kernel refuses the affinity of threads that it creates within a program: io_uring, vhost.
 * With "auto" they use the memory of their process. */
SCRIPT(test_affinity_that_nobody_may_set,
       "set task_flags 101 = io_worker; set task_flags 102 = user_worker; run 0.5; unmanaged 101",
       "managed 102; set policy = auto; run 0.5; only_watched 101 = 1")

/* If pages are sampled, its accesses count, but it stays where its owner has pinned it. */
SCRIPT(test_pinned_with_pages,
       "set policy = lbma; set page_policy = watch; pin 101 2-3; run 0.5; never_moves 101 = 1",
       "barred_until 102 = 0; set page_policy = none; run 0.5; is_member 101 = 0")

/* Policy "auto" places a process as a whole, so that threads which it must not move count, unless
 * it may move none. */
SCRIPT(test_all_threads_count_with_auto,
       "set policy = auto; pin 101 2-3; set scheduler 102 = fifo; pin 200 2-3; run 0.5",
       "unmanaged 101 102; only_watched 101 = 1; only_watched 102 = 1; never_moves 101 = 1",
       "never_moves 102 = 1; only_watched 100 = 0; is_member 200 = 0; pin 100 0-1; idle 10; run "
       "0.5",
       "is_member 101 = 0")

/* ---- the first thread ---- */

/* Its status has no memory any more. */
#define LEADER_EXITS "exit 100; set rss_kb 100 = 0; drain; "

/* It stays managed, and so it is if it was never seen with its first thread. */
SCRIPT(test_a_process_outlives_its_first_thread,
       "run 0.5; " LEADER_EXITS "run 0.5 30; managed 101; unmanaged 100; rss_bytes 101 = 1G",
       "named 101 = prog100")

/* Threads that a tracer keeps are not the process. */
SCRIPT(test_a_process_without_its_first_thread_is_managed,
       LEADER_EXITS "run 0.5 2; managed 101 102; process_uid 101 = 1000; set state 101 = 90",
       "set state 102 = 90; run 0.5 12; unmanaged 101 102; is_process 100 = 0")

/* ---- affinities ---- */

KNOB(names_cpusets, fake->names_cpusets)
ACTION(cpuset, fake_cpuset(fake, step->word[0], fake_cpus(U(0), U(1))))
ACTION(apply_cpuset, fake_apply_cpuset(fake, fake_get(fake, U(0))))

/* With threaded cgroups, a thread may be in another cpuset than its process. */
#define CPUSET_OF_A_THREAD                                                                         \
	"cpuset /job 0-5; cpuset /job/io 0-3; move 100 /job; in_group 102 /job/io; pin 101 0-3; "  \
	"apply_cpuset 102; sleep_ms 11000; run 0.5; unrestricted 100 = 1; unrestricted 101 = 0; "  \
	"unrestricted 102 = 1; original 102 = 15; pin 101 0-7; move 100 /; sleep_ms 11000; "       \
	"run 0.5; unrestricted 102 = 1"

SCRIPT(test_the_cpuset_of_a_thread_is_its_own, CPUSET_OF_A_THREAD,
       "set names_cpusets = 1; " CPUSET_OF_A_THREAD)

/* SECURITY: container */
SCRIPT(test_unrestricted_in_cpuset,
       "cpuset /job 0-3; move 100 /job/a; pin 102 0-2; run 0.5; unrestricted 101 = 1",
       "original 101 = 15; unrestricted 102 = 0; unrestricted 200 = 1")

ACTION(topology_online, fake_to_bitmap(fake->online, topology->online))

/* A thread pinned to all online CPUs stays so when more come online; an unpinned one may use
 * them. */
SCRIPT(test_pinning_to_all_online_cpus_is_kept,
       "pin 102 0-6; online 0-6; topology_online; run 0.5; unrestricted 101 = 1",
       "unrestricted 102 = 0; original 102 = 127")

WORD(narrowed)
{
	narrowed_tid = U(0);
	narrowed_original = fake_cpus(U(1), U(2));
}

SCRIPT(test_moving_when_adopted,
       "pin 101 2-3; narrowed 101 0-5; run 0.5; managed 101; original 101 = 63",
       "unrestricted 101 = 1")

ACTION(set_mask, (void)fake_set_mask(fake, U(0), fake_cpus(U(1), U(2))))

/* The affinity of a move is not taken for that of the owner. */
SCRIPT(test_moving, "run 0.5; set moving = 101; set_mask 101 2-3; idle 10; run 0.5; managed 101",
       "original 101 = 255")

/* Without an event, after ten seconds. */
SCRIPT(test_recheck,
       "run 0.5; pin 101 0-4; run 0.5; original 101 = 255; recheck 101; recheck 999; run 0.5",
       "original 101 = 31; unrestricted 101 = 0; pin 101 1-6; run 0.5 11; original 101 = 126")

RUN_TESTS()
