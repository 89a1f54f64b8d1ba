/* SPDX-License-Identifier: MIT */
/* Steps requested as a huge page that is none: their base pages are moved, some in each call. */
#ifndef NM_MOVER_LOOSE_H
#define NM_MOVER_LOOSE_H

#include "mover_internal.h"

/* Adds a step whose base pages are to be moved. If the step is MOVED already, its first base page
 * has been moved. */
void nm_base_pages_add(struct nm_work *work, size_t step);

/* Makes the next call, with base pages of the step that was added last. Returns 0, NM_CALL_BEGUN,
 * or a negative errno, which ends the batch. */
int nm_base_pages_move(struct nm_mover *mover);

/* Called when the batch has ended: records the base pages that have moved, of the steps that are
 * not complete. */
void nm_base_pages_end(struct nm_work *work);

#endif
