/* SPDX-License-Identifier: MIT */
/* The runtime of a program is queried once, and nothing waits for the answer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "roster_fixture.h"

static enum nm_runtime runtime_of(uint32_t pid)
{
	return member(pid)->process->runtime;
}

static int begin(void **state)
{
	fake_asked.hangs = false;
	fake_asked.runtime = NM_RUNTIME_GO;
	return set_up(state);
}

/* Checks that no query stays open, answered or not. */
static int end(void **state)
{
	fake_asked.hangs = false;
	int r = tear_down(state);
	assert_int_equal(fake_asked.open, 0);
	return r;
}

static void each_program_is_asked_once(void **state)
{
	(void)state;
	uint64_t before = fake_asked.tickets;
	run_all(0.5);
	assert_int_equal(runtime_of(100), NM_RUNTIME_GO);
	assert_int_equal(runtime_of(200), NM_RUNTIME_GO);
	fake_asked.runtime = NM_RUNTIME_NONE;
	for (unsigned i = 0; i < 100; i++)
		run_all(0.5);
	assert_int_equal(runtime_of(100), NM_RUNTIME_GO);
	assert_int_equal(fake_asked.tickets - before, 2);
}

static void unmanaged_processes_are_not_queried(void **state)
{
	(void)state;
	uint64_t before = fake_asked.tickets;
	run_all(0.0001);
	assert_int_equal(fake_asked.tickets, before);
}

/* The former program may have been a shell. */
static void a_new_program_is_queried_after_its_start(void **state)
{
	(void)state;
	run_all(0.5);
	fake_asked.runtime = NM_RUNTIME_JVM;
	fake_sleep(fake, 100);
	fake_exec(fake, 101);
	drain();
	uint64_t asked = fake_asked.tickets;
	fake->now_ns -= 700 * NM_NSEC_PER_MSEC; /* the interval ends 300 after it */
	run_all(0.5);
	assert_int_equal(runtime_of(100), NM_RUNTIME_AWAITED);
	assert_int_equal(fake_asked.tickets, asked);
	for (unsigned i = 0; runtime_of(100) == NM_RUNTIME_AWAITED && i < 5; i++)
		run_all(0.5);
	assert_int_equal(runtime_of(100), NM_RUNTIME_JVM);
	assert_int_equal(fake_asked.tickets - asked, 1);
}

/* It has loaded its runtime by then, so it is known sooner. */
static void a_new_program_with_threads_is_queried_at_once(void **state)
{
	(void)state;
	run_all(0.5);
	fake_asked.runtime = NM_RUNTIME_JVM;
	fake_sleep(fake, 100);
	fake_exec(fake, 101);
	fake_clone(fake, 100, 150);
	drain();
	fake->now_ns -= 700 * NM_NSEC_PER_MSEC; /* the interval ends 300 after it */
	run_all(0.5);
	assert_int_equal(runtime_of(100), NM_RUNTIME_JVM);
}

/* The record of its exec was lost; its new name shows it when it is read again. */
static void a_new_name_means_a_new_program(void **state)
{
	(void)state;
	run_all(0.5);
	fake_asked.runtime = NM_RUNTIME_JVM;
	(void)snprintf(fake_get(fake, 100)->comm, sizeof(fake_get(fake, 100)->comm), "java");
	for (unsigned i = 0; i < 75; i++)
		run_all(0.5);
	assert_int_equal(runtime_of(100), NM_RUNTIME_JVM);
	assert_int_equal(runtime_of(200), NM_RUNTIME_GO);
}

