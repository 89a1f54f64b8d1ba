/* SPDX-License-Identifier: MIT */
/* Metrics derived from hardware samples: O_R, O_F, DRAM traffic, L and A (3DyRM). */
#define SET_UP set_up
#define TEAR_DOWN tear_down
#include "../support/test.h"

#include <stdint.h>

#include <math.h>

#include "../support/machine.h"
#include "tasks/metrics.h"

#define BIT(kind) (1U << (kind))

static struct nm_topology *topology;
static struct nm_metrics *metrics;
static struct nm_metrics_interval interval;

static const uint32_t all_amounts =
	BIT(NM_EVENT_INSTRUCTIONS) | BIT(NM_EVENT_FLOPS) | BIT(NM_EVENT_DRAM);

static int set_up(void **state)
{
	(void)state;
	interval = (struct nm_metrics_interval){.length_ns = NM_NSEC_PER_SEC,
						.run_sample_ns = 1e7,
						.keep = 0,
						.min_samples = 10,
						.kinds = all_amounts};
	topology = machine_topology(4, 8);
	if (!topology)
		return -1;
	nm_metrics_new(topology, true, &metrics);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	nm_metrics_free(metrics);
	nm_topology_free(topology);
	return 0;
}

static struct nm_sample sample(enum nm_event_kind kind)
{
	return (struct nm_sample){.kind = kind, .pid = 5, .tid = 6, .cpu = 1};
}

static void run(void)
{
	struct nm_sample made = sample(NM_EVENT_CLOCK);
	nm_metrics_add(metrics, &made);
}

static void amount(enum nm_event_kind kind, uint64_t value)
{
	struct nm_sample made = sample(kind);
	made.amount = value;
	nm_metrics_add(metrics, &made);
}

static void access_of(enum nm_event_kind kind, unsigned node, enum nm_level level,
		      uint32_t latency_cycles)
{
	struct nm_sample made = sample(kind);
	made.page_node = node + 1;
	made.level = (uint8_t)level;
	made.latency_cycles = latency_cycles;
	nm_metrics_add(metrics, &made);
}

static void fault(unsigned node, unsigned times)
{
	struct nm_sample made = sample(NM_EVENT_FAULT_MIN);
	made.page_node = node + 1;
	for (unsigned i = 0; i < times; i++)
		nm_metrics_add(metrics, &made);
}

/* Closes the interval and returns the metrics of the one thread, which ran. */
static const struct nm_sampled_thread *close_one(void)
{
	const struct nm_sampled_thread *sampled;
	run();
	assert_int_equal(nm_metrics_close(metrics, &interval, &sampled), 1);
	return sampled;
}

TEST(unsampled_metrics_are_unavailable)
{
	interval.kinds = 0;
	amount(NM_EVENT_INSTRUCTIONS, 100);
	amount(NM_EVENT_FLOPS, 100);
	amount(NM_EVENT_DRAM, 6400);
	const struct nm_sampled_thread *sampled = close_one();
	assert_true(isnan(sampled->stats.instructions) && isnan(sampled->stats.operations));
	assert_true(isnan(sampled->stats.traffic) && isnan(sampled->stats.latency));
	assert_int_equal(sampled->stats.latency_samples, 0);
}

TEST(sampled_but_none_is_zero)
{
	interval.kinds = BIT(NM_EVENT_INSTRUCTIONS) | BIT(NM_EVENT_FLOPS) | BIT(NM_EVENT_DRAM);
	const struct nm_sampled_thread *sampled = close_one();
	assert_true(sampled->stats.instructions == 0 && sampled->stats.operations == 0);
	assert_true(sampled->stats.traffic == 10 * 64);
	assert_true(isnan(sampled->stats.latency));
}

TEST(amounts_become_rates)
{
	interval.length_ns = 2 * NM_NSEC_PER_SEC;
	amount(NM_EVENT_INSTRUCTIONS, 3000);
	amount(NM_EVENT_INSTRUCTIONS, 1000);
	amount(NM_EVENT_FLOPS, 800);
	amount(NM_EVENT_DRAM, 64000);
	amount(NM_EVENT_DRAM, 64000);
	const struct nm_sampled_thread *sampled = close_one();
	assert_true(sampled->stats.instructions == 2000);
	assert_true(sampled->stats.operations == 2400);
	/* The minimum is ten samples of 64,000 bytes per second. */
	assert_true(sampled->stats.traffic == 640000);
}

/* The metrics of a thread that works in its caches depend neither on T nor on samples of others. */
TEST(the_floor_is_a_rate_and_stays)
{
	for (unsigned seconds = 1; seconds <= 4; seconds *= 2) {
		interval.length_ns = seconds * NM_NSEC_PER_SEC;
		amount(NM_EVENT_DRAM, 6400);
		assert_true(close_one()->stats.traffic == 64000);
	}
	interval.length_ns = NM_NSEC_PER_SEC;
	amount(NM_EVENT_DRAM, 7000);
	assert_true(close_one()->stats.traffic == 64000);
	amount(NM_EVENT_DRAM, 3200);
	assert_true(close_one()->stats.traffic == 32000);
}

