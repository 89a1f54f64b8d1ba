/* SPDX-License-Identifier: MIT */
/* Replaces the journal: a replay writes no entries. */
#include "numa-migrd/journal.h"

struct nm_journal {
	uint64_t entries;
};

int nm_journal_new(struct nm_journal **ret)
{
	struct nm_journal *journal = calloc(1, sizeof(*journal));
	if (!journal)
		return -ENOMEM;
	*ret = journal;
	return 0;
}

void nm_journal_free(struct nm_journal *journal)
{
	free(journal);
}

void nm_journal_configure(struct nm_journal *journal, enum nm_journal_level level,
			  uint64_t rate_per_s)
{
	(void)journal, (void)level, (void)rate_per_s;
}

void nm_journal_emit(struct nm_journal *journal, const struct nm_entry *entry, uint64_t now_ns)
{
	(void)entry, (void)now_ns;
	journal->entries++;
}

uint64_t nm_journal_suppressed(struct nm_journal *journal)
{
	(void)journal;
	return 0;
}
