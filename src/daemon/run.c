/* SPDX-License-Identifier: MIT */
#include "daemon.h"
#include "loop.h"
#include "pipeline_build.h"
#include "report.h"
#include "report/control.h"
#include "runtime.h"
#include "stages.h"

#include <math.h>
#include <signal.h>
#include <string.h>
#include <sys/random.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>

static int load_config(struct nm_daemon *daemon)
{
	nm_auto(nm_config_errors_clear) struct nm_config_errors errors = {0};
	int r = nm_config_load(&daemon->options.config, geteuid(), &errors, &daemon->config);
	if (r == 0) {
		nm_journal_configure(daemon->journal, daemon->config->journal.level);
		nm_report_config_warnings(daemon);
		return 0;
	}
	nm_report_config_errors(daemon->journal, NM_MESSAGE_PROBLEM, &errors);
	if (errors.count == 0)
		nm_report(daemon->journal, NM_MESSAGE_PROBLEM, LOG_ERR, "%s: %s",
			  daemon->options.config.path, strerror(-r));
	return r;
}

static int open_runtime(struct nm_daemon *daemon)
{
	int r = nm_runtime_open(&daemon->runtime);
	if (r == -ENOENT && access(nm_runtime_path(), F_OK) < 0)
		nm_report(daemon->journal, NM_MESSAGE_PROBLEM, LOG_ERR,
			  "Runtime directory unusable: RUNTIME_DIRECTORY=%s does not exist",
			  nm_runtime_path());
	else if (r == -EBUSY)
		nm_report(daemon->journal, NM_MESSAGE_PROBLEM, LOG_ERR,
			  "Another numa-migrd is running and holds the runtime directory "
			  "(systemctl status numa-migrd)");
	else if (r == -EPERM)
		nm_report(daemon->journal, NM_MESSAGE_PROBLEM, LOG_ERR,
			  "Runtime directory unusable: must belong to this user, not be writable "
			  "by others (by hand: run as root)");
	else if (r < 0)
		nm_report(daemon->journal, NM_MESSAGE_PROBLEM, LOG_ERR,
			  "Runtime directory unusable: %s; nothing is restored (check %s)",
			  strerror(-r), nm_runtime_path());
	if (r < 0)
		return r;
	r = nm_runtime_restore(&daemon->runtime, &daemon->options, daemon->journal, nm_report_move,
			       daemon);
	if (r < 0)
		nm_report(daemon->journal, NM_MESSAGE_PROBLEM, LOG_ERR,
			  "Affinities not restored: %s (check owner and space of /run/numa-migrd)",
			  strerror(-r));
	return r;
}

/* Called before the first move: none of these signals may end the process while an affinity is
 * narrowed. */
static int hold_signals(void)
{
	sigset_t signals;
	(void)sigemptyset(&signals);
	(void)sigaddset(&signals, SIGTERM);
	(void)sigaddset(&signals, SIGINT);
	(void)sigaddset(&signals, SIGHUP);
	if (signal(SIGPIPE, SIG_IGN) == SIG_ERR || sigprocmask(SIG_BLOCK, &signals, NULL) < 0)
		return -errno;
	return 0;
}

static void report_stop(struct nm_daemon *daemon)
{
	if (daemon->runtime.unrestored == 0 && daemon->runtime.record_was_damaged)
		nm_report(daemon->journal, NM_MESSAGE_STOP, LOG_WARNING,
			  "Stopped: affinities restored, but not those of a damaged file (see the "
			  "start)");
	else if (daemon->runtime.unrestored == 0)
		nm_report(daemon->journal, NM_MESSAGE_STOP, LOG_NOTICE,
			  "Stopped: all affinities restored");
	else
		nm_report(daemon->journal, NM_MESSAGE_STOP, LOG_ERR,
			  "Stopped; affinities not restored: %u (next start or --restore tries "
			  "again)",
			  daemon->runtime.unrestored);
}

/* Only for the service's user: if root runs the daemon, workers are its children and would be
 * confined, too. */
