/* SPDX-License-Identifier: MIT */
/*
 * The ledger: a list of the affinities that we narrowed. Each is written before the affinity is
 * set, into a directory that survives the death of the daemon, so that the next start or
 * `numa-migrd --restore` can restore them. The file consists of text lines, which are appended; an
 * incomplete last line stands for a change that did not happen. Entries of an earlier boot are
 * void, because none of its threads exists any more.
 */
#ifndef NUMA_MIGRD_LEDGER_H
#define NUMA_MIGRD_LEDGER_H

#include <hwloc.h>
#include <stdbool.h>
#include <stdint.h>

#include "numa-migrd/base.h"

#define NM_LEDGER_NAME "ledger"
#define NM_LEDGER_DAMAGED NM_LEDGER_NAME ".damaged" /* kept for the administrator */

/* One narrowed affinity, with all the data needed to restore it and to recognize the tasks that
 * inherited it. */
struct nm_ledger_entry {
	uint32_t tid, pid;
	uint64_t start_ticks; /* start time of the thread, field 22 of stat */
	uint64_t given_ticks; /* time when the affinity was narrowed, on the same scale */
	uint64_t ended_ticks; /* time when it was restored or found changed; 0: active */
	uint64_t decision;
	uint32_t session;  /* of its process, to find descendants whose parents have exited */
	uint32_t uid;	   /* of its process, for the same purpose */
	uint64_t ran_ticks; /* CPU time of the thread at that time; 0: unknown */
	bool unrestricted;  /* restore all possible CPUs instead of the exact original affinity */
	hwloc_bitmap_t original, target;
	uint64_t cgroup; /* of its process, for the same purpose: nm_ledger_cgroup() */
	uint64_t domain; /* the domain whose share the lease uses: nm_domain_of() */
};

/* Maximum length of a line, which no name or affinity of a process can exceed. */
#define NM_LEDGER_LINE_BYTES 512
#define NM_LEDGER_MASK_BYTES 160 /* of each affinity: a list, or hex if that is too long */

/* Returns a hash of a cgroup's path, by which descendants are found; 0 for NULL and for the root,
 * which contains unrelated processes. */
uint64_t nm_ledger_cgroup(const char *path);

/* Write the entry as text, without a newline, and read it: "give TID PID START GIVEN DECISION SESSION
 * UID RAN CGROUP DOMAIN UNRESTRICTED ORIGINAL TARGET .". Return 0; -E2BIG if it would be too long; or
 * -EINVAL. The caller clears *ret. */
int nm_ledger_format(const struct nm_ledger_entry *entry, char line[NM_LEDGER_LINE_BYTES + 1]);
int nm_ledger_parse(const char *line, struct nm_ledger_entry *ret);

void nm_ledger_entry_clear(struct nm_ledger_entry *entry);

/* Makes a deep copy, which the caller clears. */
void nm_ledger_entry_copy(const struct nm_ledger_entry *entry, struct nm_ledger_entry *ret);

struct nm_ledger;

/*
 * Opens the ledger in `directory`, and creates it with mode 0600 if necessary; `boot_id` is the
 * kernel's random/boot_id. The caller frees it. Returns -EPERM if the file is not a regular file
 * with a single link, is not owned by us or by the owner of the directory, or is writable by
 * others; -EBADMSG if it is not a ledger; or another negative errno. A ledger of another boot is
 * emptied; the lines of this boot stay.
 */
int nm_ledger_open(int directory, const char *boot_id, struct nm_ledger **ret);
void nm_ledger_free(struct nm_ledger *ledger);
NM_DEFINE_CLEANUP(struct nm_ledger, nm_ledger_free);

/* Records that an affinity is about to be narrowed. If this fails (-ENOSPC, -ECANCELED, …; -E2BIG:
 * the line would be too long), the affinity must not be narrowed. */
int nm_ledger_give(struct nm_ledger *ledger, const struct nm_ledger_entry *entry);

/* Records that the affinities given to this thread were restored, or were found changed, by
 * ended_ticks. Returns 0 or a negative errno. */
int nm_ledger_return(struct nm_ledger *ledger, uint32_t tid, uint64_t start_ticks,
		     uint64_t ended_ticks);

/*
 * Replaces the file with one that contains only these entries, atomically by rename(2). Called when
 * most lines are obsolete. On a negative errno the old file stays.
 */
int nm_ledger_compact(struct nm_ledger *ledger, const struct nm_ledger_entry *const *entries,
		      size_t count);

/* Returns the number of lines written since the ledger was opened; a compaction sets it to the
 * number of its entries. The caller compacts the ledger when it exceeds twice the number of entries
 * to keep, plus 256. */
size_t nm_ledger_lines(const struct nm_ledger *ledger);

/*
 * The entries of the file, oldest first. A thread may have several active ones: if the daemon died
 * after writing a line and before setting the affinity, the thread carries the target of an earlier
 * line. Ended entries are needed to find descendants that may still be alive.
 */
struct nm_ledger_contents {
	struct nm_ledger_entry *entries;
	size_t count;
	struct nm_tidmap
		*newest;   /* by thread number: the index of its newest entry; NULL: no entries */
	uint32_t *earlier; /* of each entry: the index of the next older one with its thread number,
			    * or NM_TIDMAP_NONE */
	size_t bad_lines; /* damaged lines, which were skipped; not an incomplete last line */
	size_t first_bad_line; /* the number of the first one, from 1; 0: none */
};
void nm_ledger_contents_clear(struct nm_ledger_contents *contents);

/* Reads the ledger in `directory`, which may have any size. The caller clears *ret. Returns 0, also
 * if there is no ledger or if it is of another boot, or a negative errno. */
int nm_ledger_read(int directory, const char *boot_id, struct nm_ledger_contents *ret);

/* Copies the file to NM_LEDGER_DAMAGED, and replaces an earlier copy. Returns 0 or a negative
 * errno. */
int nm_ledger_keep_damaged(int directory);

/* Removes the file. Returns 0, also if there is none, or a negative errno. */
int nm_ledger_remove(int directory);

#endif
