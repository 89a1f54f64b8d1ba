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
		"Always 1; version, source of the samples, and policies of threads and pages.",
		"version", "source", "policy", "pages_policy"),
	[NM_METRIC_START] = GAUGE("start_time_seconds",
		"When the daemon started, in seconds since 1970; counters began then."),
	[NM_METRIC_PAUSED] = GAUGE("paused",
		"1 while it is paused: nothing is sampled, and every mask is its owner's."),
	[NM_METRIC_DRY_RUN] = GAUGE("dry_run",
		"1 where nothing is changed, only decided."),
	[NM_METRIC_BLIND] = GAUGE("blind",
		"1 while nothing can be sampled, no memory access or only the first touch of each page; the journal says why."),
	[NM_METRIC_INTERVAL] = GAUGE("interval_seconds",
		"From one decision to the next."),
	[NM_METRIC_INTERVALS] = COUNTER("intervals",
		"Intervals since the start."),
	[NM_METRIC_PROCESSES] = GAUGE("processes",
		"Known processes: managed, only observed, or left alone since a control group says off.",
		"state"),
	[NM_METRIC_THREADS] = GAUGE("threads",
		"Threads of managed and observed processes."),
	[NM_METRIC_LEASES] = GAUGE("leases",
		"Threads that hold a CPU mask of this daemon's."),
	[NM_METRIC_LOCAL] = GAUGE("local_access_ratio",
		"Share of the sampled memory accesses that were to the node of the thread, over all managed threads."),
	[NM_METRIC_LATENCY] = GAUGE("access_latency_cycles",
		"Mean latency of the sampled loads of managed threads in the last interval, where the hardware tells."),
	[NM_METRIC_WAITING] = GAUGE("waiting_threads",
		"Managed threads that waited for a CPU, with the policy balance."),
	[NM_METRIC_IMBALANCE] = GAUGE("memory_imbalance_ratio",
		"Relative deviation of the nodes' memory traffic, where pages are moved."),
	[NM_METRIC_NODE_BUSY] = GAUGE("node_cpu_busy_ratio",
		"Busy share of the node's CPUs in the last interval, whoever ran.", "node"),
	[NM_METRIC_NODE_THREADS] = GAUGE("node_threads",
		"Managed threads that ran mostly on the node.", "node"),
	[NM_METRIC_NODE_ACCESSES] = GAUGE("node_access_ratio",
		"Share of the managed threads' sampled accesses that the node's memory served.", "node"),
	[NM_METRIC_DECISIONS] = COUNTER("decisions",
		"Decisions to move something.", "of"),
	[NM_METRIC_MOVES] = COUNTER("moves",
		"Decisions about threads that were carried out, and that the kernel or a changed mask refused.",
		"result"),
	[NM_METRIC_VERDICTS] = COUNTER("verdicts",
		"What came of decisions, looked at afterwards.", "of", "verdict"),
	[NM_METRIC_PAGES] = COUNTER("pages",
		"Pages that were to be moved: moved, found elsewhere, left alone by a rule, failed, not tried.",
		"result"),
	[NM_METRIC_PAGE_BYTES] = COUNTER("page_moved_bytes",
		"Memory moved between nodes."),
	[NM_METRIC_PAGE_SECONDS] = COUNTER("page_call_seconds",
		"Time spent in calls that move pages."),
	[NM_METRIC_PAGE_LONGEST] = GAUGE("page_call_longest_seconds",
		"The longest of these calls since the start."),
	[NM_METRIC_PAGE_BACKOFFS] = COUNTER("page_backoffs",
		"Pauses of moving pages after a call over pages.call_limit_ms."),
	[NM_METRIC_CPU] = COUNTER("cpu_seconds",
		"Processor time of the daemon itself, and what taking samples cost the programs (estimated).",
		"by"),
	[NM_METRIC_OVERHEAD] = GAUGE("overhead_ratio",
		"Both together in the last interval, as a share of one CPU."),
	[NM_METRIC_RESIDENT] = GAUGE("resident_memory_bytes",
		"Memory of the daemon."),
	[NM_METRIC_SAMPLES] = COUNTER("samples",
		"Samples taken in since the source was opened."),
	[NM_METRIC_LOST] = COUNTER("samples_lost",
		"Records that the kernel dropped since a ring was full."),
	[NM_METRIC_FAULT_PERIOD] = GAUGE("fault_period",
		"Every how many page faults one is sampled; above sampling.fault_period while sampling is held back."),
	[NM_METRIC_SUPPRESSED] = COUNTER("journal_suppressed",
		"Journal entries left out by journal.rate_per_s, as of the last summary."),
	[NM_METRIC_STEER_CONFLICTS] = COUNTER("steering_conflicts",
		"Attributes of cgroups that could not be followed; the journal says which and why."),
};
/* clang-format on */

const struct nm_metric_kind *nm_metric_kind(enum nm_metric metric)
{
	return &kinds[metric];
}
