/* SPDX-License-Identifier: MIT */
/* The control group in the daemon: first decisions, readings of CPU times, and reports. */
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "daemon.h"
#include "numa-migrd/proc.h"

/* Processes whose window is over are looked at once in this number of intervals, in case the record
 * of their exit was lost. */
#define LOST_EXIT_INTERVALS 64U

static uint64_t cpu_ns_of(const struct nm_proc_stat *stat)
{
	return stat->ran_ticks * (NM_NSEC_PER_SEC / (uint64_t)sysconf(_SC_CLK_TCK));
}

/* Reads the stat of a whole process, with the CPU time of all its threads, also exited ones. */
static int read_stat(const struct nm_daemon *daemon, uint32_t pid, uint64_t start_ticks,
		     struct nm_proc_stat *ret)
{
	struct nm_platform *platform = daemon->pipeline.platform;
	int directory = nm_proc_open_same(platform, 0, pid, start_ticks, ret);
	if (directory < 0)
		return directory;
	platform->ops->close(platform, directory);
	return 0;
}

/* ---- the first decision about a process ---- */

/* Its threads are CPUs for other programs, whose work varies. */
static bool is_virtual_machine(const struct nm_process *process)
{
	static const char *const names[] = {"qemu", "kvm", "cloud-hyperviso", "firecracker",
					    "crosvm", "VBoxHeadless"};
	for (size_t i = 0; i < NM_ARRAY_SIZE(names); i++)
		if (strncmp(process->raw_comm, names[i], strlen(names[i])) == 0)
			return true;
	return false;
}

static enum nm_trial_answer draw(struct nm_daemon *daemon, const struct nm_process *process,
				 uint64_t now_ns)
{
	struct nm_proc_stat stat;
	if (read_stat(daemon, process->pid, process->start_ticks, &stat) < 0)
		return NM_TRIAL_DECIDE; /* it has exited */
	const struct nm_trial_candidate one = {
		.pid = process->pid,
		.parent = stat.ppid,
		.start_ticks = process->start_ticks,
		.domain = process->domain,
		.comm = process->comm,
		.cpu_ns = cpu_ns_of(&stat),
		.takes_part = process->started_ns >= daemon->trial.since_ns &&
			      !is_virtual_machine(process),
	};
	return nm_trial_draw(daemon->trial.group, &one, now_ns);
}

bool nm_trial_stage_allows(struct nm_daemon *daemon, uint32_t pid)
{
	struct nm_trial *group = daemon->trial.group;
	struct nm_process *process = nm_roster_process(daemon->pipeline.roster, pid);
	uint64_t now_ns = nm_daemon_now_ns(daemon);
	/* In a dry run nothing is carried out for either arm. */
	if (!process || nm_daemon_is_dry_run(daemon) || !nm_trial_is_on(group, now_ns))
		return true;
	enum nm_trial_answer answer = nm_trial_answer(group, pid, process->start_ticks);
	if (answer == NM_TRIAL_UNKNOWN)
		answer = draw(daemon, process, now_ns);
	process->left_alone = answer != NM_TRIAL_DECIDE;
	return !process->left_alone;
}

/* Draws all of its processes. */
static bool allows_decision(void *context, const struct nm_decision *decision)
{
	bool allowed = true;
	for (unsigned i = 0; i < decision->nr_steps; i++)
		allowed &= nm_trial_stage_allows(context, decision->steps[i].pid);
	return allowed;
}

void nm_trial_stage_filter(struct nm_daemon *daemon, struct nm_plan *plan)
{
	nm_plan_filter(plan, allows_decision, daemon);
}

/* ---- values ---- */

void nm_trial_stage_task_event(struct nm_daemon *daemon, const struct nm_task_event *event,
			       uint64_t now_ns)
{
	struct nm_source *source = daemon->pipeline.source;
	struct nm_trial *group = daemon->trial.group;
	if (event->kind == NM_TASK_EXIT && nm_trial_has(group, event->pid)) {
		const struct nm_source_status *status = nm_source_status(source);
		double sample_ns = status->runs ? status->run_sample_ns : 0;
		double ran_ns = nm_metrics_runs(daemon->pipeline.metrics, event->tid) * sample_ns;
		nm_trial_thread_ended(group, event->pid, ran_ns > 0 ? (uint64_t)ran_ns : 0, now_ns);
	}
	if (event->kind == NM_TASK_FORK && event->pid != event->parent_pid)
		nm_trial_process_ended(group, event->pid, now_ns); /* its number was reused */
}

/* Policy "auto" has measured it in the last interval. */
static void read_waiting(struct nm_daemon *daemon, uint32_t pid)
{
	const struct nm_home_state *state =
		nm_placement_of(daemon) ? nm_home_state_find(nm_placement_of(daemon), pid)
					   : NULL;
	if (state)
		nm_trial_observe(daemon->trial.group, pid,
				 &(struct nm_trial_conditions){.ran_s = state->run_s,
							       .waited_s = state->delay_s});
}

static void read_process(struct nm_daemon *daemon, const struct nm_trial_process *process,
			 uint64_t now_ns)
{
	struct nm_proc_stat stat;
	int r = read_stat(daemon, process->pid, process->start_ticks, &stat);
	bool ended = r == -ESRCH || (r == 0 && nm_proc_has_exited(&stat) && stat.nr_threads <= 1);
	if (r == 0)
		nm_trial_read(daemon->trial.group, process->pid, cpu_ns_of(&stat));
	read_waiting(daemon, process->pid);
	if (ended)
		nm_trial_process_ended(daemon->trial.group, process->pid, now_ns);
}

