/* SPDX-License-Identifier: MIT */
/* Metrics as text in the Prometheus exposition format, for the textfile collector of node_exporter
 * (numa-migrd-metrics(5)). There are no per-process metrics, to bound cardinality. Pure. */
#ifndef NUMA_MIGRD_EXPORT_H
#define NUMA_MIGRD_EXPORT_H

#include "numa-migrd/base.h"

/* In the order of the output. */
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
	NM_METRIC_STEER_CONFLICTS,
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

/* A text under construction; initially {0}. */
struct nm_export {
	char *text;
	size_t length, capacity;
	unsigned next; /* the first metric that may still be added */
	bool begun;    /* values of the metric before `next` may still be added */
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
