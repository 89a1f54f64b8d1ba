/* SPDX-License-Identifier: MIT */
/* A batch that moves all memory of a process. */
#ifndef NM_MOVER_BULK_H
#define NM_MOVER_BULK_H

#include "mover_internal.h"

#define NM_BULK_END UINT64_MAX /* batch->next: everything is done */

/*
 * Finds the next pages that are in memory, if all pages found before are done, and moves up to
 * call.pages_most of them with up to call.bytes_most bytes, or one larger page. A huge page moves
 * with the first of its base pages that does. Returns 0, NM_CALL_BEGUN, or a negative errno, which
 * ends the batch; -EPERM: the cpuset of the process does not allow the node; -ENOSPC: the node
 * reclaims memory.
 */
int nm_bulk_move(struct nm_mover *mover);

#endif
