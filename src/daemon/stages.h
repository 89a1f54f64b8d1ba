/* SPDX-License-Identifier: MIT */
/* The stages of an interval: each hands its module what it needs, and carries out what that
 * decides. */
#ifndef NM_DAEMON_STAGES_H
#define NM_DAEMON_STAGES_H

#include "mover/page_stage.h"
#include "numa-migrd/snapshot.h"
#include "policy/plan.h"

struct nm_costs;
struct nm_daemon;
struct nm_journal;
struct nm_pipeline;

/* ---- tick.c ---- */

/* Runs one interval, from samples to decisions; ARCHITECTURE.md shows its stages. Returns 0 or a
 * negative errno. */
int nm_tick(struct nm_daemon *daemon);

/* ---- drain.c ---- */

/* Drains the rings into metrics, task table and moves. */
void nm_drain(struct nm_daemon *daemon);

/* ---- own_cost.c: the cost of the service, and what it leads to ---- */

/* The loop's own handlers call these first and last. Between them it handles calls on the bus,
 * which are not limited by a budget. */
void nm_cost_begin_handler(struct nm_costs *costs);
void nm_cost_end_handler(struct nm_costs *costs);
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

/* Plans the proposals of the configured policy. Returns 0 or a negative errno. */
int nm_propose(struct nm_daemon *daemon, const struct nm_snapshot *snapshot, struct nm_plan *plan);

/*
 * Carries out a plan, and counts its decisions, except those that are postponed. Threads whose move
 * was refused are left alone for some time. Applied decisions are noted for their verdict; those of
 * policy "auto" belong to a home, which is judged as a whole. Returns a receipt for each decision,
 * for nm_report_plan(); the caller frees them.
 */
struct nm_receipt *nm_act(struct nm_daemon *daemon, const struct nm_snapshot *snapshot,
			  const struct nm_plan *plan);

/* Moves assigned threads again that are elsewhere; `done`: moves of this interval. */
void nm_act_again(struct nm_daemon *daemon, const struct nm_snapshot *snapshot, size_t done);

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

/* ---- balance_stage.c: overloaded nodes ---- */

/* Policy "balance": determines whether nodes are to be balanced, and which threads its row proposes
 * to move. */
void nm_balance_stage_tick(struct nm_pipeline *pipeline, const struct nm_config *config,
			   struct nm_journal *journal, const struct nm_snapshot *snapshot);

/* ---- home_stage.c: a home node for each process ---- */

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

#endif
