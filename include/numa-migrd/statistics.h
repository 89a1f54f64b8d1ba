/* SPDX-License-Identifier: MIT */
/*
 * The one table of what the daemon counts and measures. It feeds the status (in Dump on D-Bus), the
 * metrics for Prometheus (numa-migrd-metrics(5)) and the summaries in the journal. There are no
 * values of single processes, to bound cardinality. Pure.
 */
#ifndef NUMA_MIGRD_STATISTICS_H
#define NUMA_MIGRD_STATISTICS_H

#include "numa-migrd/base.h"
#include "numa-migrd/fields.h"

/* Metrics of Prometheus, in the order of the output. */
enum nm_metric {
	NM_METRIC_INFO,
	NM_METRIC_START,
	NM_METRIC_PAUSED,
	NM_METRIC_DRY_RUN,
	NM_METRIC_BLIND,
	NM_METRIC_INTERVAL,
	NM_METRIC_INTERVALS,
	NM_METRIC_PROCESSES,
	NM_METRIC_THREADS,
	NM_METRIC_CANDIDATES,
	NM_METRIC_LEASES,
	NM_METRIC_PLACED,
	NM_METRIC_LOCAL,
	NM_METRIC_LATENCY,
	NM_METRIC_WAITING,
	NM_METRIC_IMBALANCE,
	NM_METRIC_NODE_BUSY,
	NM_METRIC_NODE_THREADS,
	NM_METRIC_NODE_ACCESSES,
	NM_METRIC_DECISIONS,
	NM_METRIC_MOVES,
	NM_METRIC_VERDICTS,
	NM_METRIC_PAGES,
	NM_METRIC_PAGE_BYTES,
	NM_METRIC_PAGE_SECONDS,
	NM_METRIC_PAGE_LONGEST,
	NM_METRIC_PAGE_BACKOFFS,
	NM_METRIC_HOMES,
	NM_METRIC_HOME_PAGES,
	NM_METRIC_HOME_BYTES,
	NM_METRIC_CPU,
	NM_METRIC_OVERHEAD,
	NM_METRIC_RESIDENT,
	NM_METRIC_SAMPLES,
	NM_METRIC_LOST,
	NM_METRIC_FAULT_PERIOD,
	NM_METRIC_SUPPRESSED,
	NM_METRIC_TRIAL_UNITS,
	NM_METRIC_TRIAL_SUM,
	NM_METRIC_TRIAL_SQUARES,
	NM_METRIC_MAX,
};

#define NM_METRIC_LABELS 4

struct nm_metric_kind {
	const char *name;
	bool counter; /* otherwise a gauge */
	const char *labels[NM_METRIC_LABELS];
	const char *help;
};

/* Returns the name and meaning of a metric, for the writer and for tests of the manual page and the
 * dashboard. */
const struct nm_metric_kind *nm_metric_kind(enum nm_metric metric);

