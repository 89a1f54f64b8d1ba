/* SPDX-License-Identifier: MIT */
/* What an administrator asks for while we run. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "balance.h"

static void report_pause(struct nm_daemon *daemon)
{
	if (daemon->unrestored == 0)
		nm_report(daemon, NM_MESSAGE_PAUSE, LOG_NOTICE,
			  "Paused: all affinities restored, sampling stopped until numa-migrctl "
			  "resume");
	else
		nm_report(daemon, NM_MESSAGE_PAUSE, LOG_ERR,
			  "Paused; affinities not restored: %u (kept in the ledger; resume or "
			  "stop tries again)", daemon->unrestored);
}

int nm_command_pause(void *context)
{
	struct nm_daemon *daemon = context;
	if (daemon->paused)
		return -EALREADY;
	(void)nm_recorder_end(daemon, "service paused");
	nm_pipeline_close(daemon);
	daemon->paused = true;
	report_pause(daemon);
	nm_control_changed(daemon->control);
	return daemon->unrestored ? -EIO : 0;
}

int nm_command_resume(void *context)
{
	struct nm_daemon *daemon = context;
	if (!daemon->paused)
		return -EALREADY;
	int r = nm_pipeline_open(daemon);
	if (r < 0)
		return r;
	daemon->paused = false;
	nm_report(daemon, NM_MESSAGE_RESUME, LOG_NOTICE, "Resumed");
	nm_loop_arm(daemon);
	nm_control_changed(daemon->control);
	return 0;
}

/* Not sampled yet: it is only to be remembered. */
static int release_unseen(struct nm_daemon *daemon, uint32_t pid)
{
	int r = nm_released_list_release(daemon->given_back, daemon->pipeline.platform, pid);
	if (r == 0)
		nm_runtime_remember(daemon);
	return r;
}

static int release_while_paused(struct nm_daemon *daemon, uint32_t pid)
{
	int r = nm_pipeline_open_platform(daemon);
	if (r == 0)
		r = release_unseen(daemon, pid);
	nm_pipeline_close(daemon);
	return r;
}

static int release_seen(struct nm_daemon *daemon, uint32_t pid)
{
	nm_recorder_call(daemon, NM_CALL_RELEASE, pid, NULL);
	int r = nm_roster_release(daemon->pipeline.roster, pid);
	if (r < 0)
		return r;
	nm_page_stage_drop(daemon, pid);
	unsigned failed = nm_actuator_return_process(daemon->pipeline.actuator, pid);
	nm_runtime_remember(daemon);
	return failed ? -EIO : 0;
}

int nm_command_release(void *context, uint32_t pid)
{
	struct nm_daemon *daemon = context;
	int r = daemon->paused ? release_while_paused(daemon, pid) : release_seen(daemon, pid);
	if (r == -ESRCH && !daemon->paused)
		r = release_unseen(daemon, pid);
	if (r == 0 || r == -EIO)
		nm_report(daemon, NM_MESSAGE_LEASE, LOG_NOTICE,
			  "Released PID %" PRIu32 ": not managed until it ends", pid);
	return r;
}

/* ---- status ---- */

/* Further ones are left out. */
struct status {
	struct nm_status_item *items;
	size_t count, room;
};

static void add(struct status *status, struct nm_status_item item)
{
	if (status->count < status->room)
		status->items[status->count++] = item;
}

static void add_text(struct status *status, const char *name, const char *text)
{
	add(status, (struct nm_status_item){.name = name, .type = NM_STATUS_TEXT, .text = text});
}

static void add_uint(struct status *status, const char *name, uint64_t number)
{
	add(status, (struct nm_status_item){.name = name, .type = NM_STATUS_UINT, .number = number});
}

static void add_real(struct status *status, const char *name, double real)
{
	add(status, (struct nm_status_item){.name = name, .type = NM_STATUS_REAL, .real = real});
}

static void add_bool(struct status *status, const char *name, bool flag)
{
	add(status, (struct nm_status_item){.name = name, .type = NM_STATUS_BOOL, .flag = flag});
}

static void add_pages(struct nm_memory *memory, struct status *status)
{
	struct nm_pages_counts counts = nm_pages_counts(nm_memory_pages(memory));
	struct nm_exclusivity sums = nm_memory_exclusivity(memory);

	add_uint(status, "pages_tracked", counts.tracked);
	add_uint(status, "pages_evicted", counts.evicted);
	add_uint(status, "pages_ping_pong", counts.ping_pong);
	add_uint(status, "pages_table_bytes", counts.bytes);
	add_real(status, "page_exclusivity", nm_exclusivity_average(&sums));
	add_uint(status, "sharing_threads", nm_affinity_counts(nm_memory_affinity(memory)).threads);
	add_uint(status, "sharing_pairs", nm_affinity_counts(nm_memory_affinity(memory)).pairs);
}

