/* SPDX-License-Identifier: MIT */
/* What the bus shows: the last interval, as it was decided on. */
#ifndef NM_DAEMON_VIEWS_H
#define NM_DAEMON_VIEWS_H

#include "numa-migrd/control.h"
#include "numa-migrd/snapshot.h"

struct nm_daemon;

/* Of the last interval; all zero: there was none yet. */
struct nm_views {
	struct nm_snapshot *snapshot; /* its masks are not looked at: they may be gone */
	double *served;		      /* accesses of all threads by the node that they went to */
};

/* Takes the snapshot over. Tick, when all is decided. */
void nm_views_keep(struct nm_daemon *daemon, struct nm_snapshot *snapshot,
		   const struct nm_figures *figures, size_t nr_figures);
/* Its topology is about to go. */
void nm_views_forget(struct nm_daemon *daemon);

/* ---- for struct nm_control_ops: context is the daemon ---- */

void nm_view_facts(void *context, struct nm_control_facts *ret);
void nm_view_counters(void *context, const struct nm_show *show);
int nm_view_nodes(void *context, const struct nm_show *show);
int nm_view_threads(void *context, uint32_t pid, const struct nm_show *show);
int nm_view_decisions(void *context, uint64_t after, uint32_t most, const struct nm_show *show);
int nm_view_explain(void *context, uint64_t id, const struct nm_show *show);

/* ---- view_processes.c ---- */

int nm_view_processes(void *context, const struct nm_show *show);
int nm_view_pages(void *context, uint32_t pid, const struct nm_show *show);
int nm_view_regions(void *context, uint32_t pid, uid_t caller, const struct nm_show *show);

/* ---- shared by the two ---- */

/* The process as the roster knows it, or NULL. */
const struct nm_process *nm_view_process(const struct nm_daemon *daemon, uint32_t pid);
/* "threads" has none of a process that was released since. */
bool nm_view_is_managed(const struct nm_daemon *daemon, uint32_t pid);
/* Its node, by the kernel's number; below 0 it is left out. */
void nm_view_node(const struct nm_daemon *daemon, const struct nm_show *show, const char *name,
		  int node);

#endif
