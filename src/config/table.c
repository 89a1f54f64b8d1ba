/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "table.h"

/* Each list is in the order of its enum in config.h. */
static const char *const sources[] = {"auto",  "pebs",	 "ibs",	 "spe",
				      "event", "faults", "none", NULL};
static const char *const injects[] = {"none", "numa_balancing", "soft_dirty_unsafe", NULL};
#define NAME(constant, name) #name,
static const char *const policies[] = {NM_POLICIES(NAME) "lbma-paper", "imar2-paper", "kmaf-paper",
				       "balance-paper", NULL};
#undef NAME
static const char *const performances[] = {
	"product", "product_instructions", "operations", "instructions", "intensity", "latency",
	NULL};
static const char *const selections[] = {"first_fit",
					 "total_min",
					 "remote_min",
					 "local_max",
					 "most_benefit",
					 "cost_effective",
					 "exclusivity_base",
					 "exclusivity",
					 "most_benefit_plus",
					 "dtas",
					 NULL};
static const char *const page_policies[] = {"none", "watch", "exclusivity", "auto", NULL};
static const char *const balancings[] = {"yield", "warn", "manage", NULL};
static const char *const also[] = {"bound", "shared", "isolated", NULL};
static const char *const attributes[] = {"ignore", "obey", "only", NULL};
static const char *const levels[] = {"error", "notice", "decisions", "debug", NULL};

#define FIELD(g, n, t)                                                                             \
	.group = #g, .name = #n, .type = (t), .offset = offsetof(struct nm_config, g.n)
#define COUNT(g, n, l, h)                                                                          \
	{                                                                                          \
		FIELD(g, n, NM_SETTING_COUNT), .low = (l), .high = (h)                             \
	}
#define REAL(g, n, l, h)                                                                           \
	{                                                                                          \
		FIELD(g, n, NM_SETTING_REAL), .low = (l), .high = (h)                              \
	}
#define CHOICE(g, n, c)                                                                            \
	{                                                                                          \
		FIELD(g, n, NM_SETTING_CHOICE), .choices = (c)                                     \
	}

/* clang-format off */
const struct nm_setting nm_settings[] = {
	REAL(general, interval_s, 0.1, 60),
	{FIELD(general, dry_run, NM_SETTING_BOOL)},

	{FIELD(targets, include, NM_SETTING_TARGETS)},
	{FIELD(targets, exclude, NM_SETTING_TARGETS)},
	CHOICE(targets, cgroup_attribute, attributes),
	REAL(targets, min_cpu_percent, 0, 100000),
	COUNT(targets, min_rss_mb, 0, 67108864),

	CHOICE(sampling, source, sources),
	CHOICE(sampling, inject, injects),
	REAL(sampling, overhead_percent, 0.1, 100),
	{FIELD(sampling, event, NM_SETTING_EVENT)},

	CHOICE(threads, policy, policies),
	CHOICE(threads, performance, performances),
	CHOICE(threads, selection, selections),

	REAL(verify, control_percent, 0, 50),
	REAL(verify, tolerance_percent, 0, 100),

	CHOICE(pages, policy, page_policies),
	CHOICE(pages, numa_balancing, balancings),
	COUNT(pages, max_mb_per_s, 1, 1000000),
	REAL(pages, keep_free_percent, 0, 100),
	{FIELD(pages, also, NM_SETTING_FLAGS), .choices = also},

	CHOICE(journal, level, levels),

	{FIELD(metrics, file, NM_SETTING_PATH)},
};
/* clang-format on */

const size_t nm_setting_count = NM_ARRAY_SIZE(nm_settings);

void nm_setting_defaults(struct nm_config *config)
{
	*config = (struct nm_config){
		.general.interval_s = 1,
		.targets = {.cgroup_attribute = NM_ATTRIBUTE_OBEY, .min_cpu_percent = 10},
		.sampling.overhead_percent = 1,
		.threads = {.policy = NM_POLICY_AUTO, .selection = NM_SELECTION_EXCLUSIVITY},
		.verify = {.control_percent = 5, .tolerance_percent = 5},
		.pages = {.policy = NM_PAGES_AUTO, .max_mb_per_s = 1024, .keep_free_percent = 5},
		.journal.level = NM_JOURNAL_DECISIONS,
	};
}

