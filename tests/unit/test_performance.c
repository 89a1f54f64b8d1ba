/* SPDX-License-Identifier: MIT */
/* P by each setting, threads with measured metrics, relative and global performance. */
#define SET_UP set_up
#define TEAR_DOWN close_snapshot
#include "../support/test.h"

#include "snapshot_words.h"

/* Thread 0 of process 10: O_R 100, O_F 300, 50 B/s, L 20, so that O_F/B = 6 and O_R/B = 2. */
static int set_up(void **state)
{
	(void)open_snapshot(state);
	machine_thread(machine, 10, 0, 1);
	machine_perform(machine, 0, 100, 300, 50, 20);
	return 0;
}

static const struct nm_snap_thread *thread_of(uint32_t thread)
{
	return &take()->threads[thread];
}

static const struct {
	const char *name;
	uint32_t bit;
} kinds[] = {{"instructions", 1U << NM_EVENT_INSTRUCTIONS},
	     {"flops", 1U << NM_EVENT_FLOPS},
	     {"dram", 1U << NM_EVENT_DRAM}};

/* The names of the kinds in `bits`. */
static const char *show_kinds(uint32_t bits)
{
	static char text[64];
	text[0] = '\0';
	EACH_ROW(kind, kinds)
	if (bits & kind->bit) {
		strcat(text, *text ? " " : "");
		strcat(text, kind->name);
	}
	return *text ? text : NULL;
}

/* The kinds without any of which P is the locality. */
static const char *show_needed(void)
{
	const uint32_t all = machine->kinds;
	uint32_t needed = 0;
	EACH_ROW(kind, kinds)
	{
		machine->kinds = all & ~kind->bit;
		if (!take()->by_locality)
			continue;
		needed |= taken->missing & kind->bit;
		CHECK(kind, fabs(taken->threads[0].performance - 0.8) < 1e-12);
	}
	machine->kinds = all;
	return show_kinds(needed);
}

/* without flops: no counter gives this kind of samples */
WORD(without)
{
	EACH_ROW(kind, kinds)
	if (step_has(step, kind->name))
		machine->kinds &= ~kind->bit;
}

/* latency 0 500 9 400 10: L and its samples, of the interval and of the window */
WORD(latency)
{
	struct nm_thread_stats *stats = &machine->sampled[U(0)].stats;
	stats->latency = N(1);
	stats->latency_samples = U(2);
	stats->recent_latency = N(3);
	stats->recent_latency_samples = U(4);
}

ACTION(unsampled, machine->kinds = 0)
ACTION(fresh, machine->fresh[U(0) * 4 + U(1)] = U(2))
KNOB(by, machine->config.threads.performance)
NAMES(by, {"product", NM_PERFORMANCE_PRODUCT},
      {"product-instructions", NM_PERFORMANCE_PRODUCT_INSTRUCTIONS},
      {"operations", NM_PERFORMANCE_OPERATIONS}, {"instructions", NM_PERFORMANCE_INSTRUCTIONS},
      {"intensity", NM_PERFORMANCE_INTENSITY}, {"latency", NM_PERFORMANCE_LATENCY})
KNOB(policy, machine->config.threads.policy)
NAMES(policy, {"balance", NM_POLICY_BALANCE})
KNOB(to_node, machine->topology->distance[U(0)]) /* from node 0 */
KNOB(fresh_samples, machine->sampled[U(0)].stats.fresh_samples)
KNOB(recent_samples, machine->sampled[U(0)].stats.recent_latency_samples)
KNOB(operations, machine->sampled[U(0)].stats.operations)
KNOB(had_latencies, machine->had_latencies)
QUANTITY(p, thread_of(U(0))->performance)
QUANTITY(relative, thread_of(U(0))->relative)
QUANTITY(measured, thread_of(U(0))->measured)
QUANTITY(active, thread_of(U(0))->active)
QUANTITY(valid, thread_of(U(0))->valid)
QUANTITY(mean, take()->processes[U(0)].performance)
QUANTITY(nr_in_mean, take()->processes[U(0)].measured)
QUANTITY(global, take()->performance)
QUANTITY(nr_measured, take()->measured)
QUANTITY(nr_active, take()->active)
QUANTITY(nr_undersampled, take()->undersampled)
QUANTITY(by_locality, take()->by_locality)
QUANTITY(has_latencies, take()->has_latencies)
TEXT(missing, show_kinds(take()->missing))
TEXT(needed, show_needed())

SCRIPT(every_setting_has_its_formula,
       "set by = product; p 0 = 90; set by = product-instructions; p 0 = 10",
       "set by = operations; p 0 = 300; set by = instructions; p 0 = 100",
       "set by = intensity; p 0 = 6; set by = latency; p 0 = 0.05; by_locality = 0")

