/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <sched.h>

#include "../support/machine.h"
#include "fake_platform.h"
#include "numa-migrd/roster.h"

#define ALL UINT64_C(0xff)
#define SECOND NM_NSEC_PER_SEC

static struct fake *fake;
static struct nm_topology *topology;
static struct nm_config *config;
static struct nm_roster_memory *memory;
static struct nm_roster *roster;

/* What the lease keeper would say. */
static uint32_t leased_tid;
static uint32_t heir_tid;
static uint64_t heir_original;
static hwloc_bitmap_t told_original;

static bool says_inherited(void *context, uint32_t pid, uint32_t tid, uint64_t start_ticks,
			   hwloc_const_bitmap_t current, hwloc_const_bitmap_t *ret_original,
			   bool *ret_unrestricted)
{
	(void)context, (void)pid, (void)current;
	assert_int_equal(start_ticks, fake_get(fake, tid)->start_ticks);
	if (tid != heir_tid)
		return false;
	fake_to_bitmap(heir_original, told_original);
	*ret_original = told_original;
	*ret_unrestricted = true;
	return true;
}

static bool says_holds(void *context, uint32_t tid)
{
	(void)context;
	return tid == leased_tid;
}

static void open_roster(void)
{
	struct nm_lease_lookup leases = {.inherited = says_inherited, .holds = says_holds};
	assert_int_equal(nm_roster_new(&fake->platform, topology, config, &leases, memory, &roster),
			 0);
}

/* Four nodes of two CPUs; process 100 with the threads 101 and 102, and process 200. */
static int set_up(void **state)
{
	(void)state;
	fake = fake_new(8);
	topology = machine_topology(4, 8);
	topology->llc_bytes = 16U << 20;
	told_original = hwloc_bitmap_alloc();
	leased_tid = heir_tid = 0;
	assert_int_equal(nm_config_default(&config), 0);
	assert_int_equal(nm_roster_memory_new(&memory), 0);
	open_roster();
	fake_process(fake, 100, 1);
	fake_clone(fake, 100, 101);
	fake_clone(fake, 100, 102);
	fake_process(fake, 200, 1);
	fake_sleep(fake, 60000);
	fake->nr_events = 0;
	return 0;
}

static int tear_down(void **state)
{
	unsigned open_fds = fake_open_fds(fake);
	(void)state;
	nm_roster_free(roster);
	nm_roster_memory_free(memory);
	nm_config_free(config);
	nm_topology_free(topology);
	hwloc_bitmap_free(told_original);
	nm_platform_free(&fake->platform);
	assert_int_equal(open_fds, 0);
	return 0;
}

static int compare_figures(const void *a, const void *b)
{
	uint32_t left = ((const struct nm_figures *)a)->tid;
	uint32_t right = ((const struct nm_figures *)b)->tid;
	return (left > right) - (left < right);
}

/* An interval of a second in which all threads alive above 99 used this share of a CPU. */
static void run_all(double share)
{
	struct nm_figures figures[FAKE_THREADS];
	size_t count = 0;
	fake_sleep(fake, 1000);
	for (size_t i = 0; i < FAKE_THREADS; i++) {
		const struct fake_thread *thread = &fake->threads[i];
		if (thread->alive && thread->tid >= 100)
			figures[count++] = (struct nm_figures){.pid = thread->pid,
							       .tid = thread->tid,
							       .run_samples = 10,
							       .run_share = share};
	}
	qsort(figures, count, sizeof(*figures), compare_figures);
	assert_int_equal(nm_roster_update(roster, figures, count, fake->now_ns), 0);
}

static void run_one(uint32_t pid, uint32_t tid, double share)
{
	struct nm_figures figures = {.pid = pid, .tid = tid, .run_samples = 10, .run_share = share};
	fake_sleep(fake, 1000);
	assert_int_equal(nm_roster_update(roster, &figures, 1, fake->now_ns), 0);
}

static void run_none(unsigned seconds)
{
	for (unsigned i = 0; i < seconds; i++) {
		fake_sleep(fake, 1000);
		assert_int_equal(nm_roster_update(roster, NULL, 0, fake->now_ns), 0);
	}
}