static void confine(struct nm_daemon *daemon)
{
	if (geteuid() == 0) {
		nm_report(daemon->journal, NM_MESSAGE_PROBLEM, LOG_NOTICE,
			  "Not confined by Landlock: run as root");
		return;
	}
	if (daemon->options.open_platform)
		return;
	int r = nm_confine(&daemon->options, daemon->config, daemon->runtime.directory);
	if (r == -EOPNOTSUPP)
		nm_report(daemon->journal, NM_MESSAGE_PROBLEM, LOG_NOTICE,
			  "Not confined by Landlock: not in this kernel, or switched off (lsm=)");
	else if (r < 0)
		nm_report(daemon->journal, NM_MESSAGE_PROBLEM, LOG_WARNING,
			  "Not confined by Landlock: %s", strerror(-r));
}

static int run_daemon(struct nm_daemon *daemon)
{
	daemon->seed = daemon->options.seed;
	/* Keeps the value positive in signed 64-bit integers of any reader; the option has the
	 * same limit. */
	if (daemon->seed == 0 &&
	    getrandom(&daemon->seed, sizeof(daemon->seed), 0) == sizeof(daemon->seed))
		daemon->seed >>= 1;
	nm_rng_seed(&daemon->rng, daemon->seed);
	daemon->next_decision = 1;
	daemon->tally.started_s = (uint64_t)time(NULL);
	daemon->tally.local_share = NAN;
	confine(daemon);
	int r = hold_signals();
	if (r < 0)
		return r;
	r = sd_event_default(&daemon->loop.event);
	if (r < 0)
		return r;
	nm_runtime_load_unresponsive(&daemon->runtime, daemon->journal);
	r = nm_pipeline_open(daemon);
	if (r < 0)
		return r;
	nm_runtime_load_released(&daemon->runtime, daemon->pipeline.platform, daemon->journal);
	nm_report_start(daemon);
	nm_report_coexistence(daemon);
	r = nm_loop_run(daemon);

	if (daemon->pipeline.platform) /* else, its pipeline could not be opened again */
		nm_trial_stage_end(daemon, "the service stops");
	if (!daemon->paused)
		nm_pipeline_close(daemon);
	else if (daemon->runtime.unrestored > 0 &&
		 nm_runtime_restore(&daemon->runtime, &daemon->options, daemon->journal,
				    nm_report_move, daemon) == 0)
		daemon->runtime.unrestored = 0;
	nm_exporter_close(daemon);
	report_stop(daemon);
	return r;
}

static void daemon_clear(struct nm_daemon *daemon)
{
	nm_control_free(daemon->control);
	sd_event_source_disable_unref(daemon->loop.timer);
	sd_event_source_disable_unref(daemon->loop.move_timer);
	sd_event_source_disable_unref(daemon->loop.mover_timer);
	sd_event_source_disable_unref(daemon->loop.ring_source);
	sd_event_source_disable_unref(daemon->loop.query_source);
	sd_event_unref(daemon->loop.event);
	nm_unresponsive_list_free(daemon->runtime.unresponsive);
	nm_pipeline_clear(daemon);
	nm_config_free(daemon->config);
	nm_runtime_close(&daemon->runtime, false);
}

/* --restore without memory: the ledger stays as it is, and systemd tries again. */
static void end_restore(int signal)
{
	(void)signal;
	_exit(EX_TEMPFAIL);
}

static int status_of_restore(int r)
{
	if (r == -ENOMEM)
		return EX_TEMPFAIL;
	return r == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

int nm_daemon_run(const struct nm_options *options)
{
	nm_auto(daemon_clear) struct nm_daemon daemon = {.options = *options,
							 .runtime.directory = -1};
	if (options->restore)
		(void)signal(SIGABRT, end_restore);
	nm_journal_new(&daemon.journal);
	nm_released_list_new(&daemon.runtime.released);
	nm_unresponsive_list_new(&daemon.runtime.unresponsive);
	/* Changes left by a crashed run are restored regardless of the configuration. */
	if (!options->restore && load_config(&daemon) < 0)
		return EX_CONFIG;
	int r = open_runtime(&daemon);
	if (options->restore) { /* r is the number of affinities that are left */
		nm_runtime_close(&daemon.runtime, r == 0);
		return status_of_restore(r);
	}
	if (r < 0)
		return EXIT_FAILURE;
	r = run_daemon(&daemon);
	if (r < 0) {
		nm_report(daemon.journal, NM_MESSAGE_PROBLEM, LOG_ERR, "Exiting: %s", strerror(-r));
		return EXIT_FAILURE;
	}
	nm_runtime_close(&daemon.runtime, daemon.runtime.unrestored == 0);
	return daemon.runtime.unrestored == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
