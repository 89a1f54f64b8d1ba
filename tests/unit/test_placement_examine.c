/* SPDX-License-Identifier: MIT */
/* Policy "auto": new processes are examined one by one between intervals. */
#define SET_UP open_pages
#define TEAR_DOWN world_close
#include "../support/test.h"

#include <math.h>

#include "page_daemon_fixture.h"

static void begin_auto(void)
{
	world.daemon.config->threads.policy = NM_POLICY_AUTO;
	fake_sleep(world.fake, 60000);
	world.daemon.last_tick_ns = world.fake->now_ns;
	live_one();
	live_one();
}

static struct nm_home_state *placed_of(uint32_t pid)
{
	return nm_home_state_find(nm_placement_of(&world.daemon), pid);
}

/* Advances by 0.1 s as the loop does, without ending an interval. */
static void beat(void)
{
	spread_out();
	pass(nm_loop_wakeup_s(&world.daemon));
	nm_drain(&world.daemon);
	nm_loop_examine(&world.daemon);
}

static void report_event(enum nm_task_event_kind kind, uint32_t pid)
{
	const struct nm_task_event event = {
		.kind = kind, .pid = pid, .tid = pid, .parent_pid = 1, .parent_tid = 1};
	nm_home_stage_task_event(&world.daemon, &event, world.fake->now_ns);
}

static struct worker *add_young_process(uint32_t pid, int cpu, unsigned memory)
{
	struct worker *worker = add_worker(pid, cpu, memory);
	fake_get(world.fake, worker->tid)->start_ticks = world.fake->now_ns / 10000000;
	fake_get(world.fake, worker->tid)->rss_kb = 8 * 1024;
	return worker;
}

/* Four processes of two threads, each on two nodes, so that the machine is full: all start now. */
static void begin_young_processes(void)
{
	begin_auto();
	for (unsigned i = 0; i < 4; i++) {
		add_young_process(1000 + 100 * i, (int)i, node_of_cpu((int)i));
		add_young_process(1000 + 100 * i, (int)i + 4, node_of_cpu((int)i));
		report_event(NM_TASK_EXEC, 1000 + 100 * i);
	}
}

/* A home need not wait for the end of the interval; a thread that has just created another one is
 * moved later. */
TEST(young_processes_are_gathered)
{
	begin_young_processes();
	uint64_t intervals = world.daemon.tally.intervals;
	beat();
	beat();
	unsigned homes = 0;
	for (unsigned i = 0; i < 4; i++) {
		const struct nm_home_state *home_state = placed_of(1000 + 100 * i);
		assert_non_null(home_state);
		assert_in_range(home_state->home, 0, NODES - 1);
		homes |= 1U << home_state->home;
	}
	assert_int_equal(homes, 0xf);
	assert_int_equal(world.daemon.tally.intervals, intervals);
	live(20);
	for (size_t i = 0; i < 8; i++)
		assert_int_equal(node_of(&world.workers[i]),
				 placed_of(1000 + 100 * (uint32_t)(i / 2))->home);
}

static void begin_young_pair(void)
{
	add_young_process(1000, 0, 0);
	add_young_process(1000, 1, 0);
	report_event(NM_TASK_EXEC, 1000);
}

/* The number of calls for a process that stays does not depend on the number of others. */
static unsigned calls_of_one(unsigned others)
{
	for (unsigned i = 0; i < others; i++)
		add_worker(3000 + 100 * i, (int)(i % 6) + 2, node_of_cpu((int)(i % 6) + 2));
	begin_auto();
	begin_young_pair();
	unsigned before = world.fake->calls[FAKE_OPS];
	beat();
	assert_non_null(placed_of(1000));
	return world.fake->calls[FAKE_OPS] - before;
}

TEST(the_cost_of_an_examination_is_independent_of_others)
{
	unsigned alone = calls_of_one(0);
	assert_int_equal(world_close(state), 0);
	assert_int_equal(world_open(state), 0);
	unsigned beside_many = calls_of_one(12);
	assert_in_range(alone, 1, 60);
	assert_true(beside_many <= alone);
}

