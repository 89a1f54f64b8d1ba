/* SPDX-License-Identifier: MIT */
/* Policy "auto": new processes are examined one by one between intervals. */
#define SET_UP open_words
#define TEAR_DOWN world_close
#include "../support/test.h"

#include "daemon_words.h"

static enum nm_task_event_kind kind_of(const struct step *step)
{
	return step_has(step, "fork")	 ? NM_TASK_FORK
	       : step_has(step, "exec") ? NM_TASK_EXEC
	       : step_has(step, "exit") ? NM_TASK_EXIT
					 : NM_TASK_COMM;
}

/* event fork 5000-6999 of 1: as the kernel reports it, at once */
WORD(event)
{
	for (uint32_t pid = U(0); pid <= U(1); pid++) {
		const struct nm_task_event event = {.kind = kind_of(step),
						    .pid = pid,
						    .tid = pid,
						    .parent_pid = U(2),
						    .parent_tid = U(2)};
		nm_home_stage_task_event(&world.daemon, &event, world.fake->now_ns);
	}
}

/* notify fork 5000-5099: in a record, which is read later */
WORD(notify)
{
	for (uint32_t pid = U(0); pid <= U(1); pid++)
		fake_notify(world.fake, kind_of(step), pid, pid, 1, 1);
}

WORD(creates_thread)
{
	const struct nm_task_event event = {
		.kind = NM_TASK_FORK, .pid = U(0), .tid = U(1), .parent_pid = U(0)};
	nm_home_stage_task_event(&world.daemon, &event, world.fake->now_ns);
}

/* Starts now. */
WORD(young)
{
	struct fake_thread *thread = fake_get(world.fake, add_worker(U(0), (int)N(1), U(2))->tid);
	thread->start_ticks = world.fake->now_ns / 10000000;
	thread->rss_kb = 8 * 1024;
}

WORD(fresh_world)
{
	assert_int_equal(world_close(NULL), 0);
	assert_int_equal(open_words(NULL), 0);
}

/* The source does not sample: the machine may be idle or not. */
ACTION(no_source, world.daemon.pipeline.source->status.runs = false)

/* Seconds since the interval began. */
WORD(interval_lasts)
{
	world.fake->now_ns = world.daemon.last_tick_ns + (uint64_t)(N(0) * NM_NSEC_PER_SEC);
}

KNOB(drain_ns, world.daemon.costs.drain_ns)
KNOB(external_ns, world.daemon.costs.external_ns)
QUANTITY(own_loop_ns, nm_own_loop_ns(&world.daemon))
QUANTITY(program_ns, state_of(step)->program_ns)
QUANTITY(observed_s, state_of(step)->observed_s)
QUANTITY(running, state_of(step)->input.running)
QUANTITY(busy_cpus, nm_placement_of(&world.daemon.pipeline)->nodes[U(0)].busy_cpus)
KNOB(run_sample_ns, world.daemon.pipeline.source->status.run_sample_ns)
KNOB(samples, world.daemon.pipeline.source->status.counts.samples)

#define BEGIN "begin auto; run 2; "
#define YOUNG_PAIR "young 1000 cpu0 node0; young 1000 cpu1 node0; event exec 1000-1000 of 1"

/* Four processes of two threads, each on two nodes, so that the machine is full: all start now. */
#define YOUNG                                                                                      \
	BEGIN "young 1000 cpu0 node0; young 1000 cpu4 node0; event exec 1000-1000 of 1; "          \
	      "young 1100 cpu1 node0; young 1100 cpu5 node0; event exec 1100-1100 of 1; "          \
	      "young 1200 cpu2 node1; young 1200 cpu6 node1; event exec 1200-1200 of 1; "          \
	      "young 1300 cpu3 node1; young 1300 cpu7 node1; event exec 1300-1300 of 1; "

/* A home need not wait for the end of the interval; a thread that has just created another one is
 * moved later. */