static void add_page_moves(const struct nm_page_stage *stage, struct status *status)
{
	const struct nm_page_tally *tally = &stage->tally;
	struct nm_mover_counts counts = nm_mover_counts(stage->mover);

	add_text(status, "pages_standing", nm_balancing_mode_name(stage->balancing_mode));
	add_uint(status, "page_decisions", tally->decisions);
	add_uint(status, "pages_moved", tally->moved);
	add_uint(status, "pages_moved_bytes", tally->bytes);
	add_uint(status, "pages_elsewhere", tally->elsewhere);
	add_uint(status, "pages_refused", tally->refused);
	add_uint(status, "pages_failed", tally->failed);
	add_uint(status, "pages_untried", tally->untried);
	add_uint(status, "pages_waiting", counts.waiting);
	add_uint(status, "page_verdicts_improved", tally->improved);
	add_uint(status, "page_verdicts_neutral", tally->neutral);
	add_uint(status, "page_verdicts_rolled_back", tally->rolled_back);
	add_uint(status, "page_verdicts_inconclusive", tally->inconclusive);
	add_uint(status, "pages_remembered", stage->nr_origins);
	add_uint(status, "pages_forgotten", tally->forgotten);
	add_uint(status, "page_backoffs", counts.backoffs);
	add_uint(status, "page_splits", counts.splits);
	add_uint(status, "page_call_longest_ns", counts.call_longest_ns);
	add_real(status, "memory_imbalance", stage->contention.imbalance);
}

static const char *dtas_state(const struct nm_daemon *daemon)
{
	const struct nm_balancer *balancer = daemon->pipeline.balancer;
	if (!daemon->config->threads.dtas)
		return "off";
	if (balancer->dtas_reported)
		return "unavailable";
	return balancer->split ? "on" : "undecided";
}

static void add_balance(const struct nm_daemon *daemon, struct status *status)
{
	const struct nm_balancer *balancer = daemon->pipeline.balancer;

	add_text(status, "selection", nm_selection_name(daemon->config->threads.selection));
	add_bool(status, "balancing", balancer->result.active);
	add_real(status, "load_gap", balancer->result.gap);
	add_uint(status, "threads_waiting", balancer->result.waiting);
	add_uint(status, "schedstat_reads", balancer->tally.reads);
	add_uint(status, "residency_counts", balancer->tally.pages_counted);
	add_uint(status, "stopped_by_gain", balancer->tally.stopped_by_gain);
	add_uint(status, "stopped_by_leader", balancer->tally.stopped_by_leader);
	add_uint(status, "stopped_by_unknown_pages", balancer->tally.unknown);
	add_text(status, "dtas", dtas_state(daemon));
}

static void add_workers(struct nm_platform *machine, struct status *status)
{
	struct nm_worker_counts counts = {0};

	if (machine->ops->worker_counts)
		machine->ops->worker_counts(machine, &counts);
	add_uint(status, "workers_given_up", counts.given_up);
	add_uint(status, "workers_stuck", counts.stuck);
}

/* Of the last interval: a policy that goes by performance moves only threads that are measured. */
static void add_threads(const struct nm_daemon *daemon, struct status *status)
{
	const struct nm_snapshot *snapshot = daemon->views.snapshot;

	add_uint(status, "threads_measured", snapshot ? snapshot->measured : 0);
	add_uint(status, "threads_undersampled", snapshot ? snapshot->undersampled : 0);
}

static void add_homes(const struct nm_daemon *daemon, struct status *status)
{
	const struct nm_home_tally *homes = &daemon->tally.homes;

	add_uint(status, "processes_placed", nm_placement_homes(daemon));
	add_uint(status, "homes_granted", homes->granted);
	add_uint(status, "homes_expired", homes->expired);
	add_uint(status, "homes_yielded", homes->yielded);
	add_uint(status, "homes_rolled_back", homes->rolled_back);
	add_uint(status, "pages_moved_home", homes->pages);
	add_uint(status, "bytes_moved_home", homes->bytes);
}

static void add_running(const struct nm_daemon *daemon, struct status *status)
{
	const struct nm_pipeline *pipeline = &daemon->pipeline;
	struct nm_roster_counts roster = nm_roster_counts(pipeline->roster);

	add_uint(status, "nodes", pipeline->topology->nr_nodes);
	add_uint(status, "processes_managed", roster.processes_managed);
	add_uint(status, "threads_managed", roster.threads_managed);
	add_threads(daemon, status);
	add_uint(status, "leases", nm_actuator_leases(pipeline->actuator));
	add_real(status, "local_share", daemon->tally.local_share);
	add_real(status, "cpu_share", daemon->tally.cpu_share);
	add_workers(pipeline->machine, status);
	if (pipeline->placement)
		add_homes(daemon, status);
	if (pipeline->memory)
		add_pages(pipeline->memory, status);
	if (pipeline->pages)
		add_page_moves(pipeline->pages, status);
	if (pipeline->balancer)
		add_balance(daemon, status);
	if (!pipeline->source)
		return;
	const struct nm_source_status *source = nm_source_status(pipeline->source);
	add_bool(status, "samples_runs", source->runs);
	add_bool(status, "samples_accesses", source->accesses);
	add_real(status, "run_sample_ns", source->run_sample_ns);
	add_uint(status, "fault_period", source->fault_period);
	add_uint(status, "samples", source->counts.samples);
	add_uint(status, "samples_lost", source->counts.lost);
}