SCRIPT(missing_counters_are_replaced_by_locality,
       "touch 0 node0 300; set by = product; needed = instructions flops dram; missing = none",
       "set by = product-instructions; needed = instructions dram",
       "set by = operations; needed = instructions flops",
       "set by = instructions; needed = instructions",
       "set by = intensity; needed = instructions dram; set by = latency; needed = none")

/* One hop nearer is better even without local accesses. */
SCRIPT(locality_depends_on_distance,
       "without instructions; set to_node node1 = 40; p 0 = 0.25; set to_node node1 = 20",
       "p 0 = 0.5; touch 0 node0 100; set to_node node0 = 5; set to_node node1 = 15; p 0 = 0.5")

/* Accesses before the interval do not count if the interval has enough. */
SCRIPT(locality_is_of_the_interval,
       "without instructions; touch 0 node0 300; set fresh_samples 0 = 10",
       "fresh 0 node0 0; fresh 0 node1 10; p 0 = 0.5; set fresh_samples 0 = 9; p 0 = 0.8")

/* Threads may wait for CPUs, so that their share of one is equally important. */
SCRIPT(balancing_judges_locality_and_run_time,
       "without instructions; touch 0 node0 300; set run_share 0 = 0.5; p 0 = 0.8",
       "set policy = balance; p 0 = 0.4")

SCRIPT(l_is_unavailable_without_latencies,
       "latency 0 nan 0 20 0; by_locality = 1; set by = operations; p 0 = 300; by_locality = 0")

/* An interval without cache misses does not change the metric of P. */
SCRIPT(an_interval_without_latencies_keeps_the_metric,
       "has_latencies = 1; set had_latencies = 1; latency 0 nan 0 20 0; measured 0 = 0",
       "has_latencies = 0; by_locality = 0; without flops; by_locality = 1; missing = flops")

SCRIPT(intensity_uses_the_available_operations,
       "set operations 0 = nan; without flops; set by = intensity; p 0 = 2; by_locality = 0")

/* 3DyRM, section 3: floating-point operations per byte, whichever operations P counts. */
SCRIPT(in_the_paper_intensity_counts_floating_point_operations,
       "paper; set by = intensity; p 0 = 4; set by = product; p 0 = 60",
       "set by = product-instructions; p 0 = 20; by_locality = 0",
       "without flops; missing = flops; set by = instructions; missing = none")

/* Few samples per interval suffice if the window has min_samples of them. */
SCRIPT(few_latencies_per_interval_suffice,
       "set by = latency; latency 0 500 9 400 10; measured 0 = 1; p 0 = 0.0025",
       "latency 0 500 10 400 10; p 0 = 0.002")

SCRIPT(measured_needs_run_time_and_samples,
       "set run_share 0 = 0.1; set recent_samples 0 = 10; measured 0 = 1; active 0 = 1",
       "set recent_samples 0 = 9; measured 0 = 0; nr_undersampled = 1; p 0 = nan",
       "relative 0 = nan; active 0 = 1; set recent_samples 0 = 10; set run_share 0 = 0.099",
       "measured 0 = 0; active 0 = 0; set run_share 0 = nan; measured 0 = 0; active 0 = 0")

SCRIPT(locality_needs_accesses,
       "unsampled; touch 0 node1 10; measured 0 = 1; touch 0 node1 9; measured 0 = 0",
       "touch 0 node1 0; measured 0 = 0")

/* A thread that works in its caches has latencies and no accesses, which counts as measured. */
SCRIPT(a_cached_thread_is_measured, "touch 0 node1 0; measured 0 = 1; valid 0 = 0")

SCRIPT(unknown_metrics_are_not_measured,
       "thread 10 cpu1 node1; metrics 1 100 nan 50 20; measured 1 = 0; relative 0 = 1")

SCRIPT(relative_is_by_the_mean_of_the_process,
       "set by = instructions; thread 10 cpu1 node1; thread 10 cpu2 node1; thread 20 cpu3 node1",
       "metrics 1 300 300 1 20; metrics 2 1e9 1e9 1 20; metrics 3 7 7 1 20",
       "set recent_samples 2 = 1; relative 0 = 0.5; relative 1 = 1.5; relative 2 = nan",
       "relative 3 = 1; mean 0 = 200; nr_in_mean 0 = 2; global = 407; nr_measured = 3",
       "nr_active = 4")

/* Equations 2 and 3; three threads did not run. */
SCRIPT(in_the_paper_the_mean_is_over_all_threads,
       "paper; set by = instructions; thread 10 cpu1 node1; metrics 1 300 300 1 20",
       "thread 10 -1; thread 10 -1; thread 20 -1; relative 0 = 1; relative 1 = 3; mean 0 = 100",
       "mean 1 = nan")

SCRIPT(a_mean_of_zero_gives_no_relative,
       "set operations 0 = 0; p 0 = 0; measured 0 = 1; relative 0 = nan")

SCRIPT(a_process_without_measured_threads_has_no_mean,
       "set run_share 0 = 0; mean 0 = nan; global = 0")

RUN_TESTS()
