/* SPDX-License-Identifier: MIT */
/* Adaptation of a source: counters of the machine, its load, and the cost of sampling. */
#define SET_UP set_up
#define TEAR_DOWN tear_down
#include "../support/test.h"

#include <stdint.h>

#include <math.h>

#include "../support/source_fixture.h"

/* ---- cycles ---- */

TEST(cycles_are_used_if_they_count)
{
	struct fixture *f = *state;

	f->fake->max_khz = "2000000";
	f->fake->cycles_running_ns = 99 * NM_NSEC_PER_MSEC;
	open_source(f);
	const struct nm_source_status *status = nm_source_status(f->source);
	assert_true(status->has_cycles && status->runs);
	assert_true(status->clock_period >= 20000000 && status->clock_period < 20001000);
	assert_true(fabs(status->run_sample_ns - 1e7) < 1000.0);
	assert_int_equal(f->fake->open_count, CPUS * EVENTS_PER_CPU);
	assert_null(fake_find(f->fake, NM_EVENT_CLOCK, 0));
	assert_true(fake_get(f->fake, NM_EVENT_CYCLES, 3)->enabled);
}

TEST(no_cycles_while_another_program_holds_the_counter)
{
	struct fixture *f = *state;

	f->fake->max_khz = "2000000";
	open_source(f);
	assert_false(nm_source_status(f->source)->has_cycles);
	assert_true(nm_source_status(f->source)->runs);
	assert_true(has_report(f, -EBUSY, NM_EVENT_CYCLES, 1, "cpu-clock"));
}

TEST(no_cycles_without_a_frequency_or_a_pmu)
{
	struct fixture *f = *state;

	f->fake->cycles_running_ns = 1;
	open_source(f);
	assert_false(nm_source_status(f->source)->has_cycles);
	assert_int_equal(nm_source_status(f->source)->problem_count, 0);

	f->source = (nm_source_free(f->source), NULL);
	f->fake->max_khz = "2000000";
	f->fake->open_error[NM_EVENT_CYCLES] = -ENOENT;
	open_source(f);
	assert_false(nm_source_status(f->source)->has_cycles);
	assert_int_equal(nm_source_status(f->source)->problem_count, 0);
	assert_int_equal(nm_source_status(f->source)->clock_period, CLOCK_PERIOD);
}

TEST(source_faults_uses_no_pmu)
{
	struct fixture *f = *state;

	f->config.sampling.source = NM_SOURCE_FAULTS;
	f->fake->max_khz = "2000000";
	f->fake->cycles_running_ns = 1;
	open_source(f);
	assert_false(nm_source_status(f->source)->has_cycles);
	assert_true(nm_source_status(f->source)->accesses);
}

TEST(the_clock_replaces_missing_cycles)
{
	struct fixture *f = *state;

	f->fake->max_khz = "2000000";
	f->fake->cycles_running_ns = 1;
	open_source(f);
	f->source = (nm_source_free(f->source), NULL);
	f->fake->calls = 0;
	f->fake->fail_call =
		6; /* trial: open, enable; leader: open, map, id; then cycles on CPU 0 */
	f->fake->fail_call_error = -ENOENT;
	open_source(f);
	assert_non_null(fake_find(f->fake, NM_EVENT_CLOCK, 0));
	assert_null(fake_find(f->fake, NM_EVENT_CYCLES, 0));
	assert_non_null(fake_find(f->fake, NM_EVENT_CYCLES, 1));
	assert_int_equal(fake_get(f->fake, NM_EVENT_CLOCK, 0)->period, CLOCK_PERIOD);
}

/* ---- load ---- */

static bool ticks(struct fixture *f, int cpu)
{
	return fake_get(f->fake, NM_EVENT_CLOCK, cpu)->enabled;
}

TEST(idle_cpus_stop_ticking)
{
	struct fixture *f = *state;
	double busy[CPUS] = {1.0, 0.0, 0.03, NAN};

	open_source(f);
	for (unsigned i = 0; i < 10; i++)
		nm_source_follow_load(f->source, busy, CPUS);
	assert_true(ticks(f, 0));
	assert_false(ticks(f, 1));
	assert_true(ticks(f, 2)); /* between the thresholds: unchanged */
	assert_true(ticks(f, 3)); /* unknown: not idle */
	assert_true(fake_get(f->fake, NM_EVENT_FAULT_MIN, 1)->enabled);

	busy[1] = 0.03;
	nm_source_follow_load(f->source, busy, CPUS);
	assert_false(ticks(f, 1));
	busy[1] = 0.2;
	nm_source_follow_load(f->source, busy, CPUS);
	assert_true(ticks(f, 1));
}

