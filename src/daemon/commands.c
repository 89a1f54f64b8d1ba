/* SPDX-License-Identifier: MIT */
/* Commands of an administrator. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "daemon.h"
#include "loop.h"
#include "pipeline_build.h"
#include "report.h"
#include "runtime.h"
#include "stages.h"

int nm_command_dump(void *context)
{
	const struct nm_view view = nm_views_of(context);
	return nm_view_dump(&view);
}

int nm_command_pause(void *context)
{
	struct nm_daemon *daemon = context;
	if (daemon->paused)
		return daemon->runtime.unrestored ? -EIO : 0;
	nm_trial_stage_end(daemon, "paused");
	nm_pipeline_close(daemon);
	daemon->paused = true;
	if (daemon->runtime.unrestored == 0)
		nm_report(daemon->journal, NM_MESSAGE_PAUSE, LOG_NOTICE,
			  "Paused: all affinities restored, sampling stopped until numa-migrctl "
			  "resume");
	else
		nm_report(daemon->journal, NM_MESSAGE_PAUSE, LOG_ERR,
			  "Paused; affinities not restored: %u (resume or stop tries again)",
			  daemon->runtime.unrestored);
	return daemon->runtime.unrestored ? -EIO : 0;
}

int nm_command_resume(void *context)
{
	struct nm_daemon *daemon = context;
	if (!daemon->paused)
		return 0;
	int r = nm_pipeline_open(daemon);
	if (r < 0)
		return r;
	daemon->paused = false;
	nm_report(daemon->journal, NM_MESSAGE_RESUME, LOG_NOTICE, "Resumed");
	nm_loop_arm(daemon);
	return 0;
}

int nm_command_release(void *context, uint32_t pid)
{
	struct nm_daemon *daemon = context;
	struct nm_pipeline *pipeline = &daemon->pipeline;
	int r = daemon->paused ? nm_pipeline_open_platform(daemon)
			       : nm_tasks_release(pipeline->tasks, pid);
	/* A process that has not been sampled yet is only added to the list. */
	if (r == (daemon->paused ? 0 : -ESRCH)) {
		r = nm_released_list_release(daemon->runtime.released, pipeline->platform, pid);
	} else if (r == 0) {
		if (pipeline->pages)
			nm_page_stage_drop(pipeline->pages, pid);
		nm_assignments_end_process(pipeline->assignments, pid);
	}
	if (r == 0) {
		nm_runtime_save(&daemon->runtime, daemon->pipeline.platform, daemon->journal);
		nm_report(daemon->journal, NM_MESSAGE_AFFINITY, LOG_NOTICE,
			  "Released PID %" PRIu32 ": not managed until it ends", pid);
	}
	if (daemon->paused)
		nm_pipeline_close(daemon);
	return r;
}

int nm_command_manage(void *context, uint32_t pid)
{
	struct nm_daemon *daemon = context;
	int r = daemon->paused ? nm_pipeline_open_platform(daemon) : 0;
	if (r == 0)
		r = nm_released_list_manage(daemon->runtime.released, daemon->pipeline.platform,
					    pid);
	if (r > 0)
		nm_runtime_save(&daemon->runtime, daemon->pipeline.platform, daemon->journal);
	if (daemon->paused)
		nm_pipeline_close(daemon);
	else if (r > 0) /* its eligibility is evaluated again */
		nm_tasks_configure(daemon->pipeline.tasks, daemon->pipeline.topology,
				   daemon->config);
	if (r > 0)
		nm_report(daemon->journal, NM_MESSAGE_AFFINITY, LOG_NOTICE,
			  "PID %" PRIu32 " is managed again", pid);
	return r < 0 ? r : 0;
}

/* ---- reload ---- */

/* A dry run uses another platform, so all objects that use it are built again. */
static int reopen_pipeline(struct nm_daemon *daemon)
{
	if (nm_daemon_is_dry_run(daemon))
		nm_trial_stage_end(daemon, "dry run");
	nm_pipeline_close(daemon);
	int r = nm_pipeline_open(daemon);
	if (r < 0)
		sd_event_exit(daemon->loop.event, r);
	return r;
}

