/* SPDX-License-Identifier: MIT */
/* The table of statistics. The names of metrics follow the rules of Prometheus: base units, ratios
 * from 0 to 1, counters end in _total. */
#include "report/statistics.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define TYPE_OF(value)                                                                             \
	_Generic((value), const char *: NM_VALUE_TEXT, bool: NM_VALUE_FLAG,                        \
		unsigned: NM_VALUE_UNSIGNED, uint64_t: NM_VALUE_COUNT,                             \
		int64_t: NM_VALUE_NUMBER, double: NM_VALUE_REAL)
#define VALUE(p, m)                                                                                \
	.part = NM_PART_##p, .type = TYPE_OF(((struct nm_statistics *)0)->m),                      \
	.offset = offsetof(struct nm_statistics, m)
#define OF_NODE(m)                                                                                 \
	.of_node = true, .type = TYPE_OF(((struct nm_node_row *)0)->m),                            \
	.offset = offsetof(struct nm_node_row, m)
#define STATUS(n) .status = (n)
#define METRIC(n, h, ...) .metric = "numa_migrd_" n, .help = (h), .labels = {__VA_ARGS__}
#define AGAIN(n) .metric = "numa_migrd_" n /* another row of that metric */
#define LABELS(...) .values = {__VA_ARGS__}
#define SUMMARY(s, f) .summary = NM_SUMMARY_##s, .field = (f)

/* clang-format off */
#define SUM(measure, name, arm, label)                                                             \
	{AGAIN("trial_units_total"), LABELS(name, label), VALUE(TRIAL, sums[measure][arm].n)},     \
	{AGAIN("trial_logarithms"), LABELS(name, label), VALUE(TRIAL, sums[measure][arm].sum)},    \
	{AGAIN("trial_logarithm_squares"), LABELS(name, label),                                    \
		VALUE(TRIAL, sums[measure][arm].squares)}
#define SUMS(measure, name)                                                                        \
	SUM(measure, name, NM_TRIAL_CONTROL, "control"),                                           \
	SUM(measure, name, NM_TRIAL_TREATED, "managed")

