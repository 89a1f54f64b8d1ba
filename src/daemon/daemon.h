/* SPDX-License-Identifier: MIT */
/* The state of the daemon, shared by the files of this folder. All of it is used by one thread. */
#ifndef NM_DAEMON_DAEMON_H
#define NM_DAEMON_DAEMON_H

#include <systemd/sd-event.h>

#include "policy/assign.h"
#include "policy/balance.h"
#include "numa-migrd/base.h"
#include "numa-migrd/config.h"
#include "report/control.h"
#include "report/decision_lines.h"
#include "platform/hardware.h"
#include "policy/homes.h"
#include "platform/isolation.h"
#include "report/journal.h"
#include "policy/judge.h"
#include "observe/memory.h"
#include "tasks/metrics.h"
#include "affinity/move.h"
#include "mover/page_stage.h"
#include "policy/plan.h"
#include "numa-migrd/platform.h"
#include "policy/policy.h"
#include "numa-migrd/proc.h"
#include "sample/sample.h"
#include "numa-migrd/snapshot.h"
#include "tasks/tasks.h"
#include "numa-migrd/topology.h"
#include "policy/trial.h"
#include "report/views.h"
#include "platform/worker.h"
#include "options.h"

/* The metrics file. */
struct nm_exporter {
	char path[NM_CONFIG_PATH_BYTES]; /* path of the file; "": none */
	uint64_t written_ns;
	bool write_failed; /* writing it has failed, and this was logged */
};

/* The state of the stages: built at start and resume, destroyed at pause and stop. */
struct nm_pipeline {
	struct nm_platform *platform;
	struct nm_topology *topology;
	struct nm_physmap *physmap;
	struct nm_source *source;    /* NULL: no sampling source, see no_source_until_ns */
	uint64_t no_source_until_ns; /* time of the next attempt to open it */
	uint64_t latency_seen;	     /* interval of its last latency; 0: none */
	struct nm_metrics *metrics;
	struct nm_roster *roster;
	struct nm_moves *moves;
	struct nm_assignments *assignments;
	struct nm_verifier *verifier;
	struct nm_policies policies;
	struct nm_feedback *feedback;	 /* IMAR² only */
	struct nm_memory *memory;	 /* NULL: not needed, see nm_pipeline_configure_pages() */
	struct nm_page_stage *pages;  /* NULL: pages are not moved */
	struct nm_migrations migrations; /* of homes and of pages */
	struct nm_mover *mover;		/* NULL unless `pages` or the state of "auto" exists */
};

/* Set by a command, until the next reload. */
enum nm_dry_run_request {
	NM_DRY_RUN_NOT_REQUESTED,
	NM_DRY_RUN_BEGIN,
	NM_DRY_RUN_END,
};

/* The runtime directory, and what outlives a restart there. */
struct nm_runtime_state {
	int directory;
	int lock; /* descriptor, if the directory is open */
	struct nm_released_list *released;
	struct nm_unresponsive_list *unresponsive; /* NULL: not supported by this kind of machine */
	bool unsaved_reported, unresponsive_reported; /* failures to save these lists were logged */
	unsigned unrestored; /* CPU affinities that the last stop or pause could not restore */
	bool record_was_damaged; /* of affinities, at the start; some of it is unknown */
	char boot_id[64];
};

struct nm_loop_state {
	sd_event *event;
	sd_event_source *timer, *move_timer, *mover_timer, *ring_source, *query_source;
};

/* The machine as last read. */
struct nm_machine_state {
	struct nm_cpu_load load; /* in the last interval */
	struct nm_online online;
	struct nm_isolation isolation; /* {0} before the first interval */
	int balancing;		       /* kernel.numa_balancing; -1: not supported by this kernel */
	enum nm_balancing_mode balancing_mode; /* see pages.numa_balancing */
	bool balancing_switched;	       /* by the daemon, see sampling.inject */
	bool balancing_unusable;	       /* it cannot be; logged once */
	int balancing_error; /* of the last attempt to enable it; logged when it changes */
};

/* The side-band records of one drain. */
struct nm_drained {
	struct nm_task_event *events; /* in the order of reading */
	size_t nr_events, capacity;
	uint64_t newest_ns; /* latest time, by perf's clock */
	uint64_t lost_seen; /* lost records, as of the last drain */
};

