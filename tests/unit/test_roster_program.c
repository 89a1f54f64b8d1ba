/* SPDX-License-Identifier: MIT */
/* The program of a process whose exclusion depends on it is queried once, and nothing waits for the
 * answer. */
#define SET_UP begin
#define TEAR_DOWN end
#include "../support/test.h"

#include "config/exclusions.h"
#include "roster_fixture.h"

#define COMPUTES 0 /* a program that is not excluded */

static unsigned reaper(void)
{
	return nm_excluded_program_in("/usr/bin/tini");
}

static enum nm_program_state state_of(uint32_t pid)
{
	return nm_roster_process(roster, pid)->program_state;
}

static void assert_program(uint32_t pid, unsigned program)
{
	assert_int_equal(state_of(pid), NM_PROGRAM_READ);
	assert_int_equal(nm_roster_process(roster, pid)->program, program);
}

/* PID 1 of a container, whose exclusion depends on its program. */
static void make_first(uint32_t pid)
{
	fake_get(fake, pid)->ns_pid = 1;
}

static int begin(void **state)
{
	fake_asked.hangs = false;
	fake_asked.program = COMPUTES;
	int r = set_up(state);
	make_first(100);
	make_first(200);
	return r;
}

/* Checks that no query stays open, answered or not. */
static int end(void **state)
{
	fake_asked.hangs = false;
	int r = tear_down(state);
	assert_int_equal(fake_asked.open, 0);
	return r;
}

TEST(each_program_is_asked_once)
{
	uint64_t before = fake_asked.tickets;
	run_all(0.5);
	assert_program(100, COMPUTES);
	assert_program(200, COMPUTES);
	fake_asked.program = (int)reaper();
	for (unsigned i = 0; i < 100; i++)
		run_all(0.5);
	assert_program(100, COMPUTES);
	assert_int_equal(fake_asked.tickets - before, 2);
}

TEST(unmanaged_processes_are_not_queried)
{
	uint64_t before = fake_asked.tickets;
	run_all(0.0001);
	assert_int_equal(fake_asked.tickets, before);
}

TEST(programs_that_decide_nothing_are_not_queried)
{
	uint64_t before = fake_asked.tickets;
	fake_get(fake, 200)->ns_pid = 0;
	for (unsigned i = 0; i < 100; i++)
		run_all(0.5);
	assert_int_equal(state_of(200), NM_PROGRAM_AWAITED);
	assert_int_equal(fake_asked.tickets - before, 1);
}

TEST(a_new_program_is_queried)
{
	run_all(0.5);
	fake_asked.program = (int)reaper();
	fake_exec(fake, 101);
	make_first(100);
	drain();
	uint64_t asked = fake_asked.tickets;
	for (unsigned i = 0; i < 5; i++)
		run_all(0.5);
	assert_program(100, reaper());
	assert_int_equal(fake_asked.tickets - asked, 1);
}

/* The record of its exec was lost; its new name shows it when it is read again. */
TEST(a_new_name_means_a_new_program)
{
	run_all(0.5);
	fake_asked.program = (int)reaper();
	(void)snprintf(fake_get(fake, 100)->comm, sizeof(fake_get(fake, 100)->comm), "java");
	for (unsigned i = 0; i < 75; i++)
		run_all(0.5);
	assert_program(100, reaper());
	assert_program(200, COMPUTES);
}

/* A program may change its name all the time, but what is known stays until the next query. */
TEST(name_changes_are_checked_once_a_minute)
{
	run_all(0.5);
	uint64_t before = fake_asked.tickets;
	for (unsigned i = 0; i < 300; i++) {
		struct fake_thread *thread = fake_get(fake, 100);
		const struct nm_task_event renamed = {.kind = NM_TASK_COMM, .pid = 100, .tid = 100};
		(void)snprintf(thread->comm, sizeof(thread->comm), "name%u", i);
		nm_roster_task_event(roster, &renamed, fake->now_ns);
		run_all(0.5);
		assert_program(100, COMPUTES);
	}
	assert_in_range(fake_asked.tickets - before, 2, 5);
}

/* SECURITY: quota */
TEST(an_unanswered_query_is_soon_repeated)
{
	fake_asked.hangs = true;
	run_all(0.5);
	assert_int_not_equal(state_of(100), NM_PROGRAM_READ);
	for (unsigned i = 0; i < 20; i++)
		run_all(0.5);
	assert_int_not_equal(state_of(100), NM_PROGRAM_READ);
	for (unsigned i = 0; i < 300; i++) /* at increasing intervals, then once a minute */
		run_all(0.5);
	uint64_t late = fake_asked.tickets;
	for (unsigned i = 0; i < 120; i++)
		run_all(0.5);
	assert_in_range(fake_asked.tickets - late, 1, 6);
	fake_asked.hangs = false;
	fake_asked.program = -EALREADY;
	for (unsigned i = 0; i < 70; i++)
		run_all(0.5);
	assert_int_not_equal(state_of(100), NM_PROGRAM_READ);
	fake_asked.program = COMPUTES;
	for (unsigned i = 0; i < 70; i++)
		run_all(0.5);
	assert_program(100, COMPUTES);
}

TEST(an_unreadable_program_is_queried_again)
{
	fake_asked.program = -EPERM;
	run_all(0.5);
	uint64_t asked = fake_asked.tickets;
	for (unsigned i = 0; i < 60; i++)
		run_all(0.5);
	assert_int_equal(state_of(100), NM_PROGRAM_UNREADABLE);
	fake_asked.program = COMPUTES;
	for (unsigned i = 0; i < 62; i++)
		run_all(0.5);
	assert_program(100, COMPUTES);
	assert_in_range(fake_asked.tickets - asked, 2, 4);
}

/* For any number of processes, one domain has at most four of eight queries at a time. */
/* SECURITY: quota */
TEST(queries_in_progress_are_limited)
{
	for (uint32_t pid = 300; pid < 320; pid++) {
		fake_process(fake, pid, 1);
		make_first(pid);
	}
	fake_sleep(fake, 60000);
	uint64_t before = fake_asked.tickets;
	fake_asked.hangs = true;
	run_all(0.5);
	assert_int_equal(fake_asked.open, 4);
	run_all(0.5);
	assert_int_equal(fake_asked.tickets - before, 4);
	for (uint32_t pid = 318; pid < 320; pid++)
		snprintf(fake_get(fake, pid)->cgroup, sizeof(fake_get(fake, pid)->cgroup),
			 "/docker/1f");
	for (unsigned i = 0; i < 25; i++)
		run_all(0.5);
	assert_in_range(fake_asked.open, 4, 6);
	fake_asked.hangs = false;
	for (unsigned i = 0; i < 250; i++)
		run_all(0.5);
	for (uint32_t pid = 308; pid < 320; pid++)
		assert_program(pid, COMPUTES);
}

/* The query about the former owner of a reused number is cancelled. */
TEST(the_end_of_a_process_cancels_its_query)
{
	fake_asked.hangs = true;
	run_all(0.5);
	assert_int_equal(fake_asked.open, 2);
	fake_kill(fake, 200);
	fake_fork(fake, 100, 200);
	drain();
	assert_int_equal(fake_asked.open, 1);
}

/* end() checks that none is left. */
TEST(the_roster_closes_its_queries)
{
	fake_asked.hangs = true;
	run_all(0.5);
	assert_int_equal(fake_asked.open, 2);
}

RUN_TESTS()
