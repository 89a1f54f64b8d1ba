/* SPDX-License-Identifier: MIT */
/* Which threads are managed. */
#define SET_UP set_up
#define TEAR_DOWN tear_down
#include "../support/test.h"

#include <math.h>
#include <sched.h>

#include "roster_fixture.h"

/* ---- adoption ---- */

TEST(test_adoption)
{
	run_all(0.5);
	const struct nm_member *adopted = member(101);
	assert_non_null(adopted);
	assert_int_equal(adopted->pid, 100);
	assert_int_equal(adopted->start_ticks, fake_get(fake, 101)->start_ticks);
	assert_int_equal(fake_from_bitmap(adopted->original), ALL);
	assert_true(adopted->unrestricted);
	assert_int_equal(adopted->adopted_ns, fake->now_ns);
	assert_string_equal(adopted->process->comm, "prog100");
	assert_int_equal(adopted->process->uid, 1000);
	assert_true(adopted->process->cpu_share > 1.4);
	struct nm_roster_counts counts = nm_roster_counts(roster);
	assert_int_equal(counts.processes_managed, 2);
	assert_int_equal(counts.threads_managed, 4);
	assert_int_equal(counts.threads_known, 4);
	run_all(0.5);
	assert_int_equal(nm_roster_counts(roster).threads_known, 4);
}

/* The age of a process is that in /proc, on our own clock. */
TEST(test_process_age)
{
	run_all(0.5);
	uint64_t started_ns = member(100)->process->started_ns;
	assert_true(started_ns >= 999 * SECOND && started_ns <= 1001 * SECOND);
}

/* If rounding changed the start time with each read, it would look like a new program each time. */
TEST(test_a_start_time_is_stable)
{
	run_all(0.5);
	uint64_t started_ns = member(100)->process->started_ns;
	for (unsigned look = 1; look <= 3; look++) {
		fake_sleep(fake, 11000 + 3 * look);
		run_all(0.5);
		assert_int_equal(member(100)->process->started_ns, started_ns);
	}
}

TEST(test_too_little_cpu_time)
{
	config->targets.min_cpu_percent = 50;
	run_all(0.1);
	assert_managed(100, false);
	assert_managed(200, false);
	/* Three threads together are eligible, one is not. */
	run_all(0.3);
	run_all(0.3);
	run_none(11);
	run_all(0.4);
	run_all(0.4);
	assert_managed(100, true);
	assert_managed(200, false);
}

/* No thread far below the threshold is read. */
TEST(test_idle_is_not_read)
{
	config->targets.min_cpu_percent = 50;
	run_all(0.01);
	assert_int_equal(fake->calls[FAKE_OPEN], 0);
}

/* Once managed, a process stays managed down to 50 % of the threshold. */
TEST(test_no_flicker)
{
	config->targets.min_cpu_percent = 50;
	run_one(200, 200, 0.6);
	assert_managed(200, true);
	for (int i = 0; i < 30; i++)
		run_one(200, 200, 0.3);
	assert_managed(200, true);
	for (int i = 0; i < 30; i++)
		run_one(200, 200, 0.2);
	assert_managed(200, false);
}

/* 25 % of the cache are 4 MiB, and the count may lack 1 MiB. Samples show which of the larger
 * processes use memory. */
static void check_least_memory(void)
{
	fake_get(fake, 200)->rss_kb = 3000;
	run_all(0.5);
	assert_managed(100, true);
	assert_managed(200, false);
	fake_get(fake, 200)->rss_kb = 4224;
	run_none(10);
	run_all(0.5);
	assert_managed(200, true);
}

TEST(test_too_small_for_a_home)
{
	config->threads.policy = NM_POLICY_AUTO;
	check_least_memory();
}

/* Only status counts them, and is not read for small processes without a pool of them. */
TEST(huge_pages_count_as_memory)
{
	config->threads.policy = NM_POLICY_AUTO;
	fake_get(fake, 200)->rss_kb = 2052;
	fake_get(fake, 200)->hugetlb_kb = 65536;
	run_one(200, 200, 0.5);
	assert_managed(200, false);
	assert_int_equal(fake->statuses, 0);
	fake->pool_kb = 81920;
	run_none(10);
	run_one(200, 200, 0.5);
	assert_managed(200, true);
	assert_true(member(200)->process->rss_bytes == (UINT64_C(2052) + 65536) << 10);
}

/* A young process is checked in every interval, as its memory is still growing. */
TEST(test_young_grows)
{
	fake_process(fake, 300, 1)->rss_kb = 1024;
	run_all(0.5);
	assert_managed(300, false);
	fake_get(fake, 300)->rss_kb = 1048576;
	run_all(0.5);
	assert_managed(300, true);
}

/* Managed processes grow too: the size of their memory is read again whenever their age has
 * doubled. */
