/* SPDX-License-Identifier: MIT */
/*
 * Functions that build the text and the fields of an entry; used only by the files of this folder.
 */
#ifndef NM_REPORT_ENTRY_H
#define NM_REPORT_ENTRY_H

#include "report/journal.h"

#define NM_DASH "\xe2\x80\x93"	/* "–": a value that is not available */
#define NM_ARROW "\xe2\x86\x92" /* "→" between before and after */
#define NM_WORD_BYTES 24
#define NM_NAME_BYTES 48

/* Appends to the text of the entry; text that does not fit is cut at a whole character and ends in
 * "…". */
void nm_entry_append(struct nm_entry *entry, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Ends the description of the event: nm_entry_detail() appends reasons from here on. */
void nm_entry_begin_reasons(struct nm_entry *entry);

/* Appends a detail after ": " (the first) or "; ". */
void nm_entry_detail(struct nm_entry *entry, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Appends the subject of decisions and verdicts: "lu[4711]"; for a thread, "perf[1234/1240]" (tid
 * above 0). */
void nm_append_subject(struct nm_entry *entry, const char *comm, uint32_t pid, uint32_t tid);

/* Appends "12 MiB", "512 KiB". */
void nm_append_size(struct nm_entry *entry, uint64_t bytes);

/* Returns "+31 %" for a relative change of 0.31, or "–" for NaN. */
const char *nm_change_text(double change, char out[static NM_WORD_BYTES]);

/* Returns "98 %", or "–" for NaN, in `out`. */
const char *nm_percent_text(double share, char out[static NM_WORD_BYTES]);

/* Returns "1.53e+09", or "–" for NaN. */
const char *nm_number_text(double figure, char out[static NM_WORD_BYTES]);

/* Returns "node 2" with the kernel's number, or "an unknown node". */
const char *nm_node_text(const struct nm_entry_context *context, int node,
			 char out[static NM_WORD_BYTES]);

/* Add fields that are omitted if there is no value: a node or CPU below 0, a share that is NaN. */
void nm_field_node(struct nm_entry *entry, const struct nm_entry_context *context, const char *name,
		   int node);
void nm_field_cpu(struct nm_entry *entry, const char *name, int cpu);
void nm_field_permille(struct nm_entry *entry, const char *name, double share);
void nm_field_real(struct nm_entry *entry, const char *name, double figure);
void nm_field_errno(struct nm_entry *entry, int error);

/* Adds process, thread (tid above 0) and name. */
void nm_field_subject(struct nm_entry *entry, const char *comm, uint32_t pid, uint32_t tid);

/* decision_fields.c: adds the fields of a decision; receipt: as for nm_entry_decision(). */
void nm_decision_fields(struct nm_entry *entry, const struct nm_entry_context *context,
			const struct nm_decision *decision, const struct nm_receipt *receipt);

/* ---- parts of a decision that its verdict repeats ---- */

void nm_pages_fields(struct nm_entry *entry, const struct nm_pages_reason *pages);
void nm_prediction_fields(struct nm_entry *entry, const struct nm_balance_reason *reason);
/* Returns the predicted benefit: a lower cost is better, but a higher benefit is. */
double nm_balance_benefit(const struct nm_balance_reason *reason);

/* Returns the description of a negative errno, never NULL. */
const char *nm_error_text(int error);

#endif
