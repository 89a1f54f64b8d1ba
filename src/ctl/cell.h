/* SPDX-License-Identifier: MIT */
/* Formats values of the daemon for display, one table cell at a time. Pure. */
#ifndef NM_CTL_CELL_H
#define NM_CTL_CELL_H

#include <jansson.h>
#include <stdio.h>

#include "report/fields.h"
#include "text.h"

#define NM_CELL_SIZE 256

/* Writes one cell of a row; "–" if the row has no such value. Returns its width. */
size_t nm_cell(const struct nm_field *column, const json_t *row, const struct nm_style *style,
	       char out[NM_CELL_SIZE]);

/* Returns the head of a column that the locale can display. */
const char *nm_column_head(const struct nm_field *column, const struct nm_style *style);

/* Returns the maximum width of the cells of a column, including its head. */
size_t nm_column_width(const struct nm_field *column, const struct nm_style *style,
		       const json_t *rows);

/* Returns the sequence (console_codes(4)) that begins the color of a cell; "" for no color. */
const char *nm_cell_color(const struct nm_field *column, const json_t *row);

/* Prints the heads of the columns, and the rows below. */
void nm_table_print(FILE *out, const struct nm_style *style, const struct nm_table *table,
		    const json_t *rows);

/* ---- limited width ---- */

#define NM_LAYOUT_MOST_COLUMNS 24

struct nm_layout {
	const struct nm_field *columns;
	size_t count; /* number of columns that fit */
	size_t widths[NM_LAYOUT_MOST_COLUMNS];
};

/* Columns that do not fit are omitted from the right; before that, text is truncated. */
void nm_layout_columns(struct nm_layout *layout, const struct nm_table *table, const json_t *rows,
		       size_t room, const struct nm_style *style);
/* Writes a row, or the heads if it is NULL. */
void nm_layout_row(const struct nm_layout *layout, const json_t *row, const struct nm_style *style,
		   char *out, size_t size);
/* As nm_table_print(), with no line wider than `width` columns. */
void nm_table_print_within(FILE *out, const struct nm_style *style, const struct nm_table *table,
			   const json_t *rows, size_t width);

/* Returns the rows in the order of a value, numbers in descending and text in ascending order;
 * unknown ones come last. The caller releases them. */
json_t *nm_rows_sorted(const json_t *rows, const char *name);

/* Prints a hint below an empty table, only on a terminal. */
void nm_table_explain_empty(FILE *out, const json_t *rows);

#endif
