/* SPDX-License-Identifier: MIT */
#define SET_UP set_up
#define TEAR_DOWN tear_down
#include "../support/test.h"

#include "../support/interval.h"
#include "policy/policy.h"

static struct machine *machine;
static struct nm_snapshot *snapshot;
static void *record;

static int set_up(void **state)
{
	(void)state;
	machine = machine_new(4, 2);
	machine->config.threads.performance = NM_PERFORMANCE_INSTRUCTIONS;
	for (int i = 0; i < 3; i++)
		machine_thread(machine, 10, i, 1);
	record = nm_imar2_policy.open(machine->topology, 4096);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	nm_imar2_policy.close(record);
	nm_snapshot_free(snapshot);
	snapshot = NULL;
	machine_free(machine);
	return 0;
}

static void take(void)
{
	nm_snapshot_free(snapshot);
	snapshot = machine_snapshot(machine);
	assert_non_null(snapshot);
	nm_imar2_policy.follow(record, snapshot, &machine->config);
}

/* Thread i runs with this performance on the first CPU of the node; then the interval ends. */
static void run(size_t i, int node, double performance)
{
	machine_run_on(machine, i, node * 2);
	machine_perform(machine, i, performance, performance, 1, 20);
	machine->interval++;
	take();
}

static double known(uint32_t thread, int node)
{
	return nm_record_get(record, snapshot, &machine->config, thread, node);
}

TEST(the_state_is_initially_unknown)
{
	machine_perform(machine, 0, NAN, NAN, 1, 20);
	take();
	for (int node = 0; node < 4; node++)
		assert_true(isnan(known(0, node)));
}

TEST(the_latest_record_of_each_node_is_kept)
{
	run(0, 0, 100);
	run(0, 0, 120);
	run(0, 2, 50);
	assert_true(known(0, 0) == 120 && known(0, 2) == 50);
	assert_true(isnan(known(0, 1)) && isnan(known(0, 3)));
	assert_true(isnan(known(1, 0)));
}

TEST(unmeasured_intervals_are_not_recorded)
{
	run(0, 0, 100);
	machine->config.rules.min_samples = 101;
	run(0, 0, 500);
	assert_true(known(0, 0) == 100);
	machine->config.rules.min_samples = 10;
	machine->sampled[0].stats.main_node_share = 0.79;
	machine->interval++;
	take();
	assert_true(known(0, 0) == 100);
	machine->sampled[0].stats.main_node_share = 0.8;
	take();
	assert_true(known(0, 0) == 500);
}

TEST(a_record_expires)
{
	run(0, 0, 100);
	run(0, 1, 100);
	machine->interval += 59;
	take();
	assert_true(known(0, 0) == 100);
	machine->interval++;
	take();
	assert_true(isnan(known(0, 0)));
	assert_true(known(0, 1) == 100);
	machine->config.rules.record_age = 0;
	machine->interval += 1000000;
	take();
	assert_true(known(0, 0) == 100);
}

TEST(a_reused_tid_is_a_different_thread)
{
	run(0, 0, 100);
	run(1, 0, 100);
	machine->managed[0].start_ticks++;
	run(0, 2, 30);
	assert_true(isnan(known(0, 0)) && known(0, 2) == 30);
	assert_true(known(1, 0) == 100);
}

/* After an exec the process starts again under the same numbers: the task table adopts it again. */
TEST(a_new_program_is_another_thread)
{
	run(1, 2, 300);
	assert_true(known(1, 2) == 300);
	machine->managed[1].adopted_ns++;
	run(1, 1, 50);
	assert_true(isnan(known(1, 2)));
	assert_true(known(1, 1) == 50);
}

TEST(another_thread_does_not_disturb_the_record)
{
	run(1, 0, 100);
	run(1, 2, 70);
	struct nm_snapshot_input input = machine_input(machine);
	input.managed++;
	input.nr_managed--;
	nm_snapshot_free(snapshot);
	snapshot = NULL;
	assert_int_equal(nm_snapshot_build(&input, &snapshot), 0);
	nm_imar2_policy.follow(record, snapshot, &machine->config);
	assert_true(known(0, 0) == 100 && known(0, 2) == 70);
}

TEST(a_different_metric_restarts_the_record)
{
	run(0, 0, 100);
	run(0, 1, 200);
	machine->config.threads.performance = NM_PERFORMANCE_LATENCY;
	take();
	assert_true(isnan(known(0, 0)) && known(0, 1) == 1 / 20.0);
	machine->config.threads.performance = NM_PERFORMANCE_INSTRUCTIONS;
	run(0, 0, 100);
	run(0, 1, 200);
	machine->kinds = 0;
	take();
	assert_true(isnan(known(0, 0)));
}

/* An idle interval has no samples, which does not change the metric of P. */
TEST(an_idle_interval_keeps_the_record)
{
	run(0, 0, 100);
	run(0, 1, 200);
	uint32_t kinds = machine->kinds;
	machine->kinds = 0;
	for (size_t i = 0; i < 3; i++)
		machine->sampled[i].stats.run_share = 0;
	take();
	assert_true(snapshot->by_locality);
	machine->kinds = kinds;
	run(0, 1, 200);
	assert_true(known(0, 0) == 100);
}

TEST(equal_is_within_the_band)
{
	assert_int_equal(nm_record_compare(1.0501, 1, 0.05), 1);
	assert_int_equal(nm_record_compare(1.0499, 1, 0.05), 0);
	assert_int_equal(nm_record_compare(0.9501, 1, 0.05), 0);
	assert_int_equal(nm_record_compare(0.9499, 1, 0.05), -1);
	assert_int_equal(nm_record_compare(1, 1, 0), 0);
	assert_int_equal(nm_record_compare(1.0000001, 1, 0), 1);
	assert_int_equal(nm_record_compare(0.9999999, 1, 0), -1);
	assert_int_equal(nm_record_compare(NAN, 1, 0), 0);
	assert_int_equal(nm_record_compare(1, NAN, 0), 0);
	assert_int_equal(nm_record_compare(0.1, 0, 0.05), 1);
	assert_int_equal(nm_record_compare(0, 0, 0.05), 0);
}

RUN_TESTS()
