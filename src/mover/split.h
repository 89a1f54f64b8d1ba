/* SPDX-License-Identifier: MIT */
/* How many huge pages the kernel took apart because it could not move them whole. */
#ifndef NM_MOVER_SPLIT_H
#define NM_MOVER_SPLIT_H

#include "mover_internal.h"

/* Remembers where the machine's count begins. */
void nm_splits_begin(struct nm_mover *mover);

/* Counts on, at most once per second. Without the lock. */
void nm_splits_look(struct nm_mover *mover);

#endif
