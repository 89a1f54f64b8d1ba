/* SPDX-License-Identifier: MIT */
/*
 * /etc/numa-migrd.conf (libconfig text) → one whole, validated, immutable value, or a list of errors.
 * Nothing is ever half-applied: the daemon swaps the pointer.
 */
#ifndef NUMA_MIGRD_CONFIG_H
#define NUMA_MIGRD_CONFIG_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "numa-migrd/base.h"

enum nm_profile { NM_PROFILE_SHIPPED, NM_PROFILE_PAPER };
enum nm_source_choice {
	NM_SOURCE_AUTO,
	NM_SOURCE_PEBS,
	NM_SOURCE_IBS,
	NM_SOURCE_SPE,
	NM_SOURCE_PMU,
	NM_SOURCE_EVENT,
	NM_SOURCE_FAULTS,
	NM_SOURCE_NONE
};
#define NM_CONFIG_PMU_BYTES 128
#define NM_CONFIG_EVENT_BYTES 128
#define NM_CONFIG_PATH_BYTES 256
#define NM_CONFIG_ANY_GAIN (-1000000000000.0) /* threads.balance_min_gain: no limit */
enum nm_inject { NM_INJECT_NONE, NM_INJECT_NUMA_BALANCING, NM_INJECT_SOFT_DIRTY };
enum nm_thread_policy {
	NM_POLICY_NONE, NM_POLICY_LBMA, NM_POLICY_IMAR2, NM_POLICY_KMAF, NM_POLICY_BALANCE,
	NM_POLICY_AUTO,
};
enum nm_performance {
	NM_PERFORMANCE_PRODUCT, NM_PERFORMANCE_PRODUCT_INSTRUCTIONS, NM_PERFORMANCE_OPERATIONS,
	NM_PERFORMANCE_INSTRUCTIONS, NM_PERFORMANCE_INTENSITY, NM_PERFORMANCE_LATENCY,
};
/* Which thread leaves an overloaded node (selection.h). */
enum nm_selection {
	NM_SELECTION_FIRST_FIT, NM_SELECTION_TOTAL_MIN, NM_SELECTION_REMOTE_MIN, NM_SELECTION_LOCAL_MAX,
	NM_SELECTION_MOST_BENEFIT, NM_SELECTION_COST_EFFECTIVE, NM_SELECTION_EXCLUSIVITY_BASE,
	NM_SELECTION_EXCLUSIVITY, NM_SELECTION_MOST_BENEFIT_PLUS,
};
enum nm_feedback_kind { NM_FEEDBACK_MOVED, NM_FEEDBACK_GLOBAL };
enum nm_gate { NM_GATE_BENEFIT, NM_GATE_PAPER };
enum nm_pin { NM_PIN_AUTO, NM_PIN_NODE, NM_PIN_CORE, NM_PIN_NUDGE };
enum nm_lottery { NM_LOTTERY_PROPORTIONAL, NM_LOTTERY_PAPER };
enum nm_page_policy { NM_PAGES_NONE, NM_PAGES_WATCH, NM_PAGES_EXCLUSIVITY };
enum nm_page_balancing { NM_BALANCING_YIELD, NM_BALANCING_WARN, NM_BALANCING_MANAGE };
/* What the attribute user.numa-migrd of a control group counts for (steer.h). */
enum nm_attribute { NM_ATTRIBUTE_IGNORE, NM_ATTRIBUTE_OBEY, NM_ATTRIBUTE_ONLY };
enum nm_journal_level { NM_JOURNAL_ERROR, NM_JOURNAL_NOTICE, NM_JOURNAL_DECISIONS, NM_JOURNAL_DEBUG };

/* One pattern of targets.include / targets.exclude: all given globs (fnmatch(3)) must match. */
struct nm_target {
	char *command; /* glob on comm; NULL = any */
	char *unit;    /* glob on the systemd unit or the cgroup path; NULL = any */
	char *slice;   /* glob on a slice of the system manager that it is in, at any depth; NULL = any */
	char *cgroup;  /* glob on the cgroup's path or one above it, name by name; NULL = any */
	char *user;    /* user name or numeric id, resolved to uid at load */
	bool has_uid;
	uint32_t uid;
};

struct nm_target_list {
	struct nm_target *items;
	size_t count;
};