TEST(a_short_calm_changes_nothing)
{
	struct fixture *f = *state;
	double busy[CPUS] = {0};

	open_source(f);
	for (unsigned i = 0; i < 20; i++) {
		busy[0] = i % 2 ? 0.0 : 0.5;
		nm_source_follow_load(f->source, busy, 1);
		assert_true(ticks(f, 0));
	}
}

/* ---- cost ---- */

TEST(cost_raises_and_lowers_periods)
{
	struct fixture *f = *state;

	open_source(f);
	assert_false(nm_source_control_cost(f->source, 0.005));
	assert_true(nm_source_control_cost(f->source, 0.02));
	const struct nm_source_status *status = nm_source_status(f->source);
	assert_in_range(status->clock_period, 20000000, 20001000);
	assert_int_equal(status->fault_period, 2);
	assert_int_equal(fake_get(f->fake, NM_EVENT_CLOCK, 2)->period, status->clock_period);
	assert_int_equal(fake_get(f->fake, NM_EVENT_FAULT_MIN, 2)->period, 2);
	assert_int_equal(fake_get(f->fake, NM_EVENT_FAULT_MAJ, 2)->period, 2);
	assert_true(status->run_sample_ns == (double)status->clock_period);

	for (unsigned i = 0; i < 100; i++)
		(void)nm_source_control_cost(f->source, 0.02);
	assert_false(nm_source_control_cost(f->source, 0.02));
	assert_in_range(nm_source_status(f->source)->clock_period, 49000000, 50000000);
	assert_in_range(nm_source_status(f->source)->fault_period, 900000, 1000000);

	for (unsigned i = 0; i < 100; i++)
		(void)nm_source_control_cost(f->source, 0.001);
	assert_false(nm_source_control_cost(f->source, 0.001));
	assert_int_equal(nm_source_status(f->source)->clock_period, CLOCK_PERIOD);
	assert_int_equal(fake_get(f->fake, NM_EVENT_FAULT_MIN, 0)->period, 1);
}

/* Samples that are not needed cost almost nothing, and do not count as held back. */
TEST(unused_samples_are_thinned)
{
	struct fixture *f = *state;

	open_source(f);
	nm_source_thin(f->source, true);
	assert_in_range(fake_get(f->fake, NM_EVENT_CLOCK, 1)->period, 40000000, 41000000);
	assert_int_equal(fake_get(f->fake, NM_EVENT_FAULT_MIN, 1)->period, 251);
	assert_int_equal(fake_get(f->fake, NM_EVENT_FAULT_MAJ, 1)->period, 251);
	assert_false(nm_source_is_held_back(f->source));
	for (unsigned i = 0; i < 20; i++)
		(void)nm_source_control_cost(f->source, 0.001);
	assert_int_equal(nm_source_status(f->source)->fault_period, 251);
	assert_in_range(nm_source_status(f->source)->clock_period, 40000000, 41000000);
	assert_true(nm_source_control_cost(f->source, 0.02));
	assert_true(nm_source_is_held_back(f->source));
	nm_source_thin(f->source, false);
	assert_int_equal(fake_get(f->fake, NM_EVENT_CLOCK, 1)->period, CLOCK_PERIOD);
	assert_int_equal(fake_get(f->fake, NM_EVENT_FAULT_MIN, 1)->period, 1);
	assert_false(nm_source_is_held_back(f->source));
}

TEST(cycles_periods_follow_too)
{
	struct fixture *f = *state;

	f->fake->max_khz = "3000000";
	f->fake->cycles_running_ns = 1;
	open_source(f);
	assert_true(nm_source_control_cost(f->source, 0.02));
	assert_in_range(fake_get(f->fake, NM_EVENT_CYCLES, 1)->period, 60000000, 60001000);
}