SCRIPT(young_processes_are_gathered,
       YOUNG "keep before = intervals; beat 2; homes = 15; intervals = before; run 20; strays = 0")

WORD(twelve_others)
{
	for (unsigned i = 0; i < 12; i++)
		add_worker(3000 + 100 * i, (int)(i % 6) + 2, node_of_cpu((int)(i % 6) + 2));
}

/* The number of calls for a process that stays does not depend on the number of others. */
SCRIPT(the_cost_of_an_examination_is_independent_of_others,
       BEGIN YOUNG_PAIR "; count_calls; beat; known 1000 = 1; new_calls in 1..60",
       "keep alone = new_calls; fresh_world; twelve_others; " BEGIN YOUNG_PAIR,
       "count_calls; beat; known 1000 = 1; new_calls <= alone")

/* The times of its threads suffice to see that a process sleeps. */
SCRIPT(an_idle_process_costs_less,
       BEGIN YOUNG_PAIR "; count_calls; beat; known 1000 = 1; keep busy = new_calls",
       "fresh_world; " BEGIN YOUNG_PAIR "; count_calls; sleep_ms 200; examine",
       "new_calls in 1..busy*0.25; known 1000 = 0")

/* Each look at a compiler would cost more than it gains: only the number of threads is read. */
SCRIPT(a_process_of_one_thread_is_examined_later,
       BEGIN
       "young 1000 cpu0 node0; event exec 1000-1000 of 1; count_calls; beat 4; new_calls in 1..8",
       "known 1000 = 0; beat 4; known 1000 = 1")

SCRIPT(its_second_thread_is_noticed,
       BEGIN "young 1000 cpu0 node0; event exec 1000-1000 of 1; beat; young 1000 cpu1 node0",
       "creates_thread 1000 1001; known 1000 = 0; beat; known 1000 = 1")

/* ---- homes of one thread ---- */

/* Gives a home to a process that has had one thread, far from its memory, for a long time. */
#define ALONE BEGIN "thread 1000 cpu0 node1; run 150; home 1000 >= 0; assignments = 1; "

/* Threads on the other CPUs, which use the memory there. */
WORD(add_threads)
{
	for (int cpu = 1; cpu < CPUS; cpu++)
		add_worker(1000, cpu, node_of_cpu(cpu));
}

static unsigned count_moved(void)
{
	unsigned count = 0;
	for (size_t i = 0; i < world.nr_workers; i++)
		count += node_of(&world.workers[i]) != node_of_cpu((int)i);
	return count;
}

QUANTITY(moved_threads, count_moved())

/* The others touch their memory where it runs. */
SCRIPT(a_home_for_one_thread_ends_when_others_are_created,
       ALONE "add_threads; drain; assignments = 0; beat; home 1000 = none; moved_threads = 0")

/* Until they are measured, which may be late, it holds nothing. */
SCRIPT(a_suspended_home_holds_nothing,
       ALONE "add_threads; set budget_s = -1000; beat 30; home 1000 >= 0; assignments = 0; run 1",
       "home 1000 = none; moved_threads = 0")

/* The interval has been long, and the threads have run in a small part of it. */
SCRIPT(threads_that_have_just_begun_count_in_full,
       ALONE "set budget_s = -1000; beat 39; add_threads; beat; run 1; home 1000 = none")

/* It is held again after a while. */
SCRIPT(a_home_stays_if_the_new_thread_is_idle,
       ALONE "keep before = home 1000; idle_thread 1000 1999; drain; assignments = 0; run 150",
       "home 1000 = before; decision 1000 = 1; assignments = 1")

/* ---- many processes ---- */

/* A process that ends sooner is never examined, and its cost is not charged. */
SCRIPT(short_lived_processes_cost_nothing,
       YOUNG "event exit 1000-1300 of 1; sleep_ms 100; count_calls",
       "event fork 5000-6999 of 1; event exec 5000-6999 of 1; event exit 5000-6999 of 1",
       " sleep_ms 400; examine; new_calls = 0; due = 0")

