/* SPDX-License-Identifier: MIT */
/* One call of move_pages(2), with the queries that determine what it did. */
#ifndef NM_MOVER_CALL_H
#define NM_MOVER_CALL_H

#include "mover_internal.h"

/* Begins a round of calls: starts the worker process that they need, so that no call has to wait
 * for it. */
void nm_call_prepare(struct nm_mover *mover);

/* Queries the nodes of the pages at unit.address + offset, into mover->call.statuses. Returns 0 or
 * a negative errno. */
int nm_call_where(struct nm_mover *mover, uint64_t offset);

/* Finds pages in these ranges, into work.found. Returns 0 or a negative errno. */
int nm_call_find(struct nm_mover *mover, unsigned count, const struct nm_worker_range *ranges);

/* Moves all pages that are on the nodes in `from_nodes` (one bit for each) and that no other
 * process maps. Returns the number of pages that stayed, or a negative errno. */
int nm_call_migrate(struct nm_mover *mover, uint64_t from_nodes, unsigned to_node,
		    struct nm_mover_counts *counts);

/* Counts the pages of the next call against the limits on pages and bytes. */
void nm_call_spend(struct nm_mover *mover, uint64_t pages, uint64_t bytes);

/*
 * Moves the units, and tries once more those that the kernel gave up on. Afterwards unit.state is
 * unit.to, or the negative errno of a page that did not move. The order of the units changes. A
 * negative errno ends the batch, and the units have not been tried.
 */
int nm_call_move(struct nm_mover *mover, enum nm_pace_class class, struct nm_mover_counts *counts);

#endif