static void drain(void)
{
	for (unsigned i = 0; i < fake->nr_events; i++)
		nm_roster_task_event(roster, &fake->events[i], fake->now_ns);
	fake->nr_events = 0;
}

static const struct nm_member *member(uint32_t tid)
{
	const struct nm_member *members;
	size_t count = nm_roster_members(roster, &members);
	for (size_t i = 1; i < count; i++)
		assert_true(members[i - 1].tid < members[i].tid);
	for (size_t i = 0; i < count; i++)
		if (members[i].tid == tid)
			return &members[i];
	return NULL;
}

static void assert_managed(uint32_t tid, bool managed)
{
	if ((member(tid) != NULL) != managed)
		fail_msg("thread %u is%s managed", tid, managed ? " not" : "");
}

/* ---- adoption ---- */

static void test_adoption(void **state)
{
	(void)state;
	run_all(0.5);
	const struct nm_member *adopted = member(101);
	assert_non_null(adopted);
	assert_int_equal(adopted->pid, 100);
	assert_int_equal(adopted->start_ticks, fake_get(fake, 101)->start_ticks);
	assert_int_equal(fake_from_bitmap(adopted->original), ALL);
	assert_true(adopted->unrestricted);
	assert_false(adopted->leased);
	assert_int_equal(adopted->adopted_ns, fake->now_ns);
	assert_string_equal(adopted->process->comm, "prog100");
	assert_int_equal(adopted->process->uid, 1000);
	assert_true(adopted->process->cpu_share > 1.4);
	struct nm_roster_counts counts = nm_roster_counts(roster);
	assert_int_equal(counts.processes_managed, 2);
	assert_int_equal(counts.threads_managed, 4);
	assert_int_equal(counts.adopted, 4);
	run_all(0.5);
	assert_int_equal(nm_roster_counts(roster).adopted, 4);
}

/* The age of a process is that of /proc, on our own clock. */
static void test_age(void **state)
{
	(void)state;
	run_all(0.5);
	uint64_t started_ns = member(100)->process->started_ns;
	assert_true(started_ns >= 999 * SECOND && started_ns <= 1001 * SECOND);
}

static void test_too_idle(void **state)
{
	(void)state;
	config->targets.min_cpu_percent = 50;
	run_all(0.1);
	assert_managed(100, false);
	assert_managed(200, false);
	/* Three threads together are worth it, one is not. */
	run_all(0.3);
	run_all(0.3);
	run_none(11);
	run_all(0.4);
	run_all(0.4);
	assert_managed(100, true);
	assert_managed(200, false);
}

/* Nobody is read who is far below the threshold. */
static void test_idle_is_not_read(void **state)
{
	(void)state;
	config->targets.min_cpu_percent = 50;
	run_all(0.01);
	assert_int_equal(fake->calls[FAKE_OPEN], 0);
}

