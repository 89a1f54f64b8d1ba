/* SPDX-License-Identifier: MIT */
/* What is told of a move that balances nodes, and of what came of it. */
#ifndef NM_JOURNAL_BALANCE_H
#define NM_JOURNAL_BALANCE_H

#include "numa-migrd/journal.h"

void nm_say_balance(struct nm_entry *entry, const struct nm_entry_context *context,
		    const struct nm_decision *decision);
void nm_balance_fields(struct nm_entry *entry, const struct nm_decision *decision);
void nm_say_balance_verdict(struct nm_entry *entry, const struct nm_verdict *verdict);
void nm_balance_verdict_fields(struct nm_entry *entry, const struct nm_verdict *verdict);

#endif