const struct nm_statistic nm_statistic_rows[] = {
	{METRIC("info",
		"Always 1; version, sampling source, and policies of threads and pages.",
		"version", "source", "policy", "pages_policy")},
	{STATUS("version"), VALUE(SERVICE, service.version)},
	{STATUS("summary"), VALUE(SERVICE, service.summary)},
	{STATUS("source"), VALUE(SERVICE, service.source)},
	{STATUS("policy"), VALUE(SERVICE, service.policy)},
	{STATUS("paused"),
		METRIC("paused",
		"1 while the service is paused: nothing is sampled, and all affinities are restored."),
		VALUE(SERVICE, service.paused)},
	{STATUS("dry_run"),
		METRIC("dry_run",
		"1 if the service only decides, and changes nothing."),
		VALUE(SERVICE, service.dry_run)},
	{STATUS("blind"),
		METRIC("blind",
		"1 while there is no sampling source, or only the first access to each page is seen; the journal has the reason."),
		VALUE(SERVICE, service.blind)},
	{STATUS("idle"), VALUE(SERVICE, service.idle)},
	{STATUS("control_percent"), VALUE(SERVICE, service.control_percent)},
	{STATUS("overhead_percent"), VALUE(SERVICE, service.overhead_percent)},
	{STATUS("interval_s"), METRIC("interval_seconds", "Length of the interval."),
		VALUE(SERVICE, service.interval_s)},
	{STATUS("intervals"), METRIC("intervals_total", "Intervals since the start."),
		SUMMARY(THREADS, "INTERVALS"), VALUE(SERVICE, tally.intervals)},
	{STATUS("interval_late_max_ms"), VALUE(SERVICE, service.late_max_ms)},
	{STATUS("decisions"), METRIC("decisions_total",
		"Decisions about threads or pages.", "of"),
		LABELS("threads"), VALUE(SERVICE, tally.decisions)},
	{STATUS("moves_applied"),
		METRIC("moves_total",
		"Decisions about threads that were applied, and that were refused by the kernel or by a check.", "result"),
		LABELS("applied"), SUMMARY(THREADS, "MOVES"), VALUE(SERVICE, tally.applied)},
	{STATUS("moves_refused"), AGAIN("moves_total"), LABELS("refused"),
		SUMMARY(THREADS, "REFUSED"), VALUE(SERVICE, tally.failed)},
	{STATUS("verdicts_improved"),
		METRIC("verdicts_total",
		"Verdicts on decisions.", "of", "verdict"),
		LABELS("threads", "improved"), SUMMARY(THREADS, "IMPROVED"),
		VALUE(SERVICE, tally.verdicts[NM_VERDICT_IMPROVED])},
	{STATUS("verdicts_neutral"), AGAIN("verdicts_total"), LABELS("threads", "neutral"),
		SUMMARY(THREADS, "NEUTRAL"), VALUE(SERVICE, tally.verdicts[NM_VERDICT_NEUTRAL])},
	{STATUS("verdicts_rolled_back"), AGAIN("verdicts_total"), LABELS("threads", "rolled_back"),
		SUMMARY(THREADS, "ROLLED_BACK"),
		VALUE(SERVICE, tally.verdicts[NM_VERDICT_ROLLED_BACK])},
	{STATUS("verdicts_worse"), AGAIN("verdicts_total"), LABELS("threads", "worse"),
		SUMMARY(THREADS, "WORSE"), VALUE(SERVICE, tally.verdicts[NM_VERDICT_WORSE])},
	{STATUS("verdicts_cancelled"), AGAIN("verdicts_total"), LABELS("threads", "cancelled"),
		SUMMARY(THREADS, "CANCELLED"),
		VALUE(SERVICE, tally.verdicts[NM_VERDICT_CANCELLED])},
	{STATUS("verdicts_inconclusive"), AGAIN("verdicts_total"),
		LABELS("threads", "inconclusive"), SUMMARY(THREADS, "INCONCLUSIVE"),
		VALUE(SERVICE, tally.verdicts[NM_VERDICT_INCONCLUSIVE])},
	{STATUS("verdicts_unverified"), AGAIN("verdicts_total"),
		LABELS("threads", "unverified"), SUMMARY(THREADS, "UNVERIFIED"),
		VALUE(SERVICE, tally.verdicts[NM_VERDICT_UNVERIFIED])},
	{STATUS("nodes"), VALUE(TASKS, nodes)},
	{STATUS("processes_managed"), SUMMARY(THREADS, "PROCESSES_MANAGED"),
		VALUE(TASKS, tasks.processes_managed)},
	{STATUS("threads_managed"), METRIC("threads",
		"Threads of managed and observed processes."),
		SUMMARY(THREADS, "THREADS_MANAGED"), VALUE(TASKS, tasks.threads_managed)},
	{STATUS("threads_measured"), VALUE(TASKS, threads_measured)},
	{STATUS("threads_undersampled"), VALUE(TASKS, threads_undersampled)},
	{STATUS("threads_candidates"),
		METRIC("lottery_threads",
		"Threads that ran in the last interval: candidates of the lottery, or the reason why not.", "state"),
		LABELS("candidate"), VALUE(LOTTERY, candidates[NM_CANDIDACY_YES])},
	{STATUS("threads_unmeasured"), AGAIN("lottery_threads"), LABELS("unmeasured"),
		VALUE(LOTTERY, candidates[NM_CANDIDACY_UNMEASURED])},
	{STATUS("threads_held"), AGAIN("lottery_threads"), LABELS("held"),
		VALUE(LOTTERY, candidates[NM_CANDIDACY_HELD])},
	{STATUS("threads_wandering"), AGAIN("lottery_threads"), LABELS("wandering"),
		VALUE(LOTTERY, candidates[NM_CANDIDACY_WANDERING])},
	{STATUS("threads_settled"), AGAIN("lottery_threads"), LABELS("settled"),
		VALUE(LOTTERY, candidates[NM_CANDIDACY_SETTLED])},
	{STATUS("threads_whole"), AGAIN("lottery_threads"), LABELS("whole"),
		VALUE(LOTTERY, candidates[NM_CANDIDACY_WHOLE])},
	{STATUS("threads_stuck"), VALUE(LOTTERY, tally.stuck)},
	{STATUS("threads_assigned"), METRIC("assigned_threads",
		"Threads that are assigned to a node."),
		VALUE(TASKS, assigned)},
	{STATUS("threads_moved"), METRIC("thread_moves_total",
		"Threads that were moved to another node."),
		VALUE(TASKS, moves.arrived)},
	{STATUS("threads_missed"), VALUE(TASKS, moves.missed)},
	{STATUS("moves_given_up"), VALUE(TASKS, moves.given_up)},
	{STATUS("move_longest_ns"), VALUE(TASKS, moves.longest_ns)},
	{STATUS("local_share"),
		METRIC("local_access_ratio",
		"Share of the sampled accesses of managed threads that were local."),
		VALUE(TASKS, tally.local_share)},
	{STATUS("cpu_share"), VALUE(TASKS, tally.cpu_share)},
	{STATUS("workers_given_up"), VALUE(TASKS, workers.given_up)},
	{STATUS("workers_stuck"), VALUE(TASKS, workers.stuck)},
	{STATUS("processes_placed"),
		METRIC("placed_processes",
		"Processes that have a home node, with the policy auto."),
		SUMMARY(HOMES, "HOMES"), VALUE(HOMES, homes_now)},
	{STATUS("prediction_error_percent"), METRIC("prediction_error_percent",
		"Median distance between the predicted and the measured savings of recent homes, in percent of the time."),
		SUMMARY(HOMES, "PREDICTION_ERROR_PERCENT"), VALUE(HOMES, prediction_error_percent)},
	{STATUS("homes_granted"),
		METRIC("homes_total",
		"Homes that the policy auto granted, and that expired or yielded to others.", "event"),
		LABELS("granted"), SUMMARY(HOMES, "HOMES_GRANTED"),
		VALUE(HOMES, tally.homes.granted)},
	{STATUS("homes_expired"), AGAIN("homes_total"), LABELS("expired"),
		SUMMARY(HOMES, "HOMES_EXPIRED"), VALUE(HOMES, tally.homes.expired)},
	{STATUS("homes_yielded"), AGAIN("homes_total"), LABELS("yielded"),
		SUMMARY(HOMES, "HOMES_YIELDED"), VALUE(HOMES, tally.homes.yielded)},
	{STATUS("pages_moved_home"),
		METRIC("home_pages_total",
		"Pages that the policy auto moved to the homes of their processes."),
		SUMMARY(HOMES, "PAGES_MOVED"), VALUE(HOMES, tally.homes.pages)},
	{STATUS("bytes_moved_home"),
		METRIC("home_moved_bytes_total",
		"Memory that the policy auto moved to the homes of its processes."),
		SUMMARY(HOMES, "BYTES"), VALUE(HOMES, tally.homes.bytes)},
	{STATUS("pages_tracked"), VALUE(MEMORY, tracked.tracked)},
	{STATUS("pages_evicted"), VALUE(MEMORY, tracked.evicted)},
	{STATUS("pages_ping_pong"), VALUE(MEMORY, tracked.ping_pong)},
	{STATUS("pages_table_bytes"), VALUE(MEMORY, tracked.bytes)},
	{STATUS("page_exclusivity"), VALUE(MEMORY, exclusivity)},
	{STATUS("sharing_threads"), VALUE(MEMORY, sharing.threads)},
	{STATUS("sharing_pairs"), VALUE(MEMORY, sharing.pairs)},
	{STATUS("pages_standing"), VALUE(PAGES, pages_standing)},
	{STATUS("page_decisions"), AGAIN("decisions_total"), LABELS("pages"),
		SUMMARY(PAGES, "DECISIONS"), VALUE(PAGES, pages.decisions)},
	{STATUS("pages_moved"),
		METRIC("pages_total",
		"Pages by result: moved, found elsewhere, refused by a rule, failed, not tried.", "result"),
		LABELS("moved"), SUMMARY(PAGES, "PAGES_MOVED"), VALUE(PAGES, pages.moved)},
	{STATUS("pages_moved_bytes"),
		METRIC("page_moved_bytes_total",
		"Memory migrated between nodes."),
		SUMMARY(PAGES, "BYTES"), VALUE(PAGES, pages.bytes)},
	{STATUS("pages_elsewhere"), AGAIN("pages_total"), LABELS("elsewhere"),
		SUMMARY(PAGES, "PAGES_ELSEWHERE"), VALUE(PAGES, pages.elsewhere)},
	{STATUS("pages_refused"), AGAIN("pages_total"), LABELS("refused"),
		SUMMARY(PAGES, "PAGES_REFUSED"), VALUE(PAGES, pages.refused)},
	{STATUS("pages_failed"), AGAIN("pages_total"), LABELS("failed"),
		SUMMARY(PAGES, "PAGES_FAILED"), VALUE(PAGES, pages.failed)},
	{STATUS("pages_untried"), AGAIN("pages_total"), LABELS("untried"),
		SUMMARY(PAGES, "PAGES_UNTRIED"), VALUE(PAGES, pages.untried)},
	{STATUS("pages_waiting"), VALUE(PAGES, mover.waiting)},
	{STATUS("page_verdicts_improved"), AGAIN("verdicts_total"), LABELS("pages", "improved"),
		SUMMARY(PAGES, "IMPROVED"), VALUE(PAGES, pages.verdicts[NM_VERDICT_IMPROVED])},
	{STATUS("page_verdicts_neutral"), AGAIN("verdicts_total"), LABELS("pages", "neutral"),
		SUMMARY(PAGES, "NEUTRAL"), VALUE(PAGES, pages.verdicts[NM_VERDICT_NEUTRAL])},
	{STATUS("page_verdicts_rolled_back"), AGAIN("verdicts_total"),
		LABELS("pages", "rolled_back"), SUMMARY(PAGES, "ROLLED_BACK"),
		VALUE(PAGES, pages.verdicts[NM_VERDICT_ROLLED_BACK])},
	{STATUS("page_verdicts_inconclusive"), AGAIN("verdicts_total"),
		LABELS("pages", "inconclusive"), SUMMARY(PAGES, "INCONCLUSIVE"),
		VALUE(PAGES, pages.verdicts[NM_VERDICT_INCONCLUSIVE])},
	{STATUS("pages_remembered"), VALUE(PAGES, pages_remembered)},
	{STATUS("pages_forgotten"), VALUE(PAGES, pages.forgotten)},
	{STATUS("page_backoffs"),
		METRIC("page_backoffs_total",
		"Pauses of page migration after a call that took too long."),
		VALUE(PAGES, mover.backoffs)},
	{STATUS("page_splits"), VALUE(PAGES, mover.splits)},
	{STATUS("page_call_longest_ns"),
		METRIC("page_call_longest_seconds",
		"The longest of these calls since the start."),
		.metric_unit = NM_NSEC_PER_SEC, VALUE(PAGES, mover.call_longest_ns)},
	{STATUS("memory_imbalance"),
		METRIC("memory_imbalance_ratio",
		"Relative deviation of the memory traffic of the nodes, if pages are moved."),
		VALUE(PAGES, memory_imbalance)},
	{STATUS("selection"), VALUE(BALANCE, selection)},
	{STATUS("balancing"), VALUE(BALANCE, balance.active)},
	{STATUS("load_gap"), VALUE(BALANCE, balance.gap)},
	{STATUS("threads_waiting"),
		METRIC("waiting_threads",
		"Managed threads that waited for a CPU, with the policy balance."),
		VALUE(BALANCE, balance.waiting)},
	{STATUS("schedstat_reads"), VALUE(BALANCE, balancer.reads)},
	{STATUS("residency_counts"), VALUE(BALANCE, balancer.pages_counted)},
	{STATUS("stopped_by_gain"), VALUE(BALANCE, balancer.stopped_by_gain)},
	{STATUS("stopped_by_leader"), VALUE(BALANCE, balancer.stopped_by_leader)},
	{STATUS("stopped_by_unknown_pages"), VALUE(BALANCE, balancer.unknown)},
	{STATUS("dtas"), VALUE(BALANCE, dtas)},
	{STATUS("dtas_returned"), VALUE(BALANCE, balancer.returned)},
	{STATUS("dtas_elsewhere"), VALUE(BALANCE, dtas_elsewhere)},
	{STATUS("samples_runs"), VALUE(SOURCE, source.runs)},
	{STATUS("samples_accesses"), VALUE(SOURCE, source.accesses)},
	{STATUS("run_sample_ns"), VALUE(SOURCE, source.run_sample_ns)},
	{STATUS("fault_period"),
		METRIC("fault_period",
		"Sampling period in page faults; larger than 1 while sampling is reduced."),
		VALUE(SOURCE, source.fault_period)},
	{STATUS("samples"), METRIC("samples_total",
		"Samples since the source was opened."),
		VALUE(SOURCE, source.counts.samples)},
	{STATUS("samples_lost"),
		METRIC("samples_lost_total",
		"Records that the kernel dropped because a ring was full."),
		SUMMARY(THREADS, "SAMPLES_LOST"), VALUE(SOURCE, source.counts.lost)},
	{STATUS("started_s"), METRIC("start_time_seconds",
		"Start time of the daemon in seconds since 1970, when the counters began."),
		VALUE(SERVICE, service.started_s)},
	{METRIC("processes",
		"Known processes by state: managed, only observed, or excluded by the attribute of a cgroup.", "state"),
		LABELS("managed"), VALUE(TASKS, processes_active)},
	{AGAIN("processes"), LABELS("observed"), VALUE(TASKS, tasks.processes_observed)},
	{AGAIN("processes"), LABELS("off"), VALUE(TASKS, tasks.processes_off)},
	{METRIC("access_latency_cycles",
		"Mean latency of the sampled loads of managed threads in the last interval, if the hardware measures it."),
		VALUE(TASKS, latency)},
	{METRIC("page_call_seconds_total",
		"Time spent in calls that migrate pages."),
		.metric_unit = NM_NSEC_PER_SEC, VALUE(PAGES, mover.call_ns)},
	{METRIC("cpu_seconds_total",
		"CPU time of the daemon (measured) and of sampling in the programs (estimated).", "by"),
		LABELS("self"), .metric_unit = NM_NSEC_PER_SEC, VALUE(SERVICE, service.cpu_ns)},
	{AGAIN("cpu_seconds_total"), LABELS("sampling"), .metric_unit = NM_NSEC_PER_SEC,
		VALUE(SERVICE, tally.caused_ns)},
	{METRIC("overhead_ratio",
		"Sum of both in the last interval, as a share of one CPU."),
		VALUE(SOURCE, tally.cpu_share)},
	{METRIC("resident_memory_bytes",
		"Resident memory of the daemon."),
		VALUE(SERVICE, service.resident_bytes)},
	{METRIC("journal_suppressed_total",
		"Journal entries suppressed because they are more than 20 per second, as of the last summary."),
		VALUE(SERVICE, tally.suppressed)},
	{STATUS("compared_today"), VALUE(TRIAL, today)},
	{METRIC("node_cpu_busy_ratio",
		"Busy share of the CPUs of the node in the last interval, including processes that are not managed.", "node"),
		OF_NODE(load)},
	{METRIC("node_threads",
		"Managed threads that ran mostly on the node.", "node"),
		OF_NODE(threads)},
	{METRIC("node_access_ratio",
		"Share of all sampled accesses that the memory of the node served.", "node"),
		OF_NODE(access_share)},
	{METRIC("trial_units_total",
		"Finished processes, or groups of related ones, managed or left alone, of programs with two in each arm.", "measure", "arm")},
	{METRIC("trial_logarithms",
		"Sum of the natural logarithms of their measured values, relative to the mean of the program's units that were left alone.", "measure", "arm")},
	{METRIC("trial_logarithm_squares",
		"Sum of the squares of these logarithms.", "measure", "arm")},
	SUMS(NM_TRIAL_ELAPSED, "elapsed"),
	SUMS(NM_TRIAL_CPU, "cpu"),
};
/* clang-format on */

