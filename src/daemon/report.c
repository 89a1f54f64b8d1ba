/* SPDX-License-Identifier: MIT */
/* Journal entries, the status line and the metrics file: when they are written, and what is handed
 * to report/ for them. */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "daemon.h"
#include "pipeline.h"
#include "report.h"
#include "report/decision_lines.h"

static void emit(struct nm_journal *journal, const struct nm_entry *entry)
{
	nm_journal_emit(journal, entry, nm_clock_ns());
}

void nm_report(struct nm_journal *journal, enum nm_message message, int priority,
	       const char *format, ...)
{
	struct nm_entry entry;
	char text[sizeof(entry.text)];
	va_list arguments;

	va_start(arguments, format);
	(void)vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	nm_entry_begin(&entry, message, priority);
	nm_entry_text(&entry, "%s", text);
	emit(journal, &entry);
}

/* Everything is tried nevertheless: distributions add functions to older kernels. */
static void report_old_kernel(struct nm_daemon *daemon)
{
	struct nm_platform *platform = daemon->pipeline.platform;
	char release[128];

	if (platform->ops->read_file(platform, NM_ROOT, NM_KERNEL_RELEASE_PATH, release,
				     sizeof(release)) <= 0 ||
	    !nm_kernel_is_too_old(release))
		return;
	release[strcspn(release, "\n")] = '\0';
	nm_report(daemon->journal, NM_MESSAGE_PROBLEM, LOG_WARNING,
		  "Linux %s is older than %d.%d: numa-migrd is not tested with it", release,
		  NM_KERNEL_MAJOR, NM_KERNEL_MINOR);
}

void nm_report_start(struct nm_daemon *daemon)
{
	const struct nm_view view = nm_views_of(daemon);
	struct nm_entry entry;
	nm_entry_start(&entry, &view, daemon->seed);
	emit(daemon->journal, &entry);
	report_old_kernel(daemon);
}

const char *nm_injection_failure_effect(struct nm_daemon *daemon)
{
	if (!nm_samples_first_touches_only(daemon))
		return "";
	daemon->reported.first_touches = true;
	return "; only first touches sampled";
}

void nm_report_sampling_source(struct nm_daemon *daemon)
{
	const struct nm_config *config = daemon->config;
	bool first_touches = nm_samples_first_touches_only(daemon);
	if (first_touches == daemon->reported.first_touches)
		return;
	daemon->reported.first_touches = first_touches;
	/* Without a PMU, accesses are page faults; homes are also chosen without them. A working
	 * sampling.inject would make repeated accesses visible. */
	if (first_touches)
		nm_report(daemon->journal, NM_MESSAGE_PROBLEM,
			  config->threads.policy == NM_POLICY_AUTO ? LOG_NOTICE : LOG_WARNING,
			  "Only first touches sampled: kernel.numa_balancing is %s; %s, or set it "
			  "to %d",
			  nm_balancing_off_text(daemon->machine.balancing),
			  config->sampling.inject != NM_INJECT_NONE
				  ? "fix parameters.sampling.inject"
				  : "set parameters.sampling.inject",
			  nm_balancing_with(daemon->machine.balancing, true));
	else if (!nm_lacks_accesses(daemon))
		nm_report(daemon->journal, NM_MESSAGE_PROBLEM, LOG_NOTICE,
			  "Repeated accesses are sampled again");
}

void nm_report_source_problems(struct nm_daemon *daemon)
{
	size_t count;
	const struct nm_source_problem *news = nm_source_news(daemon->pipeline.source, &count);
	for (size_t i = 0; i < count; i++)
		nm_report(daemon->journal, NM_MESSAGE_PROBLEM,
			  news[i].over ? LOG_NOTICE : LOG_WARNING, "%s", news[i].text);
}

void nm_report_locality(struct nm_daemon *daemon, const struct nm_snapshot *snapshot)
{
	struct nm_reported *reported = &daemon->reported;
	enum nm_performance performance = daemon->config->threads.performance;
	struct nm_entry entry;
	/* An interval without measured threads contains no information. */
	if (snapshot->measured == 0 ||
	    (snapshot->missing == reported->missing &&
	     (snapshot->missing == 0 || reported->performance == performance)))
		return;
	reported->missing = snapshot->missing;
	reported->performance = performance;
	nm_entry_performance(&entry, performance, snapshot);
	emit(daemon->journal, &entry);
}

