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

json_t *nm_top_rows(const struct nm_top_model *model, const struct nm_top_view *view)
{
	const struct nm_table *table = nm_top_table(view);
	const json_t *all = json_object_get(model->document, table->name);
	nm_auto(json_decrefp) json_t *shown = nm_must(json_array());
	size_t index;
	json_t *row;
	json_array_foreach(all, index, row)
	{
		if (belongs(view, row))
			nm_must_do(json_array_append(shown, row));
	}
	return nm_rows_sorted(shown, table->fields[view->sort[view->page]].name);
}
