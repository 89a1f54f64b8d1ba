/* SPDX-License-Identifier: MIT */
/* The document of Dump (org.numamigrd1(5)): the last interval as used for its decisions, and the
 * status. */
#ifndef NUMA_MIGRD_VIEWS_H
#define NUMA_MIGRD_VIEWS_H

#include "report/dump.h"
#include "report/history.h"
#include "policy/homes.h"
#include "affinity/move.h"
#include "mover/page_stage.h"
#include "report/statistics.h"

/* The sources of the document and of the statistics; all are borrowed. While the service is paused,
 * the objects of the pipeline are NULL. */
struct nm_view {
	const char *version;
	const struct nm_config *config;
	const struct nm_tally *tally;
	const struct nm_history *history;
	bool paused, dry_run;
	bool blind;	 /* memory accesses should be sampled and cannot be */
	bool may_draw;	 /* threads may be drawn by a lottery */
	bool unrestored; /* the last pause could not restore all CPU affinities */
	double interval_s;
	uint64_t cpu_ns, now_ns; /* now_ns: 0 during a pause */
	struct nm_platform *platform;
	const struct nm_topology *topology;
	struct nm_source *source; /* NULL: none */
	const double *busy_share; /* by CPU id; NaN: not known */
	unsigned nr_cpus;
	/* Of the last interval; NULL: none yet. The CPU sets of the snapshot must not be used,
	 * because they may have been freed. */
	const struct nm_snapshot *snapshot;
	const double *served; /* accesses of all threads by node of the memory */
	struct nm_task_table *tasks;
	const struct nm_moves *moves;
	const struct nm_assignments *assignments;
	struct nm_memory *memory;	   /* NULL: pages are not tracked */
	const struct nm_page_stage *pages; /* NULL: pages are not moved */
	enum nm_balancing_mode balancing_mode;
	const struct nm_migrations *migrations;
	const struct nm_placement *placement; /* NULL: no homes */
	const struct nm_balancer *balancer;   /* NULL: another policy */
	const struct nm_trial *trial;
	const char *trial_cause; /* why the last one ended early; NULL: it did not */
};

/* Copies the values of the status line. It is composed up to twice a second, so that nothing here
 * reads each thread of the snapshot or each page. */
void nm_view_totals(const struct nm_view *view, struct nm_statistics *ret);
/* Copies all statistics. */
void nm_view_statistics(const struct nm_view *view, struct nm_statistics *ret);

/* ---- entries about the service ---- */

void nm_entry_start(struct nm_entry *entry, const struct nm_view *view, uint64_t seed);
/* Reports whether all events of P are sampled, and what is missing. */
void nm_entry_performance(struct nm_entry *entry, enum nm_performance performance,
			  const struct nm_snapshot *snapshot);
/* Reports a process that has missed a deadline, or that no worker is available. */
void nm_entry_worker(struct nm_entry *entry, const struct nm_worker_news *news);

/* ---- the document ---- */

/* Composes the document. Returns its descriptor, which the caller closes, or a negative errno. */
int nm_view_dump(const struct nm_view *view);

/* Writes the statistics and the nodes to a file for Prometheus. Returns 0 or a negative errno. */
int nm_view_export(const struct nm_view *view, const char *path);

/* Adds all processes in the task table. `last` has the newest decision about each thread of the
 * snapshot, by its index; 0: none. */
void nm_view_processes(const struct nm_view *view, const uint64_t *last, struct nm_dump *dump);

/* Returns the results of the last period of a trial, in total and of each command. */
json_t *nm_view_trial(const struct nm_view *view, struct nm_dump *dump);

#endif
