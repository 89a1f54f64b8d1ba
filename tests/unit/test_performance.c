/* SPDX-License-Identifier: MIT */
/* P by each setting, threads with measured metrics, relative and global performance. */
#define SET_UP set_up
#define TEAR_DOWN tear_down
#include "../support/test.h"

#include "../support/interval.h"

static struct machine *machine;
static struct nm_snapshot *snapshot;

/* Thread 0 of process 10: O_R 100, O_F 300, 50 B/s, L 20, so that O_F/B = 6 and O_R/B = 2. */
static int set_up(void **state)
{
	(void)state;
	machine = machine_new(4, 2);
	machine_thread(machine, 10, 0, 1);
	machine_perform(machine, 0, 100, 300, 50, 20);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	nm_snapshot_free(snapshot);
	snapshot = NULL;
	machine_free(machine);
	return 0;
}

static const struct nm_snap_thread *take(size_t index)
{
	nm_snapshot_free(snapshot);
	snapshot = machine_snapshot(machine);
	assert_non_null(snapshot);
	return &snapshot->threads[index];
}

static double performance_by(enum nm_performance performance)
{
	machine->config.threads.performance = performance;
	double value = take(0)->performance;
	assert_false(snapshot->by_locality);
	return value;
}

static bool near(double value, double expected)
{
	return fabs(value - expected) <= 1e-12 * fabs(expected);
}

TEST(every_setting_has_its_formula)
{
	assert_true(near(performance_by(NM_PERFORMANCE_PRODUCT), 300 * 6.0 / 20));
	assert_true(near(performance_by(NM_PERFORMANCE_PRODUCT_INSTRUCTIONS), 100 * 2.0 / 20));
	assert_true(performance_by(NM_PERFORMANCE_OPERATIONS) == 300);
	assert_true(performance_by(NM_PERFORMANCE_INSTRUCTIONS) == 100);
	assert_true(performance_by(NM_PERFORMANCE_INTENSITY) == 6);
	assert_true(performance_by(NM_PERFORMANCE_LATENCY) == 1 / 20.0);
}

/* The sample kinds that each setting requires. */
TEST(missing_counters_are_replaced_by_locality)
{
	const enum nm_event_kind kinds[] = {NM_EVENT_INSTRUCTIONS, NM_EVENT_FLOPS, NM_EVENT_DRAM};
	const bool needs[][3] = {
		[NM_PERFORMANCE_PRODUCT] = {true, true, true},
		[NM_PERFORMANCE_PRODUCT_INSTRUCTIONS] = {true, false, true},
		[NM_PERFORMANCE_OPERATIONS] = {true, true, false},
		[NM_PERFORMANCE_INSTRUCTIONS] = {true, false, false},
		[NM_PERFORMANCE_INTENSITY] = {true, false, true},
		[NM_PERFORMANCE_LATENCY] = {false, false, false},
	};
	machine_touch(machine, 0, 0, 300);
	uint32_t all = machine->kinds;
	for (unsigned performance = 0; performance < NM_ARRAY_SIZE(needs); performance++)
		for (unsigned i = 0; i < 3; i++) {
			machine->config.threads.performance = (enum nm_performance)performance;
			machine->kinds = all & ~(1U << kinds[i]);
			const struct nm_snap_thread *thread = take(0);
			assert_int_equal(snapshot->by_locality, needs[performance][i]);
			assert_int_equal(snapshot->missing,
					 needs[performance][i] ? 1U << kinds[i] : 0);
			if (needs[performance][i])
				assert_true(fabs(thread->performance - 0.8) < 1e-12);
		}
}

/* One hop nearer is better even without local accesses. */
TEST(locality_depends_on_distance)
{
	machine->kinds &= ~(1U << NM_EVENT_INSTRUCTIONS);
	unsigned *row = machine->topology->distance;
	row[1] = 40;
	assert_true(fabs(take(0)->performance - 0.25) < 1e-12);
	row[1] = 20;
	assert_true(fabs(take(0)->performance - 0.5) < 1e-12);
	machine_touch(machine, 0, 0, 100);
	row[0] = 5;
	row[1] = 15;
	assert_true(fabs(take(0)->performance - 0.5) < 1e-12);
}