static void report_foreign(void *context, const struct nm_foreign_process *other, uint32_t pid)
{
	struct nm_journal *journal = context;
	nm_report(journal, NM_MESSAGE_COEXIST, LOG_WARNING, "%s (PID %u) is running: %s; %s",
		  other->comm, pid, other->does, other->remedy);
}

void nm_report_workers(struct nm_daemon *daemon)
{
	struct nm_platform *platform = daemon->pipeline.platform;
	struct nm_worker_news news;
	struct nm_entry entry;
	while (platform->ops->worker_news && platform->ops->worker_news(platform, &news)) {
		nm_entry_worker(&entry, &news);
		emit(daemon->journal, &entry);
	}
}

void nm_report_coexistence(struct nm_daemon *daemon)
{
	if (nm_topology_is_single(daemon->pipeline.topology))
		return;
	if (nm_balances_nodes(daemon->machine.balancing))
		nm_report(daemon->journal, NM_MESSAGE_COEXIST, LOG_INFO,
			  "kernel.numa_balancing is %d: the kernel moves pages and threads, too",
			  daemon->machine.balancing);
	nm_foreign_find(daemon->pipeline.platform, report_foreign, daemon->journal);
}

/* Logs the events of moves. A thread whose affinity another program has set is released here. That
 * a thread did not run within its move is only counted. */
void nm_report_move(void *context, const struct nm_move_event *event)
{
	struct nm_daemon *daemon = context;
	struct nm_pipeline *pipeline = &daemon->pipeline;
	struct nm_entry entry;
	if (event->kind == NM_MOVE_PROGRESS) {
		/* systemd.service(5): TimeoutStartSec and TimeoutStopSec; WatchdogSec in a pause.
		 */
		(void)sd_notify(0, "WATCHDOG=1\nEXTEND_TIMEOUT_USEC=60000000");
		return;
	}
	if (event->kind == NM_MOVE_MISSED) {
		nm_assignments_missed(pipeline->assignments, event->tid, event->start_ticks);
		return;
	}
	if (event->kind == NM_MOVE_FOREIGN && pipeline->tasks)
		nm_tasks_give_back(pipeline->tasks, event->tid, event->start_ticks);
	if (event->kind == NM_MOVE_INHERITED && pipeline->tasks)
		nm_tasks_recheck(pipeline->tasks, event->tid, event->start_ticks);
	nm_entry_move(&entry, event);
	if (pipeline->tasks)
		entry.domain = nm_tasks_domain(pipeline->tasks, event->pid);
	emit(daemon->journal, &entry);
}

void nm_report_config_errors(struct nm_journal *journal, enum nm_message message,
			     const struct nm_config_errors *errors)
{
	for (size_t i = 0; i < errors->count; i++)
		nm_report(journal, message, LOG_ERR, "%s", errors->text[i]);
}

void nm_report_config_warnings(struct nm_daemon *daemon)
{
	char error[256];
	for (size_t i = 0; i < daemon->config->warnings.count; i++)
		nm_report(daemon->journal, NM_MESSAGE_PROBLEM, LOG_WARNING, "%s",
			  daemon->config->warnings.text[i]);
	if (daemon->config->threads.policy == NM_POLICY_KMAF &&
	    nm_kmaf_check(NULL, error, sizeof(error)) < 0)
		nm_report(daemon->journal, NM_MESSAGE_PROBLEM, LOG_ERR,
			  "Policy kmaf needs the library Scotch (%s): install it, or set another "
			  "threads.policy",
			  error);
}

/* ---- decisions and their verdicts, also in the history ---- */

static struct nm_entry_context entry_context(const struct nm_daemon *daemon, const char *policy)
{
	return (struct nm_entry_context){
		.seed = daemon->seed,
		.policy = policy,
		.topology = daemon->pipeline.topology,
		.dry_run = nm_daemon_is_dry_run(daemon),
		.performance = nm_performance_name(daemon->config->threads.performance),
	};
}

void nm_report_decision(struct nm_daemon *daemon, const struct nm_decision *decision,
			const struct nm_receipt *receipt)
{
	struct nm_entry_context context =
		entry_context(daemon, nm_decision_policy_name(decision->kind, decision->policy));
	const struct nm_history_item item = {.time_usec = nm_clock_realtime_usec(),
					     .result = nm_decision_result_name(&context, receipt),
					     .decision = *decision};
	struct nm_entry entry;
	nm_lines_decision(daemon->options.lines, decision, receipt);
	nm_entry_decision(&entry, &context, decision, receipt);
	entry.domain = nm_tasks_domain(daemon->pipeline.tasks, decision->steps[0].pid);
	emit(daemon->journal, &entry);
	nm_history_add(&daemon->history, daemon->pipeline.topology, &item, &entry);
}