/* The cost of the daemon, and how it is limited. */
struct nm_costs {
	struct nm_ring_counts counts; /* as of the last tick */
	uint64_t own_cpu_ns;	      /* as of the last tick */
	uint64_t drain_ns;	      /* CPU time used for draining rings since then */
	/*
	 * external_ns is CPU time that other programs cause and that is not limited by a budget:
	 * calls on the bus, processing of forks, results of workers. handler_end_ns is the CPU time
	 * when the last handler of an interval ended.
	 */
	uint64_t external_ns, handler_end_ns;
	bool held_back; /* periods are above the configured ones, and this was logged */
	uint64_t losses_reported_ns;
};

/* The state that was reported last; only changes are reported. */
struct nm_reported {
	const char *move_bar; /* why no threads are moved, as reported last */
	/* The limitation of P: the metrics that are missing (0: none), and the setting. */
	uint32_t missing;
	enum nm_performance performance;
	bool first_touches; /* that only first touches are sampled */
	char status[NM_STATUS_LINE_BYTES]; /* sent to systemd */
	uint64_t status_ns, composed_ns; /* when it was sent; when it was last composed */
	uint64_t summary_ns; /* time of the last summary */
};

/* The control group, which survives a pause; its processes do not. */
struct nm_trial_stage {
	struct nm_trial *group;
	uint64_t since_ns; /* older programs take no part: their start was not seen */
	size_t cursor;	   /* the last process that was read */
	bool running;	   /* a trial, whose end was not reported yet */
	const char *cause; /* why the last one ended early; NULL: it did not */
};

/* Data of the last interval for views; all zero: none yet. */
struct nm_views {
	struct nm_snapshot *snapshot;
	double *served; /* accesses of all threads by node of the memory */
};

struct nm_daemon {
	struct nm_options options;
	struct nm_config *config;
	struct nm_pipeline pipeline;
	struct nm_runtime_state runtime;
	struct nm_loop_state loop;
	struct nm_machine_state machine;
	struct nm_drained drained;
	struct nm_costs costs;
	struct nm_tally tally;
	struct nm_reported reported;
	struct nm_exporter exporter;
	struct nm_trial_stage trial;
	struct nm_views views; /* of the pipeline's last interval */
	struct nm_history history;
	struct nm_journal *journal;
	struct nm_control *control;
	enum nm_dry_run_request dry_run_request;
	bool paused;
	uint64_t seed;
	struct nm_rng rng;
	uint64_t next_decision;
	uint64_t last_tick_ns;
};

/* Returns CLOCK_MONOTONIC of the platform, which is modelled in tests. */
static inline uint64_t nm_daemon_now_ns(const struct nm_daemon *daemon)
{
	struct nm_platform *platform = daemon->pipeline.platform;
	return platform->ops->now_ns(platform);
}

/* ---- state.c: state that several stages use ---- */

/* Set by the command line, by a command, or else by the configuration. */
bool nm_daemon_is_dry_run(const struct nm_daemon *daemon);
/* Returns T: the configured interval, the one set by IMAR²'s feedback, or kMAF's shorter period. */
double nm_interval_s(const struct nm_daemon *daemon);
/* Returns the CPU time of this process in ns. */
uint64_t nm_own_cpu_ns(void);
uint64_t nm_own_loop_ns(const struct nm_daemon *daemon); /* nm_own_cpu_ns() without external_ns */
/* Returns whether the daemon should sample memory accesses and cannot: there is no source, or one
 * that only samples which threads run, or first touches. The effect on the policy is a separate
 * question. False on a machine with one node. */
bool nm_lacks_accesses(const struct nm_daemon *daemon);
/* No hardware samples accesses, and nothing causes repeated page faults. */
bool nm_samples_first_touches_only(const struct nm_daemon *daemon);
/* Returns whether threads may be drawn by a lottery: always, except with policy "auto" beside
 * automatic NUMA balancing, or without samples of repeated accesses. Called before the proposals of
 * a tick. */
bool nm_may_draw_threads(const struct nm_daemon *daemon);
int nm_machine_open_platform(const struct nm_daemon *daemon,
			     const struct nm_platform_options *options, struct nm_platform **ret);
/* Reads kernel.numa_balancing, which root, sampling.inject and pages.numa_balancing change. If that
 * fails, the last value stays. */
