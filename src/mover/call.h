/* SPDX-License-Identifier: MIT */
/*
 * The calls of a worker. A function with a parameter `then` calls it when the result is known, and
 * returns what it returns; or it returns NM_CALL_BEGUN, and the step continues with `then` later.
 */
#ifndef NM_MOVER_CALL_H
#define NM_MOVER_CALL_H

#include "mover_internal.h"

/* Begins a series of calls: starts the worker process that they need. */
int nm_call_prepare(struct nm_mover *mover, nm_then_fn then);

/* Queries the nodes of the units, into mover->call.statuses; for the class NM_PACE_HUGE followed by
 * those of their last base pages. */
int nm_call_where(struct nm_mover *mover, nm_then_fn then);

/* Finds pages in the first `count` of mover->call.ranges, into work.found. */
int nm_call_find(struct nm_mover *mover, unsigned count, nm_then_fn then);

/* Moves all pages that are on the nodes in `from_nodes` (one bit for each) and that no other
 * process maps. The result is the number of pages that stayed, or a negative errno; `then` calls
 * nm_call_count(). */
int nm_call_migrate(struct nm_mover *mover, uint64_t from_nodes, unsigned to_node, nm_then_fn then);

/* Counts a call that has ended, and the time that it took. */
void nm_call_count(struct nm_mover *mover, uint64_t taken_ns);

/*
 * Moves the units, and tries once more those that the kernel gave up on. They count against the
 * limits of the pace. Afterwards mover->call.moved contains the result of each. If the result is a
 * negative errno, there are none; after -ETIMEDOUT the units may still move.
 */
int nm_call_round(struct nm_mover *mover, nm_then_fn then);

/* Counts the tries of the round of this step, if there was one, and learns their cost. Called when
 * the step ends. */
void nm_call_learn(struct nm_mover *mover);

#endif
