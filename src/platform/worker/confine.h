/* SPDX-License-Identifier: MIT */
/* What a worker gives away for good before it reads its first request. */
#ifndef NUMA_MIGRD_WORKER_CONFINE_H
#define NUMA_MIGRD_WORKER_CONFINE_H

#include <stdbool.h>

/*
 * In a mount namespace of its own, has no link of /proc followed any more (root, cwd and exe of other
 * processes lead anywhere; mount_setattr(2), Linux 5.14), and keeps CAP_SYS_PTRACE alone, if it has
 * it. 0; 1: the program is to be executed anew, and comes back here without the rest; -errno of
 * giving up capabilities. Links stay open where CAP_SYS_ADMIN or a namespace cannot be had.
 */
int nm_worker_confine(void);
/* Tried on a link: none of /proc is followed. After nm_worker_confine(). */
bool nm_worker_links_are_closed(void);

#endif
