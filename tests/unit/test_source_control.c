/* SPDX-License-Identifier: MIT */
/* Adaptation of a source: counters of the machine, its load, and the cost of sampling. */
#define SET_UP open_words
#define TEAR_DOWN tear_down
#include "../support/test.h"

#include "source_words.h"

/* ---- cycles ---- */

SCRIPT(cycles_are_used_if_they_count,
       "cycles 99; open; has_cycles = 1; runs = 1; clock_period in 20000000..20001000",
       "run_sample_ns in 9999000..10001000; open_count = 16; is_open clock cpu0 = 0",
       "enabled cycles cpu3 = 1")

SCRIPT(no_cycles_while_another_program_holds_the_counter,
       "cycles; open; has_cycles = 0; runs = 1; report cycles EBUSY 1 cpu-clock")

SCRIPT(no_cycles_without_a_frequency_or_a_pmu,
       "set running_ns = 1; open; has_cycles = 0; problems = 0; cycles 1",
       "set open_error cycles = ENOENT; open; has_cycles = 0; problems = 0",
       "clock_period = 10000019")

SCRIPT(source_faults_uses_no_pmu,
       "set source = faults; cycles 1; open; has_cycles = 0; accesses = 1")

/* fail_call 6 ENOENT: the sixth call from now on */
WORD(fail_call)
{
	f->fake->calls = 0;
	f->fake->fail_call = U(0);
	f->fake->fail_call_error = (int)script_value(step, "error", step->word[1]);
}

/* The calls before it: open and enable in the trial; open, map and identify the leader. */
SCRIPT(the_clock_replaces_missing_cycles,
       "cycles 1; open; fail_call 6 ENOENT; open; is_open cycles cpu0 = 0",
       "is_open cycles cpu1 = 1; period clock cpu0 = 10000019")

/* ---- load ---- */

/* Between the thresholds nothing changes, and an unknown load is not idle. */
SCRIPT(idle_cpus_stop_ticking, "open", "each 10: load 1 0 0.03 nan",
       "enabled clock cpu0 = 1; enabled clock cpu1 = 0",
       "enabled clock cpu2 = 1; enabled clock cpu3 = 1; enabled minor cpu1 = 1",
       "load 1 0.03 0.03 nan; enabled clock cpu1 = 0; load 1 0.2 0.03 nan; enabled clock cpu1 = 1")

SCRIPT(a_short_calm_changes_nothing, "open",
       "each 10: load 0.5; enabled clock cpu0 = 1; load 0; enabled clock cpu0 = 1")

/* ---- cost ---- */

SCRIPT(cost_raises_and_lowers_periods,
       "open; cost 0.005 = 0; cost 0.02 = 1; clock_period in 20000000..20001000; fault_period = 2",
       "keep p = clock_period; period clock cpu2 = p; run_sample_ns = p; period minor cpu2 = 2",
       "period major cpu2 = 2", "each 100: control 0.02",
       "cost 0.02 = 0; clock_period in 49000000..50000000; fault_period in 900000..1000000",
       "each 100: control 0.001", "cost 0.001 = 0; clock_period = 10000019; period minor cpu0 = 1")

/* Samples that are not needed cost almost nothing, and do not count as held back. */
SCRIPT(unused_samples_are_thinned,
       "open; thin 1; period clock cpu1 in 40000000..41000000; period minor cpu1 = 251",
       "period major cpu1 = 251; held_back = 0", "each 20: control 0.001",
       "fault_period = 251; clock_period in 40000000..41000000; cost 0.02 = 1; held_back = 1",
       "thin 0; period clock cpu1 = 10000019; period minor cpu1 = 1; held_back = 0")

static char khz[16];

WORD(frequency)
{
	snprintf(khz, sizeof(khz), "%u", U(0));
	f->fake->max_khz = khz;
}

SCRIPT(cycles_periods_follow_too, "cycles 1; frequency 3000000; open; cost 0.02 = 1",
       "period cycles cpu1 in 60000000..60001000")

