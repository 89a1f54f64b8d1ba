/* SPDX-License-Identifier: MIT */
/*
 * Parses /etc/numa-migrd.conf (libconfig syntax) into one complete, validated, immutable value, or
 * into a list of errors. The daemon swaps the pointer, so that a configuration is never applied in
 * part.
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
	NM_POLICY_AUTO, NM_POLICY_MAX,
};
enum nm_performance {
	NM_PERFORMANCE_PRODUCT, NM_PERFORMANCE_PRODUCT_INSTRUCTIONS, NM_PERFORMANCE_OPERATIONS,
	NM_PERFORMANCE_INSTRUCTIONS, NM_PERFORMANCE_INTENSITY, NM_PERFORMANCE_LATENCY,
};
/* Selects the thread that leaves an overloaded node (policy.h). */
enum nm_selection {
	NM_SELECTION_FIRST_FIT, NM_SELECTION_TOTAL_MIN, NM_SELECTION_REMOTE_MIN, NM_SELECTION_LOCAL_MAX,
	NM_SELECTION_MOST_BENEFIT, NM_SELECTION_COST_EFFECTIVE, NM_SELECTION_EXCLUSIVITY_BASE,
	NM_SELECTION_EXCLUSIVITY, NM_SELECTION_MOST_BENEFIT_PLUS,
};
enum nm_feedback_kind { NM_FEEDBACK_MOVED, NM_FEEDBACK_GLOBAL };
enum nm_gate { NM_GATE_BENEFIT, NM_GATE_PAPER };
enum nm_pin { NM_PIN_AUTO, NM_PIN_NODE, NM_PIN_CORE, NM_PIN_NUDGE };
enum nm_lottery { NM_LOTTERY_PROPORTIONAL, NM_LOTTERY_PAPER };
enum nm_page_policy { NM_PAGES_NONE, NM_PAGES_WATCH, NM_PAGES_EXCLUSIVITY, NM_PAGES_AUTO };
enum nm_page_balancing { NM_BALANCING_YIELD, NM_BALANCING_WARN, NM_BALANCING_MANAGE };
/* The effect of the attribute user.numa-migrd of a cgroup (tasks.h). */
enum nm_attribute { NM_ATTRIBUTE_IGNORE, NM_ATTRIBUTE_OBEY, NM_ATTRIBUTE_ONLY };
enum nm_journal_level { NM_JOURNAL_ERROR, NM_JOURNAL_NOTICE, NM_JOURNAL_DECISIONS, NM_JOURNAL_DEBUG };

/* One pattern of targets.include or targets.exclude. All globs (fnmatch(3)) that are set must
 * match. */
struct nm_target {
	char *command; /* glob on comm; NULL: any */
	char *unit;    /* glob on the systemd unit or the cgroup path; NULL: any */
	char *slice;   /* glob on a slice of the system manager that contains it, at any depth;
			* NULL: any */
	char *cgroup;  /* glob on the path of the cgroup or of one of its ancestors, component by
			* component; NULL: any */
	char *user;    /* user name or numeric id, resolved to a uid when loaded */
	bool has_uid;
	uint32_t uid;
};

struct nm_target_list {
	struct nm_target *items;
	size_t count;
};

/* The settings; numa-migrd.conf(5), generated from src/config/table.c, describes their meanings,
 * defaults and bounds. */
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
		char pmu[NM_CONFIG_PMU_BYTES]; /* "": none; otherwise "name/term=value,…/", which
						* `auto` prefers to all others */
		char event[NM_CONFIG_EVENT_BYTES]; /* "": none; otherwise an event as spelled for
						    * libpfm4; `auto` tries it after pmu */
		unsigned event_line;          /* line in the file; 0: not set */
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
		/* Thread placement by communication (kMAF): */
		double mapping_s;
		double mapping_gain;
		/* policy = "balance" only (balance.h): */
		enum nm_selection selection;
		/* Loads are in CPUs per CPU. */
		double balance_begin, balance_end;
		uint64_t balance_persist;
		double balance_overload;
		double balance_min_gain;
		double balance_idle_max;
		bool dtas;
	} threads;
	struct {
		double control_percent;
	} verify;
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
		char file[NM_CONFIG_PATH_BYTES]; /* "": none; otherwise an absolute path */
		double period_s;
	} metrics;
};

