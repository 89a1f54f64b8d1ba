/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "cell.h"
#include "numa-migrd/base.h"

struct ranked {
	json_t *row;
	size_t index;
};

static double number_of(const json_t *value)
{
	return json_is_boolean(value) ? (double)json_is_true(value) : json_number_value(value);
}

/* Numbers in descending order, text in ascending order. */
static int compare_values(const json_t *a, const json_t *b)
{
	if (json_is_string(a) && json_is_string(b))
		return strcmp(json_string_value(a), json_string_value(b));
	double x = number_of(a), y = number_of(b);
	return (x < y) - (x > y);
}

/* Unknown values come last; equal ones keep their order. */
static int compare_rows(const void *left, const void *right, void *context)
{
	const struct ranked *a = left, *b = right;
	const json_t *x = json_object_get(a->row, context);
	const json_t *y = json_object_get(b->row, context);
	if (!x != !y)
		return x ? -1 : 1;
	int by_value = x && y ? compare_values(x, y) : 0;
	return by_value ? by_value : NM_COMPARE(a->index, b->index);
}

json_t *nm_rows_sorted(const json_t *rows, const char *name)
{
	nm_autofree struct ranked *ranked =
		nm_must(calloc(json_array_size(rows) + 1, sizeof(*ranked)));
	json_t *sorted = nm_must(json_array());
	size_t index;
	json_t *row;
	json_array_foreach(rows, index, row)
	{
		ranked[index] = (struct ranked){row, index};
	}
	qsort_r(ranked, json_array_size(rows), sizeof(*ranked), compare_rows, (void *)name);
	for (size_t i = 0; i < json_array_size(rows); i++)
		nm_must_do(json_array_append(sorted, ranked[i].row));
	return sorted;
}
