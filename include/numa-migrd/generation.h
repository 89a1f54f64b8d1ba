/* SPDX-License-Identifier: MIT */
/*
 * The owner of the runtime directory. Each start, and each --restore, is a generation: it holds a
 * lock (flock(2)) on a file "generation", which identifies the process. A later generation takes
 * over from one that has exited, and from one that can never run again: killed, but asleep in the
 * kernel where nothing wakes it. Part of platform/.
 */
#ifndef NUMA_MIGRD_GENERATION_H
#define NUMA_MIGRD_GENERATION_H

#include <stdbool.h>
#include <sys/types.h>

#include "numa-migrd/base.h"

#define NM_GENERATION_NAME "generation"

struct nm_generation;

/*
 * Makes this process the owner of the runtime directory (open; it must stay open as long as the
 * generation exists). proc_fd is /proc. Returns 0; -EBUSY if the owner may still run, or if that
 * cannot be determined because it is in another PID namespace or of a version without generations;
 * or another negative errno. Called at start and by --restore.
 *
 * The function waits one second for an owner that was killed to exit. A system call that such an
 * owner has begun may still take effect later: sched_setaffinity(2) on the thread in the last line
 * of its ledger.
 */
int nm_generation_take(int directory, int proc_fd, struct nm_generation **ret);

/* Returns the current generation without taking over; *ret is NULL if there is none. Called by the
 * ledger. */
int nm_generation_look(int directory, struct nm_generation **ret);

/* Returns whether no later generation has taken over; true for NULL. Must be called before each
 * write to the runtime directory and each operation on the machine. */
bool nm_generation_stands(const struct nm_generation *generation);

/* Removes the file, unless it belongs to a later generation. Called when nothing is left for a
 * later generation to recover. */
void nm_generation_remove(const struct nm_generation *generation);

/* Takes a further reference; NULL stays NULL. nm_generation_free() drops it. May be called from any
 * thread. */
struct nm_generation *nm_generation_ref(struct nm_generation *generation);
/* Drops a reference. The last one releases the lock, if it is held. The file stays, and the next
 * generation continues its number. */
void nm_generation_free(struct nm_generation *generation);
NM_DEFINE_CLEANUP(struct nm_generation, nm_generation_free);

/*
 * Returns whether no thread of this process can run in user space again. Each of them has exited,
 * is exiting (PF_EXITING), or has SIGKILL pending for itself, which can be neither blocked nor
 * revoked; a killed process gets no new threads. Returns false if the process does not exist or its
 * PID was reused.
 */
bool nm_process_is_over(int proc_fd, pid_t pid, uint64_t start_ticks);

#endif
