/* SPDX-License-Identifier: MIT */
/* One call of move_pages(2), and what it takes to know what it did. */
#ifndef NM_MOVER_CALL_H
#define NM_MOVER_CALL_H

#include "mover_internal.h"

/* A round of calls begins: has started what they take, before anybody waits for one. */
void nm_call_prepare(struct nm_mover *mover);

/* Asks where the pages at unit.address + offset are; into mover->call.statuses. -errno. */
int nm_call_where(struct nm_mover *mover, uint64_t offset);

/* Finds pages in these ranges; into work.found. -errno. */
int nm_call_find(struct nm_mover *mover, unsigned count, const struct nm_worker_range *ranges);

/* Moves all that is on some nodes (a bit for each) and that no other process maps. How many pages stayed, or
 * -errno. */
int nm_call_migrate(struct nm_mover *mover, uint64_t from_nodes, unsigned to_node,
		    struct nm_mover_counts *counts);

/* What the next call moves counts against the limits on pages and bytes. */
void nm_call_spend(struct nm_mover *mover, uint64_t pages, uint64_t bytes);

/*
 * Moves the units, once more those that the kernel gave up on; afterwards unit.state is unit.to, or
 * the negative errno of a page that did not move. Their order changes. -errno ends the batch, and
 * the units have not been tried.
 */
int nm_call_move(struct nm_mover *mover, enum nm_pace_class class, struct nm_mover_counts *counts);

#endif
