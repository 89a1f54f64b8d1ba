/* SPDX-License-Identifier: MIT */
/* Replaces the journal: prints each entry that its level permits, with its fields sorted, on
 * standard output. */
#include <stdio.h>
#include <string.h>

#include "numa-migrd/base.h"
#include "report/journal.h"

struct nm_journal {
	enum nm_journal_level level;
};

void nm_journal_new(struct nm_journal **ret)
{
	*ret = nm_must(calloc(1, sizeof(**ret)));
}

void nm_journal_free(struct nm_journal *journal)
{
	free(journal);
}

void nm_journal_configure(struct nm_journal *journal, enum nm_journal_level level)
{
	journal->level = level;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

void nm_journal_emit(struct nm_journal *journal, const struct nm_entry *entry, uint64_t now_ns)
{
	const char *fields[NM_ENTRY_FIELDS];
	if (journal->level == NM_JOURNAL_ERROR && entry->priority > LOG_ERR)
		return;
	for (unsigned i = 0; i < entry->count; i++)
		fields[i] = entry->fields[i];
	qsort(fields, entry->count, sizeof(*fields), by_text);
	(void)now_ns; /* of the real clock */
	printf("entry %d %s\n", entry->priority, entry->text);
	for (unsigned i = 0; i < entry->count; i++)
		printf("  %s\n", fields[i]);
}

uint64_t nm_journal_suppressed(struct nm_journal *journal)
{
	(void)journal;
	return 0;
}