const size_t nm_statistic_count = NM_ARRAY_SIZE(nm_statistic_rows);

/* ---- reading ---- */

static const void *place_of(const struct nm_statistic *row, const void *values)
{
	return (const char *)values + row->offset;
}

static bool is_known(const struct nm_statistic *row, const struct nm_statistics *statistics)
{
	return row->type != NM_VALUE_NONE && !row->of_node && statistics->parts & 1U << row->part;
}

static double number_of(const struct nm_statistic *row, const void *values)
{
	const void *value = place_of(row, values);
	switch (row->type) {
	case NM_VALUE_FLAG:
		return *(const bool *)value;
	case NM_VALUE_UNSIGNED:
		return *(const unsigned *)value;
	case NM_VALUE_COUNT:
		return (double)*(const uint64_t *)value;
	case NM_VALUE_NUMBER:
		return *(const int64_t *)value < 0 ? (double)NAN : (double)*(const int64_t *)value;
	case NM_VALUE_REAL:
		return *(const double *)value;
	default:
		return (double)NAN;
	}
}

/* ---- the status ---- */

/* Returns NULL if it is unavailable. */
static json_t *json_of(const struct nm_statistic *row, const struct nm_statistics *statistics)
{
	double number = number_of(row, statistics);
	const char *text;
	switch (row->type) {
	case NM_VALUE_TEXT:
		text = *(const char *const *)place_of(row, statistics);
		return text ? json_string(text) : NULL;
	case NM_VALUE_FLAG:
		return json_boolean(number != 0);
	case NM_VALUE_REAL:
		return json_real(number); /* NULL if it is not finite */
	default:
		return isfinite(number) ? json_integer((json_int_t)number) : NULL;
	}
}