/* The times of its threads suffice to see that a process sleeps. */
TEST(an_idle_process_costs_less)
{
	unsigned busy = calls_of_one(0);
	assert_int_equal(world_close(state), 0);
	assert_int_equal(world_open(state), 0);
	begin_auto();
	begin_young_pair();
	unsigned before = world.fake->calls[FAKE_OPS];
	fake_sleep(world.fake, 200); /* without having run */
	nm_loop_examine(&world.daemon);
	assert_in_range(world.fake->calls[FAKE_OPS] - before, 1, busy / 4);
	assert_null(placed_of(1000));
}

/* Each look at a compiler would cost more than it gains: only the number of threads is read. */
TEST(a_process_of_one_thread_is_examined_later)
{
	begin_auto();
	add_young_process(1000, 0, 0);
	report_event(NM_TASK_EXEC, 1000);
	unsigned before = world.fake->calls[FAKE_OPS];
	for (unsigned i = 0; i < 4; i++)
		beat();
	assert_in_range(world.fake->calls[FAKE_OPS] - before, 1, 8);
	assert_null(placed_of(1000));
	for (unsigned i = 0; i < 4; i++)
		beat();
	assert_non_null(placed_of(1000));
}

TEST(its_second_thread_is_noticed)
{
	begin_auto();
	add_young_process(1000, 0, 0);
	report_event(NM_TASK_EXEC, 1000);
	beat();
	add_young_process(1000, 1, 0);
	const struct nm_task_event thread = {
		.kind = NM_TASK_FORK, .pid = 1000, .tid = 1001, .parent_pid = 1000};
	nm_home_stage_task_event(&world.daemon, &thread, world.fake->now_ns);
	assert_null(placed_of(1000));
	beat();
	assert_non_null(placed_of(1000));
}

/* Gives a home to a process that has had one thread, far from its memory, for a long time. */
static void begin_alone(void)
{
	begin_auto();
	add_worker(1000, 0, 1);
	live(150);
	assert_true(placed_of(1000)->home >= 0);
	assert_int_equal(nm_assignments_count(world.daemon.pipeline.assignments), 1);
}

/* Threads on the other CPUs, which use the memory there. */
static void add_threads(void)
{
	for (int cpu = 1; cpu < CPUS; cpu++)
		add_worker(1000, cpu, node_of_cpu(cpu));
}

static bool all_where_created(void)
{
	for (size_t i = 0; i < world.nr_workers; i++)
		if (node_of(&world.workers[i]) != node_of_cpu((int)i))
			return false;
	return true;
}

/* The others touch their memory where it runs. */
TEST(a_home_for_one_thread_ends_when_others_are_created)
{
	begin_alone();
	add_threads();
	nm_drain(&world.daemon);
	assert_int_equal(nm_assignments_count(world.daemon.pipeline.assignments), 0);
	beat();
	assert_int_equal(placed_of(1000)->home, -1);
	assert_true(all_where_created());
}

/* Until they are measured, which may be late, it holds nothing. */
TEST(a_suspended_home_holds_nothing)
{
	begin_alone();
	struct nm_placement *placement = nm_placement_of(&world.daemon);
	add_threads();
	placement->budget_s = -1000;
	for (unsigned i = 0; i < 30; i++)
		beat();
	assert_true(placed_of(1000)->home >= 0);
	assert_int_equal(nm_assignments_count(world.daemon.pipeline.assignments), 0);
	live_one();
	assert_int_equal(placed_of(1000)->home, -1);
	assert_true(all_where_created());
}

/* The interval has been long, and the threads have run in a small part of it. */
TEST(threads_that_have_just_begun_count_in_full)
{
	begin_alone();
	nm_placement_of(&world.daemon)->budget_s = -1000;
	for (unsigned i = 0; i < 39; i++)
		beat();
	add_threads();
	beat();
	live_one();
	assert_int_equal(placed_of(1000)->home, -1);
}

/* It is held again after a while. */
TEST(a_home_stays_if_the_new_thread_is_idle)
{
	begin_alone();
	int home = placed_of(1000)->home;
	fake_clone(world.fake, 1000, 1999);
	nm_drain(&world.daemon);
	assert_int_equal(nm_assignments_count(world.daemon.pipeline.assignments), 0);
	live(150);
	assert_int_equal(placed_of(1000)->home, home);
	assert_int_equal(placed_of(1000)->decision, 1);
	assert_int_equal(nm_assignments_count(world.daemon.pipeline.assignments), 1);
}

