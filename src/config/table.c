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
static const char *const page_policies[] = {"none", "watch", "exclusivity", NULL};
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
	{"general", "The interval and what holds for everything."},
	{"targets", "Which processes are managed. Kernel threads, real-time threads and numa-migrd itself never are."},
	{"sampling", "How it is seen who runs where and who touches which memory."},
	{"threads", "How threads are moved to their memory."},
	{"pages", "How it is counted which node uses which page and which threads share it, and what follows from it."},
	{"journal", "What is told in the journal."},
	{"metrics", "Figures for Prometheus, in a file that node_exporter's textfile collector reads."},
};

const struct nm_setting nm_settings[] = {
	{.group = "", .name = "profile", .type = NM_SETTING_CHOICE, .offset = offsetof(struct nm_config, profile),
	 .shipped = "shipped", .paper = "paper", .choices = profiles,
	 .meaning = "Whose value a setting has that is not set here: ours, or the one of the papers"},

	REAL(general, interval_s, "0.1", "60", "1.0", NULL,
	     "Seconds from one decision to the next, the papers' T"),
	COUNT(general, seed, "0", "9223372036854775807", "0", NULL,
	      "Seed of every random draw; 0 takes one from the kernel and tells it in the journal"),
	BOOL(general, dry_run, "false", NULL,
	     "Sample, decide and explain, but change nothing"),

	TARGETS(include, "Manage what matches one of these; without any, every process that is worth it"),
	TARGETS(exclude, "Never touch what matches one of these, whatever include says"),
	CHOICE(targets, attribute, attributes, "obey", NULL,
	       "Effect of the cgroup attribute user.numa-migrd (off, observe, on): none, as it says, or as it says and nothing else is managed"),
	REAL(targets, min_cpu_percent, "0", "100000", "10", "0",
	     "A process is worth it from this share of one CPU on, in percent, all its threads together"),
	COUNT(targets, min_rss_mb, "0", "67108864", "0", "1",
	      "A process is worth it from this much resident memory on, in MiB; 0 = twice the last-level cache, or a quarter of it with policy = \"auto\""),

	CHOICE(sampling, source, sources, "auto", NULL,
	       "Where samples come from: the best source that counts, one by name, page faults, or nowhere"),
	{FIELD(sampling, pmu), .type = NM_SETTING_PMU, .shipped = "",
	 .meaning = "Another PMU that samples memory accesses, as perf(1) would spell the event"},
	{FIELD(sampling, event), .type = NM_SETTING_EVENT, .shipped = "",
	 .meaning = "Event of this CPU by which memory accesses are sampled, as libpfm4 spells it"},
	COUNT(sampling, load_latency, "3", "65535", "30", NULL,
	      "Cycles from which on a load is sampled, where the hardware can tell"),
	COUNT(sampling, memory_period, "0", "1000000000", "0", NULL,
	      "Every how many accesses one is sampled by hardware; 0 = as suits the source"),
	CHOICE(sampling, inject, injects, "none", NULL,
	       "Make memory accesses visible by faults of our own causing, where the kernel causes none"),
	BOOL(sampling, accept_soft_dirty_risk, "false", NULL,
	     "inject = \"soft_dirty\" disturbs programs that track their own dirty pages: true says that you know"),
	REAL(sampling, history_s, "0", "3600", "10", "0",
	     "Half-life of the access counts in seconds; 0 = only the last interval counts"),
	REAL(sampling, soft_dirty_mb_s, "1", "100000", "256", NULL,
	     "MiB of memory write-protected per second over all targets, with inject = \"soft_dirty\""),
	REAL(sampling, overhead_percent, "0.1", "100", "1.0", NULL,
	     "Own cost in percent of one CPU above which less is sampled"),
	{FIELD(sampling, ring_kb), .type = NM_SETTING_COUNT, .shipped = "512", .low = "16", .high = "65536",
	 .power_of_two = true, .meaning = "Sample buffer of each CPU in KiB"},

	CHOICE(threads, policy, policies, "auto", "lbma",
	       "Who decides: nobody, the lottery over accesses, the one over performance that undoes what did not help, what threads share, which node is overloaded, or (auto) a home node for each process, its memory with it"),
	CHOICE(threads, gate, gates, "benefit", "paper",
	       "Let through only moves that bring threads nearer to their memory, or every move"),
	REAL(threads, gate_margin, "0", "1", "0.05", NULL,
	     "Share of its accesses that a move must make local, with gate = \"benefit\", or lose to be undone"),
	REAL(threads, gate_sigmas, "0", "10", "3", "0",
	     "Standard deviations of sampling by which that rise must exceed chance"),
	CHOICE(threads, pin, pins, "auto", "core",
	       "How a thread is held: lease or nudge as it fits, lease of the node, lease of one CPU, nudge"),
	CHOICE(threads, lottery, lotteries, "proportional", "paper",
	       "How tickets win: in proportion, or by the highest of one draw for each candidate"),
	COUNT(threads, n, "1", "1024", "8", "1",
	      "Threads considered, and at most so many moves or swaps, in one interval"),
	REAL(threads, q1, "0", "1000", "2", NULL,
	     "Tickets for a free CPU"),
	REAL(threads, q1_sibling, "0", "1000", "1", "2",
	     "Tickets for a free CPU that shares its core with a busy one"),
	REAL(threads, q2, "0", "1000", "4", NULL,
	     "Tickets for the node that holds most of what the thread accesses"),
	REAL(threads, free_max, "0", "1", "0.05", "0",
	     "A CPU is free below this busy share, by itself or out of what its node's CPUs leave idle"),
	REAL(threads, min_run, "0", "1", "0.1", "0",
	     "Share of the interval that a thread must have run to be considered"),
	COUNT(threads, min_samples, "1", "1000000", "10", "1",
	      "Accesses that must have been seen of a thread to consider it"),
	REAL(threads, home_share, "0", "1", "0.8", "0",
	     "Share of its run samples that must fall on one node for a thread to be at home there"),
	REAL(threads, warmup_s, "0", "3600", "3", "0",
	     "Seconds that a thread is only watched at first"),
	COUNT(threads, cooldown, "0", "10000", "8", "0",
	      "Intervals for which a thread is left alone after a move that did not help"),
	COUNT(threads, moves_per_interval, "1", "4096", "64", NULL,
	      "Threads moved in one interval, at most"),
	REAL(threads, lease_expiry_s, "0", "3600", "30", "0",
	     "Seconds after which a thread that went quiet gets its own CPU mask back; 0 = never"),
	REAL(threads, young_s, "0", "3600", "3", NULL,
	     "Processes younger than this many seconds are nudged, not leased, with pin = \"auto\""),
	REAL(threads, quiet_s, "0", "3600", "3", NULL,
	     "Seconds without a new thread or child before a lease, with pin = \"auto\""),
	BOOL(threads, cross_owner_swap, "false", "true",
	     "Let threads of different users change places also if one of them loses"),
	BOOL(threads, rollback, "true", "false",
	     "Undo a move after which the share of local accesses fell, with policy = \"kmaf\" accesses took longer, or with \"balance\" the performance fell"),
	CHOICE(threads, performance, performances, "product", NULL,
	       "What a thread's performance is, with policy = \"imar2\", as all that follow"),
	REAL(threads, delta_r, "0", "1", "0.8", NULL,
	     "A thread is slow below this share of its process's mean performance"),
	REAL(threads, remote_below, "0", "1", "0.5", "0",
	     "Threads with a smaller share of local accesses are considered like slow ones"),
	REAL(threads, q3_better, "0", "1000", "4", NULL,
	     "Tickets for a node where the thread was faster"),
	REAL(threads, q3_equal, "0", "1000", "2", NULL,
	     "Tickets for a node where it was as fast, or of which nothing is known"),
	REAL(threads, q3_worse, "0", "1000", "1", NULL,
	     "Tickets for a node where the thread was slower"),
	REAL(threads, q4, "0", "1000", "3", NULL,
	     "Tickets for changing places with a thread that is slow too"),
	REAL(threads, record_band, "0", "1", "0.05", "0",
	     "Performances that differ by no more than this share are equal"),
	COUNT(threads, record_age, "0", "1000000", "60", "0",
	      "Intervals after which a record of a thread's performance is forgotten; 0 = never"),
	CHOICE(threads, feedback, feedbacks, "moved", "global",
	       "Whose performance tells whether moves helped: that of the processes moved, or the sum of all"),
	REAL(threads, delta_g, "0", "1", "0.9", NULL,
	     "Moves are undone when less than this share of the performance is left"),
	REAL(threads, noise_gate, "0", "100", "3", "0",
	     "Changes of the performance within so many times its recent spread are noise; 0 = nothing is"),
	REAL(threads, t_min_s, "0.1", "60", "1.0", NULL,
	     "Shortest interval in seconds, after moves that helped"),
	REAL(threads, t_max_s, "0.1", "60", "4.0", NULL,
	     "Longest interval in seconds, after moves that were undone"),

	REAL(threads, mapping_s, "0.1", "60", "1.0", "0.1",
	     "Seconds from one placement by sharing to the next, with policy = \"kmaf\"; a shorter one shortens the interval"),
	REAL(threads, mapping_gain, "0", "1", "0.1", "0",
	     "Share of the distance between sharing threads that a new placement must save; 0 = place always"),

	CHOICE(threads, selection, selections, "exclusivity", NULL,
	       "Which of the waiting threads leaves an overloaded node, with policy = \"balance\", as all that follow"),
	REAL(threads, balance_begin, "-1000", "1000", "0.5", "-1000",
	     "Balancing begins when the fullest node's load per CPU exceeds the emptiest one's by more than this"),
	REAL(threads, balance_end, "-1000", "1000", "0.25", "-1000",
	     "Balancing ends when it exceeds it by less than this"),
	COUNT(threads, balance_persist, "1", "1000", "2", "1",
	      "Intervals in a row that balance_begin must be exceeded"),
	REAL(threads, balance_overload, "0", "1000", "1", "0",
	     "Load per CPU of a node below which nobody has to leave it"),
	REAL(threads, balance_min_gain, "-1000000000000", "1000000000000", "0", "-1000000000000",
	     "Pages that the process must have more on the node that a thread goes to; the lowest value: whatever they are"),
	REAL(threads, balance_idle_max, "0", "1", "0.05", "0",
	     "Load of a CPU below which it takes threads of either type, with dtas"),
	REAL(threads, residency_s, "0", "3600", "30", NULL,
	     "Seconds after which it is counted again where a process's pages are; 0 = its sampled accesses tell"),
	COUNT(threads, residency_maps_mb, "0", "64", "64", NULL,
	      "MiB in memory up to which a process's pages are counted by its numa_maps; 0 = never"),
	BOOL(threads, dtas, "false", NULL,
	     "Keep CPUs for threads that wait for memory and others for threads that compute"),

	CHOICE(pages, policy, page_policies, "none", NULL,
	       "What is done about pages: nothing, count their accesses and tell in the status, or also move them"),
	COUNT(pages, max_tracked, "1000", "100000000", "1000000", NULL,
	      "Pages that accesses are counted of, at most; 64 bytes each on machines with up to five nodes"),
	REAL(pages, factor, "1", "100", "2", NULL,
	     "A page belongs to a node with more than so many times the accesses of any other, and one"),
	COUNT(pages, min_accesses, "0", "255", "4", "0",
	      "Accesses that must have been counted of a page to move it"),
	REAL(pages, cooldown_s, "0", "3600", "10", "0",
	     "Seconds for which a page stays after it was moved, or could not be"),
	REAL(pages, decay_s, "0", "3600", "10", "0",
	     "Seconds after which a page's counts halve; 0 = only when it moves"),
	COUNT(pages, sharing_window_s, "1", "120", "10", "120",
	      "Accesses of two threads further apart than so many seconds are no sharing"),
	REAL(pages, region_exclusivity, "0", "1", "0.8", NULL,
	     "Share of a range's accesses that must come from one node to move the range there"),
	REAL(pages, imbalance, "0", "100", "0.35", NULL,
	     "Relative deviation of the nodes' memory traffic from which on everyone's ranges are spread"),
	CHOICE(pages, numa_balancing, balancings, "yield", NULL,
	       "While the kernel's automatic NUMA balancing is on: leave pages to it, warn and act, or turn it off"),
	COUNT(pages, rollback_pages, "0", "100000000", "262144", "0",
	      "Moved pages of which it is remembered where they were, to undo moves that did not help; 0 = never undo"),
	COUNT(pages, max_mb_per_s, "1", "1000000", "1024", NULL,
	     "MiB of memory moved per second, at most"),
	COUNT(pages, max_pages_per_interval, "1", "10000000", "65536", NULL,
	     "Pages moved in one interval, at most; a huge page is one"),
	REAL(pages, keep_free, "0", "1", "0.05", NULL,
	     "Share of each node's memory that is left free by moves to it"),
	BOOL(pages, move_bound, "false", NULL,
	     "Move memory whose owner has said where it belongs, by numactl(8) or mbind(2)"),
	BOOL(pages, move_shared, "false", NULL,
	     "Move pages of files and shared memory too, where no other process maps them"),
	REAL(pages, maps_budget_ms, "0.1", "1000", "100", NULL,
	     "Milliseconds for which a process's mappings are read at a stretch"),
	COUNT(pages, maps_max_rss_gb, "0", "1000000", "256", NULL,
	      "GiB in memory up to which a process's mappings are read; pages of a larger one stay; 0 = no limit"),
	REAL(pages, call_limit_ms, "0.1", "1000", "10", NULL,
	     "Milliseconds that one call may take; after a longer one moves pause, longer each time"),
	BOOL(pages, isolated_cpus, "false", NULL,
	     "Move pages also on a machine with isolated or nohz_full CPUs, which each call disturbs"),

	CHOICE(journal, level, levels, "decisions", NULL,
	       "How much is told, each with all before it"),
	COUNT(journal, rate_per_s, "1", "100000", "20", NULL,
	      "Entries per second, at most; the rest is counted and the count told"),

	{FIELD(metrics, file), .type = NM_SETTING_PATH, .shipped = "",
	 .meaning = "Where they are written, as a whole path"},
	REAL(metrics, period_s, "1", "3600", "15", NULL,
	     "Seconds after which the file is written anew; never more often than an interval"),
};

/* clang-format on */

const size_t nm_setting_count = NM_ARRAY_SIZE(nm_settings);
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
