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

/* Meanings, defaults and bounds: numa-migrd.conf(5), from src/config/table.c. */
struct nm_config {
	enum nm_profile profile;
	struct {
		double interval_s;
		uint64_t seed;
		bool dry_run;
	} general;
	struct {
		struct nm_target_list include;
		struct nm_target_list exclude;
		enum nm_attribute attribute;
		double min_cpu_percent;
		uint64_t min_rss_mb;
	} targets;
	struct {
		enum nm_source_choice source;
		char pmu[NM_CONFIG_PMU_BYTES]; /* "": none; else "name/term=value,…/", taken first by auto */
		char event[NM_CONFIG_EVENT_BYTES]; /* "": none; else as libpfm4 spells it, second to pmu */
		unsigned event_line;          /* of the file; 0: none is named */
		uint64_t load_latency;
		uint64_t memory_period;
		enum nm_inject inject;
		bool accept_soft_dirty_risk;
		double history_s;
		double soft_dirty_mb_s;
		double overhead_percent;
		uint64_t ring_kb;
	} sampling;
	struct {
		enum nm_thread_policy policy;
		enum nm_gate gate;
		double gate_margin;
		double gate_sigmas;
		enum nm_pin pin;
		enum nm_lottery lottery;
		uint64_t n;
		double q1_sibling;
		double q1, q2;
		double free_max;
		double min_run;
		uint64_t min_samples;
		double home_share;
		double warmup_s;
		uint64_t cooldown;
		uint64_t moves_per_interval;
		double lease_expiry_s;
		double young_s;
		double quiet_s;
		bool cross_owner_swap;
		bool rollback;
		/* policy = "imar2" only: */
		enum nm_performance performance;
		double delta_r;
		double remote_below;
		double q3_better, q3_equal, q3_worse;
		double q4;
		double record_band;
		uint64_t record_age;
		enum nm_feedback_kind feedback;
		double delta_g;
		double noise_gate;
		double t_min_s, t_max_s;
		/* Mapping by sharing (kMAF): */
		double mapping_s;
		double mapping_gain;
		/* policy = "balance" only (balance.h, dtas.h): */
		enum nm_selection selection;
		/* Loads are in CPUs per CPU. */
		double balance_begin, balance_end;
		uint64_t balance_persist;
		double balance_overload;
		double balance_min_gain;
		double balance_idle_max;
		double residency_s;
		uint64_t residency_maps_mb;
		bool dtas;
	} threads;
	struct {
		enum nm_page_policy policy;
		uint64_t max_tracked;
		double factor;
		uint64_t min_accesses;
		double cooldown_s;
		double decay_s;
		uint64_t sharing_window_s;
		double region_exclusivity;
		double imbalance;
		enum nm_page_balancing numa_balancing;
		uint64_t rollback_pages;
		uint64_t max_mb_per_s;
		uint64_t max_pages_per_interval;
		double keep_free;
		bool move_bound;
		bool move_shared;
		double maps_budget_ms;
		uint64_t maps_max_rss_gb;
		double call_limit_ms;
		bool isolated_cpus;
	} pages;
	struct {
		enum nm_journal_level level;
		uint64_t rate_per_s;
	} journal;
	struct {
		char file[NM_CONFIG_PATH_BYTES]; /* "": none; else an absolute path */
		double period_s;
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
