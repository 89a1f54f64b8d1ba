/* SPDX-License-Identifier: MIT */
/* Checks settings that are valid individually but not in combination. */
#include "parse.h"

struct config_check {
	struct nm_report *report;
	const struct nm_config *config;
	const struct nm_config_trees *trees;
};

/* Returns the line of the first of the settings that the files contain, and sets the file of the
 * report. */
static unsigned line_of(const struct config_check *check, const char *const *paths)
{
	for (; *paths; paths++) {
		const config_setting_t *value =
			nm_trees_lookup(check->trees, *paths, &check->report->file);
		if (value)
			return config_setting_source_line(value);
	}
	return 0;
}

#define LINE(check, ...) line_of(check, (const char *const[]){__VA_ARGS__, NULL})

static void check_source(const struct config_check *check)
{
	const struct nm_config *config = check->config;
	if (config->sampling.source == NM_SOURCE_EVENT && !config->sampling.pmu[0] &&
	    !config->sampling.event[0])
		nm_report_error(
			check->report, LINE(check, "sampling.source"),
			"sampling.source: found \"event\", allowed: only if sampling.event is set");
}

/* An interval outside the bounds would have no effect, which would be confusing; the default stays
 * within the bounds. */
static void check_interval(const struct config_check *check)
{
	const struct nm_config *config = check->config;
	double low = config->rules.t_min_s, high = config->rules.t_max_s;
	double interval_s = config->general.interval_s;
	const char *file;
	if (low > high)
		nm_report_error(check->report, LINE(check, "t_min_s", "t_max_s"),
				"t_min_s: found %g, allowed: at most t_max_s, which is %g", low,
				high);
	else if (config->threads.policy == NM_POLICY_IMAR2 &&
		 (interval_s < low || interval_s > high) &&
		 nm_trees_lookup(check->trees, "general.interval_s", &file))
		nm_report_error(check->report, LINE(check, "general.interval_s"),
				"general.interval_s: found %g, allowed with threads.policy = "
				"\"imar2\": from "
				"t_min_s to t_max_s, which are %g and %g",
				interval_s, low, high);
}

static void check_tickets(const struct config_check *check)
{
	const struct nm_policy_rules *rules = &check->config->rules;
	if (!(rules->delta_r > 0) && !(rules->remote_below > 0))
		nm_report_error(
			check->report, LINE(check, "delta_r", "remote_below"),
			"delta_r: found 0, allowed: above 0, unless remote_below is: otherwise no "
			"thread is considered");
	if (rules->q3_better < rules->q3_equal || rules->q3_equal < rules->q3_worse)
		nm_report_error(check->report, LINE(check, "q3_better", "q3_equal", "q3_worse"),
				"q3_better, q3_equal, q3_worse: found %g, %g and %g, allowed: in "
				"descending "
				"order, otherwise threads move to nodes where they were slower",
				rules->q3_better, rules->q3_equal, rules->q3_worse);
	/* Only the paper's lottery lets a move without tickets win. */
	if (!rules->paper && check->config->threads.policy == NM_POLICY_LBMA && !(rules->q1 > 0) &&
	    !(rules->q2 > 0) && !(rules->q1_sibling > 0))
		nm_report_error(
			check->report, LINE(check, "q1", "q2"),
			"q1: found 0, allowed: above 0, unless other tickets are: otherwise no "
			"candidate has tickets");
}

static void check_balance(const struct config_check *check)
{
	const struct nm_policy_rules *rules = &check->config->rules;
	if (rules->balance_end > rules->balance_begin)
		nm_report_error(
			check->report, LINE(check, "balance_end", "balance_begin"),
			"balance_end: found %g, allowed: at most balance_begin, which is %g",
			rules->balance_end, rules->balance_begin);
}

void nm_config_check_combinations(struct nm_report *report, const struct nm_config *config,
				  const struct nm_config_trees *trees)
{
	const struct config_check check = {.report = report, .config = config, .trees = trees};
	check_source(&check);
	check_interval(&check);
	check_tickets(&check);
	check_balance(&check);
}