QUANTITY(examined_at_once, NM_EXAMINED_AT_ONCE)

/* More than may be examined at once: the rest is left to the next interval, which starts in time:
 * no remaining cost delays intervals. */
SCRIPT(a_fork_storm_does_not_delay_examination,
       YOUNG "event fork 5000-6999 of 1; keep before = lists; beat; keep after = lists",
       "examined_at_once >= after-before; due = 4; home 1000 >= 0",
       "no_source; interval_lasts 1; continues = 0")

/* Process 1000 of A and 1100 of B, which are known. */
WORD(two_users)
{
	for (unsigned i = 0; i < 2; i++) {
		uint32_t pid = 1000 + 100 * i;
		add_worker(pid, (int)i, 0);
		fake_get(world.fake, pid)->uid = 1001 + i;
		fake_move(world.fake, pid, i ? "/b.service" : "/a.service");
	}
	begin_auto();
	live(2);
	assert_true(nm_tasks_domain(world.daemon.pipeline.tasks, 1000) !=
		    nm_tasks_domain(world.daemon.pipeline.tasks, 1100));
}

static unsigned nr_due_of(uint32_t pid)
{
	const struct nm_placement *placement = nm_placement_of(&world.daemon.pipeline);
	const uint64_t tenant = nm_tasks_domain(world.daemon.pipeline.tasks, pid);
	unsigned count = 0;
	for (unsigned i = 0; i < placement->nr_due; i++)
		count += placement->due[i].domain == tenant;
	return count;
}

QUANTITY(due_of, nr_due_of(U(0)))
QUANTITY(examinations_most, NM_EXAMINATIONS_MOST)

/* Forks of one user leave capacity to examine processes of others. */
/* SECURITY: quota */
SCRIPT(a_fork_storm_leaves_room_for_others,
       "two_users; event fork 5000-6999 of 1000; keep most = examinations_most",
       "due_of 1000 in 1..most*0.5; event fork 8000-8009 of 1100; due_of 1100 = 10")

WORD(charge)
{
	nm_quota_add(&nm_placement_of(&world.daemon.pipeline)->quota,
		     nm_tasks_domain(world.daemon.pipeline.tasks, U(0)), 1);
}

static uint64_t in_a_second(void)
{
	return world.fake->now_ns + NM_NSEC_PER_SEC;
}

static uint32_t take_next_due(void)
{
	struct nm_examination next = {0};
	(void)nm_placement_next_due(nm_placement_of(&world.daemon.pipeline), in_a_second(), &next);
	return next.pid;
}

QUANTITY(allowed, nm_home_stage_examinations_allowed(&world.daemon, in_a_second()))
QUANTITY(next_due, take_next_due())

/* The cost of processes of a domain is charged to it: processes of another one are examined
 * nevertheless, and first. */
/* SECURITY: quota */
SCRIPT(a_fork_storm_is_charged_to_its_user,
       "two_users; event fork 5000-5019 of 1000; event fork 8000-8000 of 1100; charge 1000",
       "set budget_s = -1000; allowed = 1; next_due = 8000; allowed = 0")

/* Time that the loop spends on bus and forks does not reduce the budget of examinations. */
/* SECURITY: quota */
SCRIPT(unrelated_loop_time_is_not_charged,
       YOUNG "keep own = own_loop_ns; set external_ns = own; own_loop_ns < 1e9",
       "keep before = external_ns; notify fork 5000-5099; notify exit 5000-5099; drain; "
       "external_ns > before")

/* Intervals resume after a while regardless of the cost, as the time owed is limited. */
SCRIPT(examination_debts_expire,
       YOUNG "no_source; set budget_s = -1000; beat; known 1000 = 0; interval_lasts 15",
       "continues = 1; interval_lasts 16; continues = 0; run 1; budget_s > -1")