void nm_report_plan(struct nm_daemon *daemon, const struct nm_plan *plan,
		    const struct nm_receipt *receipts)
{
	for (size_t i = 0; i < plan->count; i++) {
		const struct nm_decision *decision = &plan->decisions[i];
		if (nm_receipt_is_postponed(&receipts[i]))
			continue;
		if (nm_decision_is_to_home(decision))
			nm_lines_decision(daemon->options.lines, decision, &receipts[i]);
		else
			nm_report_decision(daemon, decision, &receipts[i]);
	}
}

void nm_report_verdict(struct nm_daemon *daemon, const struct nm_verdict *verdict)
{
	struct nm_entry_context context =
		entry_context(daemon, nm_decision_policy_name(verdict->of, verdict->policy));
	struct nm_entry entry;
	nm_lines_verdict(daemon->options.lines, verdict);
	nm_entry_verdict(&entry, &context, verdict);
	emit(daemon->journal, &entry);
	nm_history_judge(&daemon->history, verdict, &entry);
}

void nm_report_home_end(struct nm_daemon *daemon, const struct nm_snap_process *process,
			const struct nm_home_action *action, const char *why)
{
	nm_lines_home_end(daemon->options.lines, action);
	nm_report(daemon->journal, NM_MESSAGE_AFFINITY, LOG_INFO,
		  "Unplaced %s[%u] from node %u: %s [#%" PRIu64 "]", process->comm, action->pid,
		  daemon->pipeline.topology->nodes[action->home].os_id, why, action->id);
}

/* ---- summaries, and the status line for systemd ---- */

#define SUMMARY_NS (300 * NM_NSEC_PER_SEC)
#define STATUS_NS (10 * NM_NSEC_PER_SEC)

void nm_report_summary(struct nm_daemon *daemon)
{
	struct nm_statistics statistics;
	struct nm_entry entry;
	uint64_t now_ns = nm_clock_ns();
	if (daemon->reported.summary_ns == 0)
		daemon->reported.summary_ns = now_ns;
	if (!daemon->pipeline.source || now_ns - daemon->reported.summary_ns < SUMMARY_NS)
		return;
	daemon->reported.summary_ns = now_ns;
	uint64_t suppressed = nm_journal_suppressed(daemon->journal);
	daemon->tally.suppressed += suppressed;
	const struct nm_view view = nm_views_of(daemon);
	nm_view_statistics(&view, &statistics);
	for (enum nm_summary summary = NM_SUMMARY_THREADS; summary <= NM_SUMMARY_PAGES; summary++) {
		if ((summary == NM_SUMMARY_HOMES && !view.placement) ||
		    (summary == NM_SUMMARY_PAGES && !view.pages))
			continue;
		nm_entry_summary(&entry, &statistics, summary, suppressed);
		emit(daemon->journal, &entry);
	}
}

/* Returns whether both lines report the same state: what precedes their first number is equal. */
static bool is_same_state(const char *one, const char *other)
{
	size_t length = strcspn(one, "0123456789");
	return length == strcspn(other, "0123456789") && strncmp(one, other, length) == 0;
}

/* Notifies systemd only of changes, and less often if only numbers have changed. */
void nm_report_status(struct nm_daemon *daemon)
{
	struct nm_reported *reported = &daemon->reported;
	struct nm_statistics statistics;
	const char *text = statistics.service.line;
	uint64_t now_ns = nm_clock_ns();
	reported->composed_ns = now_ns;
	const struct nm_view view = nm_views_of(daemon);
	nm_view_totals(&view, &statistics);
	if (strcmp(text, reported->status) == 0 ||
	    (is_same_state(text, reported->status) && now_ns - reported->status_ns < STATUS_NS))
		return;
	reported->status_ns = now_ns;
	memcpy(reported->status, text, sizeof(reported->status));
	(void)sd_notifyf(0, "STATUS=%s", text);
}

/* ---- the metrics file ---- */

#define EXPORT_S 15.0 /* between two updates of the file */

