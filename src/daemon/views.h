/* SPDX-License-Identifier: MIT */
/* Data shown on the bus: the last interval, as used for its decisions. */
#ifndef NM_DAEMON_VIEWS_H
#define NM_DAEMON_VIEWS_H

#include "numa-migrd/control.h"
#include "numa-migrd/snapshot.h"

struct nm_daemon;

/* Data of the last interval; all zero: none yet. */
struct nm_views {
	struct nm_snapshot *snapshot; /* its CPU sets must not be used, because they may have been
				       * freed */
	double *served;		      /* accesses of all threads by node of the memory */
};

/* Takes over the snapshot. Called by the tick after all decisions. */
void nm_views_update(struct nm_daemon *daemon, struct nm_snapshot *snapshot,
		     const struct nm_figures *figures, size_t nr_figures);
/* Discards the data, because its topology is about to be freed. */
void nm_views_clear(struct nm_daemon *daemon);

/* ---- for struct nm_control_ops: context is the daemon ---- */

void nm_view_facts(void *context, struct nm_control_facts *ret);
int nm_view_nodes(void *context, const struct nm_show *show);
int nm_view_threads(void *context, uint32_t pid, const struct nm_show *show);
int nm_view_decisions(void *context, uint64_t after, uint32_t most, const struct nm_show *show);
int nm_view_explain(void *context, uint64_t id, const struct nm_show *show);

/* ---- view_processes.c ---- */

int nm_view_processes(void *context, const struct nm_show *show);
/* Shows one process, also one that is not managed, with the reason. Returns -ESRCH or -EAGAIN. */
int nm_view_process_reason(void *context, uint32_t pid, const struct nm_show *show);
int nm_view_pages(void *context, uint32_t pid, const struct nm_show *show);
int nm_view_regions(void *context, uint32_t pid, uid_t caller, const struct nm_show *show);

/* ---- view_trial.c ---- */

#define NM_TRIAL_MINUTES_MOST 10080U /* a week */
/* Raises the share of the control group, or ends that (0 minutes). Returns -EACCES for users other
 * than root, -EAGAIN during a pause, or -EINVAL. */
int nm_command_raise_control(void *context, uint32_t minutes, double percent, uid_t uid);
/* The results of the last such period. Returns 0, or -EAGAIN during a pause. */
int nm_view_trial(void *context, const struct nm_show *show);
int nm_view_trial_programs(void *context, const struct nm_show *show);

/* ---- shared by these files ---- */

/* Returns the process in the task table, or NULL. */
const struct nm_process *nm_view_process(const struct nm_daemon *daemon, uint32_t pid);
/* Returns false for a process that was released since, which "threads" does not list. */
bool nm_view_is_managed(const struct nm_daemon *daemon, uint32_t pid);
/* Shows a node by the kernel's number; a negative index is omitted. */
void nm_view_node(const struct nm_daemon *daemon, const struct nm_show *show, const char *name,
		  int node);

#endif
