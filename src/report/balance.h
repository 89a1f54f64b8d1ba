/* SPDX-License-Identifier: MIT */
/* Text and fields of moves that balance nodes, and of their verdicts. */
#ifndef NM_JOURNAL_BALANCE_H
#define NM_JOURNAL_BALANCE_H

#include "numa-migrd/journal.h"

void nm_say_balance(struct nm_entry *entry, const struct nm_decision *decision);
void nm_balance_fields(struct nm_entry *entry, const struct nm_decision *decision);
void nm_say_balance_verdict(struct nm_entry *entry, const struct nm_verdict *verdict);
void nm_balance_verdict_fields(struct nm_entry *entry, const struct nm_verdict *verdict);

#endif
