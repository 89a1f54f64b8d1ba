/* SPDX-License-Identifier: MIT */
#ifndef NM_WORKER_FIND_H
#define NM_WORKER_FIND_H

#include "numa-migrd/worker.h"

/* NM_WORKER_FIND, of a process that is the one that is meant. 0 or -errno. */
int nm_worker_find(const struct nm_worker_order *order, struct nm_worker_found *ret);

#endif