struct nm_config {
	enum nm_profile profile;
	struct {
		double interval_s; /* T, 0.1–60, default 1.0 */
		uint64_t seed;     /* 0 (default) = from the kernel's random numbers, told in the journal */
		bool dry_run;      /* false */
	} general;
	struct {
		struct nm_target_list include; /* empty (default) = every process that is worth it */
		struct nm_target_list exclude; /* wins over include */
		enum nm_attribute attribute;   /* obey */
		double min_cpu_percent;        /* 10; of one CPU, over a process (paper: 0) */
		uint64_t min_rss_mb;           /* 0 = twice the last-level cache (paper: 1 MB) */
	} targets;
	struct {
		enum nm_source_choice source; /* auto */
		char pmu[NM_CONFIG_PMU_BYTES]; /* "": none; else "name/term=value,…/", taken first by auto */
		char event[NM_CONFIG_EVENT_BYTES]; /* "": none; else as libpfm4 spells it, second to pmu */
		unsigned event_line;          /* of the file; 0: none is named */
		uint64_t load_latency;        /* 30; 3–65535 cycles: quicker loads are not sampled */
		uint64_t memory_period;       /* 0 = as suits the source; up to 10^9: every n-th access */
		enum nm_inject inject;        /* none */
		bool accept_soft_dirty_risk;  /* false; inject = "soft_dirty" needs it and a named
						 target */
		double history_s;             /* 10; half-life of the access counts (paper: 0 = this interval only) */
		double soft_dirty_mb_s;       /* 256; 1–100000: memory write-protected per second, all targets */
		double overhead_percent;      /* 1.0; 0.1–100: of one CPU, above it periods are raised */
		uint64_t ring_kb;             /* 512; power of two 16–65536: per CPU */
	} sampling;
	struct {
		enum nm_thread_policy policy;
		enum nm_gate gate;        /* benefit (paper: paper) */
		double gate_margin;       /* 0.05; 0–1 */
		double gate_sigmas;       /* 3; 0–10: standard deviations by which a gain must exceed chance (paper: 0) */
		enum nm_pin pin;          /* auto (paper: core) */
		enum nm_lottery lottery;  /* proportional (paper: paper) */
		uint64_t n; /* threads considered and moves made per interval; paper: 1 */
		double q1_sibling;        /* 1: for a free CPU with a busy SMT sibling (paper: q1); 0–1000 */
		double q1, q2;            /* 2, 4: tickets for a free CPU and for the preferred node; 0–1000 */
		double free_max;          /* 0.05; busy share below which a CPU is free, by itself or out of its node's (paper: 0) */
		double min_run;           /* 0.1 of the interval (paper: 0) */
		uint64_t min_samples;     /* 10 access samples in the window (paper: 1) */
		double home_share;        /* 0.8: of run samples on one node, else the thread has no home (paper: 0) */
		double warmup_s;          /* after adoption, before any act (paper: 0) */
		uint64_t cooldown;        /* 8 intervals after a move that did not help (paper: 0) */
		uint64_t moves_per_interval; /* 64; cap over all policies */
		double lease_expiry_s;    /* 30: a quiet thread's mask returns after this long; 0 = never (paper) */
		double young_s;           /* 3: processes younger than this are nudged, not leased */
		double quiet_s;           /* 3: no new thread or child for so long before a lease */
		bool cross_owner_swap;    /* false: both threads of a swap must belong to one user */
		bool rollback;            /* true: undo a move after which the local share fell, with "kmaf" accesses took longer, or with "balance" P fell (paper: false) */
		/* policy = "imar2" only: */
		enum nm_performance performance; /* product: what P is */
		double delta_r;           /* 0.8; relative performance below which a thread is slow; 0–1 */
		double remote_below;      /* 0.5; local share below which a thread is eligible too (paper: 0) */
		double q3_better, q3_equal, q3_worse; /* 4, 2, 1: tickets by the record of the other node */
		double q4;                /* 3: tickets for a swap whose partner is slow too */
		double record_band;       /* 0.05: records so near to now are equal (paper: 0) */
		uint64_t record_age;      /* 60 intervals; 0 = for ever (paper) */
		enum nm_feedback_kind feedback; /* moved (paper: global) */
		double delta_g; /* 0.9; what is left of the performance when a move is undone; 0–1
				 */
		double noise_gate;        /* 3 times its recent spread is noise (paper: 0 = no gate) */
		double t_min_s, t_max_s;  /* 1, 4: bounds of the interval T */
		/* Mapping by sharing (kMAF): */
		double mapping_s; /* 1; 0.1–60: from one mapping to the next (paper: 0.1) */
		double mapping_gain;      /* 0.1; 0–1: share of the cost that a mapping must save (paper: 0 = always apply) */
		/* policy = "balance" only (balance.h, dtas.h); loads are in CPUs per CPU: */
		enum nm_selection selection; /* exclusivity: which waiting thread goes */
		double balance_begin, balance_end; /* 0.5, 0.25: gap between nodes (paper: -1000, as low as any) */
		uint64_t balance_persist; /* 2 intervals above balance_begin (paper: 1) */
		double balance_overload;  /* 1: load from which on a node's own CPUs do not suffice (paper: 0) */
		double balance_min_gain; /* 0 pages; NM_CONFIG_ANY_GAIN (paper) also where pages are
					    not known */
		double balance_idle_max; /* 0.05: load below which a CPU takes threads of either
					    type (paper: 0) */
		double residency_s;       /* 30: so often a process's pages are counted; 0 = accesses must do */
		uint64_t residency_maps_mb; /* 64 MiB resident, up to which numa_maps is read */
		bool dtas;                /* false: CPUs are split between memory-bound and other threads */
	} threads;
	struct {
		enum nm_page_policy policy; /* none */
		uint64_t max_tracked;     /* 1000000; 1000–100000000 pages with counts */
		double factor;            /* 2; 1–100: by which the most accesses must exceed the second most */
		uint64_t min_accesses;    /* 4; 0–255: seen of a page before it may move (paper: 0) */
		double cooldown_s; /* 10; 0–3600: a moved or refused page stays so long (paper: 0)
				    */
		double decay_s;           /* 10; 0–3600: counts halve so often; 0 = on a move only (paper) */
		uint64_t sharing_window_s; /* 10; 1–120: accesses further apart do not share (paper:
					      120) */
		double region_exclusivity; /* 0.8; 0–1: share of one node from which on a range
					      moves */
		double imbalance;         /* 0.35; 0–100: relative deviation of the nodes' loads, to interleave */
		enum nm_page_balancing numa_balancing; /* yield: what to do while the kernel moves pages too */
		uint64_t rollback_pages;  /* 262144; 0–100000000: moved pages of which the old place is remembered (paper: 0 = never undone) */
		uint64_t max_mb_per_s;    /* 1024; 1–1000000: MiB moved per second */
		uint64_t max_pages_per_interval;/* 65536; 1–10000000: moved in one interval, a huge page is one */
		double keep_free;         /* 0.05; 0–1: share of each node's memory that moves leave free */
		bool move_bound;          /* false: memory with a policy of its owner's stays */
		bool move_shared;         /* false: mapped files and shared memory stay */
		double maps_budget_ms;    /* 100; 0.1–1000: reading of a process's mappings at a stretch */
		uint64_t maps_max_rss_gb; /* 256; 0–1000000: GiB in memory, above which mappings are not read; 0 = no limit */
		double call_limit_ms;     /* 10; 0.1–1000: a longer call makes the mover pause */
		bool isolated_cpus;       /* false: no pages move on machines with isolated or nohz_full CPUs */
	} pages;
	struct {
		enum nm_journal_level level;  /* decisions */
		uint64_t rate_per_s;          /* 20; entries per second, the rest is counted; 1–100000 */
	} journal;
	struct {
		char file[NM_CONFIG_PATH_BYTES]; /* "": none; else an absolute path */
		double period_s;              /* 15; 1–3600 */
	} metrics;
};

