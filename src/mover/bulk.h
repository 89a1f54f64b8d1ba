/* SPDX-License-Identifier: MIT */
/* A batch of all of a process's memory. */
#ifndef NM_MOVER_BULK_H
#define NM_MOVER_BULK_H

#include "mover_internal.h"

#define NM_BULK_END UINT64_MAX /* batch->next: all has been looked at */

/*
 * Finds the next pages that are in memory, where none is left of those found before, and moves up to
 * so many of them, and bytes (beyond: one page alone). A huge page goes with the first of its small pages
 * that does. -errno ends the batch; -EPERM: its cpuset does not allow the node.
 */
int nm_bulk_move(struct nm_mover *mover, struct nm_mover_counts *counts, unsigned pages,
		 uint64_t bytes);

#endif
