/* SPDX-License-Identifier: MIT */
/* How an entry's text and fields are put together; shared by the files of this folder alone. */
#ifndef NM_JOURNAL_SAY_H
#define NM_JOURNAL_SAY_H

#include "numa-migrd/journal.h"

#define NM_DASH "\xe2\x80\x93" /* "–": a figure that is unavailable */
#define NM_WORD_BYTES 24
#define NM_NAME_BYTES 48

/* Appends to the entry's text; what does not fit is cut at a whole character and ends in "…". */
void nm_entry_say(struct nm_entry *entry, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* "12 MiB", "512 KiB". */
void nm_say_size(struct nm_entry *entry, uint64_t bytes);

/* "98 %", or "–" for NaN, in `out`. */
const char *nm_say_percent(double share, char out[static NM_WORD_BYTES]);

/* "1.53e+09", or "–" for NaN. */
const char *nm_say_figure(double figure, char out[static NM_WORD_BYTES]);

/* "node 2" by the kernel's number, or "an unknown node". */
const char *nm_say_node(const struct nm_entry_context *context, int node,
			char out[static NM_WORD_BYTES]);

/* Fields that are left out where there is no value: a node or CPU below 0, a share that is NaN. */
void nm_field_node(struct nm_entry *entry, const struct nm_entry_context *context, const char *name,
		   int node);
void nm_field_cpu(struct nm_entry *entry, const char *name, int cpu);
void nm_field_permille(struct nm_entry *entry, const char *name, double share);
void nm_field_figure(struct nm_entry *entry, const char *name, double figure);
void nm_field_errno(struct nm_entry *entry, int error);

/* The name of a field of thread `index`: "TID" of the first, "TID_2" of the second (a swap). */
const char *nm_numbered(const char *name, unsigned index, char out[static NM_NAME_BYTES]);

/* "migrate", "swap", "rollback". */
const char *nm_decision_kind_name(enum nm_decision_kind kind);

/* "improved", "neutral", "rolled-back", "cancelled", "inconclusive". */
const char *nm_verdict_kind_name(enum nm_verdict_kind kind);

/* Why a thread is nudged: ", as Go counts its CPUs again while it runs"; nothing of NONE. */
void nm_say_runtime(struct nm_entry *entry, enum nm_runtime runtime);

/* The kernel's words for a negative errno, never NULL. */
const char *nm_say_error(int error);

#endif
