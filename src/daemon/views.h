/* SPDX-License-Identifier: MIT */
/* Data shown on the bus: the last interval, as used for its decisions. */
#ifndef NM_DAEMON_VIEWS_H
#define NM_DAEMON_VIEWS_H

#include "numa-migrd/dump.h"
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

/* Composes the document of Dump. Returns its descriptor, which the caller closes, or a negative
 * errno. Context is the daemon, as for all functions of struct nm_control_ops. */
int nm_command_dump(void *context);

/* Returns what is shown of a node, by its index, except the list of its CPUs and its free memory. */
struct nm_node_row nm_view_node(const struct nm_daemon *daemon, unsigned index);

/* ---- view_processes.c ---- */

/* Adds all processes in the task table. `last` has the newest decision about each thread of the
 * snapshot, by its index; 0: none. */
void nm_view_processes(struct nm_daemon *daemon, const uint64_t *last, struct nm_dump *dump);

/* ---- view_trial.c ---- */

#define NM_TRIAL_MINUTES_MOST 10080U /* a week */
/* Raises the share of the control group, or ends that (0 minutes). Returns -EAGAIN during a pause,
 * or -EINVAL. */
int nm_command_raise_control(void *context, uint32_t minutes, double percent);
/* Returns the results of the last such period, in total and of each command. */
json_t *nm_view_trial(struct nm_daemon *daemon, struct nm_dump *dump);

#endif
