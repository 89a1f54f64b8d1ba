/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "table.h"

/* Each list is in the order of its enum in config.h. */
static const char *const profiles[] = {"shipped", "paper", NULL};
static const char *const sources[] = {"auto",  "pebs",	 "ibs",	 "spe", "pmu",
				      "event", "faults", "none", NULL};
static const char *const injects[] = {"none", "numa_balancing", "soft_dirty", NULL};
static const char *const policies[] = {"none", "lbma", "imar2", "kmaf", "balance", "auto", NULL};
static const char *const gates[] = {"benefit", "paper", NULL};
static const char *const pins[] = {"auto", "node", "core", "nudge", NULL};
static const char *const lotteries[] = {"proportional", "paper", NULL};
static const char *const performances[] = {"product",      "product_instructions", "operations",
					   "instructions", "intensity",            "latency",
					   NULL};
static const char *const selections[] = {
	"first_fit",	    "total_min",      "remote_min",	  "local_max",	 "most_benefit",
	"cost_effective",   "exclusivity_base", "exclusivity", "most_benefit_plus", NULL};
static const char *const feedbacks[] = {"moved", "global", NULL};
static const char *const page_policies[] = {"none", "watch", "exclusivity", "auto", NULL};
static const char *const balancings[] = {"yield", "warn", "manage", NULL};
static const char *const attributes[] = {"ignore", "obey", "only", NULL};
static const char *const levels[] = {"error", "notice", "decisions", "debug", NULL};

#define FIELD(g, n) .group = #g, .name = #n, .offset = offsetof(struct nm_config, g.n)
#define BOOL(g, n, s, p, m)                                                                        \
	{                                                                                          \
		FIELD(g, n), .type = NM_SETTING_BOOL, .shipped = (s), .paper = (p), .meaning = (m) \
	}
#define CHOICE(g, n, c, s, p, m)                                                                   \
	{                                                                                          \
		FIELD(g, n), .type = NM_SETTING_CHOICE, .shipped = (s), .paper = (p),              \
			     .choices = (c), .meaning = (m)                                        \
	}
#define NUMBER(g, n, t, l, h, s, p, m)                                                             \
	{                                                                                          \
		FIELD(g, n), .type = (t), .shipped = (s), .paper = (p), .low = (l), .high = (h),   \
			     .meaning = (m)                                                        \
	}
#define COUNT(g, n, ...) NUMBER(g, n, NM_SETTING_COUNT, __VA_ARGS__)
#define REAL(g, n, ...) NUMBER(g, n, NM_SETTING_REAL, __VA_ARGS__)
#define TARGETS(n, m)                                                                              \
	{                                                                                          \
		FIELD(targets, n), .type = NM_SETTING_TARGETS, .shipped = "( )", .meaning = (m)    \
	}

/* clang-format off */
const struct nm_setting_group nm_setting_groups[] = {
	{"general", "Interval, dry run and random seed."},
	{"targets", "Processes to manage. Kernel threads, real-time threads and numa-migrd itself are never managed."},
	{"sampling", "Sampling of memory accesses."},
	{"threads", "Placement of threads."},
	{"verify", "Comparison with processes that are left alone."},
	{"pages", "Migration of pages."},
	{"journal", "Entries in the journal."},
	{"metrics", "Metrics for Prometheus, in a file that the textfile collector of node_exporter reads."},
};

const struct nm_setting_heading nm_setting_headings[] = {
	{"sampling", "pmu", "Hardware events and rates"},
	{"threads", "moves_per_interval", "Leases"},
	{"threads", "min_run", "Selection of threads, with policies lbma, imar2, kmaf and balance"},
	{"threads", "n", "Lottery, with policies lbma and imar2"},
	{"threads", "delta_r", "Policy imar2"},
	{"threads", "rollback", "Verdicts"},
	{"threads", "mapping_s", "Policy kmaf"},
	{"threads", "selection", "Policy balance"},
	{"pages", "max_tracked", "Page exclusivity, with pages.policy and with policy kmaf"},
	{"pages", "max_pages_per_interval", "Limits of page migration"},
};