/* Once managed, a process keeps its place down to half the threshold. */
static void test_no_flicker(void **state)
{
	(void)state;
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

static void test_too_small(void **state)
{
	(void)state;
	fake_get(fake, 200)->rss_kb = 31744; /* twice the cache are 32 MiB */
	run_all(0.5);
	assert_managed(100, true);
	assert_managed(200, false);
	fake_get(fake, 200)->rss_kb = 33792;
	run_none(10);
	run_all(0.5);
	assert_managed(200, true);
}

/* A young one is looked at in every interval: its memory is still growing. */
static void test_young_grows(void **state)
{
	(void)state;
	fake_process(fake, 300, 1)->rss_kb = 1024;
	run_all(0.5);
	assert_managed(300, false);
	fake_get(fake, 300)->rss_kb = 1048576;
	run_all(0.5);
	assert_managed(300, true);
}

static void test_configured_size(void **state)
{
	(void)state;
	config->targets.min_rss_mb = 2000;
	run_all(0.5);
	assert_managed(100, false);
	config->targets.min_rss_mb = 1;
	nm_roster_configure(roster, topology, config);
	run_all(0.5);
	assert_managed(100, true);
}

static void test_unknown_cpu_share(void **state)
{
	(void)state;
	run_all((double)NAN);
	assert_managed(100, true);
	assert_true(isnan(member(100)->process->cpu_share));
}

static void test_vanished(void **state)
{
	struct nm_figures figures[] = {
		{.pid = 100, .tid = 101, .run_samples = 1, .run_share = 0.9},
		{.pid = 100, .tid = 150, .run_samples = 1, .run_share = 0.9},
		{.pid = 900, .tid = 900, .run_samples = 1, .run_share = 0.9},
		{.pid = UINT32_MAX, .tid = UINT32_MAX, .run_samples = 1, .run_share = 0.9},
	};
	(void)state;
	assert_int_equal(nm_roster_update(roster, figures, NM_ARRAY_SIZE(figures), fake->now_ns),
			 0);
	assert_managed(101, true);
	struct nm_roster_counts counts = nm_roster_counts(roster);
	assert_int_equal(counts.vanished, 2);
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

static void test_include_by_command(void **state)
{
	(void)state;
	target(&config->targets.include, "prog1*", NULL, NULL);
	run_all(0.5);
	assert_managed(101, true);
	assert_managed(200, false);
	const struct nm_inject_target *targets;
	assert_int_equal(nm_roster_inject_targets(roster, &targets), 1);
	assert_int_equal(targets[0].pid, 100);
	assert_int_equal(targets[0].start_ticks, fake_get(fake, 100)->start_ticks);
	assert_int_equal(targets[0].resident_bytes, 1ULL << 30);
}

static void test_exclude_wins(void **state)
{
	(void)state;
	target(&config->targets.include, "prog*", NULL, NULL);
	target(&config->targets.exclude, "prog200", NULL, NULL);
	run_all(0.5);
	assert_managed(100, true);
	assert_managed(200, false);
}

static void test_by_unit(void **state)
{
	(void)state;
	fake_move(fake, 100, "/system.slice/db@one.service/worker");
	fake_move(fake, 200, "/user.slice/db.scope");
	target(&config->targets.include, NULL, "db@*.service", NULL);
	run_all(0.5);
	assert_managed(100, true);
	assert_managed(200, false);
}

static void test_by_user(void **state)
{
	(void)state;
	fake_get(fake, 200)->uid = 0;
	target(&config->targets.exclude, "prog*", NULL, "0");
	run_all(0.5);
	assert_managed(100, true);
	assert_managed(200, false);
	/* A user names nobody in particular: no reason to protect his processes' pages. */
	target(&config->targets.include, NULL, NULL, "1000");
	nm_roster_configure(roster, topology, config);
	run_all(0.5);
	const struct nm_inject_target *targets;
	assert_managed(100, true);
	assert_int_equal(nm_roster_inject_targets(roster, &targets), 0);
}

static void test_hostile_name(void **state)
{
	(void)state;
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

/* A new name may move a process in or out of the targets. */
static void test_rename(void **state)
{
	(void)state;
	target(&config->targets.exclude, "quiet", NULL, NULL);
	run_all(0.5);
	assert_managed(100, true);
	snprintf(fake_get(fake, 100)->comm, 16, "quiet");
	fake_tell(fake, NM_TASK_COMM, 100, 100, 0, 0);
	drain();
	run_all(0.5);
	assert_managed(100, false);
	assert_int_equal(nm_roster_counts(roster).threads_known, 1);
}

/* ---- who is never touched ---- */

static void test_kernel_threads(void **state)
{
	(void)state;
	fake_get(fake, 200)->flags = FAKE_KTHREAD;
	run_all(0.5);
	assert_managed(200, false);
}

static void test_realtime_threads(void **state)
{
	(void)state;
	fake_get(fake, 101)->policy = SCHED_FIFO;
	fake_get(fake, 102)->policy = SCHED_DEADLINE;
	fake_get(fake, 200)->policy = SCHED_RR;
	run_all(0.5);
	assert_managed(100, true);
	assert_managed(101, false);
	assert_managed(102, false);
	assert_managed(200, false);
	/* One that becomes ordinary, and one that ceases to be. */
	fake_get(fake, 101)->policy = SCHED_OTHER;
	fake_get(fake, 100)->policy = SCHED_FIFO;
	run_none(10);
	run_all(0.5);
	assert_managed(101, true);
	assert_managed(100, false);
}

static void test_ourselves(void **state)
{
	(void)state;
	fake_process(fake, (uint32_t)getpid(), 1);
	snprintf(fake_get(fake, 200)->comm, 16, "numa-migrd-help");
	run_all(0.5);
	assert_managed((uint32_t)getpid(), false);
	assert_managed(200, false);
	assert_managed(100, true);
}

static void test_pinned(void **state)
{
	(void)state;
	fake_pin(fake, 101, fake_cpus(2, 3)); /* one node */
	fake_pin(fake, 102, fake_cpus(3, 4)); /* two */
	run_all(0.5);
	assert_managed(101, false);
	assert_managed(102, true);
	assert_int_equal(fake_from_bitmap(member(102)->original), fake_cpus(3, 4));
	assert_false(member(102)->unrestricted);
}

/* ---- masks ---- */

static void test_unrestricted_in_cpuset(void **state)
{
	(void)state;
	fake_cpuset(fake, "/job", fake_cpus(0, 3));
	fake_move(fake, 100, "/job/a");
	fake_pin(fake, 102, fake_cpus(0, 2));
	run_all(0.5);
	assert_true(member(101)->unrestricted);
	assert_int_equal(fake_from_bitmap(member(101)->original), fake_cpus(0, 3));
	assert_false(member(102)->unrestricted);
	assert_true(member(200)->unrestricted);
}

static void test_inherited(void **state)
{
	(void)state;
	fake_pin(fake, 101, fake_cpus(2, 3));
	heir_tid = 101;
	heir_original = fake_cpus(0, 5);
	run_all(0.5);
	assert_managed(101, true);
	assert_int_equal(fake_from_bitmap(member(101)->original), fake_cpus(0, 5));
	assert_true(member(101)->unrestricted);
}

/* Our own mask is not taken for the owner's. */
static void test_leased(void **state)
{
	(void)state;
	run_all(0.5);
	leased_tid = 101;
	(void)fake_set_mask(fake, 101, fake_cpus(2, 3));
	run_none(10);
	run_all(0.5);
	assert_managed(101, true);
	assert_true(member(101)->leased);
	assert_int_equal(fake_from_bitmap(member(101)->original), ALL);
}

static void test_recheck(void **state)
{
	(void)state;
	run_all(0.5);
	fake_pin(fake, 101, fake_cpus(0, 4));
	run_all(0.5);
	assert_int_equal(fake_from_bitmap(member(101)->original), ALL);
	nm_roster_recheck(roster, 101);
	nm_roster_recheck(roster, 999);
	run_all(0.5);
	assert_int_equal(fake_from_bitmap(member(101)->original), fake_cpus(0, 4));
	assert_false(member(101)->unrestricted);
	/* Without a word, after ten seconds. */
	fake_pin(fake, 101, fake_cpus(1, 6));
	for (int i = 0; i < 11; i++)
		run_all(0.5);
	assert_int_equal(fake_from_bitmap(member(101)->original), fake_cpus(1, 6));
}

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

/* Short-lived processes leave nothing behind. */
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

static void test_spawn(void **state)
{
	(void)state;
	run_all(0.5);
	assert_int_equal(member(100)->process->last_spawn_ns, 0);
	fake_clone(fake, 101, 103);
	drain();
	assert_int_equal(member(100)->process->last_spawn_ns, fake->now_ns);
	fake_sleep(fake, 500);
	fake_fork(fake, 102, 300);
	drain();
	assert_int_equal(member(100)->process->last_spawn_ns, fake->now_ns);
	assert_int_equal(member(200)->process->last_spawn_ns, 0);
}

/* A program that starts is new: its threads, its age, what it is worth. */
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

/* The records were lost: /proc tells, at the latest when it is read again. */
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
	assert_int_equal(nm_roster_counts(roster).vanished, 1);
}

/* Also when what was known was to be read anew after an exec. */
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
	assert_int_equal(nm_roster_counts(roster).vanished, 1);
	run_all(0.5);
	assert_managed(200, true);
}

/* Records are read between ticks: they may be newer than the tick that follows. */
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
	run_all(0.5); /* it is young, so it is looked at again */
	assert_managed(200, true);
	assert_managed(100, true);
}