/* Statistics, in the order in which the status shows them. */
enum nm_statistic {
	NM_STATISTIC_VERSION,
	NM_STATISTIC_SOURCE,
	NM_STATISTIC_POLICY,
	NM_STATISTIC_PAUSED,
	NM_STATISTIC_DRY_RUN,
	NM_STATISTIC_BLIND,
	NM_STATISTIC_IDLE,
	NM_STATISTIC_INTERVAL_S,
	NM_STATISTIC_INTERVALS,
	NM_STATISTIC_INTERVAL_LATE_MAX_MS,
	NM_STATISTIC_DECISIONS,
	NM_STATISTIC_MOVES_APPLIED,
	NM_STATISTIC_MOVES_REFUSED,
	NM_STATISTIC_VERDICTS_IMPROVED,
	NM_STATISTIC_VERDICTS_NEUTRAL,
	NM_STATISTIC_VERDICTS_ROLLED_BACK,
	NM_STATISTIC_VERDICTS_CANCELLED,
	NM_STATISTIC_VERDICTS_INCONCLUSIVE,
	NM_STATISTIC_NODES,
	NM_STATISTIC_PROCESSES_MANAGED,
	NM_STATISTIC_THREADS_MANAGED,
	NM_STATISTIC_THREADS_MEASURED,
	NM_STATISTIC_THREADS_UNDERSAMPLED,
	/* In the order of enum nm_candidacy: */
	NM_STATISTIC_THREADS_CANDIDATES,
	NM_STATISTIC_THREADS_UNMEASURED,
	NM_STATISTIC_THREADS_HELD,
	NM_STATISTIC_THREADS_WANDERING,
	NM_STATISTIC_THREADS_SETTLED,
	NM_STATISTIC_THREADS_WHOLE,
	NM_STATISTIC_THREADS_STUCK,
	NM_STATISTIC_LEASES,
	NM_STATISTIC_LOCAL_SHARE,
	NM_STATISTIC_CPU_SHARE,
	NM_STATISTIC_WORKERS_GIVEN_UP,
	NM_STATISTIC_WORKERS_STUCK,
	NM_STATISTIC_PROCESSES_PLACED,
	NM_STATISTIC_HOMES_GRANTED,
	NM_STATISTIC_HOMES_EXPIRED,
	NM_STATISTIC_HOMES_YIELDED,
	NM_STATISTIC_HOMES_ROLLED_BACK,
	NM_STATISTIC_PAGES_MOVED_HOME,
	NM_STATISTIC_BYTES_MOVED_HOME,
	NM_STATISTIC_PAGES_TRACKED,
	NM_STATISTIC_PAGES_EVICTED,
	NM_STATISTIC_PAGES_PING_PONG,
	NM_STATISTIC_PAGES_TABLE_BYTES,
	NM_STATISTIC_PAGE_EXCLUSIVITY,
	NM_STATISTIC_SHARING_THREADS,
	NM_STATISTIC_SHARING_PAIRS,
	NM_STATISTIC_PAGES_STANDING,
	NM_STATISTIC_PAGE_DECISIONS,
	NM_STATISTIC_PAGES_MOVED,
	NM_STATISTIC_PAGES_MOVED_BYTES,
	NM_STATISTIC_PAGES_ELSEWHERE,
	NM_STATISTIC_PAGES_REFUSED,
	NM_STATISTIC_PAGES_FAILED,
	NM_STATISTIC_PAGES_UNTRIED,
	NM_STATISTIC_PAGES_WAITING,
	NM_STATISTIC_PAGE_VERDICTS_IMPROVED,
	NM_STATISTIC_PAGE_VERDICTS_NEUTRAL,
	NM_STATISTIC_PAGE_VERDICTS_ROLLED_BACK,
	NM_STATISTIC_PAGE_VERDICTS_INCONCLUSIVE,
	NM_STATISTIC_PAGES_REMEMBERED,
	NM_STATISTIC_PAGES_FORGOTTEN,
	NM_STATISTIC_PAGE_BACKOFFS,
	NM_STATISTIC_PAGE_SPLITS,
	NM_STATISTIC_PAGE_CALL_LONGEST_NS,
	NM_STATISTIC_MEMORY_IMBALANCE,
	NM_STATISTIC_SELECTION,
	NM_STATISTIC_BALANCING,
	NM_STATISTIC_LOAD_GAP,
	NM_STATISTIC_THREADS_WAITING,
	NM_STATISTIC_SCHEDSTAT_READS,
	NM_STATISTIC_RESIDENCY_COUNTS,
	NM_STATISTIC_STOPPED_BY_GAIN,
	NM_STATISTIC_STOPPED_BY_LEADER,
	NM_STATISTIC_STOPPED_BY_UNKNOWN_PAGES,
	NM_STATISTIC_DTAS,
	NM_STATISTIC_SAMPLES_RUNS,
	NM_STATISTIC_SAMPLES_ACCESSES,
	NM_STATISTIC_RUN_SAMPLE_NS,
	NM_STATISTIC_FAULT_PERIOD,
	NM_STATISTIC_SAMPLES,
	NM_STATISTIC_SAMPLES_LOST,
	NM_STATISTIC_STARTED_S,
	NM_STATISTIC_PROCESSES_ACTIVE,
	NM_STATISTIC_PROCESSES_OBSERVED,
	NM_STATISTIC_PROCESSES_OFF,
	NM_STATISTIC_ACCESS_LATENCY,
	NM_STATISTIC_PAGE_CALL_NS,
	NM_STATISTIC_CPU_SELF_NS,
	NM_STATISTIC_CPU_SAMPLING_NS,
	NM_STATISTIC_OVERHEAD,
	NM_STATISTIC_RESIDENT_BYTES,
	NM_STATISTIC_SUPPRESSED,
	NM_STATISTIC_COMPARED_TODAY,
	NM_STATISTIC_COMPARED_YESTERDAY,
	/* Number, sum and sum of squares for each arm of each measure of trial.h: */
	NM_STATISTIC_TRIAL,
	NM_STATISTIC_TRIAL_LAST = NM_STATISTIC_TRIAL + 17,
	NM_STATISTIC_MAX,
};

/* The entries of the journal that sum up the work of the service. */
enum nm_summary {
	NM_SUMMARY_NONE,
	NM_SUMMARY_THREADS,
	NM_SUMMARY_HOMES,
	NM_SUMMARY_PAGES,
};

/* The places that show a statistic. */
struct nm_statistic_row {
	const char *status; /* its name in the status; NULL: not shown there */
	enum nm_field_type type;
	bool in_metrics;
	enum nm_metric metric;
	const char *labels[NM_METRIC_LABELS]; /* values of the metric's labels */
	double metric_unit; /* number of units of the value in one of the metric; 0: the same */
	enum nm_summary summary;
	const char *field; /* its name in that summary */
};

/* Returns the row of a statistic; static. Called by everything that shows statistics. */
const struct nm_statistic_row *nm_statistic_row(enum nm_statistic value);

/* The current value of a statistic. Counters above 2^53 lose precision. */
struct nm_statistic_now {
	bool known;	  /* otherwise it is not shown */
	double number;	  /* NaN: unavailable */
	const char *text; /* of a value of type NM_FIELD_TEXT */
};

/* A text under construction; initially {0}. */
struct nm_export {
	char *text;
	size_t length, capacity;
	unsigned next; /* the metric after that of the last value */
	int error;
};

/*
 * Adds one value. Metrics must be added in the order of the enum, with all values of one together.
 * `labels` has a value for each label of the metric, and may be NULL if it has none. NaN means not
 * available, and is omitted. Errors are reported by nm_export_finish().
 */
void nm_export_put(struct nm_export *out, enum nm_metric metric, const char *const *labels,
		   double value);

/* The values of the labels, in their order. */
#define NM_LABELS(...) ((const char *const[]){__VA_ARGS__})

/* Ends the text, which remains owned by the export. Returns 0, -ENOMEM, or -EINVAL if values were
 * out of order. */
int nm_export_finish(struct nm_export *out);
void nm_export_clear(struct nm_export *out);

#endif