TEST(traffic_so_far_is_known_within_the_interval)
{
	uint32_t tid = sample(NM_EVENT_DRAM).tid;
	assert_int_equal(nm_metrics_dram_bytes(metrics, tid), 0);
	amount(NM_EVENT_DRAM, 64000);
	amount(NM_EVENT_DRAM, 6400);
	assert_int_equal(nm_metrics_dram_bytes(metrics, tid), 70400);
	assert_int_equal(nm_metrics_dram_bytes(metrics, tid + 1), 0);
	(void)close_one();
	assert_int_equal(nm_metrics_dram_bytes(metrics, tid), 0);
}

TEST(traffic_above_the_minimum_is_used)
{
	for (unsigned i = 0; i < 11; i++)
		amount(NM_EVENT_DRAM, 6400);
	assert_true(close_one()->stats.traffic == 70400);
}

TEST(operations_need_both_counts)
{
	interval.kinds = BIT(NM_EVENT_INSTRUCTIONS);
	amount(NM_EVENT_INSTRUCTIONS, 100);
	assert_true(isnan(close_one()->stats.operations));
	interval.kinds = BIT(NM_EVENT_FLOPS);
	amount(NM_EVENT_INSTRUCTIONS, 100);
	assert_true(isnan(close_one()->stats.operations));
	interval.kinds = all_amounts;
	amount(NM_EVENT_INSTRUCTIONS, 100);
	assert_true(close_one()->stats.operations == 100);
}

TEST(counts_are_of_one_interval)
{
	interval.keep = 0.5;
	amount(NM_EVENT_INSTRUCTIONS, 100);
	access_of(NM_EVENT_MEMORY, 1, NM_LEVEL_DRAM, 400);
	close_one();
	const struct nm_sampled_thread *sampled = close_one();
	assert_true(sampled->stats.instructions == 0 && isnan(sampled->stats.latency));
	assert_int_equal(sampled->stats.fresh[1], 0);
	assert_true(sampled->stats.accesses[1] == 0.5);
}

TEST(latency_is_the_mean_of_the_samples)
{
	access_of(NM_EVENT_MEMORY, 0, NM_LEVEL_DRAM, 300);
	access_of(NM_EVENT_MEMORY, 0, NM_LEVEL_L1, 4);
	access_of(NM_EVENT_MEMORY, 0, NM_LEVEL_DRAM, 0);
	access_of(NM_EVENT_STORE, 0, NM_LEVEL_DRAM, 9000);
	const struct nm_sampled_thread *sampled = close_one();
	assert_true(sampled->stats.latency == 152);
	assert_int_equal(sampled->stats.latency_samples, 2);
}

static const struct nm_sampled_thread *close_after(unsigned cpu, unsigned latencies,
						   uint32_t cycles)
{
	const struct nm_sampled_thread *sampled;
	struct nm_sample made = sample(NM_EVENT_CLOCK);
	made.cpu = cpu;
	nm_metrics_add(metrics, &made);
	for (unsigned i = 0; i < latencies; i++)
		access_of(NM_EVENT_MEMORY, 0, NM_LEVEL_DRAM, cycles);
	assert_int_equal(nm_metrics_close(metrics, &interval, &sampled), 1);
	return sampled;
}

TEST(latencies_are_counted_over_the_window_of_accesses)
{
	interval.keep = 0.5;
	close_after(1, 4, 200);
	const struct nm_sampled_thread *sampled = close_after(1, 4, 500);
	assert_int_equal(sampled->stats.latency_samples, 4);
	assert_true(sampled->stats.latency == 500);
	assert_true(sampled->stats.recent_latency_samples == 6);
	assert_true(sampled->stats.recent_latency == 400);
	sampled = close_after(1, 0, 0);
	assert_true(isnan(sampled->stats.latency) && sampled->stats.recent_latency == 400);
	assert_true(sampled->stats.recent_latency_samples == 3);
}

/* CPU 1 is on node 0 and CPU 5 on node 2. */
TEST(latencies_of_another_node_do_not_count)
{
	interval.keep = 0.5;
	close_after(1, 4, 200);
	const struct nm_sampled_thread *sampled = close_after(5, 2, 600);
	assert_int_equal(sampled->stats.main_node, 2);
	assert_true(sampled->stats.recent_latency_samples == 2 &&
		    sampled->stats.recent_latency == 600);
}

TEST(latency_needs_no_address)
{
	struct nm_sample made = sample(NM_EVENT_MEMORY);
	made.latency_cycles = 77;
	nm_metrics_add(metrics, &made);
	const struct nm_sampled_thread *sampled = close_one();
	assert_true(sampled->stats.latency == 77);
	assert_int_equal(sampled->stats.fresh_samples, 0);
}