/* A process that ends sooner is never examined, and its cost is not charged. */
TEST(short_lived_processes_cost_nothing)
{
	begin_young_processes();
	for (unsigned i = 0; i < 4; i++)
		report_event(NM_TASK_EXIT, 1000 + 100 * i);
	fake_sleep(world.fake, 100);
	unsigned before = world.fake->calls[FAKE_OPS];
	for (uint32_t pid = 5000; pid < 7000; pid++) {
		report_event(NM_TASK_FORK, pid);
		report_event(NM_TASK_EXEC, pid);
		report_event(NM_TASK_EXIT, pid);
	}
	fake_sleep(world.fake, 400);
	nm_loop_examine(&world.daemon);
	assert_int_equal(world.fake->calls[FAKE_OPS], before);
	assert_int_equal(nm_placement_of(&world.daemon)->nr_due, 0);
}

/* More than may be examined at once: the rest is left to the next interval, which starts in
 * time. */
TEST(a_fork_storm_does_not_delay_examination)
{
	begin_young_processes();
	for (uint32_t pid = 5000; pid < 7000; pid++)
		report_event(NM_TASK_FORK, pid);
	unsigned before = world.fake->calls[FAKE_LIST];
	beat();
	assert_true(world.fake->calls[FAKE_LIST] - before <= NM_EXAMINED_AT_ONCE);
	assert_int_equal(nm_placement_of(&world.daemon)->nr_due, 4);
	assert_true(placed_of(1000)->home >= 0);
	/* No remaining cost delays intervals. */
	world.daemon.pipeline.source->status.runs = false; /* it may be idle or not */
	world.fake->now_ns = world.daemon.last_tick_ns + NM_NSEC_PER_SEC;
	assert_false(nm_loop_interval_continues(&world.daemon));
}

/* Forks by this known process. */
static void storm_of(uint32_t parent, uint32_t first, uint32_t count)
{
	for (uint32_t pid = first; pid < first + count; pid++) {
		const struct nm_task_event event = {.kind = NM_TASK_FORK,
						    .pid = pid,
						    .tid = pid,
						    .parent_pid = parent,
						    .parent_tid = parent};
		nm_home_stage_task_event(&world.daemon, &event, world.fake->now_ns);
	}
}

/* Process 1000 of A and 1100 of B, which are known. */
static void begin_two_users(void)
{
	for (unsigned i = 0; i < 2; i++) {
		uint32_t pid = 1000 + 100 * i;
		add_worker(pid, (int)i, 0);
		fake_get(world.fake, pid)->uid = 1001 + i;
		fake_move(world.fake, pid, i ? "/b.service" : "/a.service");
	}
	begin_auto();
	assert_true(nm_roster_domain(world.daemon.pipeline.roster, 1000) !=
		    nm_roster_domain(world.daemon.pipeline.roster, 1100));
}

static unsigned nr_due_of(uint32_t pid)
{
	const struct nm_placement *placement = nm_placement_of(&world.daemon);
	const uint64_t tenant = nm_roster_domain(world.daemon.pipeline.roster, pid);
	unsigned count = 0;
	for (unsigned i = 0; i < placement->nr_due; i++)
		count += placement->due[i].domain == tenant;
	return count;
}

/* Forks of one user leave capacity to examine processes of others. */
/* SECURITY: quota */
TEST(a_fork_storm_leaves_room_for_others)
{
	begin_two_users();
	storm_of(1000, 5000, 2000);
	assert_in_range(nr_due_of(1000), 1, NM_EXAMINATIONS_MOST / 2);
	storm_of(1100, 8000, 10);
	assert_int_equal(nr_due_of(1100), 10);
}

/* The cost of processes of a domain is charged to it: processes of another one are examined
 * nevertheless, and first. */
/* SECURITY: quota */
TEST(a_fork_storm_is_charged_to_its_user)
{
	begin_two_users();
	struct nm_placement *placement = nm_placement_of(&world.daemon);
	uint64_t domain = nm_roster_domain(world.daemon.pipeline.roster, 1000);
	storm_of(1000, 5000, 20);
	storm_of(1100, 8000, 1);
	nm_quota_add(&placement->quota, domain, 1);
	placement->budget_s = -1000;
	uint64_t due_ns = world.fake->now_ns + NM_NSEC_PER_SEC;
	assert_int_equal(nm_home_stage_examinations_allowed(&world.daemon, due_ns), 1);
	struct nm_examination next;
	assert_true(nm_placement_next_due(placement, due_ns, &next));
	assert_int_equal(next.pid, 8000);
	assert_int_equal(nm_home_stage_examinations_allowed(&world.daemon, due_ns), 0);
}