/* What was wrong, one per setting; `text` is a whole sentence: file:line: setting: found, allowed. */
struct nm_config_errors {
	char **text;
	size_t count;
};
void nm_config_errors_clear(struct nm_config_errors *errors);

/*
 * Parses text (length bytes; `name` is only for messages) and validates everything. Returns 0 with a
 * whole configuration, or -EINVAL with every error found in `errors` (a syntax error or a duplicate
 * setting alone: libconfig stops there), or -ENOMEM. The caller frees both. Pure but for the user
 * database (getpwnam_r). Called by the daemon at start, reload and --check-config, and by the helper.
 */
int nm_config_parse(const char *name, const char *text, size_t length,
		    struct nm_config_errors *errors, struct nm_config **ret);

/*
 * Reads the file once (at most 1 MiB) and parses it. Also -errno of open/read, and what
 * nm_open_trusted() returns where it is not a plain file that only root or we can have written;
 * reported in `errors`. The daemon and numa-migrctl doctor.
 */
int nm_config_load(const char *path, struct nm_config_errors *errors, struct nm_config **ret);
/* The same with its text, which the caller frees. */
int nm_config_load_text(const char *path, struct nm_config_errors *errors, struct nm_config **ret,
			char **ret_text);

/* The shipped values, as an empty file gives them. */
int nm_config_default(struct nm_config **ret);
void nm_config_free(struct nm_config *config);
NM_DEFINE_CLEANUP(struct nm_config, nm_config_free);

/* Writes every setting with its default and a line of meaning, as conf/numa-migrd.conf ships them. */
int nm_config_write_defaults(FILE *out);

/* Is it spelled as an event of libpfm4 can be, within its bounds? Parser and event encoder. Pure. */
bool nm_config_is_event(const char *text);

/* Names as the file spells them, for the journal ("lbma", "benefit", "auto", …). */
const char *nm_pin_name(enum nm_pin pin);
const char *nm_policy_name(enum nm_thread_policy policy);
const char *nm_page_policy_name(enum nm_page_policy policy);
const char *nm_gate_name(enum nm_gate gate);
const char *nm_lottery_name(enum nm_lottery lottery);
const char *nm_inject_name(enum nm_inject inject);
const char *nm_performance_name(enum nm_performance performance);
const char *nm_feedback_name(enum nm_feedback_kind feedback);
const char *nm_selection_name(enum nm_selection selection);

/* A process as targets see it: the command's name and the cgroup's path as the kernel has them. */
struct nm_target_subject {
	const char *command;
	const char *cgroup; /* NULL where unknown */
	uint32_t uid;
};

/*
 * Does one of the patterns match? named: only those count that name a command, a unit, a slice or a cgroup,
 * as a process must be that is written to (sampling.inject = "soft_dirty"). Pure. Roster; root helper.
 */
bool nm_config_matches(const struct nm_target_list *list, const struct nm_target_subject *subject, bool named);

#endif
