/* SPDX-License-Identifier: MIT */
/*
 * The ledger: what masks we have narrowed, written before each act into a directory that survives
 * our death, so that the next start or `numa-migrd --restore` can undo it. Text lines, appended; a
 * torn last line is an act that did not happen. Entries of an earlier boot are void (no thread of
 * it lives).
 */
#ifndef NUMA_MIGRD_LEDGER_H
#define NUMA_MIGRD_LEDGER_H

#include <hwloc.h>
#include <stdbool.h>
#include <stdint.h>

#include "numa-migrd/base.h"

#define NM_LEDGER_NAME "ledger"
#define NM_LEDGER_DAMAGED NM_LEDGER_NAME ".damaged" /* kept aside for the administrator */

/* One narrowed mask: all that is needed to return it, and to know its inheritors, without other
 * state.
 */
struct nm_ledger_entry {
	uint32_t tid, pid;
	uint64_t start_ticks; /* the thread's start, field 22 of stat */
	uint64_t given_ticks; /* when we narrowed the mask, on the same scale */
	uint64_t ended_ticks; /* when it was returned or no longer ours; 0: it stands */
	uint64_t start_stack; /* of its process then: another one means an exec; 0: unknown */
	uint64_t decision;
	uint32_t session;  /* of its process, to find inheritors whose parents are gone */
	uint32_t uid;	   /* of its process, for the same */
	uint64_t ran_ticks; /* CPU time of the thread then; 0: unknown */
	bool unrestricted; /* return all possible CPUs rather than the exact original */
	hwloc_bitmap_t original, target;
	uint64_t cgroup; /* of its process, for the same: nm_ledger_cgroup() */
	uint64_t domain; /* likewise, whose share the lease is: nm_tenant_of() */
};

/* A line takes no more, whatever a process is called or has chosen. */
#define NM_LEDGER_LINE_BYTES 512
#define NM_LEDGER_MASK_BYTES 160 /* of it, each affinity: as a list, or in hex if that is shorter  \
				  */

/* A hash of a cgroup's path, to find inheritors. 0: NULL, or the root, which holds unrelated
 * processes. */
uint64_t nm_ledger_cgroup(const char *path);

void nm_ledger_entry_clear(struct nm_ledger_entry *entry);

/* Deep copy. -ENOMEM with *ret untouched. */
int nm_ledger_entry_copy(const struct nm_ledger_entry *entry, struct nm_ledger_entry *ret);

struct nm_ledger;

/*
 * Opens (creates, mode 0600) the ledger in `directory`; boot_id is the kernel's (random/boot_id).
 * -EPERM for anything but a regular file with one name, of our own or the directory's owner, not
 * written by others; -EBADMSG when it is no ledger. One of another boot is emptied; other lines
 * stay.
 */
int nm_ledger_open(int directory, const char *boot_id, struct nm_ledger **ret);
void nm_ledger_free(struct nm_ledger *ledger);
NM_DEFINE_CLEANUP(struct nm_ledger, nm_ledger_free);

/* Writes that an affinity is about to be narrowed. On failure (-ENOSPC, …; -E2BIG: it is too long)
 * nothing may be narrowed. */
int nm_ledger_give(struct nm_ledger *ledger, const struct nm_ledger_entry *entry);

/* Writes that the masks given to this thread were returned (or are no longer ours) by ended_ticks.
 */
int nm_ledger_return(struct nm_ledger *ledger, uint32_t tid, uint64_t start_ticks,
		     uint64_t ended_ticks);

/*
 * Rewrites the file with only these entries (atomically, by rename). Called when most lines are
 * dead. -errno: the old file stays.
 */
int nm_ledger_compact(struct nm_ledger *ledger, const struct nm_ledger_entry *const *entries,
		      size_t count);

/*
 * No later generation (numa-migrd/generation.h) has taken over the directory since it was opened.
 * Else each write is refused with -ECANCELED, and the file is not ours to remove.
 */
bool nm_ledger_is_ours(const struct nm_ledger *ledger);

/* Lines written since the last compaction: the caller compacts when it exceeds twice its live
 * leases. */
size_t nm_ledger_lines(const struct nm_ledger *ledger);

/*
 * Every line of the file, oldest first. A thread may have several that stand: after a death between
 * the line and the act its mask is still an earlier one's. Those that ended tell whose inheritors
 * may live.
 */
struct nm_ledger_contents {
	struct nm_ledger_entry *entries;
	size_t count;
	size_t bad_lines; /* damaged lines that were skipped (a torn last line is not counted) */
	size_t first_bad_line; /* its number, from 1; 0: none */
};
void nm_ledger_contents_clear(struct nm_ledger_contents *contents);

/* Reads the ledger in `directory`, of any size, line by line. 0 also when there is none or it is of
 * another boot; -errno. */
int nm_ledger_read(int directory, const char *boot_id, struct nm_ledger_contents *ret);

/* Copies the file to NM_LEDGER_DAMAGED, in place of an earlier one. 0 or -errno. */
int nm_ledger_keep_damaged(int directory);

/* Removes the file; 0 also when there is none. */
int nm_ledger_remove(int directory);

#endif