static void write_file(struct nm_daemon *daemon)
{
	struct nm_exporter *exporter = &daemon->exporter;
	const struct nm_view view = nm_views_of(daemon);
	int r = nm_view_export(&view, exporter->path);

	/* Logged when a problem begins and when it ends. */
	if (r < 0 && !exporter->write_failed)
		nm_report(daemon->journal, NM_MESSAGE_PROBLEM, LOG_WARNING,
			  "metrics.file %s not written: %s; retrying every %g s", exporter->path,
			  strerror(-r), EXPORT_S);
	else if (r == 0 && exporter->write_failed)
		nm_report(daemon->journal, NM_MESSAGE_PROBLEM, LOG_NOTICE,
			  "metrics.file %s written again", exporter->path);
	exporter->write_failed = r < 0;
}

void nm_exporter_close(struct nm_daemon *daemon)
{
	struct nm_exporter *exporter = &daemon->exporter;
	if (exporter->written_ns && !exporter->write_failed)
		(void)unlink(exporter->path);
	*exporter = (struct nm_exporter){0};
}

void nm_exporter_tick(struct nm_daemon *daemon)
{
	struct nm_exporter *exporter = &daemon->exporter;
	const char *wanted = daemon->config->metrics.file;
	uint64_t now_ns = nm_clock_ns();
	/* Half an interval early is better than late, because ticks are not exact. */
	double due_s = EXPORT_S - nm_interval_s(daemon) / 2;

	if (strcmp(exporter->path, wanted) != 0) {
		nm_exporter_close(daemon);
		memcpy(exporter->path, wanted, sizeof(exporter->path));
	}
	if (!exporter->path[0] || (exporter->written_ns && (double)(now_ns - exporter->written_ns) <
								   due_s * (double)NM_NSEC_PER_SEC))
		return;
	exporter->written_ns = now_ns;
	write_file(daemon);
}

/* ---- the sources of what is shown ---- */

void nm_views_update(struct nm_daemon *daemon, struct nm_snapshot *snapshot,
		     const struct nm_sampled_thread *sampled, size_t nr_sampled)
{
	unsigned nr_nodes = daemon->pipeline.topology->nr_nodes;
	double *served = nm_must(calloc(nr_nodes, sizeof(*served)));
	for (size_t i = 0; i < nr_sampled; i++)
		for (unsigned k = 0; isfinite(sampled[i].stats.access_total) && k < nr_nodes; k++)
			served[k] += sampled[i].stats.accesses[k];
	nm_views_clear(daemon);
	daemon->views = (struct nm_views){snapshot, served};
}

void nm_views_clear(struct nm_daemon *daemon)
{
	nm_snapshot_free(daemon->views.snapshot);
	free(daemon->views.served);
	daemon->views = (struct nm_views){0};
}

struct nm_view nm_views_of(const struct nm_daemon *daemon)
{
	const struct nm_pipeline *pipeline = &daemon->pipeline;
	return (struct nm_view){
		.version = NM_VERSION,
		.config = daemon->config,
		.tally = &daemon->tally,
		.history = &daemon->history,
		.paused = daemon->paused,
		.dry_run = nm_daemon_is_dry_run(daemon),
		.blind = nm_lacks_accesses(daemon),
		.may_draw = !daemon->paused && nm_may_draw_threads(daemon),
		.unrestored = daemon->runtime.unrestored > 0,
		.interval_s = nm_interval_s(daemon),
		.cpu_ns = nm_own_cpu_ns(),
		.now_ns = daemon->paused ? 0 : nm_daemon_now_ns(daemon),
		.platform = pipeline->platform,
		.topology = pipeline->topology,
		.source = pipeline->source,
		.busy_share = daemon->machine.load.busy_share,
		.nr_cpus = daemon->machine.load.nr_cpus,
		.snapshot = daemon->views.snapshot,
		.served = daemon->views.served,
		.tasks = pipeline->tasks,
		.moves = pipeline->moves,
		.assignments = pipeline->assignments,
		.memory = pipeline->memory,
		.pages = pipeline->pages,
		.balancing_mode = daemon->machine.balancing_mode,
		.migrations = &pipeline->migrations,
		.placement = nm_placement_of(&daemon->pipeline),
		.balancer = nm_balancer_of(&daemon->pipeline),
		.trial = daemon->trial.group,
		.trial_cause = daemon->trial.cause,
	};
}