TEST(test_memory_of_young_processes_is_read)
{
	fake_process(fake, 300, 1)->rss_kb = 65536;
	run_all(0.5);
	assert_managed(300, true);
	fake_get(fake, 300)->rss_kb = 1048576;
	run_all(0.5);
	run_all(0.5);
	assert_int_equal(member(300)->process->rss_bytes, 1048576ULL << 10);
}

TEST(test_configured_size)
{
	config->targets.min_rss_mb = 2000;
	run_all(0.5);
	assert_managed(100, false);
	config->targets.min_rss_mb = 1;
	nm_roster_configure(roster, topology, config);
	run_all(0.5);
	assert_managed(100, true);
}

TEST(test_unknown_cpu_share)
{
	run_all((double)NAN);
	assert_managed(100, true);
	assert_true(isnan(member(100)->process->cpu_share));
}

TEST(test_vanished)
{
	struct nm_figures figures[] = {
		{.pid = 100, .tid = 101, .run_samples = 1, .run_share = 0.9},
		{.pid = 100, .tid = 150, .run_samples = 1, .run_share = 0.9},
		{.pid = 900, .tid = 900, .run_samples = 1, .run_share = 0.9},
		{.pid = UINT32_MAX, .tid = UINT32_MAX, .run_samples = 1, .run_share = 0.9},
	};
	assert_int_equal(nm_roster_update(roster, figures, NM_ARRAY_SIZE(figures), fake->now_ns),
			 0);
	assert_managed(101, true);
	struct nm_roster_counts counts = nm_roster_counts(roster);
	assert_int_equal(counts.processes_known, 1);
	assert_int_equal(counts.threads_known, 1);
}

/* ---- targets ---- */

static char *copy(const char *text)
{
	return text ? strdup(text) : NULL;
}

static void target(struct nm_target_list *list, const char *command, const char *unit,
		   const char *user)
{
	list->items = reallocarray(list->items, list->count + 1, sizeof(*list->items));
	assert_non_null(list->items);
	list->items[list->count++] = (struct nm_target){
		.command = copy(command),
		.unit = copy(unit),
		.user = copy(user),
		.has_uid = user != NULL,
		.uid = user ? (uint32_t)atoi(user) : 0,
	};
}

TEST(test_include_by_command)
{
	target(&config->targets.include, "prog1*", NULL, NULL);
	run_all(0.5);
	assert_managed(101, true);
	assert_managed(200, false);
}

TEST(test_exclude_takes_precedence)
{
	target(&config->targets.include, "prog*", NULL, NULL);
	target(&config->targets.exclude, "prog200", NULL, NULL);
	run_all(0.5);
	assert_managed(100, true);
	assert_managed(200, false);
}

TEST(test_by_unit)
{
	fake_move(fake, 100, "/system.slice/db@one.service/worker");
	fake_move(fake, 200, "/user.slice/db.scope");
	target(&config->targets.include, NULL, "db@*.service", NULL);
	run_all(0.5);
	assert_managed(100, true);
	assert_managed(200, false);
}

TEST(test_by_user)
{
	fake_get(fake, 200)->uid = 0;
	target(&config->targets.exclude, "prog*", NULL, "0");
	run_all(0.5);
	assert_managed(100, true);
	assert_managed(200, false);
	target(&config->targets.include, NULL, NULL, "1000");
	nm_roster_configure(roster, topology, config);
	run_all(0.5);
	assert_managed(100, true);
}

TEST(test_hostile_name)
{
	snprintf(fake_get(fake, 100)->comm, 16, ") R 1\n\x1b[2J\xff");
	target(&config->targets.exclude, ") R 1*", NULL, NULL);
	run_all(0.5);
	assert_managed(100, false);
	config->targets.exclude.items[0].command[0] = 'x';
	nm_roster_configure(roster, topology, config);
	run_all(0.5);
	const char *comm = member(100)->process->comm;
	for (const char *c = comm; *c; c++)
		assert_true(*c >= ' ' && (unsigned char)*c < 0x7f);
}

/* A new name may match other targets. */
TEST(test_rename)
{
	target(&config->targets.exclude, "quiet", NULL, NULL);
	run_all(0.5);
	assert_managed(100, true);
	snprintf(fake_get(fake, 100)->comm, 16, "quiet");
	fake_notify(fake, NM_TASK_COMM, 100, 100, 0, 0);
	drain();
	run_all(0.5);
	assert_managed(100, false);
	assert_int_equal(nm_roster_counts(roster).threads_known, 1);
}

/* ---- unmanaged threads ---- */

TEST(test_kernel_threads)
{
	fake_get(fake, 200)->flags = FAKE_KTHREAD;
	run_all(0.5);
	assert_managed(200, false);
}