/* The configuration is in force, unless its pipeline cannot be opened: then the daemon exits. */
static int apply_config(struct nm_daemon *daemon, struct nm_config *config)
{
	int r = 0;
	struct nm_config *old = daemon->config;
	bool dry_run = nm_daemon_is_dry_run(daemon);
	bool other_policy = old->threads.policy != config->threads.policy;

	daemon->config = config;
	daemon->dry_run_request = NM_DRY_RUN_NOT_REQUESTED;
	bool other_platform = dry_run != nm_daemon_is_dry_run(daemon);
	nm_journal_configure(daemon->journal, config->journal.level);
	nm_report_config_warnings(daemon);
	if (!daemon->paused && other_platform) {
		r = reopen_pipeline(daemon);
	} else if (!daemon->paused) {
		nm_drain(daemon);
		if (other_policy) {
			nm_assignments_clear(daemon->pipeline.assignments);
			nm_pipeline_reset_performance(daemon);
		}
		if (nm_placement_of(&daemon->pipeline))
			nm_mover_configure(daemon->pipeline.mover, daemon->pipeline.topology,
					   config);
		nm_trial_stage_configure(daemon);
		nm_tasks_configure(daemon->pipeline.tasks, daemon->pipeline.topology, config);
		nm_pipeline_configure_pages(daemon, false);
		nm_pipeline_open_source(daemon);
		nm_inject_configure(daemon);
		nm_report_sampling_source(daemon);
	}
	nm_config_free(old);
	nm_loop_arm(daemon);
	return r;
}

static void report_unopened(struct nm_daemon *daemon, const char *what, int r)
{
	nm_report(daemon->journal, NM_MESSAGE_PROBLEM, LOG_ERR, "%s: %s; exiting", what,
		  strerror(-r));
}

/* Writes as many complete lines as fit. */
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

int nm_command_reload(void *context, char *error, size_t size)
{
	nm_auto(nm_config_errors_clear) struct nm_config_errors errors = {0};
	struct nm_daemon *daemon = context;
	struct nm_config *config;

	(void)sd_notify(0, "RELOADING=1\nSTATUS=Reloading.");
	daemon->reported.status[0] = '\0';
	struct nm_config_files files = daemon->options.config;
	files.may_be_missing = false;
	int r = nm_config_load(&files, geteuid(), &errors, &config);
	if (r == 0) {
		r = apply_config(daemon, config);
		if (r == 0)
			nm_report(daemon->journal, NM_MESSAGE_RELOAD, LOG_NOTICE,
				  "Configuration reloaded: %s", files.path);
		else
			report_unopened(daemon, "Configuration not applied", r);
	} else {
		nm_report_config_errors(daemon->journal, NM_MESSAGE_RELOAD_REFUSED, &errors);
		nm_report(daemon->journal, NM_MESSAGE_RELOAD_REFUSED, LOG_ERR,
			  "Reload failed: %s: %s; keeping previous configuration", files.path,
			  strerror(-r));
	}
	if (error && size)
		list_errors(&errors, error, size);
	(void)sd_notify(0, "READY=1");
	if (daemon->paused || daemon->pipeline.topology) /* not after a failed rebuild, when the
							  * daemon is about to exit */
		nm_report_status(daemon);
	return r;
}

/* ---- dry run ---- */

/* Lasts until the next reload, which uses the file again. Only a change of the configuration ends a
 * dry run that it demands. */
int nm_command_set_dry_run(void *context, bool wanted)
{
	struct nm_daemon *daemon = context;
	int r = 0;
	if (daemon->options.dry_run)
		return wanted ? 0 : -EPERM;
	if (!wanted && daemon->config->general.dry_run)
		return -EACCES;
	if (nm_daemon_is_dry_run(daemon) == wanted)
		return 0;
	daemon->dry_run_request = wanted ? NM_DRY_RUN_BEGIN : NM_DRY_RUN_END;
	if (!daemon->paused)
		r = reopen_pipeline(daemon);
	if (r < 0)
		report_unopened(daemon, wanted ? "Dry run not begun" : "Dry run not ended", r);
	else if (wanted)
		nm_report(daemon->journal, NM_MESSAGE_RELOAD, LOG_NOTICE,
			  "Dry run: %s; decisions are logged, not carried out",
			  nm_restoration_text(daemon->runtime.unrestored > 0));
	else
		nm_report(daemon->journal, NM_MESSAGE_RELOAD, LOG_NOTICE, "Dry run ended: %s",
			  daemon->paused ? "decisions will be carried out once the pause ends"
					 : "decisions are carried out");
	nm_loop_arm(daemon);
	return r;
}

int nm_command_raise_control(void *context, uint32_t minutes, double percent)
{
	struct nm_daemon *daemon = context;
	if (minutes == 0) {
		nm_trial_stage_end(daemon, "by command");
		return 0;
	}
	if (minutes <= NM_TRIAL_WINDOW_MINUTES || minutes > NM_TRIAL_MINUTES_MOST ||
	    !(percent >= 1 && percent <= 50))
		return -EINVAL;
	return nm_trial_stage_begin(daemon, minutes, percent);
}
