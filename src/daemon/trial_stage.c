/* SPDX-License-Identifier: MIT */
/* The control group in the daemon: what its processes have used, and which are left alone. */
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <time.h>

#include "daemon.h"
#include "pipeline.h"
#include "report.h"
#include "stages.h"

/* Processes whose window is over are looked at once in this number of intervals, in case the record
 * of their exit was lost. */
#define LOST_EXIT_INTERVALS 64U
/* Number of processes that are read in an interval at any cost, and of further ones between two
 * looks at the budget. */
#define READS_LEAST 64U
#define READS_AT_ONCE 16U

/* ---- decisions ---- */

bool nm_trial_stage_allows(void *context, uint32_t pid)
{
	struct nm_daemon *daemon = context;
	struct nm_trial *group = daemon->trial.group;
	struct nm_process *process = nm_tasks_process(daemon->pipeline.tasks, pid);
	struct nm_process_usage usage;
	uint64_t now_ns = nm_daemon_now_ns(daemon);
	/* In a dry run nothing is carried out for either arm. */
	if (!process || nm_daemon_is_dry_run(daemon) || !nm_trial_is_on(group, now_ns))
		return true;
	enum nm_trial_answer answer = nm_trial_answer(group, pid, process->start_ticks, now_ns);
	if (answer == NM_TRIAL_UNKNOWN &&
	    nm_process_read_usage(daemon->pipeline.platform, pid, process->start_ticks, &usage) ==
		    0) {
		const struct nm_trial_candidate one = {
			.pid = pid,
			.parent = usage.parent,
			.uid = process->uid,
			.start_ticks = process->start_ticks,
			.domain = process->domain,
			.comm = process->comm,
			.cpu_ns = usage.cpu_ns,
			.takes_part = process->started_ns >= daemon->trial.since_ns,
		};
		answer = nm_trial_draw(group, &one, now_ns);
	}
	process->left_alone = answer == NM_TRIAL_LEAVE || answer == NM_TRIAL_BARRED;
	return !process->left_alone;
}

/* ---- values ---- */

void nm_trial_stage_task_event(struct nm_daemon *daemon, const struct nm_task_event *event,
			       uint64_t now_ns)
{
	struct nm_trial *group = daemon->trial.group;
	if (event->kind == NM_TASK_EXIT && nm_trial_has(group, event->pid)) {
		const struct nm_source_status *status = nm_source_status(daemon->pipeline.source);
		double sample_ns = status->runs ? status->run_sample_ns : 0;
		double ran_ns = nm_metrics_runs(daemon->pipeline.metrics, event->tid) * sample_ns;
		nm_trial_thread_ended(group, event->pid, ran_ns > 0 ? (uint64_t)ran_ns : 0, now_ns);
	}
	if (event->kind == NM_TASK_FORK && event->pid != event->parent_pid)
		nm_trial_process_ended(group, event->pid, now_ns); /* its number was reused */
}

static void read_process(struct nm_daemon *daemon, uint32_t pid, uint64_t start_ticks,
			 uint64_t now_ns)
{
	struct nm_trial *group = daemon->trial.group;
	struct nm_process_usage usage;
	int r = nm_process_read_usage(daemon->pipeline.platform, pid, start_ticks, &usage);
	if (r == 0)
		nm_trial_read(group, pid, usage.cpu_ns);
	/* Policy "auto" has measured it in the last interval. */
	const struct nm_home_state *state =
		nm_placement_of(&daemon->pipeline)
			? nm_home_state_find(nm_placement_of(&daemon->pipeline), pid)
			: NULL;
	if (state)
		nm_trial_observe(group, pid,
				 &(struct nm_trial_conditions){.ran_s = state->run_s,
							       .waited_s = state->delay_s});
	if (r == -ESRCH || (r == 0 && usage.has_ended))
		nm_trial_process_ended(group, pid, now_ns);
}

/* ---- one interval ---- */

static void on_window_over(void *context, uint32_t pid)
{
	struct nm_daemon *daemon = context;
	struct nm_process *process = nm_tasks_process(daemon->pipeline.tasks, pid);
	if (process)
		process->left_alone = false;
}