TEST(test_realtime_threads)
{
	config->threads.policy = NM_POLICY_LBMA;
	fake_get(fake, 101)->policy = SCHED_FIFO;
	fake_get(fake, 102)->policy = SCHED_DEADLINE;
	fake_get(fake, 200)->policy = SCHED_RR;
	run_all(0.5);
	assert_managed(100, true);
	assert_managed(101, false);
	assert_managed(102, false);
	assert_managed(200, false);
	/* Scheduling policies that change to ordinary and back. */
	fake_get(fake, 101)->policy = SCHED_OTHER;
	fake_get(fake, 100)->policy = SCHED_FIFO;
	run_none(10);
	run_all(0.5);
	assert_managed(101, true);
	assert_managed(100, false);
}

TEST(test_ourselves)
{
	fake_process(fake, (uint32_t)getpid(), 1);
	snprintf(fake_get(fake, 200)->comm, 16, "numa-migrd-help");
	run_all(0.5);
	assert_managed((uint32_t)getpid(), false);
	assert_managed(200, false);
	assert_managed(100, true);
}

/* A process started by systemd for us has its unit before its name. */
TEST(test_ourselves_by_unit)
{
	snprintf(fake_get(fake, 100)->comm, 16, "(d-worker)");
	snprintf(fake_get(fake, 100)->cgroup, sizeof(fake_get(fake, 100)->cgroup),
		 "/system.slice/system-numa\\x2dmigrd.slice/numa-migrd-worker@7.service");
	snprintf(fake_get(fake, 200)->cgroup, sizeof(fake_get(fake, 200)->cgroup),
		 "/system.slice/numa-migrd-helper.service");
	run_all(0.5);
	assert_managed(100, false);
	assert_managed(200, false);
}

TEST(test_pinned)
{
	config->threads.policy = NM_POLICY_LBMA;
	fake_pin(fake, 101, fake_cpus(2, 3)); /* one node */
	fake_pin(fake, 102, fake_cpus(3, 4)); /* two */
	run_all(0.5);
	assert_managed(101, false);
	assert_managed(102, true);
	assert_int_equal(fake_from_bitmap(member(102)->original), fake_cpus(3, 4));
	assert_false(member(102)->unrestricted);
}

/* The kernel refuses the affinity of threads that it creates within a program: io_uring, vhost. */
TEST(test_affinity_that_nobody_may_set)
{
	fake_get(fake, 101)->flags = NM_PROC_NO_AFFINITY | 0x10; /* PF_IO_WORKER */
	fake_get(fake, 102)->flags = 0x4000;			 /* PF_USER_WORKER alone */
	run_all(0.5);
	assert_managed(101, false);
	assert_managed(102, true);
	config->threads.policy = NM_POLICY_AUTO; /* they use the memory of their process */
	run_all(0.5);
	assert_non_null(member(101));
	assert_true(member(101)->only_watched);
}

/* If pages are sampled, its accesses count, but it stays where its owner has pinned it. */
TEST(test_pinned_with_pages)
{
	config->threads.policy = NM_POLICY_LBMA;
	config->pages.policy = NM_PAGES_WATCH;
	fake_pin(fake, 101, fake_cpus(2, 3));
	run_all(0.5);
	assert_non_null(member(101));
	assert_true(member(101)->barred_until == UINT64_MAX);
	assert_true(member(102)->barred_until == 0);
	config->pages.policy = NM_PAGES_NONE;
	run_all(0.5);
	assert_null(member(101));
}

/* Policy "auto" places a process as a whole, so that threads which it must not move count. */
TEST(test_all_threads_count_with_auto)
{
	config->threads.policy = NM_POLICY_AUTO;
	fake_pin(fake, 101, fake_cpus(2, 3));
	fake_get(fake, 102)->policy = SCHED_FIFO;
	fake_pin(fake, 200, fake_cpus(2, 3)); /* all threads of its process */
	run_all(0.5);
	for (uint32_t tid = 101; tid <= 102; tid++) {
		assert_managed(tid, false);
		assert_non_null(member(tid));
		assert_true(member(tid)->only_watched);
		assert_true(member(tid)->barred_until == UINT64_MAX);
	}
	assert_false(member(100)->only_watched);
	assert_null(member(200));
	/* No other thread of the process may be moved any more. */
	fake_pin(fake, 100, fake_cpus(0, 1));
	run_none(10);
	run_all(0.5);
	assert_null(member(101));
}

/* ---- the first thread ---- */

static void exit_leader(void)
{
	fake_exit(fake, 100);
	fake_get(fake, 100)->rss_kb = 0; /* its status has no memory any more */
	drain();
}