TEST(known_levels_count_dram_only)
{
	access_of(NM_EVENT_MEMORY, 1, NM_LEVEL_DRAM, 400);
	access_of(NM_EVENT_MEMORY, 1, NM_LEVEL_L2, 14);
	access_of(NM_EVENT_MEMORY, 2, NM_LEVEL_UNKNOWN, 0);
	access_of(NM_EVENT_MEMORY, 3, NM_LEVEL_DRAM, 500);
	const struct nm_sampled_thread *sampled = close_one();
	const uint32_t fresh[] = {0, 1, 0, 1};
	assert_memory_equal(sampled->stats.fresh, fresh, sizeof(fresh));
	assert_int_equal(sampled->stats.fresh_samples, 2);
	assert_true(sampled->stats.access_total == 2 && sampled->stats.accesses[3] == 1);
}

TEST(unknown_levels_count_as_dram)
{
	access_of(NM_EVENT_MEMORY, 1, NM_LEVEL_UNKNOWN, 400);
	access_of(NM_EVENT_STORE, 2, NM_LEVEL_UNKNOWN, 0);
	const struct nm_sampled_thread *sampled = close_one();
	const uint32_t all[] = {0, 1, 1, 0};
	assert_memory_equal(sampled->stats.fresh, all, sizeof(all));
	assert_int_equal(sampled->stats.fresh_samples, 2);
}

TEST(faults_count_only_without_memory_samples)
{
	fault(3, 50);
	access_of(NM_EVENT_MEMORY, 1, NM_LEVEL_DRAM, 400);
	const struct nm_sampled_thread *sampled = close_one();
	assert_int_equal(sampled->stats.fresh[3], 0);
	assert_int_equal(sampled->stats.fresh[1], 1);
	assert_int_equal(sampled->stats.fresh_samples, 1);
	fault(3, 50);
	assert_int_equal(close_one()->stats.fresh[3], 50);
}

/* Even if it neither ran in a sample nor accessed memory. */
TEST(counts_alone_yield_metrics)
{
	const struct nm_sampled_thread *sampled;
	amount(NM_EVENT_INSTRUCTIONS, 100);
	assert_int_equal(nm_metrics_close(metrics, &interval, &sampled), 1);
	assert_true(sampled->stats.instructions == 100);
	assert_int_equal(nm_metrics_close(metrics, &interval, &sampled), 0);
}

TEST(counts_survive_the_growth_of_the_table)
{
	const struct nm_sampled_thread *sampled;
	for (uint32_t tid = 1; tid <= 1000; tid++) {
		struct nm_sample made = sample(NM_EVENT_INSTRUCTIONS);
		made.tid = tid;
		made.amount = tid;
		nm_metrics_add(metrics, &made);
	}
	assert_int_equal(nm_metrics_close(metrics, &interval, &sampled), 1000);
	for (uint32_t i = 0; i < 1000; i++)
		assert_true(sampled[i].stats.instructions == i + 1);
}

TEST(shares_of_a_counter_are_made_up_for)
{
	struct nm_sample made = sample(NM_EVENT_MEMORY);
	made.page_node = 3;
	made.level = NM_LEVEL_DRAM;
	made.weight = 256 * 5 / 2;
	for (unsigned i = 0; i < 4; i++)
		nm_metrics_add(metrics, &made);
	made = sample(NM_EVENT_CYCLES);
	made.weight = 256 * 3;
	nm_metrics_add(metrics, &made);
	const struct nm_sampled_thread *sampled = close_one();
	assert_int_equal(sampled->stats.fresh[2], 10);
	assert_int_equal(sampled->stats.fresh_samples, 4); /* number of supporting samples */
	assert_int_equal(sampled->stats.run_samples, 4);
	assert_true(sampled->stats.run_share == 4 * 1e7 / 1e9);
}

TEST(losses_scale_the_interval)
{
	static const double taken[] = {7.0, 2.5, 1.0};
	interval.taken_per_seen = taken;
	interval.nr_cpus = NM_ARRAY_SIZE(taken);
	for (unsigned i = 0; i < 4; i++)
		access_of(NM_EVENT_MEMORY, 3, NM_LEVEL_DRAM, 100);
	amount(NM_EVENT_INSTRUCTIONS, 1000);
	amount(NM_EVENT_FLOPS, 100);
	amount(NM_EVENT_DRAM, 100000);
	const struct nm_sampled_thread *sampled = close_one(); /* on CPU 1 */
	assert_int_equal(sampled->stats.fresh[3], 10);
	assert_true(sampled->stats.access_total == 10);
	assert_int_equal(sampled->stats.fresh_samples, 4);
	assert_true(sampled->stats.instructions == 2500);
	assert_true(sampled->stats.operations == 2750);
	assert_true(sampled->stats.latency == 100);
	assert_true(sampled->stats.run_share == 2.5 * 1e7 / 1e9);

	interval.nr_cpus = 1; /* its CPU is unknown */
	amount(NM_EVENT_INSTRUCTIONS, 1000);
	assert_true(close_one()->stats.instructions == 1000);
}

RUN_TESTS()