void nm_machine_read_balancing(struct nm_daemon *daemon);
/* Creates the mover if there is none. */
void nm_open_mover(struct nm_daemon *daemon);
void nm_release_mover(struct nm_daemon *daemon, bool bulk);
/* Opens the state of a policy. */
void nm_open_policy(struct nm_daemon *daemon, enum nm_thread_policy policy);

/* ---- pipeline.c: building and destroying the pipeline ---- */

int nm_pipeline_open(struct nm_daemon *daemon);
/* Opens only the platform, to examine a process while the daemon is paused; nm_pipeline_close()
 * closes it. */
int nm_pipeline_open_platform(struct nm_daemon *daemon);
void nm_pipeline_close(struct nm_daemon *daemon);
/* Frees what the stages keep while the pipeline is closed. */
void nm_pipeline_clear(struct nm_daemon *daemon);
/* Resets the states of the policies, and the feedback. */
void nm_pipeline_reset_performance(struct nm_daemon *daemon);
/* Starts, reconfigures or stops the tracking of pages, and their moves, according to the
 * configuration. restart: node indices have changed. */
void nm_pipeline_configure_pages(struct nm_daemon *daemon, bool restart);
/* Loads the topology again for all stages if CPUs, nodes, memory blocks or isolation have changed. */
void nm_pipeline_follow_machine(struct nm_daemon *daemon, uint64_t now_ns);
/* Opens or reopens the source of the current configuration, and logs what is unavailable. */
void nm_pipeline_open_source(struct nm_daemon *daemon);

/* ---- tick.c ---- */

/* Runs one interval, from samples to decisions; ARCHITECTURE.md shows its stages. Returns 0 or a
 * negative errno. */
int nm_tick(struct nm_daemon *daemon);

/* ---- drain.c ---- */

/* Moves assigned threads again that are elsewhere; `done`: moves of this interval. */
void nm_act_again(struct nm_daemon *daemon, const struct nm_snapshot *snapshot, size_t done);

/* Drains the rings into metrics, task table and moves. */
void nm_drain(struct nm_daemon *daemon);

/* ---- cost.c ---- */

/* The loop's own handlers call these first and last. Between them it handles calls on the bus,
 * which are not limited by a budget. */
void nm_cost_begin_handler(struct nm_daemon *daemon);
void nm_cost_end_handler(struct nm_daemon *daemon);
/* Returns whether sampling exceeds its limit in this interval, whose end will reduce it. Called
 * between ticks. */
bool nm_cost_must_reduce_sampling(const struct nm_daemon *daemon, double since_s);
/* Measures the cost of the last interval, and adapts the sampling periods. */
void nm_cost_control(struct nm_daemon *daemon, uint64_t interval_ns);

/* ---- verdicts.c: results of earlier moves ---- */

/* Runs the feedback on the performance, and returns whether this tick may propose moves. A policy
 * that does not select threads by performance need not wait for the feedback. */
bool nm_apply_feedback(struct nm_daemon *daemon, const struct nm_snapshot *snapshot);
/* Handles verdicts that are due: reports them, bars threads from moves for some time or allows
 * moves again, and adds rollbacks to the plan. */
void nm_judge(struct nm_daemon *daemon, const struct nm_snapshot *snapshot, struct nm_plan *plan);

/* ---- act.c: the configured policy, and moving threads ---- */

/* Plans the proposals of the configured policy. Returns 0. */
int nm_propose(struct nm_daemon *daemon, const struct nm_snapshot *snapshot, struct nm_plan *plan);

/*
 * Carries out a plan, and records, counts and reports its decisions. Threads whose move was refused
 * are left alone for some time. Applied decisions are noted for their verdict; those of policy
 * "auto" belong to a home, which is reported and judged as a whole.
 */
void nm_act(struct nm_daemon *daemon, const struct nm_snapshot *snapshot,
	    const struct nm_plan *plan);

/* Returns what moving pages uses, as of this interval; snapshot: NULL between ticks. */
struct nm_page_stage_input nm_page_input(struct nm_daemon *daemon,
					 const struct nm_snapshot *snapshot);

/* ---- trial_stage.c: the control group ---- */

/* Begins after the platform was opened, without processes. */
void nm_trial_stage_open(struct nm_daemon *daemon);
void nm_trial_stage_configure(struct nm_daemon *daemon);
/* Returns whether the process may be decided about. Its first decision draws it. Called before a
 * process gets a home, and before threads or pages are moved. */