/* Applies the answers again after the program was barred, or is tried again. Homes end with
 * the next decisions. */
static void apply_bar(struct nm_daemon *daemon, const struct nm_trial_program *program,
		      uint64_t now_ns)
{
	struct nm_process *const *processes;
	size_t count = nm_tasks_processes(daemon->pipeline.tasks, &processes);
	for (size_t i = 0; i < count; i++) {
		struct nm_process *process = processes[i];
		enum nm_trial_answer answer = nm_trial_answer(daemon->trial.group, process->pid,
							      process->start_ticks, now_ns);
		/* There was no room to draw it. */
		if (answer == NM_TRIAL_UNKNOWN && process->domain == program->domain &&
		    process->uid == program->uid && strcmp(process->comm, program->comm) == 0)
			process->left_alone = now_ns < program->barred_until_ns;
		else if (answer != NM_TRIAL_UNKNOWN)
			process->left_alone = answer != NM_TRIAL_DECIDE;
	}
}

static void leave_nothing_alone(struct nm_daemon *daemon)
{
	struct nm_process *const *processes;
	size_t count = nm_tasks_processes(daemon->pipeline.tasks, &processes);
	for (size_t i = 0; i < count; i++)
		processes[i]->left_alone = false;
}

static void follow_bars(struct nm_daemon *daemon, uint64_t now_ns)
{
	const struct nm_trial_program *program;
	while ((program = nm_trial_next_loss(daemon->trial.group))) {
		apply_bar(daemon, program, now_ns);
		nm_report(daemon->journal, NM_MESSAGE_PROBLEM, LOG_NOTICE,
			  "%s left alone for %.0f d: %.0f %% more %s when managed", program->comm,
			  round((double)(program->barred_until_ns - now_ns) / (86400.0 * 1e9)),
			  100 * expm1(program->loss),
			  program->lost_in == NM_TRIAL_CPU ? "CPU time" : "elapsed time");
	}
	while ((program = nm_trial_next_retry(daemon->trial.group, now_ns)))
		apply_bar(daemon, program, now_ns);
}

/* Processes are read in turn, until the budget of examinations is spent. */
static void read_processes(struct nm_daemon *daemon, uint64_t now_ns)
{
	struct nm_trial_stage *stage = &daemon->trial;
	const struct nm_trial_process *processes;
	size_t count = nm_trial_processes(stage->group, &processes);
	uint64_t begun_ns = nm_own_loop_ns(daemon);
	unsigned reads = 0;
	for (size_t steps = count; steps > 0; steps--) {
		/* From the end, because ended processes are replaced by the last one. */
		count = nm_trial_processes(stage->group, &processes);
		if (stage->cursor == 0 || stage->cursor > count)
			stage->cursor = count;
		if (count == 0)
			return;
		const struct nm_trial_process *one = &processes[--stage->cursor];
		if (!one->part && (one->pid + daemon->tally.intervals) % LOST_EXIT_INTERVALS != 0)
			continue;
		if (reads >= READS_LEAST && reads % READS_AT_ONCE == 0 &&
		    !nm_home_stage_has_budget(daemon, nm_daemon_now_ns(daemon), begun_ns)) {
			stage->cursor++; /* the next interval begins with it */
			return;
		}
		reads++;
		read_process(daemon, one->pid, one->start_ticks, now_ns);
	}
}

void nm_trial_stage_tick(struct nm_daemon *daemon, const struct nm_sampled_thread *sampled,
			 size_t count, uint64_t now_ns)
{
	struct nm_trial *group = daemon->trial.group;
	/* First touches alone would show that all accesses are local. */
	bool sees = daemon->pipeline.source && !nm_samples_first_touches_only(daemon);
	time_t now_s = (time_t)(nm_clock_realtime_usec() / 1000000);
	struct tm local;
	if (localtime_r(&now_s, &local)) /* a day begins at local midnight */
		nm_trial_follow_day(group, local.tm_yday);
	follow_bars(daemon, now_ns);
	if (!nm_trial_is_on(group, now_ns)) {
		leave_nothing_alone(daemon);
		nm_trial_forget(group);
		return;
	}
	if (sees)
		nm_trial_observe_threads(group, sampled, count, daemon->pipeline.topology);
	read_processes(daemon, now_ns);
	nm_trial_end_windows(group, now_ns, on_window_over, daemon);
	follow_bars(daemon, now_ns);
}

