/* SPDX-License-Identifier: MIT */
/* What was asked for as a huge page and is none: its small pages go, some in each call. */
#ifndef NM_MOVER_LOOSE_H
#define NM_MOVER_LOOSE_H

#include "mover_internal.h"

/* The step's small pages are to go. One that MOVED is one whose first small page has. */
void nm_base_pages_add(struct nm_work *work, size_t step);

/* The next call with small pages of the step that was added last. -errno ends the batch. */
int nm_base_pages_move(struct nm_mover *mover, struct nm_mover_counts *counts, unsigned pages);

/* The batch has ended: writes down what has moved of the steps that are not done. */
void nm_base_pages_end(struct nm_work *work);

#endif