/* Accesses before the interval do not count if the interval has enough. */
TEST(locality_is_of_the_interval)
{
	machine->kinds &= ~(1U << NM_EVENT_INSTRUCTIONS);
	machine_touch(machine, 0, 0, 300);
	machine->sampled[0].stats.fresh_samples = 10;
	machine->fresh[0] = 0;
	machine->fresh[1] = 10;
	assert_true(fabs(take(0)->performance - 0.5) < 1e-12);
	machine->sampled[0].stats.fresh_samples = 9;
	assert_true(fabs(take(0)->performance - 0.8) < 1e-12);
}

TEST(l_is_unavailable_without_latencies)
{
	machine->sampled[0].stats.latency = NAN;
	machine->sampled[0].stats.latency_samples = 0;
	machine->sampled[0].stats.recent_latency_samples = 0;
	take(0);
	assert_true(snapshot->by_locality);
	machine->config.threads.performance = NM_PERFORMANCE_OPERATIONS;
	assert_true(take(0)->performance == 300);
	assert_false(snapshot->by_locality);
}

/* An interval without cache misses does not change the metric of P. */
TEST(an_interval_without_latencies_keeps_the_metric)
{
	take(0);
	assert_true(snapshot->has_latencies);
	machine->had_latencies = true;
	machine->sampled[0].stats.latency = NAN;
	machine->sampled[0].stats.latency_samples = 0;
	machine->sampled[0].stats.recent_latency_samples = 0;
	assert_false(take(0)->measured);
	assert_false(snapshot->has_latencies || snapshot->by_locality);
	machine->kinds &= ~(1U << NM_EVENT_FLOPS);
	take(0);
	assert_true(snapshot->by_locality);
	assert_int_equal(snapshot->missing, 1U << NM_EVENT_FLOPS);
}

TEST(intensity_uses_the_available_operations)
{
	machine->sampled[0].stats.operations = NAN;
	machine->kinds &= ~(1U << NM_EVENT_FLOPS);
	assert_true(performance_by(NM_PERFORMANCE_INTENSITY) == 2);
}

/* 3DyRM, section 3: floating-point operations per byte, whichever operations P counts. */
TEST(in_the_paper_intensity_counts_floating_point_operations)
{
	machine_paper(&machine->config);
	assert_true(performance_by(NM_PERFORMANCE_INTENSITY) == 4);
	assert_true(near(performance_by(NM_PERFORMANCE_PRODUCT), 300 * 4.0 / 20));
	assert_true(near(performance_by(NM_PERFORMANCE_PRODUCT_INSTRUCTIONS), 100 * 4.0 / 20));
	machine->kinds &= ~(1U << NM_EVENT_FLOPS);
	take(0);
	assert_int_equal(snapshot->missing, 1U << NM_EVENT_FLOPS);
	machine->config.threads.performance = NM_PERFORMANCE_INSTRUCTIONS;
	take(0);
	assert_int_equal(snapshot->missing, 0);
}

/* Few samples per interval suffice if the window has min_samples of them. */
TEST(few_latencies_per_interval_suffice)
{
	machine->config.threads.performance = NM_PERFORMANCE_LATENCY;
	machine->sampled[0].stats.latency = 500;
	machine->sampled[0].stats.latency_samples = 9;
	machine->sampled[0].stats.recent_latency = 400;
	machine->sampled[0].stats.recent_latency_samples = 10;
	assert_true(take(0)->measured && take(0)->performance == 1.0 / 400);
	machine->sampled[0].stats.latency_samples = 10;
	assert_true(take(0)->performance == 1.0 / 500);
}