json_t *nm_statistics_json(const struct nm_statistics *statistics)
{
	json_t *status = nm_must(json_object());
	for (size_t i = 0; i < nm_statistic_count; i++) {
		const struct nm_statistic *row = &nm_statistic_rows[i];
		json_t *value =
			row->status && is_known(row, statistics) ? json_of(row, statistics) : NULL;
		if (value)
			nm_must_do(json_object_set_new_nocheck(status, row->status, value));
	}
	return status;
}

/* ---- a summary ---- */

void nm_statistics_fields(struct nm_entry *entry, const struct nm_statistics *statistics,
			  enum nm_summary summary)
{
	for (size_t i = 0; i < nm_statistic_count; i++) {
		const struct nm_statistic *row = &nm_statistic_rows[i];
		if (row->summary == summary && is_known(row, statistics))
			nm_entry_field(entry, row->field, "%.0f", number_of(row, statistics));
	}
}

/* ---- metrics ---- */

/* Escapes backslash, quote and newline. */
static void put_label(FILE *out, const char *text)
{
	for (; *text; text++) {
		if (strchr("\\\"\n", *text))
			(void)fputc('\\', out);
		(void)fputc(*text == '\n' ? 'n' : *text, out);
	}
}

/* The shortest text that yields the same number. */
static void put_number(FILE *out, double value)
{
	char text[32];
	if (isinf(value)) {
		(void)fputs(value > 0 ? "+Inf" : "-Inf", out);
		return;
	}
	for (int digits = 6; digits <= 17; digits++) {
		(void)snprintf(text, sizeof(text), "%.*g", digits, value);
		if (strtod(text, NULL) == value)
			break;
	}
	(void)fputs(text, out);
}

