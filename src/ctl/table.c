/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cell.h"
#include "ctl.h"

#define GAP 2

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