static void test_silence(void **state)
{
	(void)state;
	run_all(0.5);
	leased_tid = 101;
	for (int i = 0; i < 59; i++)
		run_one(100, 100, 0.9);
	assert_managed(102, true);
	run_one(100, 100, 0.9);
	run_one(100, 100, 0.9);
	assert_managed(102, false);
	assert_managed(101, true); /* it holds a lease */
	assert_managed(100, true);
	assert_managed(200, false);
	assert_int_equal(nm_roster_counts(roster).processes_known, 1);
}

/* ---- given back ---- */

static void test_foreign(void **state)
{
	(void)state;
	run_all(0.5);
	nm_roster_give_back(roster, 101);
	nm_roster_give_back(roster, 999);
	assert_managed(101, false);
	assert_managed(102, true);
	for (int i = 0; i < 15; i++)
		run_all(0.5);
	assert_managed(101, false);
	/* However long it is silent, and through a pause. */
	run_none(70);
	nm_roster_free(roster);
	open_roster();
	run_all(0.5);
	assert_managed(101, false);
	assert_managed(102, true);
	/* But the number's next owner is another one. */
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

/* A release is for one process, not for its number. */
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

/* Released before it was ever worth a look. */
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

/* ---- when /proc cannot be read now ---- */

static void test_no_descriptors(void **state)
{
	(void)state;
	run_all(0.5);
	assert_int_equal(nm_roster_release(roster, 200), 0);
	run_none(10);
	fake_fail(fake, FAKE_OPEN, 1, 100, EMFILE);
	run_all(0.5);
	fake_calm(fake);
	/* What is known stays known. */
	assert_managed(101, true);
	assert_managed(200, false);
	run_all(0.5);
	assert_managed(101, true);
	assert_managed(200, false);
	assert_int_equal(nm_roster_counts(roster).adopted, 4);
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

/* ---- the rest ---- */

static void test_bar(void **state)
{
	(void)state;
	run_all(0.5);
	nm_roster_bar(roster, 101, 77);
	nm_roster_bar(roster, 999, 77);
	assert_int_equal(member(101)->barred_until, 77);
	assert_int_equal(member(102)->barred_until, 0);
	run_all(0.5);
	assert_int_equal(member(101)->barred_until, 77);
}

static void test_new_topology(void **state)
{
	struct nm_topology *flat = machine_topology(1, 8);
	(void)state;
	run_all(0.5);
	nm_roster_configure(roster, flat, config);
	run_all(0.5);
	assert_managed(100, false); /* one node leaves no choice */
	nm_roster_configure(roster, topology, config);
	run_all(0.5);
	assert_managed(100, true);
	nm_topology_free(flat);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_adoption),
		TEST(test_age),
		TEST(test_too_idle),
		TEST(test_idle_is_not_read),
		TEST(test_no_flicker),
		TEST(test_too_small),
		TEST(test_young_grows),
		TEST(test_configured_size),
		TEST(test_unknown_cpu_share),
		TEST(test_vanished),
		TEST(test_include_by_command),
		TEST(test_exclude_wins),
		TEST(test_by_unit),
		TEST(test_by_user),
		TEST(test_hostile_name),
		TEST(test_rename),
		TEST(test_kernel_threads),
		TEST(test_realtime_threads),
		TEST(test_ourselves),
		TEST(test_pinned),
		TEST(test_unrestricted_in_cpuset),
		TEST(test_inherited),
		TEST(test_leased),
		TEST(test_recheck),
		TEST(test_exit),
		TEST(test_churn),
		TEST(test_spawn),
		TEST(test_exec),
		TEST(test_reused_thread_number),
		TEST(test_reused_thread_number_unseen),
		TEST(test_number_moves_to_other_process),
		TEST(test_reused_process_number_unseen),
		TEST(test_reused_process_number_after_exec),
		TEST(test_record_newer_than_tick),
		TEST(test_silence),
		TEST(test_foreign),
		TEST(test_release),
		TEST(test_released_number_reused),
		TEST(test_release_of_the_idle),
		TEST(test_no_descriptors),
		TEST(test_any_call_fails),
		TEST(test_bar),
		TEST(test_new_topology),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
