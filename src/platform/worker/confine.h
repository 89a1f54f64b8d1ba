/* SPDX-License-Identifier: MIT */
/* Drops the privileges that a worker does not need, before it reads its first request. */
#ifndef NUMA_MIGRD_WORKER_CONFINE_H
#define NUMA_MIGRD_WORKER_CONFINE_H

#include <stdbool.h>

/*
 * In a mount namespace of its own, prevents that links in /proc are followed (root, cwd and exe of
 * other processes lead anywhere; mount_setattr(2), Linux 5.14), and keeps only CAP_SYS_PTRACE, if
 * the process has it. Returns 0; 1 if the program must be executed again, and then calls this
 * function without the other capabilities; or the negative errno of dropping capabilities. Links
 * stay accessible if CAP_SYS_ADMIN or a namespace is not available.
 */
int nm_worker_confine(void);
/* Returns whether links in /proc are no longer followed, by trying one. Called after
 * nm_worker_confine(). */
bool nm_worker_links_are_closed(void);

#endif
