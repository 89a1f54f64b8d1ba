/* SPDX-License-Identifier: MIT */
#define SET_UP open_snapshot
#define TEAR_DOWN close_snapshot
#include "../support/test.h"

#define SNAPSHOT_MACHINE 2, 2
#include "snapshot_words.h"

/* A letter for each thread: r for refused. */
static const char *show_refused(void)
{
	static char text[101];
	bool refused[100];
	memset(refused, true, sizeof(refused));
	nm_overcommit_refuse(take(), refused);
	for (size_t i = 0; i < machine->count; i++)
		text[i] = refused[i] ? 'r' : '.';
	text[machine->count] = '\0';
	return text;
}

static unsigned count_refused(void)
{
	unsigned count = 0;
	for (const char *at = show_refused(); *at; at++)
		count += *at == 'r';
	return count;
}

/* add 10 100 0.9: a thread of process 10 of 0.9 CPUs whose accesses all go to node 1 */
WORD(add)
{
	size_t i = machine_thread(machine, U(0), 0, -1);
	machine_touch(machine, i, 1, N(1));
	machine->sampled[i].stats.run_share = N(2);
}

/* loaded 6: six CPUs have other load */
WORD(loaded)
{
	for (unsigned cpu = 0; cpu < machine->topology->nr_cpus; cpu++)
		machine->busy[cpu] = cpu < U(0) ? 1 : 0;
}

TEXT(refused, show_refused())
QUANTITY(nr_refused, count_refused())

/* If all cores are busy, only siblings are available, on either node. */
SCRIPT(siblings_count_if_all_cores_are_busy,
       "machine 2 4 2; add 10 100 1; add 10 100 1; add 10 100 1; add 10 100 1",
       "loaded 8; nr_refused = 0; loaded 6; nr_refused = 1")

SCRIPT(processes_with_more_accesses_come_first,
       "add 10 100 1; add 20 80 1; add 20 80 1; refused = r..")

SCRIPT(within_a_process_threads_with_more_accesses_come_first,
       "add 10 50 1; add 10 70 1; add 10 60 1; refused = r..")

SCRIPT(ties_go_to_the_lower_pid_and_tid,
       "add 20 50 1; add 10 25 1; add 10 25 1; refused = r..; add 10 25 1; refused = r..r")

SCRIPT(remaining_capacity_goes_to_threads_that_fit,
       "add 10 100 0.9; add 20 90 0.9; add 30 80 0.9; add 40 70 0.2; refused = ..r.")

SCRIPT(unusable_cpus_are_no_capacity,
       "add 10 100 0.9; add 20 50 0.9; refused = ..; unusable 3; refused = .r")

SCRIPT(an_unknown_load_counts_as_a_whole_cpu,
       "add 10 100 nan; add 20 50 1.4; refused = ..; add 30 20 0.01; refused = ..r")

/* Of the CPUs of the node, 2 and 3, they have only one. */
SCRIPT(threads_bound_to_one_cpu_share_that_one,
       "add 10 100 0.9; add 20 90 0.9; allow 0 0-2; allow 1 0-2; refused = .r",
       "allow 1 0-1,3; refused = ..")

SCRIPT(free_threads_use_what_bound_threads_cannot,
       "add 10 100 0.9; add 20 90 0.9; add 30 80 0.9; allow 0 0-2; allow 1 0-2; refused = .r.")

/* Beyond the limit of sets, threads count for the whole node. */
TEST(many_sets_are_bounded)
{
	char line[64];
	run_script((const char *const[]){"machine 2 80", NULL});
	for (unsigned i = 0; i < 80; i++) {
		snprintf(line, sizeof(line), "add %u 100 1; allow %u %u", 10 + i, i, 80 + i);
		script_run_line(i + 1, line);
	}
	assert_int_equal(count_refused(), 0);
}

RUN_TESTS()