TEST(losses_count_as_cost)
{
	struct fixture *f = *state;
	struct seen seen = {0};

	open_source(f);
	struct record_ring ring = fake_ring(f->fake, 0);
	record_lost(&ring, fake_id(f->fake, NM_EVENT_FAULT_MIN, 0), 100);
	fake_publish(f->fake, 0, &ring);
	(void)drain(f, &seen);
	assert_int_equal(nm_source_status(f->source)->counts.lost, 100);
	assert_true(nm_source_control_cost(f->source, 0.001));
	assert_int_equal(nm_source_status(f->source)->fault_period, 2);
	assert_false(nm_source_control_cost(f->source, 0.001));
	assert_false(nm_source_control_cost(f->source, 0.001));
	assert_true(nm_source_control_cost(f->source, 0.001));
	assert_int_equal(nm_source_status(f->source)->fault_period, 1);
}

/* Fork records do not decrease with the sampling rate. */
TEST(losses_due_to_forks_do_not_count)
{
	struct fixture *f = *state;
	struct seen seen = {0};

	open_source(f);
	struct record_ring ring = fake_ring(f->fake, 0);
	record_lost(&ring, fake_id(f->fake, NM_EVENT_FAULT_MIN, 0), 100);
	for (uint32_t i = 0; i < 10; i++) {
		const uint32_t ids[4] = {500 + i, 100, 500 + i, 100};
		record_fork_exit(&ring, true, ids, 1);
	}
	fake_publish(f->fake, 0, &ring);
	(void)drain(f, &seen);
	assert_int_equal(nm_source_status(f->source)->counts.lost, 100);
	assert_false(nm_source_control_cost(f->source, 0.005));
	assert_int_equal(nm_source_status(f->source)->fault_period, 1);
}

TEST(suppressed_samples_count_as_cost)
{
	struct fixture *f = *state;
	struct seen seen = {0};

	open_source(f);
	struct record_ring ring = fake_ring(f->fake, 0);
	record_throttle(&ring, true, fake_id(f->fake, NM_EVENT_FAULT_MIN, 0));
	fake_publish(f->fake, 0, &ring);
	(void)drain(f, &seen);
	assert_true(nm_source_control_cost(f->source, 0.001));
	assert_int_equal(nm_source_status(f->source)->fault_period, 2);
	assert_false(nm_source_control_cost(f->source, 0.001));
}

/* A burst every third interval keeps the periods high. */
TEST(short_calms_do_not_count)
{
	struct fixture *f = *state;

	open_source(f);
	assert_true(nm_source_control_cost(f->source, 0.02));
	for (unsigned i = 0; i < 30; i++)
		assert_false(nm_source_control_cost(f->source, i % 3 == 2 ? 0.009 : 0.001));
	assert_int_equal(nm_source_status(f->source)->fault_period, 2);
}

TEST_BETWEEN(NULL, NULL, period_rule)
{
	assert_int_equal(nm_period_next(100, 100, 1000, 0.02, 0.01), 200);
	assert_int_equal(nm_period_next(600, 100, 1000, 0.02, 0.01), 1000);
	assert_int_equal(nm_period_next(1000, 100, 1000, 0.02, 0.01), 1000);
	assert_int_equal(nm_period_next(400, 100, 1000, 0.01, 0.01), 400);
	assert_int_equal(nm_period_next(400, 100, 1000, 0.004, 0.01), 400);
	assert_int_equal(nm_period_next(400, 100, 1000, 0.003, 0.01), 200);
	assert_int_equal(nm_period_next(150, 100, 1000, 0.0, 0.01), 100);
	assert_int_equal(nm_period_next(100, 100, 1000, 0.0, 0.01), 100);
	assert_int_equal(nm_period_next(400, 100, 1000, NAN, 0.01), 400);
	assert_int_equal(nm_period_next(400, 100, 1000, INFINITY, 0.01), 800);
	assert_int_equal(nm_period_next(100, 100, 10000, 0.021, 0.01), 400);
	assert_int_equal(nm_period_next(100, 100, 10000, 0.079, 0.01), 800);
	assert_int_equal(nm_period_next(100, 100, 10000, 50.0, 0.01), 1600);
	assert_int_equal(nm_period_next(700, 100, 10000, 50.0, 0.01), 10000);
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