/* Only the end of an interval reduces the sampling. */
SCRIPT(a_debt_by_sampling_does_not_stretch_the_interval,
       YOUNG "no_source; set budget_s = -1000; interval_lasts 2; continues = 1",
       "set drain_ns = 1e9; continues = 0; interval_lasts 0.5; continues = 1")

/* The time between examinations doubles with age and is shorter while a process is young, also for
 * those of other users or unmanaged ones. */
SCRIPT(examinations_become_rare,
       YOUNG "keep before = lists; beat 50; lists in before+24..before+32; due = 0")

/* A new thread in a process that has a home starts on any idle CPU. */
SCRIPT(new_threads_of_a_placed_process_are_examined,
       YOUNG "beat 50; due = 0; creates_thread 1000 1999; due = 1")

/* An exited process needs no CPUs: the next one gets its node before the interval ends. */
SCRIPT(exited_processes_free_their_capacity,
       YOUNG "beat 4; run 3; demand 1000 > 1.5; keep node = home 1000; keep busy = busy_cpus node",
       "event exit 1000-1000 of 1; demand 1000 = 0; running 1000 = 0; busy_cpus node < busy-1")

/* A new program in a listed process is examined at once, without the history of its predecessor. */
SCRIPT(a_new_program_is_examined_again,
       YOUNG "beat 4; home 1000 >= 0; keep before = program_ns 1000; notify comm 1000-1000; notify "
	     "exec 1000-1000; beat 2",
       "program_ns 1000 > before; observed_s 1000 < 0.5")

/* The free memory of nodes, known or not. */
WORD(known_memory)
{
	struct nm_placement *placement = nm_placement_of(&world.daemon.pipeline);
	for (unsigned k = 0; k < NODES; k++)
		placement->available_bytes[k] = 1ULL << 40;
	placement->available_ns = U(0) ? world.fake->now_ns + NM_NSEC_PER_SEC / 10 : 0;
}

/* A file per node and two watermarks are read once, not for each process. */
SCRIPT(memory_is_read_once_for_all,
       YOUNG "known_memory 1; count_calls; beat; home 1000 >= 0; keep known = new_calls",
       "fresh_world; " YOUNG "known_memory 0; count_calls; beat; home 1000 >= 0",
       "new_calls in known+1..known+8")

QUANTITY(pages_of, nm_page_process_of(&world.daemon.pipeline.pages->processes, U(0)) != NULL)

/* Pages of a process that has a home move with it as a whole, those of others individually. */
SCRIPT(pages_of_placed_processes_move_as_a_whole,
       "begin pages; begin auto; run 2; touch 2000 0-99 from cpu5; touch 3000 100-199 from cpu6",
       "run 2; pages_of 2000 = 1; pages_of 3000 = 1; set home 2000 = 1; run 1",
       "pages_of 2000 = 0; pages_of 3000 = 1")

/* Rings are read some time after the events: the newest record shows the age of the others. */
TEST(fork_records_carry_their_own_time)
{
	begin_auto();
	live(2);
	uint64_t now_ns = world.fake->now_ns;
	fake_notify(world.fake, NM_TASK_EXEC, 1999, 1999, 0, 0);
	fake_notify(world.fake, NM_TASK_COMM, 1000, 1000, 0, 0);
	world.fake->events[1].time_ns += NM_NSEC_PER_SEC / 5;
	nm_drain(&world.daemon);
	const struct nm_placement *placement = nm_placement_of(&world.daemon.pipeline);
	assert_int_equal(placement->nr_due, 1);
	assert_int_equal(placement->due[0].pid, 1999);
	assert_int_equal(placement->due[0].since_ns, now_ns - NM_NSEC_PER_SEC / 5);
}

/* While no process runs or starts, there are no examinations for a while. */
SCRIPT(idle_machines_are_looked_at_seldom,
       "set run_sample_ns = 4e7; " BEGIN "interval_lasts 1; continues = 1; keep none = samples",
       "set samples = none+6; continues = 0; set samples = none; interval_lasts 4; continues = 0")

RUN_TESTS()