/* The values of one metric, of which `first` is the first row. */
struct series {
	FILE *out;
	const struct nm_statistic *first;
	bool begun;
};

static void put(struct series *series, const char *const *values, double value)
{
	const struct nm_statistic *first = series->first;
	FILE *out = series->out;
	if (isnan(value))
		return;
	if (!series->begun) {
		size_t length = strlen(first->metric);
		bool counter = strcmp(first->metric + length - strlen("_total"), "_total") == 0;
		(void)fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", first->metric, first->help,
			      first->metric, counter ? "counter" : "gauge");
	}
	series->begun = true;
	(void)fputs(first->metric, out);
	for (unsigned i = 0; i < NM_METRIC_LABELS && first->labels[i]; i++) {
		(void)fprintf(out, "%c%s=\"", i == 0 ? '{' : ',', first->labels[i]);
		put_label(out, values[i]);
		(void)fputc('"', out);
	}
	(void)fputs(first->labels[0] ? "} " : " ", out);
	put_number(out, value);
	(void)fputc('\n', out);
}

static void put_nodes(struct series *series, const struct nm_node_row *nodes, size_t nr_nodes)
{
	for (size_t i = 0; i < nr_nodes; i++) {
		char number[16];
		(void)snprintf(number, sizeof(number), "%u", (unsigned)nodes[i].node);
		const char *values[NM_METRIC_LABELS] = {number};
		put(series, values, number_of(series->first, &nodes[i]));
	}
}