const struct nm_setting nm_settings[] = {
	{.group = "", .name = "profile", .type = NM_SETTING_CHOICE, .offset = offsetof(struct nm_config, profile),
	 .shipped = "shipped", .paper = "paper", .choices = profiles,
	 .meaning = "Values of settings that this file does not contain: the defaults, or those of the publications"},

	REAL(general, interval_s, "0.1", "60", "1.0", NULL,
	     "Time between two decisions, in seconds (T)"),
	BOOL(general, dry_run, "false", NULL,
	     "Sample, decide and log, but change nothing"),
	COUNT(general, seed, "0", "9223372036854775807", "0", NULL,
	      "Random seed; 0 takes one from the kernel"),

	TARGETS(include, "Patterns of processes to manage; an empty list means all"),
	TARGETS(exclude, "Patterns of processes that are never managed"),
	CHOICE(targets, attribute, attributes, "obey", NULL,
	       "Effect of the cgroup attribute user.numa-migrd: none, as documented, or as documented with all other processes excluded"),
	REAL(targets, min_cpu_percent, "0", "100000", "10", "0",
	     "Minimum CPU usage for a process to be managed, in percent of one CPU"),
	COUNT(targets, min_rss_mb, "0", "67108864", "0", "1",
	      "Minimum resident memory for a process to be managed, in MiB; 0 = automatic, by the size of the last-level cache"),

	CHOICE(sampling, source, sources, "auto", NULL,
	       "Sampling source for memory accesses"),
	CHOICE(sampling, inject, injects, "none", NULL,
	       "Additional page faults that make memory accesses visible without hardware sampling"),
	BOOL(sampling, accept_soft_dirty_risk, "false", NULL,
	     "Accept that inject = \"soft_dirty\" disturbs programs that track their own written pages"),
	REAL(sampling, overhead_percent, "0.1", "100", "1.0", NULL,
	     "Limit for the CPU time of sampling and decisions, in percent of one CPU"),
	{FIELD(sampling, ring_kb), .type = NM_SETTING_COUNT, .shipped = "512", .low = "16", .high = "65536",
	 .power_of_two = true, .meaning = "Size of the sample buffer of each CPU, in KiB"},

	{FIELD(sampling, pmu), .type = NM_SETTING_PMU, .shipped = "",
	 .meaning = "Another PMU that samples memory accesses, with its terms as in perf(1)"},
	{FIELD(sampling, event), .type = NM_SETTING_EVENT, .shipped = "",
	 .meaning = "Event of this CPU for memory accesses, in the notation of libpfm4"},
	COUNT(sampling, load_latency, "3", "65535", "30", NULL,
	      "Minimum latency of sampled loads, in CPU cycles"),
	COUNT(sampling, memory_period, "0", "1000000000", "0", NULL,
	      "Sampling period, in accesses per sample; 0 = automatic"),
	REAL(sampling, history_s, "0", "3600", "10", "0",
	     "Half-life of the counts of accesses, in seconds; 0 = the last interval only"),
	REAL(sampling, soft_dirty_mb_s, "1", "100000", "256", NULL,
	     "Limit for inject = \"soft_dirty\", in MB write-protected per second"),

	CHOICE(threads, policy, policies, "auto", "lbma",
	       "Policy that places threads"),
	CHOICE(threads, pin, pins, "auto", "core",
	       "Type of CPU affinity on the new node: automatic, lease of the node, lease of one CPU, or transient"),
	REAL(threads, lease_expiry_s, "0", "3600", "30", "0",
	     "Idle time after which the affinity of a thread is restored, in seconds; 0 = never"),

	COUNT(threads, moves_per_interval, "1", "4096", "64", NULL,
	      "Maximum number of threads moved in one interval"),
	REAL(threads, young_s, "0", "3600", "3", NULL,
	     "Age up to which processes get transient affinities with pin = \"auto\", in seconds"),
	REAL(threads, quiet_s, "0", "3600", "3", NULL,
	     "Time without a new thread or child before a lease with pin = \"auto\", in seconds"),

	REAL(threads, min_run, "0", "1", "0.1", "0",
	     "Minimum share of the interval that a thread must have run"),
	COUNT(threads, min_samples, "1", "1000000", "10", "1",
	      "Minimum number of sampled accesses of a thread"),
	REAL(threads, home_share, "0", "1", "0.8", "0",
	     "Minimum share of the run samples of a thread on one node"),
	REAL(threads, warmup_s, "0", "3600", "3", "0",
	     "Time for which a new thread is only observed, in seconds"),
	COUNT(threads, cooldown, "0", "10000", "8", "0",
	      "Intervals for which a thread is not moved after a move that did not help"),
	BOOL(threads, cross_owner_swap, "false", "true",
	     "Swap threads of different users even if only one of them gains"),

	COUNT(threads, n, "1", "1024", "8", "1",
	      "Maximum number of threads considered in one interval (N)"),
	CHOICE(threads, lottery, lotteries, "proportional", "paper",
	       "Probability of winning: proportional to the tickets, or highest random number below the tickets"),
	REAL(threads, q1, "0", "1000", "2", NULL,
	     "Tickets for an idle CPU (q1)"),
	REAL(threads, q1_sibling, "0", "1000", "1", "2",
	     "Tickets for an idle CPU that shares its core with a busy one"),
	REAL(threads, q2, "0", "1000", "4", NULL,
	     "Tickets for the node that the thread accesses most (q2)"),
	REAL(threads, free_max, "0", "1", "0.05", "0",
	     "Busy share below which a CPU is idle"),
	CHOICE(threads, gate, gates, "benefit", "paper",
	       "Moves that take part: those that make more accesses local, or all"),
	REAL(threads, gate_margin, "0", "1", "0.05", NULL,
	     "Minimum share of the accesses that must become local"),
	REAL(threads, gate_sigmas, "0", "10", "3", "0",
	     "Minimum gain in standard errors"),

	REAL(threads, delta_r, "0", "1", "0.8", NULL,
	     "Relative performance below which a thread is slow (delta_r)"),
	REAL(threads, remote_below, "0", "1", "0.5", "0",
	     "Local access ratio below which a thread is considered, too"),
	REAL(threads, q3_better, "0", "1000", "4", NULL,
	     "Tickets for a node on which the thread was faster (q3)"),
	REAL(threads, q3_equal, "0", "1000", "2", NULL,
	     "Tickets for a node on which the thread was equally fast, or has not run (q3)"),
	REAL(threads, q3_worse, "0", "1000", "1", NULL,
	     "Tickets for a node on which the thread was slower (q3)"),
	REAL(threads, q4, "0", "1000", "3", NULL,
	     "Tickets for a swap with a thread that is slow, too (q4)"),
	REAL(threads, record_band, "0", "1", "0.05", "0",
	     "Relative difference up to which two performance values are equal"),
	COUNT(threads, record_age, "0", "1000000", "60", "0",
	      "Intervals after which a remembered performance expires; 0 = never"),
	REAL(threads, t_min_s, "0.1", "60", "1.0", NULL,
	     "Minimum interval, in seconds (Tmin)"),
	REAL(threads, t_max_s, "0.1", "60", "4.0", NULL,
	     "Maximum interval, in seconds (Tmax)"),

	BOOL(threads, rollback, "true", "false",
	     "Roll back moves that did not help, with lbma, kmaf and balance"),
	CHOICE(threads, performance, performances, "product", NULL,
	       "Measure of the performance of a thread"),
	CHOICE(threads, feedback, feedbacks, "moved", "global",
	       "Processes whose performance decides: those with moved threads, or all together"),
	REAL(threads, delta_g, "0", "1", "0.9", NULL,
	     "Share of the performance that must remain after a move (delta_g)"),
	REAL(threads, noise_gate, "0", "100", "3", "0",
	     "Standard deviations within which a change of the performance is noise"),

	REAL(threads, mapping_s, "0.1", "60", "1.0", "0.1",
	     "Time between two placements, in seconds"),
	REAL(threads, mapping_gain, "0", "1", "0.1", "0",
	     "Minimum share of the distance between communicating threads that a placement must save"),

	CHOICE(threads, selection, selections, "exclusivity", NULL,
	       "Selection of the thread that leaves an overloaded node"),
	REAL(threads, balance_begin, "-1000", "1000", "0.5", "-1000",
	     "Difference of load per CPU above which balancing begins"),
	REAL(threads, balance_end, "-1000", "1000", "0.25", "-1000",
	     "Difference of load per CPU below which balancing ends"),
	COUNT(threads, balance_persist, "1", "1000", "2", "1",
	      "Consecutive intervals for which the difference must exceed balance_begin"),
	REAL(threads, balance_overload, "0", "1000", "1", "0",
	     "Load per CPU of a node up to which no thread leaves it"),
	REAL(threads, balance_min_gain, "-1000000000000", "1000000000000", "0", "-1000000000000",
	     "Minimum number of additional pages on the destination node"),
	REAL(threads, balance_idle_max, "0", "1", "0.05", "0",
	     "Load of a CPU below which it accepts threads of both types, with dtas"),
	BOOL(threads, dtas, "false", NULL,
	     "Divide the CPUs between memory-bound and compute-bound threads"),

	REAL(verify, control_percent, "0", "50", "5", "0",
	     "Share of processes that are left alone for their first ten minutes, in percent"),

	CHOICE(pages, policy, page_policies, "auto", "none",
	       "Policy for single pages and ranges: none, count accesses only, also migrate, or migrate "
	       "those of processes that threads.policy = \"auto\" leaves on several nodes"),
	CHOICE(pages, numa_balancing, balancings, "yield", NULL,
	       "Behaviour while automatic NUMA balancing is on: leave pages to it, migrate and warn, or turn it off"),
	COUNT(pages, max_mb_per_s, "1", "1000000", "1024", NULL,
	     "Limit for page migration, in MiB per second"),
	REAL(pages, keep_free, "0", "1", "0.05", NULL,
	     "Share of the memory of each node that migration leaves free"),
	BOOL(pages, move_bound, "false", NULL,
	     "Migrate memory with a memory policy of its owner, such as numactl(8), too"),
	BOOL(pages, move_shared, "false", NULL,
	     "Migrate mapped files and shared memory that no other process maps, too"),
	BOOL(pages, isolated_cpus, "false", NULL,
	     "Migrate pages on machines with isolated or nohz_full CPUs, too"),

	COUNT(pages, max_tracked, "1000", "100000000", "1000000", NULL,
	      "Maximum number of pages with counts; 64 bytes per page on machines with up to 5 nodes"),
	COUNT(pages, sharing_window_s, "1", "120", "10", "120",
	      "Time within which accesses of two threads to the same 1024 bytes count as communication, in seconds"),
	REAL(pages, decay_s, "0", "3600", "10", "0",
	     "Half-life of the counts of a page, in seconds; 0 = halve only when the page moves"),
	REAL(pages, factor, "1", "100", "2", NULL,
	     "Factor by which the accesses of a node must exceed those of any other (kMAF, equation 6)"),
	COUNT(pages, min_accesses, "0", "255", "4", "0",
	      "Minimum number of counted accesses to a page for it to move"),
	REAL(pages, cooldown_s, "0", "3600", "10", "0",
	     "Time for which a page stays after it was moved, or could not be moved, in seconds"),
	REAL(pages, region_exclusivity, "0", "1", "0.8", NULL,
	     "Minimum share of the accesses to a range from one node to move the range there"),
	REAL(pages, imbalance, "0", "100", "0.35", NULL,
	     "Relative deviation of the traffic of the nodes above which shared ranges are interleaved"),
	COUNT(pages, rollback_pages, "0", "100000000", "262144", "0",
	      "Maximum number of moved pages whose original node is remembered; 0 = no rollback"),

	COUNT(pages, max_pages_per_interval, "1", "10000000", "65536", NULL,
	     "Maximum number of pages moved in one interval; a huge page counts once"),
	REAL(pages, maps_budget_ms, "0.1", "1000", "100", NULL,
	     "Time for which the mappings of a process are read at a stretch, in milliseconds"),
	COUNT(pages, maps_max_rss_gb, "0", "1000000", "256", NULL,
	      "Maximum resident memory of a process whose pages may move, in GiB; 0 = no limit"),
	REAL(pages, call_limit_ms, "0.1", "1000", "10", NULL,
	     "Maximum duration of a call that moves pages, in milliseconds"),

	CHOICE(journal, level, levels, "decisions", NULL,
	       "Entries that are written; each level includes the ones before it"),
	COUNT(journal, rate_per_s, "1", "100000", "20", NULL,
	      "Maximum number of entries per second; errors are always written"),

	{FIELD(metrics, file), .type = NM_SETTING_PATH, .shipped = "",
	 .meaning = "Absolute path of the file; empty = no metrics"},
	REAL(metrics, period_s, "1", "3600", "15", NULL,
	     "Time between two updates of the file, in seconds"),
};

