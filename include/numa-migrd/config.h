/* SPDX-License-Identifier: MIT */
/*
 * Parses the configuration files (libconfig syntax) into one complete, validated, immutable value,
 * or into a list of errors. The daemon swaps the pointer, so that a configuration is never applied
 * in part.
 */
#ifndef NUMA_MIGRD_CONFIG_H
#define NUMA_MIGRD_CONFIG_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "numa-migrd/base.h"

enum nm_source_choice {
	NM_SOURCE_AUTO,
	NM_SOURCE_PEBS,
	NM_SOURCE_IBS,
	NM_SOURCE_SPE,
	NM_SOURCE_EVENT,
	NM_SOURCE_FAULTS,
	NM_SOURCE_NONE
};
#define NM_CONFIG_PMU_BYTES 128
#define NM_CONFIG_EVENT_BYTES 128
#define NM_CONFIG_PATH_BYTES 256
#define NM_CONFIG_ANY_GAIN (-1000000000000.0) /* balance_min_gain: no limit */
#define NM_CONFIG_FILE "/etc/numa-migrd.conf"
#define NM_CONFIG_FOLDER "/etc/numa-migrd.conf.d"
enum nm_inject { NM_INJECT_NONE, NM_INJECT_NUMA_BALANCING };
/*
 * The policies that move threads: constant, and name in the file. The file of a policy contains its
 * nm_<name>_policy (policy.h). The rules are its own or, with rules.paper, those of its paper.
 */
#define NM_POLICIES(ROW)                                                                           \
	ROW(NONE, none)                                                                            \
	ROW(LBMA, lbma)                                                                            \
	ROW(IMAR2, imar2)                                                                          \
	ROW(KMAF, kmaf)                                                                            \
	ROW(BALANCE, balance)                                                                      \
	ROW(AUTO, auto)
#define NM_POLICY_CONSTANT(constant, name) NM_POLICY_##constant,
enum nm_thread_policy { NM_POLICIES(NM_POLICY_CONSTANT) NM_POLICY_MAX };
/* Returns whether the policy holds a lottery of its own. */
static inline bool nm_policy_draws(enum nm_thread_policy policy)
{
	return policy == NM_POLICY_LBMA || policy == NM_POLICY_IMAR2;
}
enum nm_performance {
	NM_PERFORMANCE_PRODUCT,
	NM_PERFORMANCE_PRODUCT_INSTRUCTIONS,
	NM_PERFORMANCE_OPERATIONS,
	NM_PERFORMANCE_INSTRUCTIONS,
	NM_PERFORMANCE_INTENSITY,
	NM_PERFORMANCE_LATENCY,
};
/* Selects the thread that leaves an overloaded node (policy.h). */
enum nm_selection {
	NM_SELECTION_FIRST_FIT,
	NM_SELECTION_TOTAL_MIN,
	NM_SELECTION_REMOTE_MIN,
	NM_SELECTION_LOCAL_MAX,
	NM_SELECTION_MOST_BENEFIT,
	NM_SELECTION_COST_EFFECTIVE,
	NM_SELECTION_EXCLUSIVITY_BASE,
	NM_SELECTION_EXCLUSIVITY,
	NM_SELECTION_MOST_BENEFIT_PLUS,
	NM_SELECTION_MAX, /* in the file: "dtas" */
};
enum nm_feedback_kind { NM_FEEDBACK_MOVED, NM_FEEDBACK_GLOBAL };
enum nm_gate { NM_GATE_BENEFIT, NM_GATE_PAPER };
enum nm_lottery { NM_LOTTERY_PROPORTIONAL, NM_LOTTERY_PAPER };
enum nm_page_policy { NM_PAGES_NONE, NM_PAGES_WATCH, NM_PAGES_EXCLUSIVITY, NM_PAGES_AUTO };
/* Memory that pages.also permits to migrate; a set of bits. */
enum nm_pages_also { NM_ALSO_BOUND = 1, NM_ALSO_SHARED = 2, NM_ALSO_ISOLATED = 4 };
enum nm_page_balancing { NM_BALANCING_YIELD, NM_BALANCING_WARN, NM_BALANCING_MANAGE };
/* The effect of the attribute user.numa-migrd of a cgroup (tasks.h). */
enum nm_attribute { NM_ATTRIBUTE_IGNORE, NM_ATTRIBUTE_OBEY, NM_ATTRIBUTE_ONLY };
enum nm_journal_level {
	NM_JOURNAL_ERROR,
	NM_JOURNAL_NOTICE,
	NM_JOURNAL_DECISIONS,
	NM_JOURNAL_DEBUG
};

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

/*
 * The rules of threads.policy, and parameters that --parameters FILE may change;
 * numa-migrd-policies(7) describes them. They are not settings: policy_rules.c contains the values
 * of numa-migrd and those of the papers.
 */
