/* SPDX-License-Identifier: MIT */
/* A batch of all of a process's memory: small pages of many steps go in one call. */
#ifndef NM_MOVER_BULK_H
#define NM_MOVER_BULK_H

#include "mover_internal.h"

/*
 * Looks where the next pages of the batch are, as many as one question may have, and moves up to
 * `pages` of them. A huge page goes with the first of its small pages that does. A step MOVED is
 * one of which anything has; which of its pages did is not written down. -errno ends the batch.
 */
int nm_bulk_move(struct nm_mover *mover, struct nm_mover_counts *counts, unsigned pages);

#endif
