/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <systemd/sd-daemon.h>

#include "daemon.h"
#include "loop.h"
#include "pipeline_build.h"
#include "report.h"
#include "report/control.h"
#include "runtime.h"
#include "stages.h"

#define IDLE_WATCHDOG_USEC "180000000"

void nm_loop_examine(struct nm_daemon *daemon)
{
	if (daemon->config->threads.policy == NM_POLICY_AUTO)
		nm_home_stage_examine(daemon);
}

bool nm_loop_interval_continues(const struct nm_daemon *daemon)
{
	return daemon->config->threads.policy == NM_POLICY_AUTO &&
	       !nm_home_stage_must_end_interval(daemon);
}

/* sd-event would wake up several times in each WatchdogSec=, so the timer does this while it is
 * rare. */
static void follow_watchdog(struct nm_daemon *daemon)
{
	uint64_t usual_usec;
	bool idle = nm_loop_is_idle(daemon);
	if (!daemon->loop.event || sd_watchdog_enabled(0, &usual_usec) <= 0)
		return;
	if (idle)
		(void)sd_notify(0, "WATCHDOG=1\nWATCHDOG_USEC=" IDLE_WATCHDOG_USEC);
	else if (sd_event_get_watchdog(daemon->loop.event) == 0)
		(void)sd_notifyf(0, "WATCHDOG=1\nWATCHDOG_USEC=%" PRIu64, usual_usec);
	if (sd_event_get_watchdog(daemon->loop.event) != !idle)
		(void)sd_event_set_watchdog(daemon->loop.event, !idle);
}

void nm_loop_on_timer(struct nm_daemon *daemon)
{
	bool continues = daemon->paused;
	/* Policy "auto" checks more often for new processes; the interval continues meanwhile. */
	if (!daemon->paused && daemon->config->threads.policy == NM_POLICY_AUTO) {
		nm_drain(daemon);
		nm_loop_examine(daemon);
		continues = nm_loop_interval_continues(daemon);
	}
	if (!continues) {
		if (!daemon->pipeline.source && daemon->pipeline.no_source_until_ns &&
		    daemon->last_tick_ns > daemon->pipeline.no_source_until_ns)
			nm_pipeline_open_source(daemon);
		int r = nm_tick(daemon);
		if (r < 0)
			nm_report(daemon->journal, NM_MESSAGE_PROBLEM, LOG_WARNING,
				  "Interval aborted: %s", strerror(-r));
		nm_runtime_save(&daemon->runtime, daemon->pipeline.platform, daemon->journal);
		nm_report_summary(daemon);
	}
	if (nm_clock_ns() - daemon->reported.composed_ns >= NM_NSEC_PER_SEC / 2)
		nm_report_status(daemon);
	nm_exporter_tick(daemon);
	follow_watchdog(daemon);
	nm_loop_arm(daemon);
}

static int on_interval(sd_event_source *source, uint64_t due_usec, void *context)
{
	struct nm_daemon *daemon = context;
	uint64_t now_usec;
	(void)source;
	nm_cost_begin_handler(&daemon->costs);
	if (sd_event_now(daemon->loop.event, CLOCK_MONOTONIC, &now_usec) >= 0 &&
	    now_usec > due_usec && now_usec - due_usec > daemon->tally.late_max_usec)
		daemon->tally.late_max_usec = now_usec - due_usec;
	nm_loop_on_timer(daemon);
	nm_cost_end_handler(&daemon->costs);
	return 0;
}

static int on_reload(sd_event_source *source, const struct signalfd_siginfo *info, void *context)
{
	(void)source;
	(void)info;
	(void)nm_command_reload(context, NULL, 0); /* errors are logged */
	return 0;
}

static int add_sources(struct nm_daemon *daemon)
{
	int r = sd_event_add_signal(daemon->loop.event, NULL, SIGTERM, NULL, NULL);
	if (r >= 0)
		r = sd_event_add_signal(daemon->loop.event, NULL, SIGINT, NULL, NULL);
	if (r >= 0)
		r = sd_event_add_signal(daemon->loop.event, NULL, SIGHUP, on_reload, daemon);
	if (r >= 0)
		r = sd_event_add_time_relative(daemon->loop.event, &daemon->loop.timer,
					       CLOCK_MONOTONIC, nm_loop_wakeup_usec(daemon), 1000,
					       on_interval, daemon);
	if (r >= 0)
		r = nm_watch_open(daemon);
	if (r >= 0)
		r = sd_event_set_watchdog(daemon->loop.event, true);
	follow_watchdog(daemon);
	return r < 0 ? r : 0;
}

static void on_bus_changed(void *context, int error)
{
	struct nm_daemon *daemon = context;
	if (error == 0)
		nm_report(daemon->journal, NM_MESSAGE_PROBLEM, LOG_NOTICE,
			  "Connected to the system bus");
	else
		nm_report(daemon->journal, NM_MESSAGE_PROBLEM, LOG_WARNING,
			  "Not on the system bus (%s): numa-migrctl cannot connect; retrying "
			  "(check dbus.service)",
			  strerror(-error));
}

static void open_control(struct nm_daemon *daemon)
{
	struct nm_control_ops ops = {
		.context = daemon,
		.dump = nm_command_dump,
		.pause = nm_command_pause,
		.resume = nm_command_resume,
		.release = nm_command_release,
		.manage = nm_command_manage,
		.reload = nm_command_reload,
		.set_dry_run = nm_command_set_dry_run,
		.raise_control = nm_command_raise_control,
		.bus_changed = on_bus_changed,
	};
	int r = nm_control_new(daemon->loop.event, &ops, &daemon->control);
	if (r < 0)
		on_bus_changed(daemon, r);
}

int nm_loop_run(struct nm_daemon *daemon)
{
	int r = add_sources(daemon);
	if (r < 0)
		return r;
	nm_watch_source(daemon);
	nm_watch_queries(daemon);
	open_control(daemon);
	(void)sd_notify(0, "READY=1");
	nm_report_status(daemon);
	nm_cost_end_handler(&daemon->costs);
	r = sd_event_loop(daemon->loop.event);
	(void)sd_notify(0, "STOPPING=1\nSTATUS=Restoring CPU affinities.");
	return r;
}