/* clang-format on */

const size_t nm_setting_count = NM_ARRAY_SIZE(nm_settings);
const size_t nm_setting_heading_count = NM_ARRAY_SIZE(nm_setting_headings);
const size_t nm_setting_group_count = NM_ARRAY_SIZE(nm_setting_groups);

const struct nm_setting *nm_setting_find(const char *group, const char *name)
{
	for (size_t i = 0; i < nm_setting_count; i++)
		if (strcmp(nm_settings[i].group, group) == 0 &&
		    strcmp(nm_settings[i].name, name) == 0)
			return &nm_settings[i];
	return NULL;
}

const struct nm_setting_group *nm_setting_group_find(const char *name)
{
	for (size_t i = 0; i < nm_setting_group_count; i++)
		if (strcmp(nm_setting_groups[i].name, name) == 0)
			return &nm_setting_groups[i];
	return NULL;
}

/* Defines a function that returns the name of a choice. */
#define NAME_OF(function, type, names)                                                             \
	const char *function(type choice)                                                          \
	{                                                                                          \
		return names[choice];                                                              \
	}

NAME_OF(nm_pin_name, enum nm_pin, pins)
NAME_OF(nm_policy_name, enum nm_thread_policy, policies)
NAME_OF(nm_page_policy_name, enum nm_page_policy, page_policies)
NAME_OF(nm_gate_name, enum nm_gate, gates)
NAME_OF(nm_lottery_name, enum nm_lottery, lotteries)
NAME_OF(nm_inject_name, enum nm_inject, injects)
NAME_OF(nm_performance_name, enum nm_performance, performances)
NAME_OF(nm_feedback_name, enum nm_feedback_kind, feedbacks)
NAME_OF(nm_selection_name, enum nm_selection, selections)