size_t nm_command_status(void *context, struct nm_status_item *items, size_t room)
{
	const struct nm_daemon *daemon = context;
	const struct nm_tally *tally = &daemon->tally;
	struct status status = {.items = items, .room = room};

	add_text(&status, "version", NM_VERSION);
	add_text(&status, "policy", nm_policy_name(daemon->config->threads.policy));
	add_bool(&status, "paused", daemon->paused);
	add_bool(&status, "dry_run", nm_daemon_is_dry_run(daemon));
	add_bool(&status, "blind", nm_pipeline_is_blind(daemon));
	add_real(&status, "interval_s", nm_loop_interval_s(daemon));
	add_uint(&status, "intervals", tally->intervals);
	add_uint(&status, "interval_late_max_ms", tally->late_max_usec / 1000);
	add_uint(&status, "decisions", tally->decisions);
	add_uint(&status, "moves_applied", tally->applied);
	add_uint(&status, "moves_refused", tally->failed);
	add_uint(&status, "verdicts_improved", tally->improved);
	add_uint(&status, "verdicts_neutral", tally->neutral);
	add_uint(&status, "verdicts_rolled_back", tally->rolled_back);
	add_uint(&status, "verdicts_cancelled", tally->cancelled);
	add_uint(&status, "verdicts_inconclusive", tally->inconclusive);
	if (!daemon->paused)
		add_running(daemon, &status);
	return status.count;
}

/* ---- reload ---- */

/* A dry run is another platform, so everything that stands on it is built again. */
static int rebuild(struct nm_daemon *daemon)
{
	(void)nm_recorder_end(daemon, "dry run switched");
	nm_pipeline_close(daemon);
	int r = nm_pipeline_open(daemon);
	if (r < 0)
		sd_event_exit(daemon->event, r);
	return r;
}

/* What was leased under rules that no longer hold. */
static void return_leases(struct nm_daemon *daemon)
{
	(void)nm_actuator_return_all(daemon->pipeline.actuator);
}

void nm_command_apply(struct nm_daemon *daemon, struct nm_config *config, char *text)
{
	struct nm_config *old = daemon->config;
	bool dry_run = nm_daemon_is_dry_run(daemon);
	bool other_policy = old->threads.policy != config->threads.policy;

	daemon->config = config;
	daemon->dry_run_asked = NM_DRY_RUN_NOT_ASKED;
	bool other_platform = dry_run != nm_daemon_is_dry_run(daemon);
	free(daemon->config_text);
	daemon->config_text = text;
	nm_recorder_call(daemon, NM_CALL_RELOAD, 0, text);
	nm_journal_configure(daemon->journal, config->journal.level, config->journal.rate_per_s);
	if (!daemon->paused && other_platform) {
		(void)rebuild(daemon);
	} else if (!daemon->paused) {
		nm_drain(daemon);
		if (config->threads.policy == NM_POLICY_NONE ||
		    config->threads.pin != old->threads.pin)
			return_leases(daemon);
		/* Without memory the old record stays, and another figure starts it anew. */
		if (other_policy) {
			nm_balance_end(daemon);
			nm_placement_end(daemon);
			(void)nm_pipeline_forget_performance(daemon);
		}
		nm_placement_configure(daemon);
		nm_steer_configure(daemon->pipeline.steer, config);
		nm_roster_configure(daemon->pipeline.roster, daemon->pipeline.topology, config);
		(void)nm_watch_configure(daemon);
		nm_pipeline_open_source(daemon);
		nm_inject_configure(daemon);
		nm_report_sampling_source(daemon);
	}
	nm_config_free(old);
	nm_loop_arm(daemon);
}

/* As many whole lines as there is room for. */
static void list_errors(const struct nm_config_errors *errors, char *text, size_t size)
{
	size_t used = 0;
	for (size_t i = 0; i < errors->count; i++) {
		size_t length = strlen(errors->text[i]);
		if (used + length + 2 > size)
			return;
		used += (size_t)snprintf(text + used, size - used, "%s%s", i > 0 ? "\n" : "",
					 errors->text[i]);
	}
}

