/* SPDX-License-Identifier: MIT */
/*
 * Whose the runtime directory is. Each start, and each --restore, is a generation of its own: it
 * holds a lock (flock(2)) on a file "generation" that says who it is. A later one takes over from
 * one that has ended, and from one that can never run again: killed, and asleep in the kernel where
 * nothing wakes it. Part of platform/.
 */
#ifndef NUMA_MIGRD_GENERATION_H
#define NUMA_MIGRD_GENERATION_H

#include <stdbool.h>
#include <sys/types.h>

#include "numa-migrd/base.h"

#define NM_GENERATION_NAME "generation"

struct nm_generation;

/*
 * Makes this process the holder of the runtime directory (open, and the caller's for as long as the
 * generation). proc_fd: /proc. -EBUSY where a process holds it that may still run, or one of which
 * that cannot be told: in another PID namespace, or of a version without generations. -errno.
 * Daemon's start,
 * --restore.
 *
 * It waits a second for a holder that was killed to end. A system call that such a holder has begun
 * may still take effect after that: sched_setaffinity(2) on the thread in the last line of its
 * ledger.
 */
int nm_generation_take(int directory, int proc_fd, struct nm_generation **ret);

/* The one that is there now, without becoming its holder; NULL where there is none. The ledger. */
int nm_generation_look(int directory, struct nm_generation **ret);

/*
 * No later one has taken over; true for NULL (nobody counts generations). To be asked before each
 * write to the runtime directory and each act on the machine.
 */
bool nm_generation_stands(const struct nm_generation *generation);

/* Removes the file, unless it is a later generation's: there is nothing left for the next one. */
void nm_generation_remove(const struct nm_generation *generation);

/* A further reference; NULL stays NULL. Each is dropped by nm_generation_free(). From any thread.
 */
struct nm_generation *nm_generation_ref(struct nm_generation *generation);
/* With the last reference it gives up its lock, if it has one. The file stays, and the next
 * generation continues its number. */
void nm_generation_free(struct nm_generation *generation);
NM_DEFINE_CLEANUP(struct nm_generation, nm_generation_free);

/*
 * Can none of the threads of this process run in user space any more? Each of them has ended, is on
 * its way out (PF_EXITING), or has SIGKILL pending as its own: it can neither be blocked nor taken
 * back, and a killed process gets no new threads. false also where the process is not there, or is
 * another one.
 */
bool nm_process_is_over(int proc_fd, pid_t pid, uint64_t start_ticks);

#endif
