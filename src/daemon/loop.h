/* SPDX-License-Identifier: MIT */
/* The loop with its descriptors and timers, and the commands of an administrator. */
#ifndef NM_DAEMON_LOOP_H
#define NM_DAEMON_LOOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct nm_daemon;

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

#endif
