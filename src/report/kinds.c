/* SPDX-License-Identifier: MIT */
/* Names by Prometheus's rules: base units, ratios from 0 to 1, counters end in _total. */
#include "numa-migrd/export.h"

#define GAUGE(n, h, ...)                                                                           \
	{                                                                                          \
		.name = "numa_migrd_" n, .help = (h), .labels = { __VA_ARGS__ }                    \
	}
#define COUNTER(n, h, ...)                                                                         \
	{                                                                                          \
		.name = "numa_migrd_" n "_total", .counter = true, .help = (h), .labels = {        \
			__VA_ARGS__                                                                \
		}                                                                                  \
	}

/* clang-format off */
static const struct nm_metric_kind kinds[NM_METRIC_MAX] = {
	[NM_METRIC_INFO] = GAUGE("info",
		"Always 1; version, sampling source, and policies of threads and pages.",
		"version", "source", "policy", "pages_policy"),
	[NM_METRIC_START] = GAUGE("start_time_seconds",
		"Start time of the daemon in seconds since 1970, when the counters began."),
	[NM_METRIC_PAUSED] = GAUGE("paused",
		"1 while the service is paused: nothing is sampled, and all affinities are restored."),
	[NM_METRIC_DRY_RUN] = GAUGE("dry_run",
		"1 if the service only decides, and changes nothing."),
	[NM_METRIC_BLIND] = GAUGE("blind",
		"1 while there is no sampling source, or only the first access to each page is seen; the journal has the reason."),
	[NM_METRIC_INTERVAL] = GAUGE("interval_seconds",
		"Length of the interval."),
	[NM_METRIC_INTERVALS] = COUNTER("intervals",
		"Intervals since the start."),
	[NM_METRIC_PROCESSES] = GAUGE("processes",
		"Known processes by state: managed, only observed, or excluded by the attribute of a cgroup.",
		"state"),
	[NM_METRIC_THREADS] = GAUGE("threads",
		"Threads of managed and observed processes."),
	[NM_METRIC_LEASES] = GAUGE("leases",
		"Threads with a leased CPU affinity."),
	[NM_METRIC_PLACED] = GAUGE("placed_processes",
		"Processes that have a home node, with the policy auto."),
	[NM_METRIC_LOCAL] = GAUGE("local_access_ratio",
		"Share of the sampled accesses of managed threads that were local."),
	[NM_METRIC_LATENCY] = GAUGE("access_latency_cycles",
		"Mean latency of the sampled loads of managed threads in the last interval, if the hardware measures it."),
	[NM_METRIC_WAITING] = GAUGE("waiting_threads",
		"Managed threads that waited for a CPU, with the policy balance."),
	[NM_METRIC_IMBALANCE] = GAUGE("memory_imbalance_ratio",
		"Relative deviation of the memory traffic of the nodes, if pages are moved."),
	[NM_METRIC_NODE_BUSY] = GAUGE("node_cpu_busy_ratio",
		"Busy share of the CPUs of the node in the last interval, including processes that are not managed.", "node"),
	[NM_METRIC_NODE_THREADS] = GAUGE("node_threads",
		"Managed threads that ran mostly on the node.", "node"),
	[NM_METRIC_NODE_ACCESSES] = GAUGE("node_access_ratio",
		"Share of the sampled accesses of managed threads that the memory of the node served.", "node"),
	[NM_METRIC_DECISIONS] = COUNTER("decisions",
		"Decisions about threads or pages.", "of"),
	[NM_METRIC_MOVES] = COUNTER("moves",
		"Decisions about threads that were applied, and that were refused by the kernel or by a check.",
		"result"),
	[NM_METRIC_VERDICTS] = COUNTER("verdicts",
		"Verdicts on decisions.", "of", "verdict"),
	[NM_METRIC_PAGES] = COUNTER("pages",
		"Pages by result: moved, found elsewhere, refused by a rule, failed, not tried.",
		"result"),
	[NM_METRIC_PAGE_BYTES] = COUNTER("page_moved_bytes",
		"Memory migrated between nodes."),
	[NM_METRIC_PAGE_SECONDS] = COUNTER("page_call_seconds",
		"Time spent in calls that migrate pages."),
	[NM_METRIC_PAGE_LONGEST] = GAUGE("page_call_longest_seconds",
		"The longest of these calls since the start."),
	[NM_METRIC_PAGE_BACKOFFS] = COUNTER("page_backoffs",
		"Pauses of page migration after a call that exceeded pages.call_limit_ms."),
	[NM_METRIC_HOMES] = COUNTER("homes",
		"Homes that the policy auto granted, and that expired, yielded to others, or were rolled back.",
		"event"),
	[NM_METRIC_HOME_PAGES] = COUNTER("home_pages",
		"Pages that the policy auto moved to the homes of their processes."),
	[NM_METRIC_HOME_BYTES] = COUNTER("home_moved_bytes",
		"Memory that the policy auto moved to the homes of its processes."),
	[NM_METRIC_CPU] = COUNTER("cpu_seconds",
		"CPU time of the daemon (measured) and of sampling in the programs (estimated).",
		"by"),
	[NM_METRIC_OVERHEAD] = GAUGE("overhead_ratio",
		"Sum of both in the last interval, as a share of one CPU."),
	[NM_METRIC_RESIDENT] = GAUGE("resident_memory_bytes",
		"Resident memory of the daemon."),
	[NM_METRIC_SAMPLES] = COUNTER("samples",
		"Samples since the source was opened."),
	[NM_METRIC_LOST] = COUNTER("samples_lost",
		"Records that the kernel dropped because a ring was full."),
	[NM_METRIC_FAULT_PERIOD] = GAUGE("fault_period",
		"Sampling period in page faults; larger than 1 while sampling is reduced."),
	[NM_METRIC_SUPPRESSED] = COUNTER("journal_suppressed",
		"Journal entries suppressed by journal.rate_per_s, as of the last summary."),
	[NM_METRIC_STEER_CONFLICTS] = COUNTER("steering_conflicts",
		"Attributes of cgroups that could not be applied; the journal has the reason."),
};
/* clang-format on */

const struct nm_metric_kind *nm_metric_kind(enum nm_metric metric)
{
	return &kinds[metric];
}