/* It stays managed, and so it is if it was never seen with its first thread. */
TEST(test_a_process_outlives_its_first_thread)
{
	run_all(0.5);
	exit_leader();
	for (unsigned i = 0; i < 30; i++)
		run_all(0.5);
	assert_managed(101, true);
	assert_managed(100, false);
	assert_true(member(101)->process->rss_bytes == UINT64_C(1) << 30);
	assert_string_equal(member(101)->process->comm, "prog100");
}

TEST(test_a_process_without_its_first_thread_is_managed)
{
	exit_leader();
	run_all(0.5);
	run_all(0.5);
	assert_managed(101, true);
	assert_managed(102, true);
	assert_int_equal(member(101)->process->uid, 1000);
	/* Those that a tracer keeps are not the process. */
	fake_get(fake, 101)->state = 'Z';
	fake_get(fake, 102)->state = 'Z';
	for (unsigned i = 0; i < 12; i++)
		run_all(0.5);
	assert_managed(101, false);
	assert_managed(102, false);
	assert_null(nm_roster_process(roster, 100));
}

/* ---- affinities ---- */

/* With threaded cgroups, a thread may be in another cpuset than its process. */
TEST(test_the_cpuset_of_a_thread_is_its_own)
{
	for (unsigned named = 0; named < 2; named++) {
		fake->names_cpusets = named > 0;
		fake_cpuset(fake, "/job", fake_cpus(0, 5));
		fake_cpuset(fake, "/job/io", fake_cpus(0, 3));
		fake_move(fake, 100, "/job");
		snprintf(fake_get(fake, 102)->cgroup, sizeof(fake_get(fake, 102)->cgroup),
			 "/job/io");
		fake_pin(fake, 101, fake_cpus(0, 3));
		fake_apply_cpuset(fake, fake_get(fake, 102));
		fake_sleep(fake, 11000);
		run_all(0.5);
		assert_true(member(100)->unrestricted);
		assert_false(member(101)->unrestricted);
		assert_true(member(102)->unrestricted);
		assert_int_equal(fake_from_bitmap(member(102)->original), fake_cpus(0, 3));
		fake_pin(fake, 101, ALL);
		fake_move(fake, 100, "/");
		fake_sleep(fake, 11000);
		run_all(0.5);
		assert_true(member(102)->unrestricted);
	}
}

/* SECURITY: container */
TEST(test_unrestricted_in_cpuset)
{
	fake_cpuset(fake, "/job", fake_cpus(0, 3));
	fake_move(fake, 100, "/job/a");
	fake_pin(fake, 102, fake_cpus(0, 2));
	run_all(0.5);
	assert_true(member(101)->unrestricted);
	assert_int_equal(fake_from_bitmap(member(101)->original), fake_cpus(0, 3));
	assert_false(member(102)->unrestricted);
	assert_true(member(200)->unrestricted);
}

/* A thread pinned to all online CPUs stays so when more come online; an unpinned one may use
 * them. */
TEST(test_pinning_to_all_online_cpus_is_kept)
{
	uint64_t online = fake->online & ~(UINT64_C(1) << 7);
	fake_pin(fake, 102, online);
	fake->online = online;
	fake_to_bitmap(online, topology->online);
	run_all(0.5);
	assert_true(member(101)->unrestricted);
	assert_false(member(102)->unrestricted);
	assert_int_equal(fake_from_bitmap(member(102)->original), online);
}

TEST(test_moving_when_adopted)
{
	fake_pin(fake, 101, fake_cpus(2, 3));
	narrowed_tid = 101;
	narrowed_original = fake_cpus(0, 5);
	run_all(0.5);
	assert_managed(101, true);
	assert_int_equal(fake_from_bitmap(member(101)->original), fake_cpus(0, 5));
	assert_true(member(101)->unrestricted);
}

/* The affinity of a move is not taken for that of the owner. */
TEST(test_moving)
{
	run_all(0.5);
	moving_tid = 101;
	(void)fake_set_mask(fake, 101, fake_cpus(2, 3));
	run_none(10);
	run_all(0.5);
	assert_managed(101, true);
	assert_int_equal(fake_from_bitmap(member(101)->original), ALL);
}

TEST(test_recheck)
{
	run_all(0.5);
	fake_pin(fake, 101, fake_cpus(0, 4));
	run_all(0.5);
	assert_int_equal(fake_from_bitmap(member(101)->original), ALL);
	nm_roster_recheck(roster, 101, start_of(101));
	nm_roster_recheck(roster, 999, start_of(999));
	run_all(0.5);
	assert_int_equal(fake_from_bitmap(member(101)->original), fake_cpus(0, 4));
	assert_false(member(101)->unrestricted);
	/* Without an event, after ten seconds. */
	fake_pin(fake, 101, fake_cpus(1, 6));
	for (int i = 0; i < 11; i++)
		run_all(0.5);
	assert_int_equal(fake_from_bitmap(member(101)->original), fake_cpus(1, 6));
}

RUN_TESTS()
