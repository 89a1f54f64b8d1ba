/* SPDX-License-Identifier: MIT */
/* The file of the narrowed affinities: slots of fixed size, each written and cleared by one call.
 */
#ifndef NM_MOVE_SLOTS_H
#define NM_MOVE_SLOTS_H

#include "narrowing.h"
#include "affinity/move.h"

struct nm_slots;

/* Opens the file, and creates it with mode 0600 if necessary; the caller frees it. A file of
 * another boot is emptied, because none of its threads exists any more. Returns -EPERM as
 * nm_open_own(), -EBADMSG if it is not a file of slots, or another negative errno. */
int nm_slots_open(int directory, const char *boot_id, struct nm_slots **ret);
void nm_slots_free(struct nm_slots *slots);
NM_DEFINE_CLEANUP(struct nm_slots, nm_slots_free);

/* Record that an affinity is about to be narrowed, and that nothing is left to restore. If the
 * first one fails (-E2BIG: the affinities are too long to write), the affinity must not be
 * narrowed. */
int nm_slots_take(struct nm_slots *slots, size_t slot, const struct nm_narrowing *terms);
int nm_slots_clear(struct nm_slots *slots, size_t slot);

/* The slots in use. The caller clears the terms. */
struct nm_slots_contents {
	struct nm_narrowing *terms; /* NM_MOVE_SLOTS entries; tid 0: not in use */
	size_t used;
	size_t damaged, first_damaged; /* from 1; 0: none */
};
void nm_slots_contents_clear(struct nm_slots_contents *contents);

/* Returns 0, also if there is no file or it is of another boot; -EBADMSG; or another negative
 * errno. */
int nm_slots_read(int directory, const char *boot_id, struct nm_slots_contents *ret);

/* Removes the file. Returns 0, also if there is none, or a negative errno. */
int nm_slots_remove(int directory);

#endif