/* The errors, one per setting. Each `text` is a sentence: file:line: setting: found, allowed. */
struct nm_config_errors {
	char **text;
	size_t count;
};
void nm_config_errors_clear(struct nm_config_errors *errors);

/*
 * Parses `text` (`length` bytes; `name` is used only in messages) and validates all settings.
 * Returns 0 with a complete configuration; -EINVAL with all errors in `errors` (only one for a
 * syntax error or a duplicate setting, because libconfig stops there); or -ENOMEM. The caller frees
 * both. Pure except for the user database (getpwnam_r). Called by the daemon at start, reload and
 * --check-config, and by the helper.
 */
int nm_config_parse(const char *name, const char *text, size_t length,
		    struct nm_config_errors *errors, struct nm_config **ret);

/*
 * Reads the file once (at most 1 MiB) and parses it. Also returns the negative errno of open or
 * read, or the error of nm_open_trusted() if the file is not a regular file that only root or this
 * user can have written; `errors` describes it. Called by the daemon and by numa-migrctl doctor.
 */
int nm_config_load(const char *path, struct nm_config_errors *errors, struct nm_config **ret);

/* Returns the default values, which an empty file also selects. */
int nm_config_default(struct nm_config **ret);
void nm_config_free(struct nm_config *config);
NM_DEFINE_CLEANUP(struct nm_config, nm_config_free);

/* Returns whether the text is a possible libpfm4 event name within the length limit. Used by the
 * parser and the event encoder. Pure. */
bool nm_config_is_event(const char *text);

/* Returns whether pages are migrated by the accesses to them: all, or with "auto" those of
 * processes that threads.policy = "auto" leaves on several nodes. */
static inline bool nm_config_moves_pages(const struct nm_config *config)
{
	return config->pages.policy == NM_PAGES_EXCLUSIVITY ||
	       (config->pages.policy == NM_PAGES_AUTO && config->threads.policy == NM_POLICY_AUTO);
}

/* Returns whether pages.policy was chosen by the administrator, and applies to all processes. */
static inline bool nm_config_follows_pages(const struct nm_config *config)
{
	return config->pages.policy == NM_PAGES_EXCLUSIVITY ||
	       config->pages.policy == NM_PAGES_WATCH;
}

/*
 * Names in the spelling of the configuration file, for the journal ("lbma", "benefit", "auto", …).
 */
const char *nm_pin_name(enum nm_pin choice);
const char *nm_policy_name(enum nm_thread_policy choice);
const char *nm_page_policy_name(enum nm_page_policy choice);
const char *nm_gate_name(enum nm_gate choice);
const char *nm_lottery_name(enum nm_lottery choice);
const char *nm_inject_name(enum nm_inject choice);
const char *nm_performance_name(enum nm_performance choice);
const char *nm_feedback_name(enum nm_feedback_kind choice);
const char *nm_selection_name(enum nm_selection choice);

/* The properties of a process to which target patterns apply. Command and cgroup path are as the
 * kernel reports them. */
struct nm_target_subject {
	const char *command;
	const char *cgroup; /* NULL: not known */
	uint32_t uid;
};

/*
 * Returns the first of the patterns that matches, or NULL. If `named` is true, only patterns that name a
 * command, a unit, a slice or a cgroup count; this is required before writing to a process
 * (sampling.inject = "soft_dirty"). Pure. Used by the task table and the root helper.
 */
const struct nm_target *nm_config_find(const struct nm_target_list *list,
				       const struct nm_target_subject *subject, bool named);
static inline bool nm_config_matches(const struct nm_target_list *list,
				     const struct nm_target_subject *subject, bool named)
{
	return nm_config_find(list, subject, named) != NULL;
}

/* Prints a pattern as in the configuration, with its text escaped. Returns `out`. Pure. */
const char *nm_config_print_target(const struct nm_target *target, char *out, size_t size);

#endif
