/* SPDX-License-Identifier: MIT */
#define SET_UP set_up
#define TEAR_DOWN tear_down
#include "../support/test.h"

#include "policy/policy.h"
#include "snapshot_words.h"

static void *record;

static int set_up(void **state)
{
	(void)open_snapshot(state);
	machine->config.threads.performance = NM_PERFORMANCE_INSTRUCTIONS;
	for (int i = 0; i < 3; i++)
		machine_thread(machine, 10, i, 1);
	record = nm_imar2_policy.open(machine->topology, 4096);
	return 0;
}

static int tear_down(void **state)
{
	nm_imar2_policy.close(record);
	return close_snapshot(state);
}

static void end_interval(void)
{
	nm_imar2_policy.follow(record, take(), &machine->config);
}

/* run 0 node2 50: the thread runs with this performance on the first CPU of the node in the next
 * interval */
WORD(run)
{
	machine_run_on(machine, U(0), (int)U(1) * 2);
	machine_perform(machine, U(0), N(2), N(2), 1, 20);
	machine->interval++;
	end_interval();
}

/* pass 59: 59 intervals pass; pass 0: the same interval again */
ACTION(pass, machine->interval += U(0), end_interval())

/* idle: an interval without samples */
WORD(idle)
{
	const uint32_t kinds = machine->kinds;
	machine->kinds = 0;
	for (size_t i = 0; i < 3; i++)
		machine->sampled[i].stats.run_share = 0;
	end_interval();
	assert_true(taken->by_locality);
	machine->kinds = kinds;
}

/* without_thread_0: the machine has only the others in this interval */
WORD(without_thread_0)
{
	struct nm_snapshot_input input = machine_input(machine);
	input.managed++;
	input.nr_managed--;
	nm_snapshot_free(taken);
	taken = NULL;
	assert_int_equal(nm_snapshot_build(&input, &taken), 0);
	nm_imar2_policy.follow(record, taken, &machine->config);
}

ACTION(reuse, machine->managed[U(0)].start_ticks++)
ACTION(adopt, machine->managed[U(0)].adopted_ns++)
ACTION(uncount, machine->kinds = 0)
KNOB(min_samples, machine->config.rules.min_samples)
KNOB(record_age, machine->config.rules.record_age)
KNOB(performance, machine->config.threads.performance)
NAMES(performance, {"latency", NM_PERFORMANCE_LATENCY},
      {"instructions", NM_PERFORMANCE_INSTRUCTIONS})
QUANTITY(known, nm_record_get(record, taken, &machine->config, U(0), (int)N(1)))

SCRIPT(the_state_is_initially_unknown,
       "metrics 0 nan nan 1 20; pass 0; known 0 node0 = nan; known 0 node1 = nan",
       "known 0 node2 = nan; known 0 node3 = nan")

SCRIPT(the_latest_record_of_each_node_is_kept,
       "run 0 node0 100; run 0 node0 120; run 0 node2 50; known 0 node0 = 120",
       "known 0 node2 = 50; known 0 node1 = nan; known 0 node3 = nan; known 1 node0 = nan")

SCRIPT(unmeasured_intervals_are_not_recorded,
       "run 0 node0 100; set min_samples = 101; run 0 node0 500; known 0 node0 = 100",
       "set min_samples = 10; set main_node_share 0 = 0.79; pass 1; known 0 node0 = 100",
       "set main_node_share 0 = 0.8; pass 0; known 0 node0 = 500")

SCRIPT(a_record_expires, "run 0 node0 100; run 0 node1 100; pass 59; known 0 node0 = 100; pass 1",
       "known 0 node0 = nan; known 0 node1 = 100; set record_age = 0; pass 1000000",
       "known 0 node0 = 100")

SCRIPT(a_reused_tid_is_a_different_thread,
       "run 0 node0 100; run 1 node0 100; reuse 0; run 0 node2 30; known 0 node0 = nan",
       "known 0 node2 = 30; known 1 node0 = 100")

/* After an exec the process starts again under the same numbers: the task table adopts it again. */
SCRIPT(a_new_program_is_another_thread,
       "run 1 node2 300; known 1 node2 = 300; adopt 1; run 1 node1 50; known 1 node2 = nan",
       "known 1 node1 = 50")

SCRIPT(another_thread_does_not_disturb_the_record,
       "run 1 node0 100; run 1 node2 70; without_thread_0; known 0 node0 = 100",
       "known 0 node2 = 70")

SCRIPT(a_different_metric_restarts_the_record,
       "run 0 node0 100; run 0 node1 200; set performance = latency; pass 0",
       "known 0 node0 = nan; known 0 node1 = 0.05; set performance = instructions",
       "run 0 node0 100; run 0 node1 200; uncount; pass 0; known 0 node0 = nan")

/* An idle interval has no samples, which does not change the metric of P. */
SCRIPT(an_idle_interval_keeps_the_record,
       "run 0 node0 100; run 0 node1 200; idle; run 0 node1 200; known 0 node0 = 100")

QUANTITY(compare, nm_record_compare(N(0), N(1), N(2)))

SCRIPT(equal_is_within_the_band,
       "compare 1.0501 1 0.05 = 1; compare 1.0499 1 0.05 = 0; compare 0.9501 1 0.05 = 0",
       "compare 0.9499 1 0.05 = -1; compare 1 1 0 = 0; compare 1.0000001 1 0 = 1",
       "compare 0.9999999 1 0 = -1; compare nan 1 0 = 0; compare 1 nan 0 = 0",
       "compare 0.1 0 0.05 = 1; compare 0 0 0.05 = 0")

RUN_TESTS()