static void publish(const struct record_ring *ring)
{
	fake_publish(f->fake, 0, ring);
	(void)drain(f, &seen);
}

/* lose 100 forks 10: records that were lost on CPU 0, and those of forks */
WORD(lose)
{
	struct record_ring ring = fake_ring(f->fake, 0);
	record_lost(&ring, fake_id(f->fake, NM_EVENT_FAULT_MIN, 0), U(0));
	for (uint32_t i = 0; step->nr_numbers > 1 && i < U(1); i++) {
		const uint32_t ids[4] = {500 + i, 100, 500 + i, 100};
		record_fork_exit(&ring, true, ids, 1);
	}
	publish(&ring);
}

WORD(throttle)
{
	struct record_ring ring = fake_ring(f->fake, 0);
	record_throttle(&ring, true, fake_id(f->fake, NM_EVENT_FAULT_MIN, 0));
	publish(&ring);
}

SCRIPT(losses_count_as_cost,
       "open; lose 100; lost = 100; cost 0.001 = 1; fault_period = 2; cost 0.001 = 0",
       "cost 0.001 = 0; cost 0.001 = 1; fault_period = 1")

/* Fork records do not decrease with the sampling rate. */
SCRIPT(losses_due_to_forks_do_not_count,
       "open; lose 100 forks 10; lost = 100; cost 0.005 = 0; fault_period = 1")

SCRIPT(suppressed_samples_count_as_cost,
       "open; throttle; cost 0.001 = 1; fault_period = 2; cost 0.001 = 0")

/* A burst every third interval keeps the periods high. */
SCRIPT(short_calms_do_not_count, "open; cost 0.02 = 1",
       "each 10: cost 0.001 = 0; cost 0.001 = 0; cost 0.009 = 0", "fault_period = 2")

TEST_BETWEEN(NULL, NULL, period_rule)
{
	static const struct {
		const char *name;
		uint64_t period, most;
		double cost;
		uint64_t expected;
	} rows[] = {
		{"doubled", 100, 1000, 0.02, 200},
		{"up to the maximum", 600, 1000, 0.02, 1000},
		{"at the maximum", 1000, 1000, 0.02, 1000},
		{"at the limit", 400, 1000, 0.01, 400},
		{"below it", 400, 1000, 0.004, 400},
		{"far below it", 400, 1000, 0.003, 200},
		{"down to the minimum", 150, 1000, 0, 100},
		{"at the minimum", 100, 1000, 0, 100},
		{"an unknown cost", 400, 1000, NAN, 400},
		{"any cost", 400, 1000, INFINITY, 800},
		{"twice the limit", 100, 10000, 0.021, 400},
		{"nearly eight times", 100, 10000, 0.079, 800},
		{"far above it", 100, 10000, 50, 1600},
		{"far above it, up to the maximum", 700, 10000, 50, 10000},
	};
	EACH_ROW(row, rows)
	{
		CHECK(row, nm_period_next(row->period, 100, row->most, row->cost, 0.01) ==
				   row->expected);
	}
}

/* Longer periods do not reduce fork records. Dropped samples cost as much as others. */
TEST_BETWEEN(NULL, NULL, only_samples_are_charged_to_sampling)
{
	const struct nm_ring_counts before = {.samples = 100, .task_events = 7, .no_access = 5};
	struct nm_ring_counts now = before;
	now.samples += 20, now.no_access += 6, now.kernel += 4, now.task_events += 10;
	struct nm_sampling_cost cost = nm_sampling_cost(&before, &now, 8000);
	assert_true(cost.drain_ns == 6000);
	assert_int_equal(cost.caused_ns, 30 * 600);
	cost = nm_sampling_cost(&now, &now, 8000);
	assert_true(cost.drain_ns == 8000);
	assert_int_equal(cost.caused_ns, 0);
}

RUN_TESTS()