/* Time that the loop spends on bus and forks does not reduce the budget of examinations. */
/* SECURITY: quota */
TEST(unrelated_loop_time_is_not_charged)
{
	begin_young_processes();
	uint64_t own_ns = nm_own_loop_ns(&world.daemon);
	world.daemon.costs.external_ns += own_ns;
	assert_true(nm_own_loop_ns(&world.daemon) < NM_NSEC_PER_SEC);
	uint64_t before_ns = world.daemon.costs.external_ns;
	for (uint32_t pid = 5000; pid < 5100; pid++) {
		fake_notify(world.fake, NM_TASK_FORK, pid, pid, 1, 1);
		fake_notify(world.fake, NM_TASK_EXIT, pid, pid, 1, 1);
	}
	nm_drain(&world.daemon);
	assert_true(world.daemon.costs.external_ns > before_ns);
}

/* Intervals resume after a while regardless of the cost, as the time owed is limited. */
TEST(examination_debts_expire)
{
	begin_young_processes();
	struct nm_placement *placement = nm_placement_of(&world.daemon);
	world.daemon.pipeline.source->status.runs = false; /* it may be idle or not */
	placement->budget_s = -1000;
	beat();
	assert_null(placed_of(1000)); /* not examined */
	world.fake->now_ns = world.daemon.last_tick_ns + 15 * NM_NSEC_PER_SEC;
	assert_true(nm_loop_interval_continues(&world.daemon));
	world.fake->now_ns = world.daemon.last_tick_ns + 16 * NM_NSEC_PER_SEC;
	assert_false(nm_loop_interval_continues(&world.daemon));
	live_one();
	assert_true(placement->budget_s > -1);
}

/* Only the end of an interval reduces the sampling. */
TEST(a_debt_by_sampling_does_not_stretch_the_interval)
{
	begin_young_processes();
	world.daemon.pipeline.source->status.runs = false;
	nm_placement_of(&world.daemon)->budget_s = -1000;
	world.fake->now_ns = world.daemon.last_tick_ns + 2 * NM_NSEC_PER_SEC;
	assert_true(nm_loop_interval_continues(&world.daemon));
	world.daemon.costs.drain_ns = NM_NSEC_PER_SEC;
	assert_false(nm_loop_interval_continues(&world.daemon));
	world.fake->now_ns = world.daemon.last_tick_ns + NM_NSEC_PER_SEC / 2;
	assert_true(nm_loop_interval_continues(&world.daemon));
}

/* The time between examinations doubles with age and is shorter while a process is young, also for
 * those of other users or unmanaged ones. */
TEST(examinations_become_rare)
{
	begin_young_processes();
	unsigned lists = 0;
	for (unsigned i = 0; i < 50; i++) {
		unsigned before = world.fake->calls[FAKE_LIST];
		beat();
		lists += world.fake->calls[FAKE_LIST] - before;
	}
	assert_in_range(lists, 4 * 6, 4 * 8);
	assert_int_equal(nm_placement_of(&world.daemon)->nr_due, 0);
}

/* A new thread in a process that has a home starts on any idle CPU. */
TEST(new_threads_of_a_placed_process_are_examined)
{
	begin_young_processes();
	for (unsigned i = 0; i < 50; i++)
		beat();
	const struct nm_task_event fork = {.kind = NM_TASK_FORK,
					   .pid = 1000,
					   .tid = 1999,
					   .parent_pid = 1000,
					   .parent_tid = 1000};
	assert_int_equal(nm_placement_of(&world.daemon)->nr_due, 0);
	nm_home_stage_task_event(&world.daemon, &fork, world.fake->now_ns);
	assert_int_equal(nm_placement_of(&world.daemon)->nr_due, 1);
}

/* An exited process needs no CPUs: the next one gets its node before the interval ends. */
TEST(exited_processes_free_their_capacity)
{
	begin_young_processes();
	for (unsigned i = 0; i < 4; i++)
		beat();
	live(3);
	const struct nm_home_state *home_state = placed_of(1000);
	int home = home_state->home;
	assert_true(home_state->input.demand_cpus > 1.5);
	double busy = nm_placement_of(&world.daemon)->nodes[home].busy_cpus;
	report_event(NM_TASK_EXIT, 1000);
	assert_true(home_state->input.demand_cpus == 0 && home_state->input.running == 0);
	assert_true(nm_placement_of(&world.daemon)->nodes[home].busy_cpus < busy - 1);
}

