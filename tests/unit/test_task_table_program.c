/* SPDX-License-Identifier: MIT */
/* The program of a process whose exclusion depends on it is queried once, and nothing waits for the
 * answer. */
#define SET_UP begin
#define TEAR_DOWN end
#include "../support/test.h"

#include <sched.h>

#include "config/exclusions.h"
#include "task_table_words.h"

static int begin(void **state)
{
	fake_asked.hangs = false;
	fake_asked.program = 0; /* one that is not excluded */
	int r = set_up(state);
	fake_get(fake, 100)->ns_pid = fake_get(fake, 200)->ns_pid = 1;
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

/* The number of the program; -1: awaited; -2: unreadable. */
static int program_of(uint32_t pid)
{
	const struct nm_process *process = nm_tasks_process(tasks, pid);
	return process->program_state == NM_PROGRAM_READ	 ? (int)process->program
	       : process->program_state == NM_PROGRAM_UNREADABLE ? -2
								 : -1;
}

QUANTITY(program, program_of(U(0)))
NAMES(program, {"computes", 0}, {"awaited", -1}, {"unreadable", -2})
QUANTITY(reaper, nm_excluded_program_in("/usr/bin/tini"))
KNOB(answer, fake_asked.program)
KNOB(hangs, fake_asked.hangs)
QUANTITY(queries, fake_asked.tickets)
QUANTITY(open_queries, fake_asked.open)
/* PID 1 of a container, whose exclusion depends on its program. */
KNOB(first_of_container, fake_get(fake, U(0))->ns_pid)

SCRIPT(each_program_is_asked_once,
       "keep n = queries; run 0.5; program 100 = computes; program 200 = computes",
       "keep tini = reaper; set answer = tini; run 0.5 100; program 100 = computes; queries = n+2")

SCRIPT(unmanaged_processes_are_not_queried, "keep n = queries; run 0.0001; queries = n")

SCRIPT(programs_that_decide_nothing_are_not_queried,
       "keep n = queries; set first_of_container 200 = 0; run 0.5 100; program 200 = awaited",
       "queries = n+1")

SCRIPT(a_new_program_is_queried,
       "run 0.5; keep tini = reaper; set answer = tini; exec 101; set first_of_container 100 = 1",
       "drain; keep n = queries; run 0.5 5; program 100 = tini; queries = n+1")

/* The record of its exec was lost; its new name shows it when it is read again. */
SCRIPT(a_new_name_means_a_new_program,
       "run 0.5; keep tini = reaper; set answer = tini; name 100 java; run 0.5 75",
       "program 100 = tini; program 200 = computes")

WORD(next_name)
{
	static unsigned number;
	const struct nm_task_event renamed = {.kind = NM_TASK_COMM, .pid = 100, .tid = 100};
	(void)snprintf(fake_get(fake, 100)->comm, 16, "name%u", number++);
	nm_tasks_task_event(tasks, &renamed, fake->now_ns);
}

/* A program may change its name all the time, but what is known stays until the next query. */
SCRIPT(name_changes_are_checked_once_a_minute, "run 0.5; keep n = queries",
       "each 300: next_name; run 0.5; program 100 = computes", "queries in n+2..n+5")

/* At increasing intervals, then once a minute. */
/* SECURITY: quota */
SCRIPT(an_unanswered_query_is_soon_repeated,
       "set hangs = 1; run 0.5; program 100 < 0; run 0.5 20; program 100 < 0; run 0.5 300",
       "keep late = queries; run 0.5 120; queries in late+1..late+6; set hangs = 0",
       "set answer = EALREADY; run 0.5 70; program 100 < 0; set answer = 0; run 0.5 70",
       "program 100 = computes")

SCRIPT(an_unreadable_program_is_queried_again,
       "set answer = EPERM; run 0.5; keep n = queries; run 0.5 60; program 100 = unreadable",
       "set answer = 0; run 0.5 62; program 100 = computes; queries in n+2..n+4")

WORD(twenty_containers)
{
	for (uint32_t pid = 300; pid < 320; pid++)
		fake_process(fake, pid, 1)->ns_pid = 1;
	fake_sleep(fake, 60000);
}

ACTION(in_group, snprintf(fake_get(fake, U(0))->cgroup, FAKE_CGROUP_BYTES, "%s", step->word[1]))

WORD(last_are_read)
{
	for (uint32_t pid = 308; pid < 320; pid++)
		if (program_of(pid) != 0)
			script_fail(step, "found process %u: %d", pid, program_of(pid));
}

/* For any number of processes, one domain has at most four of eight queries at a time. */
/* SECURITY: quota */
SCRIPT(queries_in_progress_are_limited,
       "twenty_containers; keep n = queries; set hangs = 1; run 0.5; open_queries = 4; run 0.5",
       "queries = n+4; in_group 318 /docker/1f; in_group 319 /docker/1f; run 0.5 25",
       "open_queries in 4..6; set hangs = 0; run 0.5 250; last_are_read")

/* The query about the former owner of a reused number is cancelled. */
SCRIPT(the_end_of_a_process_cancels_its_query,
       "set hangs = 1; run 0.5; open_queries = 2; kill 200; fork 100 200; drain; open_queries = 1")

/* end() checks that none is left. */
SCRIPT(the_table_closes_its_queries, "set hangs = 1; run 0.5; open_queries = 2")

RUN_TESTS()