static void put_metric(struct series *series, const struct nm_statistics *statistics)
{
	const char *info[] = {statistics->service.version, statistics->service.source,
			      statistics->service.policy, statistics->service.pages_policy};
	/* The metric "info" contains only text. */
	if (series->first == nm_statistic_rows)
		put(series, info, 1);
	for (const struct nm_statistic *row = series->first;
	     row < nm_statistic_rows + nm_statistic_count; row++) {
		double unit = row->metric_unit > 0 ? row->metric_unit : 1;
		if (row->metric && strcmp(row->metric, series->first->metric) == 0 &&
		    is_known(row, statistics))
			put(series, row->values, number_of(row, statistics) / unit);
	}
}

char *nm_statistics_metrics(const struct nm_statistics *statistics, const struct nm_node_row *nodes,
			    size_t nr_nodes)
{
	char *text = NULL;
	size_t length;
	FILE *out = nm_must(open_memstream(&text, &length));
	for (size_t i = 0; i < nm_statistic_count; i++) {
		struct series series = {.out = out, .first = &nm_statistic_rows[i]};
		if (!series.first->help)
			continue;
		if (series.first->of_node)
			put_nodes(&series, nodes, nr_nodes);
		else
			put_metric(&series, statistics);
	}
	/* A comment in this format: the file is complete. */
	(void)fputs("# EOF\n", out);
	nm_must_do(fclose(out));
	return nm_must(text);
}
