/* SPDX-License-Identifier: MIT */
/* Counts the huge pages that the kernel split because it could not move them whole. */
#ifndef NM_MOVER_SPLIT_H
#define NM_MOVER_SPLIT_H

#include "mover_internal.h"

/* Stores the machine's present count, from which the mover counts. */
void nm_splits_begin(struct nm_mover *mover);

/* Updates the count, at most once per second. */
void nm_splits_look(struct nm_mover *mover);

#endif
