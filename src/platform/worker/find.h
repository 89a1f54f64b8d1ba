/* SPDX-License-Identifier: MIT */
#ifndef NM_WORKER_FIND_H
#define NM_WORKER_FIND_H

#include "numa-migrd/worker.h"

/* Performs NM_WORKER_FIND; the caller has verified the identity of the process. Returns 0 or a
 * negative errno. */
int nm_worker_find(const struct nm_worker_order *order, struct nm_worker_found *ret);

#endif
