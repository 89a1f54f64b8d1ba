/* SPDX-License-Identifier: MIT */
/*
 * One call of move_pages(2), with the queries that determine what it did. A function with a
 * parameter `then` calls it when the result is known, and returns what it returns; or it returns
 * NM_CALL_BEGUN, and the step continues with `then` later.
 */
#ifndef NM_MOVER_CALL_H
#define NM_MOVER_CALL_H

#include "mover_internal.h"

/* Begins a round of calls: starts the worker process that they need. */
int nm_call_prepare(struct nm_mover *mover, nm_then_fn then);

/* Queries the nodes of the pages at unit.address + offset, into mover->call.statuses. */
int nm_call_where(struct nm_mover *mover, uint64_t offset, nm_then_fn then);

/* Finds pages in the first `count` of mover->call.ranges, into work.found. */
int nm_call_find(struct nm_mover *mover, unsigned count, nm_then_fn then);

/* Moves all pages that are on the nodes in `from_nodes` (one bit for each) and that no other
 * process maps. The result is the number of pages that stayed, or a negative errno; `then` calls
 * nm_call_count(). */
int nm_call_migrate(struct nm_mover *mover, uint64_t from_nodes, unsigned to_node, nm_then_fn then);

/* Counts the call that has ended, and the time that it took. */
void nm_call_count(struct nm_mover *mover);

/*
 * Moves the units, and tries once more those that the kernel gave up on. Afterwards unit.state is
 * unit.to, or the negative errno of a page that did not move. The order of the units changes. If
 * the result is a negative errno, the units have not been tried.
 */
int nm_call_move(struct nm_mover *mover, enum nm_pace_class class, nm_then_fn then);

#endif