struct nm_policy_rules {
	bool paper; /* the published rules also where they are not a value below */
	enum nm_gate gate;
	enum nm_lottery lottery;
	enum nm_feedback_kind feedback;
	bool cross_owner_swap; /* threads of different users also swap if only one gains */
	bool rollback;	       /* also with lbma, kmaf and balance */

	/* Selection of threads. */
	double history_s; /* half-life of the counts of accesses; 0: the last interval only */
	double min_run;
	uint64_t min_samples;
	double home_share;
	double warmup_s;
	uint64_t cooldown; /* intervals */
	uint64_t moves_per_interval;
	/* Lottery. */
	uint64_t n;
	double q1, q1_sibling, q2;
	double free_max;
	double gate_sigmas;
	/* IMAR². */
	double delta_r;
	double remote_below;
	double q3_better, q3_equal, q3_worse;
	double q4;
	double record_band;
	uint64_t record_age; /* intervals; 0: never expires */
	double t_min_s, t_max_s;
	/* Verdicts. */
	double delta_g;
	double noise_gate;
	/* kMAF. */
	double mapping_s;
	double mapping_gain;
	uint64_t sharing_window_s;
	uint64_t max_tracked; /* pages */
	double page_factor;
	uint64_t page_min_accesses;
	double page_cooldown_s;
	double page_decay_s; /* 0: counts are halved only when the page moves */
	uint64_t rollback_pages;
	/* Balance (balance.h). Loads are in CPUs per CPU. */
	double balance_begin, balance_end;
	uint64_t balance_persist; /* intervals */
	double balance_overload;
	double balance_min_gain; /* pages */
	double balance_idle_max;
	/* Calls of the mover; an emulated machine is slow. */
	uint64_t ring_kb; /* of each CPU; a power of two */
	double call_limit_ms;
	double maps_budget_ms;
};

/* The errors, one per setting. Each `text` is a sentence: file:line: setting: found, allowed. */
struct nm_config_errors {
	char **text;
	size_t count;
};
void nm_config_errors_clear(struct nm_config_errors *errors);

/* The settings; numa-migrd.conf(5) describes their meanings, defaults and bounds. */
struct nm_config {
	struct {
		double interval_s;
		bool dry_run;
	} general;
	struct {
		struct nm_target_list include;
		struct nm_target_list exclude;
		enum nm_attribute cgroup_attribute;
		double min_cpu_percent;
		uint64_t min_rss_mb; /* 0: automatic */
		double min_age_s;    /* of a program, to be managed */
	} targets;
	struct {
		enum nm_source_choice source;
		enum nm_inject inject;
		double overhead_percent;
		/* sampling.event is one of these two; `auto` prefers it to all other sources. */
		char pmu[NM_CONFIG_PMU_BYTES];	   /* "": none; otherwise "name/term=value,…/" */
		char event[NM_CONFIG_EVENT_BYTES]; /* "": none; otherwise as spelled for libpfm4 */
		char event_place[NM_CONFIG_PATH_BYTES]; /* "file:line"; "": not set */
	} sampling;
	struct {
		enum nm_thread_policy policy;
		enum nm_performance performance;
		enum nm_selection selection;
		bool dtas; /* selection = "dtas" */
	} threads;
	struct {
		double control_percent;
		double tolerance_percent;
	} verify;
	struct {
		enum nm_page_policy policy;
		enum nm_page_balancing numa_balancing;
		uint64_t max_mb_per_s;
		double keep_free_percent;
		uint64_t max_gb_of_process; /* the memory of a larger one stays; 0: no limit */
		unsigned also;		    /* enum nm_pages_also */
	} pages;
	struct {
		enum nm_journal_level level;
	} journal;
	struct {
		char file[NM_CONFIG_PATH_BYTES];  /* "": none; otherwise an absolute path */
		char place[NM_CONFIG_PATH_BYTES]; /* "file:line"; "": not set */
	} metrics;
	struct nm_policy_rules rules;
	struct nm_config_errors warnings; /* what is valid and has no effect */
	/* "file:line" of each setting, then of each parameter, in the order of nm_config_show();
	 * NULL: the default. */
	char **places;
};

extern const struct nm_policy_rules nm_rules_own;   /* of numa-migrd */
extern const struct nm_policy_rules nm_rules_paper; /* of the papers */

/*
 * Parses `text` (`length` bytes; `name` is used only in messages) and validates all settings.
 * Returns 0 with a complete configuration; -EINVAL with all errors in `errors` (only one for a
 * syntax error or a duplicate setting, because libconfig stops there). The caller frees both. Pure
 * except for the user database (getpwnam_r).
 */
int nm_config_parse(const char *name, const char *text, size_t length,
		    struct nm_config_errors *errors, struct nm_config **ret);

struct nm_config_text {
	const char *name, *text;
	size_t length;
};

