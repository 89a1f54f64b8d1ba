/* SPDX-License-Identifier: MIT */
/* Entries of the journal, the status for systemd, the metrics file, and what is shown. */
#ifndef NM_DAEMON_REPORT_H
#define NM_DAEMON_REPORT_H

#include "affinity/move.h"
#include "policy/homes.h"
#include "policy/judge.h"
#include "report/journal.h"
#include "report/views.h"

struct nm_daemon;

void nm_report(struct nm_journal *journal, enum nm_message message, int priority,
	       const char *format, ...) __attribute__((format(printf, 4, 5)));
void nm_report_start(struct nm_daemon *daemon);
/* Logs once for each source that only first touches are sampled, or that this has ended. Called
 * after a tick, and after configuring first the source and then the injection. */
void nm_report_sampling_source(struct nm_daemon *daemon);
/* Returns the end of the message that injection is refused. */
const char *nm_injection_failure_effect(struct nm_daemon *daemon);
void nm_report_source_problems(
	struct nm_daemon *daemon); /* logs problems of the source since the last call */
/* Logs once that P falls back to locality and why, and again when this changes. */
void nm_report_locality(struct nm_daemon *daemon, const struct nm_snapshot *snapshot);
void nm_report_coexistence(struct nm_daemon *daemon);
/* Logs processes that have not answered since the last call. */
void nm_report_workers(struct nm_daemon *daemon);
void nm_report_move(void *context, const struct nm_move_event *event);
void nm_report_summary(struct nm_daemon *daemon);
void nm_report_status(struct nm_daemon *daemon);
void nm_report_config_errors(struct nm_journal *journal, enum nm_message message,
			     const struct nm_config_errors *errors);
void nm_report_config_warnings(struct nm_daemon *daemon);

/* Reports a decision; receipt is NULL for a home. */
void nm_report_decision(struct nm_daemon *daemon, const struct nm_decision *decision,
			const struct nm_receipt *receipt);
/* Reports the decisions of a plan, except those that are postponed and may be proposed again. The
 * home of a process is reported as a whole, not the moves of its threads. */
void nm_report_plan(struct nm_daemon *daemon, const struct nm_plan *plan,
		    const struct nm_receipt *receipts);
void nm_report_verdict(struct nm_daemon *daemon, const struct nm_verdict *verdict);
/* Logs that a process has lost its home without a verdict. */
void nm_report_home_end(struct nm_daemon *daemon, const struct nm_snap_process *process,
			const struct nm_home_action *action, const char *why);

/* Takes over the snapshot. */
void nm_views_update(struct nm_daemon *daemon, struct nm_snapshot *snapshot,
		     const struct nm_sampled_thread *sampled, size_t nr_sampled);
/* Discards the data, because its topology is about to be freed. */
void nm_views_clear(struct nm_daemon *daemon);
/* Returns the sources of what is shown now. */
struct nm_view nm_views_of(const struct nm_daemon *daemon);

/* Writes the metrics file when it is due, also while paused. Failures are logged once. */
void nm_exporter_tick(struct nm_daemon *daemon);
/* Removes the file: a stopped service has no metrics. */
void nm_exporter_close(struct nm_daemon *daemon);

#endif