/* ---- a trial ---- */

static void report_end(struct nm_daemon *daemon, const char *cause)
{
	struct nm_trial_difference found;
	char result[NM_TRIAL_TEXT_BYTES];
	daemon->trial.running = false;
	daemon->trial.cause = cause;
	(void)nm_trial_result(daemon->trial.group, NM_TRIAL_RAISED, NM_TRIAL_CPU, &found);
	nm_trial_describe(&found, result, sizeof(result));
	nm_report(daemon->journal, NM_MESSAGE_TRIAL, LOG_NOTICE, "Trial ended%s%s%s: %s",
		  cause ? " early (" : "", cause ? cause : "", cause ? ")" : "", result);
}

void nm_trial_stage_end(struct nm_daemon *daemon, const char *cause)
{
	if (!daemon->trial.running)
		return;
	nm_trial_lower(daemon->trial.group, nm_daemon_now_ns(daemon));
	report_end(daemon, cause);
}

/* Without one of these nothing is moved, and both arms are alike. */
static const char *what_prevents(const struct nm_daemon *daemon, int *ret_error)
{
	const struct {
		bool applies;
		int error;
		const char *text;
	} causes[] = {
		{daemon->paused, -EAGAIN, "paused"},
		{nm_daemon_is_dry_run(daemon), -EROFS, "dry run"},
		{daemon->pipeline.topology && nm_topology_is_single(daemon->pipeline.topology),
		 -ENODEV, "one node has CPUs"},
		{daemon->config->threads.policy == NM_POLICY_NONE &&
			 daemon->config->pages.policy != NM_PAGES_EXCLUSIVITY,
		 -EOPNOTSUPP, "threads.policy = none"},
	};
	for (size_t i = 0; i < NM_ARRAY_SIZE(causes); i++)
		if (causes[i].applies) {
			*ret_error = causes[i].error;
			return causes[i].text;
		}
	return NULL;
}

int nm_trial_stage_begin(struct nm_daemon *daemon, uint32_t minutes, double percent)
{
	struct nm_trial *group = daemon->trial.group;
	uint64_t duration_ns = (uint64_t)minutes * 60 * NM_NSEC_PER_SEC;
	int error = 0;
	if (what_prevents(daemon, &error))
		return error;
	uint64_t now_ns = nm_daemon_now_ns(daemon);
	if (daemon->trial.running)
		return nm_trial_extend(group, percent / 100, now_ns + duration_ns);
	nm_trial_raise(group, percent / 100, now_ns, duration_ns);
	daemon->trial.running = true;
	daemon->trial.cause = NULL;
	nm_report(daemon->journal, NM_MESSAGE_TRIAL, LOG_NOTICE,
		  "Trial: %g %% of the processes left alone for %" PRIu32
		  " min, drawn in the first %" PRIu32,
		  percent, minutes, minutes - NM_TRIAL_WINDOW_MINUTES);
	return 0;
}

void nm_trial_stage_follow(struct nm_daemon *daemon, uint64_t now_ns)
{
	int error;
	const char *cause = daemon->trial.running ? what_prevents(daemon, &error) : NULL;
	if (cause)
		nm_trial_stage_end(daemon, cause);
	else if (daemon->trial.running && !nm_trial_is_raised(daemon->trial.group, now_ns))
		report_end(daemon, NULL);
}

/* ---- start and reload ---- */

void nm_trial_stage_open(struct nm_daemon *daemon)
{
	struct nm_trial_stage *stage = &daemon->trial;
	/* Another generator than that of the policies, whose decisions must not depend on it. */
	if (!stage->group)
		nm_trial_new(~daemon->seed, &stage->group);
	stage->since_ns = nm_daemon_now_ns(daemon);
	nm_trial_forget(stage->group);
	nm_trial_stage_configure(daemon);
}

void nm_trial_stage_configure(struct nm_daemon *daemon)
{
	nm_trial_configure(daemon->trial.group, daemon->config->verify.control_percent / 100,
			   daemon->config->verify.tolerance_percent / 100);
}
