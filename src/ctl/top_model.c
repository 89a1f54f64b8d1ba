/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "top.h"

void nm_top_model_clear(struct nm_top_model *model)
{
	json_decref(model->document);
	*model = (struct nm_top_model){0};
}

const struct nm_table *nm_top_table(const struct nm_top_view *view)
{
	return view->page == NM_TOP_THREADS ? &nm_thread_table : &nm_process_table;
}

/* Processes that are ignored, most of a machine's, are not shown. */
static bool belongs(const struct nm_top_view *view, const json_t *row)
{
	const char *state = json_string_value(json_object_get(row, "state"));
	if (view->page != NM_TOP_THREADS)
		return !state || strcmp(state, "ignored") != 0;
	return view->pid == 0 ||
	       json_integer_value(json_object_get(row, "pid")) == (json_int_t)view->pid;
}

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

json_t *nm_top_rows(const struct nm_top_model *model, const struct nm_top_view *view)
{
	const struct nm_table *table = nm_top_table(view);
	const json_t *all = json_object_get(model->document, table->name);
	const char *key = table->fields[view->sort[view->page]].name;
	nm_autofree struct ranked *ranked =
		nm_must(calloc(json_array_size(all) + 1, sizeof(*ranked)));
	json_t *rows = nm_must(json_array());
	size_t index, used = 0;
	json_t *row;
	json_array_foreach(all, index, row)
	{
		if (belongs(view, row))
			ranked[used++] = (struct ranked){row, index};
	}
	qsort_r(ranked, used, sizeof(*ranked), compare_rows, (void *)key);
	for (size_t i = 0; i < used; i++)
		nm_must_do(json_array_append(rows, ranked[i].row));
	return rows;
}
