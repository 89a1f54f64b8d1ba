/* SPDX-License-Identifier: MIT */
/*
 * The ledger of versions before 0.9, which kept affinities narrowed: a file of lines, appended when
 * an affinity was narrowed ("give …") and when it was restored ("return TID START ENDED ."). It is
 * restored once, at the first start of a later version, and removed.
 */
#ifndef NM_AFFINITY_LEDGER_H
#define NM_AFFINITY_LEDGER_H

#include "narrowing.h"

/* The affinities that were narrowed and not restored, newest first. The caller clears it. */
struct nm_ledger {
	struct nm_narrowing *items;
	size_t count;
	size_t bad_lines, first_bad_line; /* from 1; 0: none */
};
void nm_ledger_clear(struct nm_ledger *ledger);

/* Returns 0, also if there is no ledger or it is of another boot; -EBADMSG if it is not a ledger of
 * the last form; or another negative errno. An incomplete last line stands for a change that did
 * not happen. */
int nm_ledger_read(int directory, const char *boot_id, struct nm_ledger *ret);

#endif