/* Ended processes are removed from the array, so that it is read from its end. */
static void read_processes(struct nm_daemon *daemon, uint64_t now_ns)
{
	const struct nm_trial_process *processes;
	for (size_t i = nm_trial_processes(daemon->trial.group, &processes); i-- > 0;)
		if (processes[i].part || (i + daemon->tally.intervals) % LOST_EXIT_INTERVALS == 0)
			read_process(daemon, &processes[i], now_ns);
}

static void count_accesses(const struct nm_topology *topology, const struct nm_figures *thread,
			   struct nm_trial_conditions *ret)
{
	for (int k = 0; thread->main_node >= 0 && k < (int)topology->nr_nodes; k++) {
		double count = thread->fresh[k];
		double local = nm_topology_distance(topology, k, k);
		ret->accesses += count;
		ret->near += k == thread->main_node ? count : 0;
		ret->distance +=
			count * nm_topology_distance(topology, thread->main_node, k) / local;
	}
}

static void read_figures(struct nm_daemon *daemon, const struct nm_figures *figures, size_t count,
			 uint64_t interval_ns)
{
	double interval_s = (double)interval_ns / (double)NM_NSEC_PER_SEC;
	/* First touches alone would show that all accesses are local. */
	bool sees = daemon->pipeline.source && !nm_samples_first_touches_only(daemon);
	for (size_t i = 0; i < count; i++) {
		struct nm_trial_conditions conditions = {0};
		if (!nm_trial_has(daemon->trial.group, figures[i].pid))
			continue;
		if (figures[i].instructions > 0)
			nm_trial_count_instructions(daemon->trial.group, figures[i].pid,
						    figures[i].instructions * interval_s);
		if (sees)
			count_accesses(daemon->pipeline.topology, &figures[i], &conditions);
		nm_trial_observe(daemon->trial.group, figures[i].pid, &conditions);
	}
}

/* ---- control that ends, and programs that lose ---- */

static void on_window_over(void *context, uint32_t pid)
{
	struct nm_daemon *daemon = context;
	struct nm_process *process = nm_roster_process(daemon->pipeline.roster, pid);
	if (process)
		process->left_alone = false;
}

/* Their leases end with the next list of members, and their homes with the next decisions. */
static void leave_alone(struct nm_daemon *daemon, const struct nm_trial_program *program)
{
	struct nm_process *const *processes;
	size_t count = nm_roster_processes(daemon->pipeline.roster, &processes);
	for (size_t i = 0; i < count; i++)
		if (processes[i]->domain == program->domain &&
		    strcmp(processes[i]->comm, program->comm) == 0)
			processes[i]->left_alone = true;
}

static void report_loss(struct nm_daemon *daemon, const struct nm_trial_program *program,
			uint64_t now_ns)
{
	nm_report(daemon, NM_MESSAGE_PROBLEM, LOG_NOTICE,
		  "%s left alone for %.0f d: %.0f %% more %s when managed", program->comm,
		  round((double)(program->barred_until_ns - now_ns) / (86400.0 * 1e9)),
		  100 * expm1(program->loss),
		  program->lost_in == NM_TRIAL_CPU ? "CPU time" : "elapsed time");
}

/* ---- one interval ---- */

static void forget_processes(struct nm_daemon *daemon)
{
	struct nm_process *const *processes;
	size_t count = nm_roster_processes(daemon->pipeline.roster, &processes);
	for (size_t i = 0; i < count; i++)
		processes[i]->left_alone = false;
	nm_trial_forget(daemon->trial.group);
}

/* Keeps the results of a day at its end, in local time. */
static void follow_day(struct nm_daemon *daemon)
{
	struct nm_trial_stage *stage = &daemon->trial;
	time_t now_s = (time_t)(nm_clock_realtime_usec() / 1000000);
	struct tm local;
	if (!localtime_r(&now_s, &local) || local.tm_yday == stage->day)
		return;
	if (stage->day >= 0) {
		stage->has_yesterday = nm_trial_result(stage->group, NM_TRIAL_TODAY, NM_TRIAL_CPU,
						       &stage->yesterday);
		nm_trial_begin_day(stage->group);
	}
	stage->day = local.tm_yday;
}

void nm_trial_stage_tick(struct nm_daemon *daemon, const struct nm_figures *figures, size_t count,
			 uint64_t now_ns, uint64_t interval_ns)
{
	struct nm_trial *group = daemon->trial.group;
	const struct nm_trial_program *program;
	const struct nm_trial_process *processes;
	follow_day(daemon);
	if (nm_trial_processes(group, &processes) == 0)
		return;
	if (!nm_trial_is_on(group, now_ns)) {
		forget_processes(daemon);
		return;
	}
	read_figures(daemon, figures, count, interval_ns);
	read_processes(daemon, now_ns);
	nm_trial_end_windows(group, now_ns, on_window_over, daemon);
	while ((program = nm_trial_next_loss(group))) {
		leave_alone(daemon, program);
		report_loss(daemon, program, now_ns);
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
