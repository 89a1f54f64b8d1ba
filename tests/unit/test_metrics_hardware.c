/* SPDX-License-Identifier: MIT */
/* Metrics derived from hardware samples: O_R, O_F, DRAM traffic, L and A (3DyRM). */
#define SET_UP set_up
#define TEAR_DOWN tear_down
#include "../support/test.h"

#include <stdint.h>

#include <math.h>

#include "../support/machine.h"
#include "../support/script.h"
#include "tasks/metrics.h"

#define BIT(kind) (1U << (kind))
#define AMOUNTS (BIT(NM_EVENT_INSTRUCTIONS) | BIT(NM_EVENT_FLOPS) | BIT(NM_EVENT_DRAM))

static struct nm_topology *topology;
static struct nm_metrics *metrics;
static struct nm_metrics_interval interval;
static const struct nm_sampled_thread *sampled;

static int set_up(void **state)
{
	(void)state;
	interval = (struct nm_metrics_interval){.length_ns = NM_NSEC_PER_SEC,
						.run_sample_ns = 1e7,
						.keep = 0,
						.min_samples = 10,
						.kinds = AMOUNTS};
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

/* ---- words ---- */

NAMES(kind, {"clock", NM_EVENT_CLOCK}, {"cycles", NM_EVENT_CYCLES}, {"loads", NM_EVENT_MEMORY},
      {"stores", NM_EVENT_STORE}, {"instructions", NM_EVENT_INSTRUCTIONS},
      {"flops", NM_EVENT_FLOPS}, {"dram", NM_EVENT_DRAM}, {"faults", NM_EVENT_FAULT_MIN})
NAMES(level, {"l1", NM_LEVEL_L1}, {"l2", NM_LEVEL_L2}, {"memory", NM_LEVEL_DRAM},
      {"unknown", NM_LEVEL_UNKNOWN})

static enum nm_event_kind kind_of(const struct step *step)
{
	return (enum nm_event_kind)script_value(step, "kind", step->word[0]);
}

/* amount flops 800: a sample of an amount */
WORD(amount)
{
	struct nm_sample made = sample(kind_of(step));
	made.amount = (uint64_t)N(0);
	nm_metrics_add(metrics, &made);
}

/* access loads l2 node1 14: a sample with this latency; a last number repeats it; "nowhere" instead
 * of the node: without an address */
WORD(access)
{
	struct nm_sample made = sample(kind_of(step));
	const bool nowhere = step_has(step, "nowhere");
	made.level = (uint8_t)script_value(step, "level", step->word[1]);
	made.page_node = nowhere ? 0 : U(0) + 1;
	made.latency_cycles = nowhere ? U(0) : U(1);
	for (unsigned i = 0; i < (step->nr_numbers > 2 ? U(2) : 1); i++)
		nm_metrics_add(metrics, &made);
}

/* weigh loads node2 2.5 4: four samples that count for 2.5 each */
WORD(weigh)
{
	struct nm_sample made = sample(kind_of(step));
	made.weight = (uint16_t)(256 * N(1));
	if (made.kind == NM_EVENT_MEMORY) {
		made.page_node = U(0) + 1;
		made.level = NM_LEVEL_DRAM;
	}
	for (unsigned i = 0; i < U(2); i++)
		nm_metrics_add(metrics, &made);
}

/* kinds flops dram: the amounts that are sampled */
WORD(kinds)
{
	interval.kinds = 0;
	for (unsigned i = 0; i < step->count; i++)
		interval.kinds |= BIT((unsigned)script_value(step, "kind", step->word[i]));
}

QUANTITY(closed, nm_metrics_close(metrics, &interval, &sampled))

/* Closes the interval of the one thread, which ran, on CPU 1 unless another is named. */
WORD(close)
{
	struct nm_sample made = sample(NM_EVENT_CLOCK);
	if (step->nr_numbers > 0)
		made.cpu = U(0);
	nm_metrics_add(metrics, &made);
	assert_int_equal(nm_metrics_close(metrics, &interval, &sampled), 1);
}

/* taken 7 2.5 1: records per seen one, of each CPU */
static double taken[4];

WORD(taken)
{
	for (unsigned i = 0; i < step->nr_numbers; i++)
		taken[i] = N(i);
	interval.taken_per_seen = taken;
	interval.nr_cpus = step->nr_numbers;
}

KNOB(keep_share, interval.keep)
KNOB(length_ns, interval.length_ns)
QUANTITY(instructions, sampled->stats.instructions)
QUANTITY(operations, sampled->stats.operations)
QUANTITY(traffic, sampled->stats.traffic)
QUANTITY(latency, sampled->stats.latency)
QUANTITY(latency_samples, sampled->stats.latency_samples)
QUANTITY(recent_latency, sampled->stats.recent_latency)
QUANTITY(recent_latency_samples, sampled->stats.recent_latency_samples)
QUANTITY(main_node, sampled->stats.main_node)
QUANTITY(fresh, sampled->stats.fresh[U(0)])
QUANTITY(accesses, sampled->stats.accesses[U(0)])
QUANTITY(new, sampled->stats.fresh_samples)
QUANTITY(total, sampled->stats.access_total)
QUANTITY(runs, sampled->stats.run_samples)
QUANTITY(run_share, sampled->stats.run_share)
QUANTITY(dram_bytes, nm_metrics_dram_bytes(metrics, U(0)))

/* ---- amounts ---- */

SCRIPT(unsampled_metrics_are_unavailable,
       "kinds; amount instructions 100; amount flops 100; amount dram 6400; close",
       "instructions = nan; operations = nan; traffic = nan; latency = nan; latency_samples = 0")

SCRIPT(sampled_but_none_is_zero,
       "close; instructions = 0; operations = 0; traffic = 640; latency = nan")

/* The minimum of traffic is ten samples of 64,000 bytes per second. */
SCRIPT(amounts_become_rates,
       "set length_ns = 2e9; amount instructions 3000; amount instructions 1000; amount flops 800",
       "amount dram 64000; amount dram 64000; close; instructions = 2000; operations = 2400",
       "traffic = 640000")

/* The metrics of a thread that works in its caches depend neither on T nor on samples of others. */
SCRIPT(the_floor_is_a_rate_and_stays,
       "amount dram 6400; close; traffic = 64000; set length_ns = 2e9; amount dram 6400; close",
       "traffic = 64000; set length_ns = 4e9; amount dram 6400; close; traffic = 64000",
       "set length_ns = 1e9; amount dram 7000; close; traffic = 64000; amount dram 3200; close",
       "traffic = 32000")

SCRIPT(traffic_so_far_is_known_within_the_interval,
       "dram_bytes 6 = 0; amount dram 64000; amount dram 6400; dram_bytes 6 = 70400",
       "dram_bytes 7 = 0; close; dram_bytes 6 = 0")

SCRIPT(traffic_above_the_minimum_is_used, "each 11: amount dram 6400", "close; traffic = 70400")

SCRIPT(operations_need_both_counts,
       "kinds instructions; amount instructions 100; close; operations = nan; kinds flops",
       "amount instructions 100; close; operations = nan; kinds instructions flops dram",
       "amount instructions 100; close; operations = 100")

SCRIPT(counts_are_of_one_interval,
       "set keep_share = 0.5; amount instructions 100; access loads memory node1 400; close; close",
       "instructions = 0; latency = nan; fresh node1 = 0; accesses node1 = 0.5")

/* ---- latency and accesses ---- */

SCRIPT(latency_is_the_mean_of_the_samples,
       "access loads memory node0 300; access loads l1 node0 4; access loads memory node0 0",
       "access stores memory node0 9000; close; latency = 152; latency_samples = 2")

SCRIPT(latencies_are_counted_over_the_window_of_accesses,
       "set keep_share = 0.5; access loads memory node0 200 4; close",
       "access loads memory node0 500 4; close; latency_samples = 4; latency = 500",
       "recent_latency_samples = 6; recent_latency = 400; close; latency = nan",
       "recent_latency = 400; recent_latency_samples = 3")

/* CPU 1 is on node 0 and CPU 5 on node 2. */
SCRIPT(latencies_of_another_node_do_not_count,
       "set keep_share = 0.5; access loads memory node0 200 4; close",
       "access loads memory node0 600 2; close cpu5; main_node = 2; recent_latency_samples = 2",
       "recent_latency = 600")

SCRIPT(latency_needs_no_address, "access loads unknown nowhere 77; close; latency = 77; new = 0")

SCRIPT(known_levels_count_dram_only,
       "access loads memory node1 400; access loads l2 node1 14; access loads unknown node2 0",
       "access loads memory node3 500; close; fresh node0 = 0; fresh node1 = 1; fresh node2 = 0",
       "fresh node3 = 1; new = 2; total = 2; accesses node3 = 1")

SCRIPT(unknown_levels_count_as_dram,
       "access loads unknown node1 400; access stores unknown node2 0; close; fresh node0 = 0",
       "fresh node1 = 1; fresh node2 = 1; fresh node3 = 0; new = 2")

SCRIPT(faults_count_only_without_memory_samples,
       "access faults unknown node3 0 50; access loads memory node1 400; close; fresh node3 = 0",
       "fresh node1 = 1; new = 1; access faults unknown node3 0 50; close; fresh node3 = 50")

/* Even if it neither ran in a sample nor accessed memory. */
SCRIPT(counts_alone_yield_metrics,
       "amount instructions 100; closed = 1; instructions = 100; closed = 0")

TEST(counts_survive_the_growth_of_the_table)
{
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

/* Four samples support the ten accesses. */
SCRIPT(shares_of_a_counter_are_made_up_for,
       "weigh loads node2 2.5 4; weigh cycles 0 3 1; close; fresh node2 = 10; new = 4; runs = 4",
       "run_share = 0.04")

/* On CPU 1; and then on one of which nothing is known. */
SCRIPT(losses_scale_the_interval,
       "taken 7 2.5 1; access loads memory node3 100 4; amount instructions 1000; amount flops 100",
       "amount dram 100000; close; fresh node3 = 10; total = 10; new = 4; instructions = 2500",
       "operations = 2750; latency = 100; run_share = 0.025; taken 7; amount instructions 1000",
       "close; instructions = 1000")

RUN_TESTS()
