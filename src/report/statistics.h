/* SPDX-License-Identifier: MIT */
/*
 * The statistics of the daemon: one row of a table for each value. The rows are the status
 * (in Dump on D-Bus), the metrics for Prometheus (numa-migrd-metrics(5)) and the summaries in the
 * journal. There are no values of single processes, to bound cardinality. Pure.
 */
#ifndef NUMA_MIGRD_STATISTICS_H
#define NUMA_MIGRD_STATISTICS_H

#include <jansson.h>

#include "policy/balance.h"
#include "numa-migrd/base.h"
#include "report/fields.h"
#include "report/journal.h"
#include "policy/judge.h"
#include "observe/memory.h"
#include "affinity/move.h"
#include "mover/page_stage.h"
#include "policy/policy.h"
#include "sample/sample.h"
#include "tasks/tasks.h"
#include "policy/trial.h"
#include "platform/worker.h"

/* ---- what is counted ---- */

/* Results of the homes assigned by policy "auto", and the memory moved to them. */
struct nm_home_tally {
	uint64_t granted, expired, yielded;
	uint64_t pages, bytes;
};

/* Totals since the start. */
struct nm_tally {
	uint64_t started_s; /* since 1970 */
	uint64_t intervals, decisions, applied, failed;
	uint64_t late_max_usec; /* maximum delay of the end of an interval */
	uint64_t verdicts[NM_VERDICT_KINDS];
	double local_share; /* over the managed threads in the last interval; NaN: not known */
	double cpu_share;   /* share of one CPU, by the daemon itself and by its sampling */
	uint64_t caused_ns; /* cost of sampling for the programs */
	uint64_t stuck;	    /* threads without a destination in the last lottery */
	struct nm_home_tally homes;
	uint64_t suppressed; /* journal entries, as of the last summary */
};

/* Parts of the statistics; one that does not run is unknown. */
enum nm_part {
	NM_PART_SERVICE, /* also while it is paused */
	NM_PART_HOMES,	 /* policy "auto", and its counters afterwards */
	NM_PART_TRIAL,	 /* the control group */
	NM_PART_PAGES,	 /* if pages are moved */
	NM_PART_SOURCE,
	NM_PART_TASKS,	 /* unless it is paused, as the rest */
	NM_PART_LOTTERY, /* if threads may be drawn */
	NM_PART_MEMORY,	 /* if pages are tracked */
	NM_PART_BALANCE,
};

#define NM_STATUS_LINE_BYTES 192

/* A copy of all values. Texts are borrowed; NULL: unknown. */
struct nm_statistics {
	unsigned parts; /* known: bits 1 << enum nm_part */
	struct {
		const char *version, *source, *policy, *pages_policy;
		bool paused, dry_run, blind, idle;
		bool homes;	 /* policy "auto" */
		bool unrestored; /* the last pause could not restore all CPU affinities */
		char line[NM_STATUS_LINE_BYTES]; /* nm_status_line() */
		const char *summary;		 /* that line */
		double interval_s, resident_bytes, started_s, control_percent, overhead_percent;
		uint64_t late_max_ms, cpu_ns;
	} service;
	struct nm_tally tally;
	uint64_t homes_now;
	double prediction_error_percent;
	/* The control group: a sentence about today, and what it is about. */
	const char *today;
	char sentence[NM_TRIAL_TEXT_BYTES];
	struct nm_trial_sum sums[NM_TRIAL_MEASURES][NM_TRIAL_ARMS];
	struct nm_page_tally pages;
	const char *pages_standing;
	struct nm_mover_counts mover;
	uint64_t pages_remembered;
	double memory_imbalance;
	struct nm_source_status source;
	unsigned nodes;
	struct nm_tasks_counts tasks;
	uint64_t processes_active, threads_measured, threads_undersampled, assigned;
	struct nm_move_counts moves;
	double latency;
	struct nm_worker_counts workers;
	uint64_t candidates[NM_CANDIDACY_MAX];
	struct nm_pages_counts tracked;
	struct nm_affinity_counts sharing;
	double exclusivity;
	const char *selection, *dtas;
	double dtas_elsewhere;
	struct nm_balance_state balance;
	struct nm_balancer_tally balancer;
};

/* ---- where it is shown ---- */

#define NM_METRIC_LABELS 4

/* The entries of the journal that sum up the work of the service. */
enum nm_summary {
	NM_SUMMARY_NONE,
	NM_SUMMARY_THREADS,
	NM_SUMMARY_HOMES,
	NM_SUMMARY_PAGES,
};

/* The type of a value where it is read. */
enum nm_value_type {
	NM_VALUE_NONE, /* code provides the value */
	NM_VALUE_TEXT,
	NM_VALUE_FLAG,
	NM_VALUE_UNSIGNED,
	NM_VALUE_COUNT,	 /* uint64_t; above 2^53, metrics lose precision */
	NM_VALUE_NUMBER, /* int64_t; negative: unavailable */
	NM_VALUE_REAL,
};

/* One value, in the order in which the status shows them. */
struct nm_statistic {
	const char *status; /* its name in the status; NULL: not shown there */
	/* Its metric, of which a counter ends in _total; NULL: none. The first row of a metric
	 * has its help text and the names of its labels. */
	const char *metric, *help, *labels[NM_METRIC_LABELS];
	const char *values[NM_METRIC_LABELS]; /* of its labels */
	double metric_unit; /* number of units of the value in one of the metric; 0: the same */
	enum nm_summary summary;
	const char *field; /* its name in that summary */
	enum nm_part part;
	enum nm_value_type type;
	bool of_node;  /* read from each struct nm_node_row */
	size_t offset; /* in struct nm_statistics, otherwise */
};

extern const struct nm_statistic nm_statistic_rows[];
extern const size_t nm_statistic_count;

/* Returns the status: all values that are known. */
json_t *nm_statistics_json(const struct nm_statistics *statistics);
/*
 * Returns the metrics in the exposition format of Prometheus, version 0.0.4; the caller frees them.
 * Values that are NaN are omitted.
 */
char *nm_statistics_metrics(const struct nm_statistics *statistics, const struct nm_node_row *nodes,
			    size_t nr_nodes);

/* Adds the numbers of a summary as fields. */
void nm_statistics_fields(struct nm_entry *entry, const struct nm_statistics *statistics,
			  enum nm_summary summary);

/* ---- summary.c: sentences ---- */

/* Begins an entry with the numbers of one summary. `suppressed` is the number of entries that were
 * not written since the last one. */
void nm_entry_summary(struct nm_entry *entry, const struct nm_statistics *statistics,
		      enum nm_summary summary, uint64_t suppressed);
/* Writes the status line, without "STATUS=", for systemd. */
void nm_status_line(const struct nm_statistics *statistics, char *text, size_t size);
/* Returns a phrase: whether the last pause has restored every CPU affinity. */
const char *nm_restoration_text(bool unrestored);

#endif
