/* SPDX-License-Identifier: MIT */
/* The control group in the daemon: what its processes have used, and which are left alone. */
#include <math.h>
#include <string.h>
#include <time.h>

#include "daemon.h"

/* Processes whose window is over are looked at once in this number of intervals, in case the record
 * of their exit was lost. */
#define LOST_EXIT_INTERVALS 64U

/* ---- decisions ---- */

bool nm_trial_stage_allows(void *context, uint32_t pid)
{
	struct nm_daemon *daemon = context;
	struct nm_trial *group = daemon->trial.group;
	struct nm_process *process = nm_roster_process(daemon->pipeline.roster, pid);
	struct nm_process_usage usage;
	uint64_t now_ns = nm_daemon_now_ns(daemon);
	/* In a dry run nothing is carried out for either arm. */
	if (!process || nm_daemon_is_dry_run(daemon) || !nm_trial_is_on(group, now_ns))
		return true;
	enum nm_trial_answer answer = nm_trial_answer(group, pid, process->start_ticks);
	if (answer == NM_TRIAL_UNKNOWN && nm_process_read_usage(daemon->pipeline.platform, pid,
								process->start_ticks, &usage) == 0) {
		const struct nm_trial_candidate one = {
			.pid = pid,
			.parent = usage.parent,
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
		nm_placement_of(daemon) ? nm_home_state_find(nm_placement_of(daemon), pid) : NULL;
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
	struct nm_process *process = nm_roster_process(daemon->pipeline.roster, pid);
	if (process)
		process->left_alone = false;
}

/* Applies to the processes of a program, or to all (NULL). Their leases end with the next list of
 * members, and their homes with the next decisions. */
static void leave_alone(struct nm_daemon *daemon, const struct nm_trial_program *program,
			bool left_alone)
{
	struct nm_process *const *processes;
	size_t count = nm_roster_processes(daemon->pipeline.roster, &processes);
	for (size_t i = 0; i < count; i++)
		if (!program || (processes[i]->domain == program->domain &&
				 strcmp(processes[i]->comm, program->comm) == 0))
			processes[i]->left_alone = left_alone;
}

void nm_trial_stage_tick(struct nm_daemon *daemon, const struct nm_figures *figures, size_t count,
			 uint64_t now_ns, uint64_t interval_ns)
{
	struct nm_trial *group = daemon->trial.group;
	const struct nm_trial_program *program;
	const struct nm_trial_process *processes;
	/* First touches alone would show that all accesses are local. */
	bool sees = daemon->pipeline.source && !nm_samples_first_touches_only(daemon);
	time_t now_s = (time_t)(nm_clock_realtime_usec() / 1000000);
	struct tm local;
	if (localtime_r(&now_s, &local)) /* a day begins at local midnight */
		nm_trial_follow_day(group, local.tm_yday);
	size_t nr_processes = nm_trial_processes(group, &processes);
	if (nr_processes == 0)
		return;
	if (!nm_trial_is_on(group, now_ns)) {
		leave_alone(daemon, NULL, false);
		nm_trial_forget(group);
		return;
	}
	nm_trial_observe_threads(group, figures, count,
				 (double)interval_ns / (double)NM_NSEC_PER_SEC,
				 sees ? daemon->pipeline.topology : NULL);
	/* From the end, because ended processes are removed from the array. */
	for (size_t i = nr_processes; i-- > 0;)
		if (processes[i].part || (i + daemon->tally.intervals) % LOST_EXIT_INTERVALS == 0)
			read_process(daemon, processes[i].pid, processes[i].start_ticks, now_ns);
	nm_trial_end_windows(group, now_ns, on_window_over, daemon);
	while ((program = nm_trial_next_loss(group))) {
		leave_alone(daemon, program, true);
		nm_report(daemon, NM_MESSAGE_PROBLEM, LOG_NOTICE,
			  "%s left alone for %.0f d: %.0f %% more %s when managed", program->comm,
			  round((double)(program->barred_until_ns - now_ns) / (86400.0 * 1e9)),
			  100 * expm1(program->loss),
			  program->lost_in == NM_TRIAL_CPU ? "CPU time" : "elapsed time");
	}
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