/*
 * Parses several files as one configuration: a value in a later file replaces the earlier one. The
 * text of the parameters has their names without groups; its `text` may be NULL. Otherwise as
 * nm_config_parse().
 */
int nm_config_parse_all(const struct nm_config_text *texts, size_t count,
			const struct nm_config_text *parameters, struct nm_config_errors *errors,
			struct nm_config **ret);

/* The files of a configuration. */
struct nm_config_files {
	const char *path;
	const char *folder;	/* of drop-ins, which may be missing; NULL: none */
	const char *parameters; /* NULL: none */
	bool may_be_missing;	/* `path`, which then counts as empty */
};

/*
 * Reads the file and the drop-ins *.conf of the folder in the order of their names, and parses
 * them: at most 64 drop-ins, and 1 MiB in all. Also returns the negative errno of open or read, or
 * the error of nm_open_trusted() if the folder or a file is not what only root or `owner` can have
 * written; `errors` describes it. One bad file refuses the whole.
 */
int nm_config_load(const struct nm_config_files *files, uid_t owner,
		   struct nm_config_errors *errors, struct nm_config **ret);

#define NM_CONFIG_VALUE_BYTES 512
struct nm_config_value {
	const char *group, *name;	  /* group "": a parameter */
	char text[NM_CONFIG_VALUE_BYTES]; /* as in a file, cut if it is long */
	const char *place;		  /* "file:line"; NULL: the default */
	bool parameter;
};
/* Describes the setting or parameter of this index. Returns false after the last one. */
bool nm_config_show(const struct nm_config *config, size_t index, struct nm_config_value *ret);

/* Returns the default values, which an empty file also selects. */
int nm_config_default(struct nm_config **ret);
void nm_config_free(struct nm_config *config);
NM_DEFINE_CLEANUP(struct nm_config, nm_config_free);

/* Returns whether the text is a possible libpfm4 event name within the length limit. Pure. */
bool nm_config_is_event(const char *text);

/* Returns whether pages are migrated by the accesses to them: all, or with "auto" those of
 * processes that threads.policy = "auto" leaves on several nodes. */
static inline bool nm_config_moves_pages(const struct nm_config *config)
{
	return config->pages.policy == NM_PAGES_EXCLUSIVITY ||
	       (config->pages.policy == NM_PAGES_AUTO && config->threads.policy == NM_POLICY_AUTO);
}

/* Returns whether pages.max_gb_of_process forbids to move the memory of a process with this much
 * resident memory. */
static inline bool nm_config_keeps_memory(const struct nm_config *config, uint64_t rss_bytes)
{
	uint64_t most = config->pages.max_gb_of_process;
	return most > 0 && rss_bytes > most << 30;
}

/* Returns the limit of the cost of sampling, as a share of one CPU. Policy "auto" also limits the
 * cost of its decisions: if sampling used all of the limit, intervals would always be as long as
 * they may be. */
static inline double nm_config_sampling_limit(const struct nm_config *config)
{
	double limit = config->sampling.overhead_percent / 100;
	return config->threads.policy == NM_POLICY_AUTO ? limit / 2 : limit;
}

/* Returns whether pages.policy was chosen by the administrator, and applies to all processes. */
static inline bool nm_config_follows_pages(const struct nm_config *config)
{
	return config->pages.policy == NM_PAGES_EXCLUSIVITY ||
	       config->pages.policy == NM_PAGES_WATCH;
}

/* Names in the spelling of the configuration file, for the journal ("lbma", "auto", …). */
const char *nm_policy_name(enum nm_thread_policy choice);
const char *nm_page_policy_name(enum nm_page_policy choice);
const char *nm_inject_name(enum nm_inject choice);
const char *nm_performance_name(enum nm_performance choice);
const char *nm_selection_name(enum nm_selection choice);

/* Returns threads.policy as in the file ("lbma-paper"). */
const char *nm_config_policy_name(const struct nm_config *config);

/* The properties of a process to which target patterns apply. Command and cgroup path are as the
 * kernel reports them. */
struct nm_target_subject {
	const char *command;
	const char *cgroup; /* NULL: not known */
	uint32_t uid;
};

/* Returns the first of the patterns that matches, or NULL. Pure. */
const struct nm_target *nm_config_find(const struct nm_target_list *list,
				       const struct nm_target_subject *subject);

/* Returns whether one of the patterns that name a command matches. Pure. */
bool nm_config_names_command(const struct nm_target_list *list,
			     const struct nm_target_subject *subject);

/* Prints a pattern as in the configuration, with its text escaped. Returns `out`. Pure. */
const char *nm_config_print_target(const struct nm_target *target, char *out, size_t size);

/* Returns the edit distance (insertions, deletions, replacements) between two names, of which the
 * first 48 bytes count. Called for "did you mean". */
unsigned nm_name_distance(const char *one, const char *other);

#endif