static void report_reload(struct nm_daemon *daemon, int r, const struct nm_config_errors *errors)
{
	if (r == 0) {
		nm_report(daemon, NM_MESSAGE_RELOAD, LOG_NOTICE, "Configuration reloaded: %s",
			  daemon->options.config_path);
		return;
	}
	nm_report_config_errors(daemon, NM_MESSAGE_RELOAD_REFUSED, errors);
	nm_report(daemon, NM_MESSAGE_RELOAD_REFUSED, LOG_ERR,
		  "Reload failed: %s: %s; keeping previous configuration",
		  daemon->options.config_path, strerror(-r));
}

int nm_command_reload(void *context, char *error, size_t size)
{
	nm_auto(nm_config_errors_clear) struct nm_config_errors errors = {0};
	struct nm_daemon *daemon = context;
	struct nm_config *config;
	char *text;

	(void)sd_notify(0, "RELOADING=1\nSTATUS=Reloading.");
	daemon->status[0] = '\0';
	int r = nm_config_load_text(daemon->options.config_path, &errors, &config, &text);
	if (r == 0)
		nm_command_apply(daemon, config, text);
	report_reload(daemon, r, &errors);
	if (error && size)
		list_errors(&errors, error, size);
	(void)sd_notify(0, "READY=1");
	if (daemon->paused ||
	    daemon->pipeline.topology) /* not when a rebuild failed: we are on our way out */
		nm_report_status(daemon);
	nm_control_changed(daemon->control);
	return r;
}

/* ---- who ---- */

static enum nm_message message_of(const char *method)
{
	static const struct {
		const char *method;
		enum nm_message message;
	} messages[] = {
		{"Pause", NM_MESSAGE_PAUSE},
		{"Resume", NM_MESSAGE_RESUME},
		{"Release", NM_MESSAGE_LEASE},
	};
	for (size_t i = 0; i < NM_ARRAY_SIZE(messages); i++)
		if (strcmp(messages[i].method, method) == 0)
			return messages[i].message;
	return NM_MESSAGE_RELOAD;
}

void nm_command_asked(void *context, const char *method, uid_t uid)
{
	nm_report(context, message_of(method), LOG_NOTICE, "%s requested by UID %u", method,
		  (unsigned)uid);
}

/* ---- dry run ---- */

bool nm_daemon_is_dry_run(const struct nm_daemon *daemon)
{
	if (daemon->options.dry_run || daemon->dry_run_asked == NM_DRY_RUN_BEGIN)
		return true;
	return daemon->dry_run_asked == NM_DRY_RUN_NOT_ASKED && daemon->config->general.dry_run;
}

/* Until the next reload, which goes by the file again. What root's file says only root ends. */
int nm_command_set_dry_run(void *context, bool wanted, uid_t uid)
{
	struct nm_daemon *daemon = context;
	int r = 0;
	if (daemon->options.dry_run)
		return wanted ? 0 : -EPERM;
	if (!wanted && daemon->config->general.dry_run && uid != 0)
		return -EACCES;
	if (nm_daemon_is_dry_run(daemon) == wanted)
		return 0;
	daemon->dry_run_asked = wanted ? NM_DRY_RUN_BEGIN : NM_DRY_RUN_END;
	if (!daemon->paused)
		r = rebuild(daemon);
	if (wanted)
		nm_report(daemon, NM_MESSAGE_RELOAD, LOG_NOTICE,
			  "Dry run: %s; decisions are logged, not carried out",
			  nm_report_restoration(daemon));
	else
		nm_report(daemon, NM_MESSAGE_RELOAD, LOG_NOTICE,
			  "Dry run ended: decisions are carried out");
	nm_loop_arm(daemon);
	nm_control_changed(daemon->control);
	return r;
}

/* ---- recording ---- */

int nm_command_record(void *context, int fd, const struct nm_control_recording *wanted)
{
	struct nm_daemon *daemon = context;
	struct nm_recording_options options = {.limit_bytes = wanted->limit_bytes,
					       .hashed = wanted->hashed};
	struct nm_record_sink sink;
	/* First, as a file that is refused stays as it was. */
	int r = daemon->recorder ? -EBUSY : daemon->paused ? -EAGAIN : 0;
	if (r < 0) {
		(void)close(fd);
		return r;
	}
	r = nm_recorder_file(fd, &options, &sink);
	if (r == 0)
		r = nm_recorder_begin(daemon, &sink, wanted->seconds);
	if (r == 0)
		nm_report(daemon, NM_MESSAGE_RECORD, LOG_NOTICE,
			  "Recording: %s; placement starts anew", nm_report_restoration(daemon));
	else if (!daemon->paused && !daemon->pipeline.platform)
		sd_event_exit(daemon->event, r);
	return r;
}

int nm_command_stop_recording(void *context)
{
	return nm_recorder_end(context, "on request");
}
