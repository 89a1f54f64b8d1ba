/* SPDX-License-Identifier: MIT */
/* Values of the bus as people read them, one cell of a table at a time. Pure. */
#ifndef NM_CTL_CELL_H
#define NM_CTL_CELL_H

#include <jansson.h>
#include <stdio.h>

#include "text.h"

enum nm_cell_kind {
	NM_CELL_ANY,	 /* by the type of the value, numbers as they are */
	NM_CELL_SHARE,	 /* 0 to 1, as per cent */
	NM_CELL_BYTES,	 /* in powers of 1024 */
	NM_CELL_FIGURE,	 /* three digits, thousands as k, M, G, T */
	NM_CELL_ADDRESS, /* hexadecimal */
	NM_CELL_TIME,	 /* microseconds since 1970, as local time */
	NM_CELL_ARROW,	 /* from key to second, negative ones left out */
	NM_CELL_MEASURE, /* a share where the row's "figure" says so, else a figure */
	NM_CELL_VERDICT, /* text in a colour that says what it means */
};

struct nm_column {
	const char *key;
	const char *second;
	const char *head;
	const char *plain_head; /* without UTF-8, where head has characters beyond ASCII */
	enum nm_cell_kind kind;
	bool left; /* aligned */
};

#define NM_CELL_SIZE 256

/* Writes one cell of a row; "–" where the row has no such value. Returns its width. */
size_t nm_cell(const struct nm_column *column, const json_t *row, const struct nm_style *style,
	       char out[NM_CELL_SIZE]);

/* The head of a column, as the locale can show it. */
const char *nm_column_head(const struct nm_column *column, const struct nm_style *style);

/* The sequence (console_codes(4)) that begins the colour of a cell, "" where it has none. */
const char *nm_cell_color(const struct nm_column *column, const json_t *row);

/* Prints rows below the columns' heads. */
void nm_table_print(FILE *out, const struct nm_style *style, const struct nm_column *columns,
		    size_t count, const json_t *rows);

/* Below an empty one of what numa-migrd sees: where to look further; only on a terminal. */
void nm_table_explain_empty(FILE *out, const json_t *rows);

#endif