TEST(measured_needs_run_time_and_samples)
{
	machine->sampled[0].stats.run_share = 0.1;
	machine->sampled[0].stats.recent_latency_samples = 10;
	assert_true(take(0)->measured && take(0)->active);
	machine->sampled[0].stats.recent_latency_samples = 9;
	assert_false(take(0)->measured);
	assert_int_equal(snapshot->undersampled, 1);
	assert_true(isnan(take(0)->performance) && isnan(take(0)->relative));
	assert_true(take(0)->active);
	machine->sampled[0].stats.recent_latency_samples = 10;
	machine->sampled[0].stats.run_share = 0.099;
	assert_false(take(0)->measured || take(0)->active);
	machine->sampled[0].stats.run_share = NAN;
	assert_false(take(0)->measured || take(0)->active);
}

TEST(locality_needs_accesses)
{
	machine->kinds = 0;
	machine_touch(machine, 0, 1, 10);
	assert_true(take(0)->measured);
	machine_touch(machine, 0, 1, 9);
	assert_false(take(0)->measured);
	machine_touch(machine, 0, 1, 0);
	assert_false(take(0)->measured);
}

/* A thread that works in its caches has latencies and no accesses, which counts as measured. */
TEST(a_cached_thread_is_measured)
{
	machine_touch(machine, 0, 1, 0);
	assert_true(take(0)->measured);
	assert_false(take(0)->valid);
}

TEST(unknown_metrics_are_not_measured)
{
	machine_thread(machine, 10, 1, 1);
	machine_perform(machine, 1, 100, NAN, 50, 20);
	assert_false(take(1)->measured);
	assert_true(take(0)->relative == 1);
}

TEST(relative_is_by_the_mean_of_the_process)
{
	machine->config.threads.performance = NM_PERFORMANCE_INSTRUCTIONS;
	for (int i = 1; i < 3; i++)
		machine_thread(machine, 10, i, 1);
	machine_thread(machine, 20, 3, 1);
	machine_perform(machine, 1, 300, 300, 1, 20);
	machine_perform(machine, 2, 1e9, 1e9, 1, 20);
	machine_perform(machine, 3, 7, 7, 1, 20);
	machine->sampled[2].stats.recent_latency_samples = 1;
	assert_true(take(0)->relative == 0.5);
	assert_true(snapshot->threads[1].relative == 1.5);
	assert_true(isnan(snapshot->threads[2].relative));
	assert_true(snapshot->threads[3].relative == 1);
	assert_true(snapshot->processes[0].performance == 200);
	assert_int_equal(snapshot->processes[0].measured, 2);
	assert_true(snapshot->performance == 407);
	assert_int_equal(snapshot->measured, 3);
	assert_int_equal(snapshot->active, 4);
}

/* Equations 2 and 3. */
TEST(in_the_paper_the_mean_is_over_all_threads)
{
	machine_paper(&machine->config);
	machine->config.threads.performance = NM_PERFORMANCE_INSTRUCTIONS;
	machine_thread(machine, 10, 1, 1);
	machine_perform(machine, 1, 300, 300, 1, 20);
	machine_thread(machine, 10, -1, -1); /* it did not run */
	machine_thread(machine, 10, -1, -1);
	machine_thread(machine, 20, -1, -1);
	assert_true(take(0)->relative == 1);
	assert_true(snapshot->threads[1].relative == 3);
	assert_true(snapshot->processes[0].performance == 100);
	assert_true(isnan(snapshot->processes[1].performance));
}

TEST(a_mean_of_zero_gives_no_relative)
{
	machine->sampled[0].stats.operations = 0;
	assert_true(take(0)->performance == 0);
	assert_true(take(0)->measured);
	assert_true(isnan(take(0)->relative));
}

TEST(a_process_without_measured_threads_has_no_mean)
{
	machine->sampled[0].stats.run_share = 0;
	assert_true(isnan((take(0), snapshot->processes[0].performance)));
	assert_true(snapshot->performance == 0);
}

RUN_TESTS()