/* A new program in a listed process is examined at once, without the history of its predecessor. */
TEST(a_new_program_is_examined_again)
{
	begin_young_processes();
	for (unsigned i = 0; i < 4; i++)
		beat();
	assert_true(placed_of(1000)->home >= 0);
	uint64_t before_ns = placed_of(1000)->program_ns;
	fake_notify(world.fake, NM_TASK_COMM, 1000, 1000, 0, 0);
	fake_notify(world.fake, NM_TASK_EXEC, 1000, 1000, 0, 0);
	beat();
	beat();
	assert_true(placed_of(1000)->program_ns > before_ns);
	assert_true(placed_of(1000)->observed_s < 0.5);
}

/* Calls for four processes that are examined together, with the free memory of nodes known or
 * not. */
static unsigned calls_of_four(bool known)
{
	begin_young_processes();
	struct nm_placement *placement = nm_placement_of(&world.daemon);
	for (unsigned k = 0; k < NODES; k++)
		placement->available_bytes[k] = 1ULL << 40;
	nm_placement_of(&world.daemon)->available_ns =
		known ? world.fake->now_ns + NM_NSEC_PER_SEC / 10 : 0;
	unsigned before = world.fake->calls[FAKE_OPS];
	beat();
	assert_true(placed_of(1000)->home >= 0);
	return world.fake->calls[FAKE_OPS] - before;
}

/* A file per node and two watermarks are read once, not for each process. */
TEST(memory_is_read_once_for_all)
{
	unsigned known = calls_of_four(true);
	assert_int_equal(world_close(state), 0);
	assert_int_equal(world_open(state), 0);
	unsigned unknown = calls_of_four(false);
	assert_in_range(unknown - known, 1, 2 * NODES);
}

/* Pages of a process that has a home move with it as a whole, those of others individually. */
TEST(pages_of_placed_processes_move_as_a_whole)
{
	begin();
	begin_auto();
	for (unsigned i = 0; i < 2; i++)
		add_user(2000 + 1000 * i, 5 + (int)i, 100 * i, 100 * i + 100);
	live_one();
	live_one();
	const struct nm_page_stage *stage = world.daemon.pipeline.pages;
	assert_non_null(nm_page_process_of(&stage->processes, 2000));
	assert_non_null(nm_page_process_of(&stage->processes, 3000));
	placed_of(2000)->home = 1;
	live_one();
	assert_null(nm_page_process_of(&stage->processes, 2000));
	assert_non_null(nm_page_process_of(&stage->processes, 3000));
}

/* Rings are read some time after the events: the newest record shows the age of the others. */
TEST(fork_records_carry_their_own_time)
{
	begin_auto();
	uint64_t now_ns = world.fake->now_ns;
	fake_notify(world.fake, NM_TASK_EXEC, 1999, 1999, 0, 0);
	fake_notify(world.fake, NM_TASK_COMM, 1000, 1000, 0, 0);
	world.fake->events[1].time_ns += NM_NSEC_PER_SEC / 5;
	nm_drain(&world.daemon);
	const struct nm_placement *placement = nm_placement_of(&world.daemon);
	assert_int_equal(placement->nr_due, 1);
	assert_int_equal(placement->due[0].pid, 1999);
	assert_int_equal(placement->due[0].since_ns, now_ns - NM_NSEC_PER_SEC / 5);
}

/* While no process runs or starts, there are no examinations for a while. */
TEST(idle_machines_are_looked_at_seldom)
{
	struct nm_source *source = world.daemon.pipeline.source;
	source->status.run_sample_ns = 4e7;
	begin_auto();
	world.fake->now_ns = world.daemon.last_tick_ns + NM_NSEC_PER_SEC;
	assert_true(nm_loop_interval_continues(&world.daemon));
	source->status.counts.samples += 6;
	assert_false(nm_loop_interval_continues(&world.daemon));
	source->status.counts.samples -= 6;
	world.fake->now_ns = world.daemon.last_tick_ns + 4 * NM_NSEC_PER_SEC;
	assert_false(nm_loop_interval_continues(&world.daemon));
}

RUN_TESTS()
