/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cell.h"
#include "ctl.h"

#define GAP 2
/* Of a table of limited width: */
#define NARROW_GAP 1
#define TEXT_COLUMNS 15 /* of a text cell, except the last */
#define LEAST_TEXT 6
#define FIGURE_COLUMNS 4 /* so that columns do not move when values change */

size_t nm_column_width(const struct nm_field *column, const struct nm_style *style,
		       const json_t *rows)
{
	char text[NM_CELL_SIZE];
	size_t width = nm_text_width(nm_column_head(column, style)), index;
	json_t *row;
	json_array_foreach(rows, index, row)
	{
		size_t found = nm_cell(column, row, style, text);
		width = found > width ? found : width;
	}
	return width;
}

/* A left-aligned cell at the end of the line is not padded. */
static void print_cell(FILE *out, const char *text, const char *color, size_t width, bool left,
		       bool last)
{
	size_t taken = nm_text_width(text);
	int room = taken < width ? (int)(width - taken) : 0;
	(void)fprintf(out, "%*s%s%s%s%*s", left ? 0 : room, "", color, text,
		      color[0] != '\0' ? NM_USUAL : "", last ? 0 : (left ? room : 0) + GAP, "");
}

static void print_row(FILE *out, const struct nm_style *style, const struct nm_table *table,
		      const size_t *widths, const json_t *row)
{
	char text[NM_CELL_SIZE];
	const size_t count = nm_table_columns(table);
	for (size_t i = 0; i < count; i++) {
		const struct nm_field *column = &table->fields[i];
		const char *color = row ? nm_cell_color(column, row) : NM_BOLD;
		if (row)
			(void)nm_cell(column, row, style, text);
		print_cell(out, row ? text : nm_column_head(column, style),
			   style->color ? color : "", widths[i], column->left, i + 1 == count);
	}
	(void)fputc('\n', out);
}

void nm_table_print(FILE *out, const struct nm_style *style, const struct nm_table *table,
		    const json_t *rows)
{
	const size_t count = nm_table_columns(table);
	nm_autofree size_t *widths = calloc(count, sizeof(*widths));
	size_t index;
	json_t *row;
	if (!widths)
		return;
	for (size_t i = 0; i < count; i++)
		widths[i] = nm_column_width(&table->fields[i], style, rows);
	print_row(out, style, table, widths, NULL);
	json_array_foreach(rows, index, row)
	{
		print_row(out, style, table, widths, row);
	}
}

/* ---- limited width ---- */

void nm_layout_columns(struct nm_layout *layout, const struct nm_table *table, const json_t *rows,
		       size_t room, const struct nm_style *style)
{
	const struct nm_field *columns = table->fields;
	size_t used = 0, count = nm_table_columns(table);
	*layout = (struct nm_layout){.columns = columns};
	for (size_t i = 0; i < count && i < NM_LAYOUT_MOST_COLUMNS; i++) {
		size_t gap = i > 0 ? NARROW_GAP : 0;
		size_t width = nm_column_width(&columns[i], style, rows);
		size_t left = room > used + gap ? room - used - gap : 0;
		if (columns[i].kind != NM_CELL_ANY && width < FIGURE_COLUMNS)
			width = FIGURE_COLUMNS;
		if (columns[i].left && i + 1 < count && width > TEXT_COLUMNS)
			width = TEXT_COLUMNS;
		if (columns[i].left && width > left && left >= LEAST_TEXT)
			width = left;
		if (width > left)
			return;
		layout->widths[layout->count++] = width;
		used += width + gap;
	}
}

void nm_layout_row(const struct nm_layout *layout, const json_t *row, const struct nm_style *style,
		   char *out, size_t size)
{
	size_t used = 0;
	out[0] = '\0';
	for (size_t i = 0; i < layout->count; i++) {
		const struct nm_field *column = &layout->columns[i];
		char cell[NM_CELL_SIZE], text[NM_CELL_SIZE];
		if (row)
			(void)nm_cell(column, row, style, cell);
		else
			(void)snprintf(cell, sizeof(cell), "%s", nm_column_head(column, style));
		size_t taken = nm_text_fit(text, sizeof(text), cell, layout->widths[i], style);
		int room = (int)(layout->widths[i] - taken);
		int length =
			snprintf(out + used, size - used, "%*s%*s%s%*s", i > 0 ? NARROW_GAP : 0, "",
				 column->left ? 0 : room, "", text, column->left ? room : 0, "");
		used += (size_t)length;
		if (used >= size)
			return;
	}
}

void nm_table_print_within(FILE *out, const struct nm_style *style, const struct nm_table *table,
			   const json_t *rows, size_t width)
{
	struct nm_layout layout;
	char text[1024];
	nm_layout_columns(&layout, table, rows, width, style);
	for (size_t i = 0; i <= json_array_size(rows); i++) {
		nm_layout_row(&layout, i > 0 ? json_array_get(rows, i - 1) : NULL, style, text,
			      sizeof(text));
		size_t length = strlen(text);
		while (length > 0 && text[length - 1] == ' ')
			length--;
		(void)fprintf(out, "%.*s\n", (int)length, text);
	}
}

/* Programs that read the table get only its head. */
void nm_table_explain_empty(FILE *out, const json_t *rows)
{
	if (json_array_size(rows) == 0 && isatty(STDOUT_FILENO))
		(void)fputs("\nnone: see numa-migrctl status (paused?) and numa-migrctl doctor\n",
			    out);
}

void nm_ctl_print_lines(FILE *out, const struct nm_style *style, const json_t *object)
{
	const char *name;
	json_t *value;
	size_t width = 0;
	json_object_foreach((json_t *)object, name, value)
	{
		size_t length = nm_text_width(name);
		width = length > width ? length : width;
	}
	json_object_foreach((json_t *)object, name, value)
	{
		const struct nm_field column = {.name = name};
		char text[NM_CELL_SIZE], title[NM_CELL_SIZE];
		if (json_is_object(value))
			continue;
		(void)nm_cell(&column, object, style, text);
		size_t taken = nm_text_fit(title, sizeof(title), name, NM_TEXT_ANY_WIDTH, style);
		(void)fprintf(out, "%*s%s: %s\n", taken < width ? (int)(width - taken) : 0, "",
			      title, text);
	}
}