const struct nm_setting *nm_setting_find(const char *group, const char *name)
{
	const struct nm_setting *rows = group[0] ? nm_settings : nm_parameters;
	size_t count = group[0] ? nm_setting_count : nm_parameter_count;
	for (size_t i = 0; i < count; i++)
		if (strcmp(rows[i].group, group) == 0 && strcmp(rows[i].name, name) == 0)
			return &rows[i];
	return NULL;
}

bool nm_setting_is_group(const char *name)
{
	for (size_t i = 0; i < nm_setting_count; i++)
		if (strcmp(nm_settings[i].group, name) == 0)
			return true;
	return false;
}

/* ---- settings of earlier versions ---- */

#define POLICIES                                                                                   \
	"use threads.policy = \"lbma-paper\", \"imar2-paper\", \"kmaf-paper\" or "                 \
	"\"balance-paper\""
#define PARAMETER "use a parameter in the file of --parameters, see numa-migrd-policies(7)"
#define CONSTANT "its value is fixed"

#define MOVED "threads are moved, and no affinity stays narrowed"
static const struct {
	const char *old, *now;
} replacements[] = {
	{"profile", POLICIES},
	{"general.seed", "use the option --seed"},
	{"targets.attribute", "use targets.cgroup_attribute"},
	{"sampling.pmu", "use sampling.event"},
	{"sampling.accept_soft_dirty_risk", "use sampling.inject = \"soft_dirty_unsafe\""},
	{"sampling.history_s", PARAMETER},
	{"sampling.ring_kb", CONSTANT},
	{"sampling.load_latency", CONSTANT},
	{"sampling.memory_period", CONSTANT},
	{"sampling.soft_dirty_mb_s", CONSTANT},
	{"threads.affinity", MOVED},
	{"threads.lease_expiry_s", MOVED},
	{"threads.pin", MOVED},
	{"threads.gate", POLICIES},
	{"threads.lottery", POLICIES},
	{"threads.feedback", POLICIES},
	{"threads.rollback", POLICIES},
	{"threads.cross_owner_swap", POLICIES},
	{"threads.dtas", "use threads.selection = \"dtas\""},
	{"threads.young_s", CONSTANT},
	{"threads.quiet_s", CONSTANT},
	{"threads.gate_margin", CONSTANT},
	{"pages.keep_free", "use pages.keep_free_percent"},
	{"pages.move_bound", "use pages.also = ( \"bound\" )"},
	{"pages.move_shared", "use pages.also = ( \"shared\" )"},
	{"pages.isolated_cpus", "use pages.also = ( \"isolated\" )"},
	{"pages.factor", PARAMETER " (page_factor)"},
	{"pages.min_accesses", PARAMETER " (page_min_accesses)"},
	{"pages.cooldown_s", PARAMETER " (page_cooldown_s)"},
	{"pages.decay_s", PARAMETER " (page_decay_s)"},
	{"pages.region_exclusivity", CONSTANT},
	{"pages.imbalance", CONSTANT},
	{"pages.max_pages_per_interval", "use pages.max_mb_per_s"},
	{"pages.maps_max_rss_gb", CONSTANT},
	{"journal.rate_per_s", CONSTANT},
	{"metrics.period_s", CONSTANT},
};

const char *nm_setting_replacement(const char *path)
{
	for (size_t i = 0; i < NM_ARRAY_SIZE(replacements); i++)
		if (strcmp(replacements[i].old, path) == 0)
			return replacements[i].now;
	const char *name = strchr(path, '.');
	return name && nm_setting_find("", name + 1) ? PARAMETER : NULL;
}

/* ---- names ---- */

/* Defines a function that returns the name of a choice. */
#define NAME_OF(function, type, names)                                                             \
	const char *function(type choice)                                                          \
	{                                                                                          \
		return names[choice];                                                              \
	}

NAME_OF(nm_policy_name, enum nm_thread_policy, policies)
NAME_OF(nm_page_policy_name, enum nm_page_policy, page_policies)
NAME_OF(nm_inject_name, enum nm_inject, injects)
NAME_OF(nm_performance_name, enum nm_performance, performances)
NAME_OF(nm_selection_name, enum nm_selection, selections)

const char *nm_config_policy_name(const struct nm_config *config)
{
	enum nm_thread_policy policy = config->threads.policy;
	bool published = policy >= NM_POLICY_LBMA && policy <= NM_POLICY_BALANCE;
	return policies[config->rules.paper && published
				? policy - NM_POLICY_LBMA + NM_POLICY_PAPER_FIRST
				: policy];
}