bool nm_trial_stage_allows(void *context, uint32_t pid);
/* Follows exits. Called for each record, before the metrics of an exited thread are dropped. */
void nm_trial_stage_task_event(struct nm_daemon *daemon, const struct nm_task_event *event,
			       uint64_t now_ns);
/* Reads CPU times, ends windows, and reports programs that lost. */
void nm_trial_stage_tick(struct nm_daemon *daemon, const struct nm_sampled_thread *sampled,
			 size_t count, uint64_t now_ns);
/*
 * Begins a trial of this share, or extends one of the same share that runs, whose results stay.
 * Returns -EBUSY if one of another share runs; if there is nothing to compare -EAGAIN (a pause),
 * -EROFS (a dry run), -ENODEV (one node) or -EOPNOTSUPP (no policy moves anything).
 */
int nm_trial_stage_begin(struct nm_daemon *daemon, uint32_t minutes, double percent);
/* Reports that the time of a trial is over, or ends it if there is nothing to compare any more. */
void nm_trial_stage_follow(struct nm_daemon *daemon, uint64_t now_ns);
/* Ends a trial early; its results stay. Does nothing without one. */
void nm_trial_stage_end(struct nm_daemon *daemon, const char *cause);

/* ---- balance.c: overloaded nodes ---- */

/* Returns the state of policy "balance"; NULL: another policy, or not yet. */
static inline struct nm_balancer *nm_balancer_of(const struct nm_daemon *daemon)
{
	return daemon->pipeline.policies.states[NM_POLICY_BALANCE];
}
/* Policy "balance": determines whether nodes are to be balanced, and which threads its row proposes
 * to move. */
void nm_balance_stage_tick(struct nm_daemon *daemon, const struct nm_snapshot *snapshot);

/* ---- home_stage.c: a home node for each process ---- */

/* Returns the state of policy "auto"; NULL: another policy, or not yet. */
static inline struct nm_placement *nm_placement_of(const struct nm_daemon *daemon)
{
	return daemon->pipeline.policies.states[NM_POLICY_AUTO];
}

/* Policy "auto": judges and assigns homes, moves threads there, and moves their memory. Leaves only
 * threads movable that the lotteries may draw. */
void nm_home_stage_tick(struct nm_daemon *daemon, struct nm_snapshot *snapshot,
			uint64_t interval_ns);
/* Notes the begin or end of a process. */
void nm_home_stage_task_event(struct nm_daemon *daemon, const struct nm_task_event *event,
			     uint64_t now_ns);
/* Returns whether the budget of examinations is not spent. Other policies have none: what began at
 * this nm_own_loop_ns() may use the share of one interval. */
bool nm_home_stage_has_budget(const struct nm_daemon *daemon, uint64_t now_ns, uint64_t begun_ns);
/* Returns whether the interval should end after rings were drained. */
bool nm_home_stage_must_end_interval(const struct nm_daemon *daemon);
/* Returns how many processes may be examined now; -1: none is due. */
int nm_home_stage_examinations_allowed(const struct nm_daemon *daemon, uint64_t now_ns);
/* Examines the processes that are due between intervals, and hands memory to the mover. */
void nm_home_stage_examine(struct nm_daemon *daemon);
/* Discards all state, because the machine or the policy has changed. */
void nm_home_stage_end(struct nm_daemon *daemon);

/* ---- inject.c ---- */

void nm_inject(struct nm_daemon *daemon);
void nm_inject_configure(struct nm_daemon *daemon);
/* Checks kernel.numa_balancing, turns it off if configured, and logs changes. Returns whether the
 * daemon may move pages. */
bool nm_follow_balancing(struct nm_daemon *daemon);
/* Restores the setting if the daemon has turned it off. */
void nm_restore_balancing(struct nm_daemon *daemon);

/* ---- report.c: entries of the journal, and the status for systemd ---- */

void nm_report(struct nm_daemon *daemon, enum nm_message message, int priority, const char *format,
	       ...) __attribute__((format(printf, 4, 5)));
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
void nm_report_config_errors(struct nm_daemon *daemon, enum nm_message message,
			     const struct nm_config_errors *errors);
