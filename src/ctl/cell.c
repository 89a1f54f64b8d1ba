/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cell.h"
#include "numa-migrd/base.h"

#define NONE "\xe2\x80\x93"  /* – */
#define ARROW "\xe2\x86\x92" /* → */

/* Writes three digits and a letter, with a factor of `step` between letters. */
static void write_scaled(char *out, double value, double step, const char *letters)
{
	size_t letter = 0;
	while (fabs(value) >= 999.5 && letters[letter + 1] != '\0') {
		value /= step;
		letter++;
	}
	if (letter == 0 || fabs(value) >= 999.5)
		(void)snprintf(out, NM_CELL_SIZE, "%.3g", value);
	else
		(void)snprintf(out, NM_CELL_SIZE, "%.*f", fabs(value) < 9.95 ? 1 : 0, value);
	if (letter > 0)
		(void)strncat(out, &letters[letter], 1);
}

static void write_age(char *out, json_int_t seconds)
{
	static const struct {
		json_int_t seconds;
		char letter;
	} units[] = {{86400, 'd'}, {3600, 'h'}, {60, 'm'}, {1, 's'}};
	size_t i = 0;
	while (units[i].seconds > 1 && seconds < 2 * units[i].seconds)
		i++;
	(void)snprintf(out, NM_CELL_SIZE, "%" JSON_INTEGER_FORMAT "%c", seconds / units[i].seconds,
		       units[i].letter);
}

static void write_arrow(char *out, const json_t *from, const json_t *to,
			const struct nm_style *style)
{
	json_int_t a = json_is_integer(from) ? json_integer_value(from) : -1;
	json_int_t b = json_is_integer(to) ? json_integer_value(to) : -1;
	size_t used = 0;
	if (a < 0 && b < 0)
		return;
	if (a >= 0)
		used = (size_t)snprintf(out, NM_CELL_SIZE, "%" JSON_INTEGER_FORMAT, a);
	if (b >= 0 && a != b)
		(void)snprintf(out + used, NM_CELL_SIZE - used, "%s%" JSON_INTEGER_FORMAT,
			       style->utf8 ? ARROW : ">", b);
}

static void write_list(char *out, const struct nm_field *column, const json_t *array,
		       const struct nm_style *style)
{
	const struct nm_field item = {.name = "value", .kind = column->kind};
	size_t used = 0, index;
	json_t *value;
	json_array_foreach(array, index, value)
	{
		char text[NM_CELL_SIZE];
		nm_auto(json_decrefp) json_t *row = json_pack("{sO}", "value", value);
		(void)nm_cell(&item, row, style, text);
		if (used + strlen(text) + 2 > NM_CELL_SIZE)
			return;
		used += (size_t)snprintf(out + used, NM_CELL_SIZE - used, "%s%s",
					 index > 0 ? " " : "", text);
	}
}

static void write_any(char *out, const struct nm_field *column, const json_t *value,
		      const struct nm_style *style)
{
	if (json_is_string(value))
		(void)nm_text_fit(out, NM_CELL_SIZE, json_string_value(value), NM_TEXT_ANY_WIDTH,
				  style);
	else if (json_is_integer(value))
		(void)snprintf(out, NM_CELL_SIZE, "%" JSON_INTEGER_FORMAT,
			       json_integer_value(value));
	else if (json_is_real(value))
		(void)snprintf(out, NM_CELL_SIZE, "%.6g", json_real_value(value));
	else if (json_is_boolean(value))
		(void)snprintf(out, NM_CELL_SIZE, "%s", json_is_true(value) ? "yes" : "no");
	else if (json_is_array(value))
		write_list(out, column, value, style);
}

static enum nm_cell_kind kind_in_row(const struct nm_field *column, const json_t *row)
{
	if (column->kind != NM_CELL_MEASURE)
		return column->kind;
	const char *figure = json_string_value(json_object_get(row, "figure"));
	return figure && strstr(figure, "share") ? NM_CELL_SHARE : NM_CELL_FIGURE;
}

static void write_value(char *out, const struct nm_field *column, const json_t *row,
			const struct nm_style *style)
{
	const json_t *value = json_object_get(row, column->name);
	enum nm_cell_kind kind = kind_in_row(column, row);
	bool number = kind == NM_CELL_SHARE || kind == NM_CELL_BYTES || kind == NM_CELL_FIGURE;
	if (number && json_is_number(value)) {
		double figure = json_number_value(value);
		if (kind == NM_CELL_SHARE)
			(void)snprintf(out, NM_CELL_SIZE, "%.0f%%", figure * 100);
		else if (kind == NM_CELL_BYTES)
			write_scaled(out, figure, 1024, "BKMGTPE");
		else
			write_scaled(out, figure, 1000, " kMGTPE");
	} else if (kind == NM_CELL_AGE && json_is_integer(value)) {
		write_age(out, json_integer_value(value));
	} else if (kind == NM_CELL_TIME && json_is_integer(value)) {
		struct tm local;
		time_t seconds = (time_t)(json_integer_value(value) / 1000000);
		if (localtime_r(&seconds, &local))
			out[strftime(out, NM_CELL_SIZE, "%b %d %T", &local)] = '\0';
	} else {
		write_any(out, column, value, style);
	}
}

size_t nm_cell(const struct nm_field *column, const json_t *row, const struct nm_style *style,
	       char out[NM_CELL_SIZE])
{
	out[0] = '\0';
	if (column->kind == NM_CELL_ARROW)
		write_arrow(out, json_object_get(row, column->name),
			    json_object_get(row, column->second), style);
	else
		write_value(out, column, row, style);
	if (out[0] == '\0')
		(void)snprintf(out, NM_CELL_SIZE, "%s", style->utf8 ? NONE : "-");
	return nm_text_width(out);
}

const char *nm_column_head(const struct nm_field *column, const struct nm_style *style)
{
	return column->plain_head && !style->utf8 ? column->plain_head : column->head;
}

const char *nm_cell_color(const struct nm_field *column, const json_t *row)
{
	const char *text = json_string_value(json_object_get(row, column->name));
	if (column->kind != NM_CELL_VERDICT || !text)
		return "";
	if (strcmp(text, "improved") == 0)
		return "\033[32m";
	if (strcmp(text, "rolled-back") == 0 || strcmp(text, "failed") == 0)
		return "\033[31m";
	if (strcmp(text, "worse") == 0 || strcmp(text, "cancelled") == 0)
		return "\033[33m";
	return "";
}
