/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "settings.h"

/* Each list is in the order of its enum in config.h. */
static const char *const sources[] = {"auto",  "pebs",	 "ibs",	 "spe",
				      "event", "faults", "none", NULL};
static const char *const injects[] = {"none", "numa_balancing", NULL};
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
/* For research and for machines without hardware sampling, beside those of policy_rules.c. */
#define PARAMETER .parameter = true
#define COUNT(g, n, l, h)                                                                          \
	{                                                                                          \
		FIELD(g, n, NM_SETTING_COUNT), .low = (l), .high = (h)                             \
	}
#define REAL(g, n, l, h, ...)                                                                      \
	{                                                                                          \
		FIELD(g, n, NM_SETTING_REAL), .low = (l), .high = (h), __VA_ARGS__                 \
	}
#define CHOICE(g, n, c, ...)                                                                       \
	{                                                                                          \
		FIELD(g, n, NM_SETTING_CHOICE), .choices = (c), __VA_ARGS__                        \
	}

/* clang-format off */
const struct nm_setting nm_settings[] = {
	REAL(general, interval_s, 0.1, 60, PARAMETER),
	{FIELD(general, dry_run, NM_SETTING_BOOL)},

	{FIELD(targets, include, NM_SETTING_TARGETS)},
	{FIELD(targets, exclude, NM_SETTING_TARGETS)},
	CHOICE(targets, cgroup_attribute, attributes),
	REAL(targets, min_cpu_percent, 0, 100000),
	COUNT(targets, min_rss_mb, 0, 67108864),
	REAL(targets, min_age_s, 0, 86400),

	CHOICE(sampling, source, sources),
	CHOICE(sampling, inject, injects, PARAMETER),
	REAL(sampling, overhead_percent, 0.1, 100),
	{FIELD(sampling, event, NM_SETTING_EVENT), PARAMETER},

	CHOICE(threads, policy, policies),
	CHOICE(threads, performance, performances, PARAMETER),
	CHOICE(threads, selection, selections, PARAMETER),

	REAL(verify, control_percent, 0, 50),
	REAL(verify, tolerance_percent, 0, 100, PARAMETER),

	CHOICE(pages, policy, page_policies),
	CHOICE(pages, numa_balancing, balancings),
	COUNT(pages, max_mb_per_s, 1, 1000000),
	REAL(pages, keep_free_percent, 0, 100),
	COUNT(pages, max_gb_of_process, 0, 65536),
	{FIELD(pages, also, NM_SETTING_FLAGS), .choices = also, PARAMETER},

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

size_t nm_setting_index(const struct nm_setting *setting)
{
	return setting->group[0] ? (size_t)(setting - nm_settings)
				 : nm_setting_count + (size_t)(setting - nm_parameters);
}

bool nm_setting_is_group(const char *name)
{
	for (size_t i = 0; i < nm_setting_count; i++)
		if (strcmp(nm_settings[i].group, name) == 0)
			return true;
	return false;
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