void nm_report_config_warnings(struct nm_daemon *daemon);

/* Reports a decision; receipt is NULL for a home and for pages. */
void nm_report_decision(struct nm_daemon *daemon, const struct nm_decision *decision,
			const struct nm_receipt *receipt);
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

/* ---- commands.c: pause, resume, release, manage, reload, dry run, trial ---- */

/* Composes the document. */
int nm_command_dump(void *context);
int nm_command_pause(void *context);
int nm_command_resume(void *context);
int nm_command_release(void *context, uint32_t pid);
/* Ends a release, if there is one. Returns -ESRCH if there is no such process. */
int nm_command_manage(void *context, uint32_t pid);
/* Logs the errors, and writes them to `error`, one per line, unless it is NULL. */
int nm_command_reload(void *context, char *error, size_t size);
int nm_command_set_dry_run(void *context, bool wanted);
#define NM_TRIAL_MINUTES_MOST 10080U /* a week */
/* Begins a trial, or ends it (0 minutes). Returns -EINVAL, or as nm_trial_stage_begin(). */
int nm_command_raise_control(void *context, uint32_t minutes, double percent);

/* ---- watch.c: descriptors and timers of the loop ---- */

/* Returns whether there is nothing to do but to notice a change of the machine. */
bool nm_loop_is_idle(const struct nm_daemon *daemon);
/* Returns the time between two wakeups of the main loop: T, or less with policy "auto", whose
 * intervals end early when a process waits for a decision. */
double nm_loop_wakeup_s(const struct nm_daemon *daemon);
uint64_t nm_loop_wakeup_usec(const struct nm_daemon *daemon);
/* Adds the timers. Returns 0 or a negative errno. */
int nm_watch_open(struct nm_daemon *daemon);
/* Arms the timers after the interval has changed, or for moves of threads or the mover. */
void nm_loop_arm(struct nm_daemon *daemon);
/* Watches the rings of the source, after it was reopened. */
void nm_watch_source(struct nm_daemon *daemon);
/* Watches the machine's queries and the mover's calls (nm_platform_ops.query_fd), after the machine
 * was opened or closed. */
void nm_watch_queries(struct nm_daemon *daemon);

/* ---- loop.c ---- */

/* Examines processes that are due. Called after a wakeup, when the rings have been drained. */
void nm_loop_examine(struct nm_daemon *daemon);
/* Returns whether the interval continues. Called after nm_loop_examine(). */
bool nm_loop_interval_continues(const struct nm_daemon *daemon);
/* Handles the timer: ends the interval if it is complete, and in any case keeps the status and
 * metrics.file up to date. */
void nm_loop_on_timer(struct nm_daemon *daemon);
int nm_loop_run(struct nm_daemon *daemon);

/* ---- confine.c ---- */

/*
 * Confines this process, and the threads that it creates from now on, with Landlock (landlock(7))
 * to the files that it needs; /proc/PID/root, cwd and exe of other processes are not among them.
 * Called after the configuration was read and the runtime directory was opened. Returns 0;
 * -EOPNOTSUPP if the kernel does not support it; or another negative errno.
 */
int nm_confine(const struct nm_daemon *daemon);

/* ---- runtime.c: the runtime directory and --restore ---- */

/* Returns RUNTIME_DIRECTORY or /run/numa-migrd. */
const char *nm_runtime_path(void);
/* Opens that directory and locks it. Returns -EBUSY while another daemon
 * holds it. */
int nm_runtime_open(struct nm_daemon *daemon);
/* Closes it. If all affinities were restored, only the lists of released and unresponsive processes
 * remain in it. */
void nm_runtime_close(struct nm_daemon *daemon, bool restored);
/* Restores the affinities of moves that a crash interrupted. Returns 0; 1 if something could not be
 * restored, or is no longer known; or a negative errno. */
int nm_runtime_restore(struct nm_daemon *daemon);
/* Loads the list of processes that do not answer workers, before the pipeline is opened. Errors are
 * logged, as by the following ones. */
void nm_runtime_load_unresponsive(struct nm_daemon *daemon);
/* Loads the list of released processes and threads. It needs the platform. */
void nm_runtime_load_released(struct nm_daemon *daemon);
/* Saves both lists if they have changed; the latter only while the platform is open. */
void nm_runtime_save(struct nm_daemon *daemon);

#endif
