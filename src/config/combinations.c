/* SPDX-License-Identifier: MIT */
/* Checks settings that are valid individually but not in combination. */
#include "parse.h"

/* A file and its configuration. */
struct config_check {
	struct nm_report *report;
	const struct nm_config *config;
	const config_t *file;
};

/* Returns the line of the first of the settings that the file contains. */
static unsigned line_of(const struct config_check *config_check, const char *const *paths)
{
	for (; *paths; paths++) {
		const config_setting_t *setting = config_lookup(config_check->file, *paths);
		if (setting)
			return config_setting_source_line(setting);
	}
	return 0;
}

#define LINE(config_check, ...) line_of(config_check, (const char *const[]){__VA_ARGS__, NULL})

static void check_soft_dirty(const struct config_check *config_check)
{
	const struct nm_config *config = config_check->config;
	if (config->sampling.inject != NM_INJECT_SOFT_DIRTY)
		return;
	unsigned line = LINE(config_check, "sampling.inject");
	if (!config->sampling.accept_soft_dirty_risk)
		nm_report_error(config_check->report, line,
				"sampling.inject: found \"soft_dirty\", allowed: only with "
				"sampling.accept_soft_dirty_risk = true");
	if (!nm_targets_has_criterion(&config->targets.include))
		nm_report_error(
			config_check->report, line,
			"sampling.inject: found \"soft_dirty\", allowed: only with a pattern "
			"in targets.include that names a command, unit, slice or cgroup "
			"other than \"*\"");
}

static void check_source(const struct config_check *config_check)
{
	const struct nm_config *config = config_check->config;
	if (config->sampling.source == NM_SOURCE_PMU && config->sampling.pmu[0] == '\0')
		nm_report_error(config_check->report, LINE(config_check, "sampling.source"),
				"sampling.source: found \"pmu\", allowed: only if sampling.pmu is "
				"set");
	if (config->sampling.source == NM_SOURCE_EVENT && config->sampling.event[0] == '\0')
		nm_report_error(
			config_check->report, LINE(config_check, "sampling.source"),
			"sampling.source: found \"event\", allowed: only if sampling.event is "
			"set");
}

/* A setting of T outside the bounds would have no effect, which would be confusing; the default
 * stays within the bounds. */
static void check_interval(const struct config_check *config_check)
{
	const struct nm_config *config = config_check->config;
	double low = config->threads.t_min_s, high = config->threads.t_max_s;
	double interval_s = config->general.interval_s;
	if (low > high) {
		nm_report_error(config_check->report,
				LINE(config_check, "threads.t_min_s", "threads.t_max_s"),
				"threads.t_min_s: found %g, allowed: at most threads.t_max_s, "
				"which is %g",
				low, high);
		return;
	}
	if (config->threads.policy == NM_POLICY_IMAR2 && (interval_s < low || interval_s > high) &&
	    config_lookup(config_check->file, "general.interval_s"))
		nm_report_error(config_check->report, LINE(config_check, "general.interval_s"),
				"general.interval_s: found %g, allowed with threads.policy = "
				"\"imar2\": from threads.t_min_s to threads.t_max_s, which are %g "
				"and %g",
				interval_s, low, high);
}

static void check_selection(const struct config_check *config_check)
{
	const struct nm_config *config = config_check->config;
	if (config->threads.policy == NM_POLICY_IMAR2 && !(config->threads.delta_r > 0) &&
	    !(config->threads.remote_below > 0))
		nm_report_error(config_check->report,
				LINE(config_check, "threads.delta_r", "threads.remote_below"),
				"threads.delta_r: found 0, allowed: above 0, unless "
				"threads.remote_below is: otherwise no thread is considered");
}

static void check_records(const struct config_check *config_check)
{
	const struct nm_config *config = config_check->config;
	double better = config->threads.q3_better, equal = config->threads.q3_equal,
	       worse = config->threads.q3_worse;
	if (better < equal || equal < worse)
		nm_report_error(config_check->report,
				LINE(config_check, "threads.q3_better", "threads.q3_equal",
				     "threads.q3_worse"),
				"threads.q3_better, q3_equal, q3_worse: found %g, %g and %g, "
				"allowed: in descending order, otherwise threads move to nodes "
				"where they were slower",
				better, equal, worse);
}

/* Only the paper's lottery lets a move without tickets win, and only without the gate. */
static void check_tickets(const struct config_check *config_check)
{
	const struct nm_config *config = config_check->config;
	bool zero_wins = config->threads.lottery == NM_LOTTERY_PAPER &&
			 config->threads.gate == NM_GATE_PAPER;
	bool by_record = config->threads.policy == NM_POLICY_IMAR2 &&
			 (config->threads.q3_better > 0 || config->threads.q3_equal > 0 ||
			  config->threads.q3_worse > 0 || config->threads.q4 > 0);
	bool draws = config->threads.policy == NM_POLICY_LBMA ||
		     config->threads.policy == NM_POLICY_IMAR2;
	if (draws && !zero_wins && !by_record && !(config->threads.q1 > 0) &&
	    !(config->threads.q2 > 0) && !(config->threads.q1_sibling > 0))
		nm_report_error(config_check->report,
				LINE(config_check, "threads.q1", "threads.q2"),
				"threads.q1: found 0, allowed: above 0, unless other tickets are: "
				"otherwise no candidate has tickets");
}

static void check_balance(const struct config_check *config_check)
{
	const struct nm_config *config = config_check->config;
	if (config->threads.policy != NM_POLICY_BALANCE)
		return;
	if (config->threads.balance_end > config->threads.balance_begin)
		nm_report_error(config_check->report,
				LINE(config_check, "threads.balance_end", "threads.balance_begin"),
				"threads.balance_end: found %g, allowed: at most "
				"threads.balance_begin, which is %g",
				config->threads.balance_end, config->threads.balance_begin);
}

void nm_config_check_combinations(struct nm_report *report, const struct nm_config *config,
				  const config_t *file)
{
	const struct config_check config_check = {.report = report, .config = config, .file = file};
	check_soft_dirty(&config_check);
	check_source(&config_check);
	check_interval(&config_check);
	check_selection(&config_check);
	check_records(&config_check);
	check_tickets(&config_check);
	check_balance(&config_check);
}
