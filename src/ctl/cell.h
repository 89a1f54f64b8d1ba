/* SPDX-License-Identifier: MIT */
/* Formats values of the bus for display, one table cell at a time. Pure. */
#ifndef NM_CTL_CELL_H
#define NM_CTL_CELL_H

#include <jansson.h>
#include <stdio.h>

#include "text.h"

enum nm_cell_kind {
	NM_CELL_ANY,	 /* by the type of the value, without scaling */
	NM_CELL_SHARE,	 /* 0 to 1, as a percentage */
	NM_CELL_BYTES,	 /* with powers of 1024 */
	NM_CELL_FIGURE,	 /* three digits, with k, M, G, T */
	NM_CELL_ADDRESS, /* hexadecimal */
	NM_CELL_TIME,	 /* microseconds since 1970, as local time */
	NM_CELL_ARROW,	 /* from `key` to `second`; negative ones are omitted */
	NM_CELL_MEASURE, /* a share if the row's "figure" requires it, otherwise as
			  * NM_CELL_FIGURE */
	NM_CELL_VERDICT, /* text in a color for its meaning */
};

struct nm_column {
	const char *key;
	const char *second;
	const char *head;
	const char *plain_head; /* used without UTF-8, if `head` has non-ASCII characters */
	enum nm_cell_kind kind;
	bool left; /* left-aligned */
};

#define NM_CELL_SIZE 256

/* Writes one cell of a row; "–" if the row has no such value. Returns its width. */
size_t nm_cell(const struct nm_column *column, const json_t *row, const struct nm_style *style,
	       char out[NM_CELL_SIZE]);

/* Returns the head of a column that the locale can display. */
const char *nm_column_head(const struct nm_column *column, const struct nm_style *style);

/* Returns the maximum width of the cells of a column, including its head. */
size_t nm_column_width(const struct nm_column *column, const struct nm_style *style,
		       const json_t *rows);

/* Returns the sequence (console_codes(4)) that begins the color of a cell; "" for no color. */
const char *nm_cell_color(const struct nm_column *column, const json_t *row);

/* Prints the heads of the columns, and the rows below. */
void nm_table_print(FILE *out, const struct nm_style *style, const struct nm_column *columns,
		    size_t count, const json_t *rows);

/* Prints a hint below an empty table, only on a terminal. */
void nm_table_explain_empty(FILE *out, const json_t *rows);

/* ---- columns of the lists of the bus, in lists.c ---- */

#define NM_PROCESS_COLUMNS 19
#define NM_THREAD_COLUMNS 17
#define NM_REGION_COLUMNS 7
#define NM_DECISION_COLUMNS 11

extern const struct nm_column nm_process_columns[NM_PROCESS_COLUMNS];
extern const struct nm_column nm_thread_columns[NM_THREAD_COLUMNS];
extern const struct nm_column nm_region_columns[NM_REGION_COLUMNS];
extern const struct nm_column nm_decision_columns[NM_DECISION_COLUMNS];

#endif