/* A program may change its name all the time, but keeps its known runtime until the next query. */
static void name_changes_are_checked_once_a_minute(void **state)
{
	(void)state;
	run_all(0.5);
	uint64_t before = fake_asked.tickets;
	for (unsigned i = 0; i < 300; i++) {
		struct fake_thread *thread = fake_get(fake, 100);
		const struct nm_task_event renamed = {
			.kind = NM_TASK_COMM, .pid = 100, .tid = 100};
		(void)snprintf(thread->comm, sizeof(thread->comm), "name%u", i);
		nm_roster_task_event(roster, &renamed, fake->now_ns);
		run_all(0.5);
		assert_int_equal(runtime_of(100), NM_RUNTIME_GO);
	}
	assert_in_range(fake_asked.tickets - before, 2, 5);
}

/* SECURITY: quota */
static void an_unanswered_query_is_soon_repeated(void **state)
{
	(void)state;
	fake_asked.hangs = true;
	run_all(0.5);
	assert_int_equal(runtime_of(100), NM_RUNTIME_AWAITED);
	for (unsigned i = 0; i < 20; i++)
		run_all(0.5);
	assert_int_equal(runtime_of(100), NM_RUNTIME_AWAITED);
	for (unsigned i = 0; i < 300; i++) /* at increasing intervals, then once a minute */
		run_all(0.5);
	uint64_t late = fake_asked.tickets;
	for (unsigned i = 0; i < 120; i++)
		run_all(0.5);
	assert_in_range(fake_asked.tickets - late, 1, 6);
	fake_asked.hangs = false;
	fake_asked.runtime = -EALREADY;
	for (unsigned i = 0; i < 70; i++)
		run_all(0.5);
	assert_int_equal(runtime_of(100), NM_RUNTIME_AWAITED);
	fake_asked.runtime = NM_RUNTIME_GO;
	for (unsigned i = 0; i < 70; i++)
		run_all(0.5);
	assert_int_equal(runtime_of(100), NM_RUNTIME_GO);
}

static void an_unknown_runtime_is_queried_again(void **state)
{
	(void)state;
	fake_asked.runtime = -EPERM;
	run_all(0.5);
	uint64_t asked = fake_asked.tickets;
	for (unsigned i = 0; i < 60; i++)
		run_all(0.5);
	assert_int_equal(runtime_of(100), NM_RUNTIME_UNKNOWN);
	fake_asked.runtime = NM_RUNTIME_NONE;
	for (unsigned i = 0; i < 62; i++)
		run_all(0.5);
	assert_int_equal(runtime_of(100), NM_RUNTIME_NONE);
	assert_in_range(fake_asked.tickets - asked, 2, 4);
}

/* For any number of processes, one domain has at most four of eight queries at a time. */
/* SECURITY: quota */
static void queries_in_progress_are_limited(void **state)
{
	(void)state;
	for (uint32_t pid = 300; pid < 320; pid++)
		fake_process(fake, pid, 1);
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
		assert_int_equal(runtime_of(pid), NM_RUNTIME_GO);
}

/* The query about the former owner of a reused number is cancelled. */
static void the_end_of_a_process_cancels_its_query(void **state)
{
	(void)state;
	fake_asked.hangs = true;
	run_all(0.5);
	assert_int_equal(fake_asked.open, 2);
	fake_kill(fake, 200);
	fake_fork(fake, 100, 200);
	drain();
	assert_int_equal(fake_asked.open, 1);
}

/* end() checks that none is left. */
static void the_roster_closes_its_queries(void **state)
{
	(void)state;
	fake_asked.hangs = true;
	run_all(0.5);
	assert_int_equal(fake_asked.open, 2);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(each_program_is_asked_once),
		TEST(unmanaged_processes_are_not_queried),
		TEST(a_new_program_is_queried_after_its_start),
		TEST(a_new_program_with_threads_is_queried_at_once),
		TEST(a_new_name_means_a_new_program),
		TEST(name_changes_are_checked_once_a_minute),
		TEST(an_unanswered_query_is_soon_repeated),
		TEST(an_unknown_runtime_is_queried_again),
		TEST(queries_in_progress_are_limited),
		TEST(the_end_of_a_process_cancels_its_query),
		TEST(the_roster_closes_its_queries),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
