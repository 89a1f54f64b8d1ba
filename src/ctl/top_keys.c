/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "top.h"

static size_t column_named(const struct nm_table *table, const char *name)
{
	for (size_t i = 0; i < nm_table_columns(table); i++)
		if (strcmp(table->fields[i].name, name) == 0)
			return i;
	return 0;
}

/* Sorts by size and, for threads, by CPU use, in descending order. */
void nm_top_view_init(struct nm_top_view *view)
{
	*view = (struct nm_top_view){0};
	view->sort[NM_TOP_PROCESSES] = column_named(&nm_process_table, "rss_bytes");
	view->sort[NM_TOP_THREADS] = column_named(&nm_thread_table, "run_share");
}

static json_int_t id_of(const struct nm_top_view *view, const json_t *row)
{
	const char *key = view->page == NM_TOP_THREADS ? "tid" : "pid";
	return json_integer_value(json_object_get(row, key));
}

static void select_row(struct nm_top_view *view, const json_t *rows, size_t row)
{
	size_t count = json_array_size(rows);
	view->cursor = count == 0 ? 0 : row >= count ? count - 1 : row;
	view->selected = id_of(view, json_array_get(rows, view->cursor));
}

/* Until the user moves the cursor, it stays on the first line. */
static void find_selected(struct nm_top_view *view, const json_t *rows)
{
	size_t index;
	json_t *row;
	if (view->cursor == 0 || view->selected == 0) {
		select_row(view, rows, view->cursor);
		return;
	}
	json_array_foreach(rows, index, row)
	{
		if (id_of(view, row) == view->selected) {
			view->cursor = index;
			return;
		}
	}
	select_row(view, rows, view->cursor);
}

void nm_top_settle(struct nm_top_view *view, const json_t *rows, size_t height)
{
	size_t count = json_array_size(rows);
	find_selected(view, rows);
	view->height = height;
	if (view->cursor < view->first)
		view->first = view->cursor;
	if (height > 0 && view->cursor >= view->first + height)
		view->first = view->cursor - height + 1;
	if (view->first + height > count)
		view->first = count > height ? count - height : 0;
}

static void move_cursor(struct nm_top_view *view, const json_t *rows, bool down, size_t by)
{
	if (down)
		select_row(view, rows, view->cursor + by);
	else
		select_row(view, rows, view->cursor > by ? view->cursor - by : 0);
}

static void turn_to(struct nm_top_view *view, enum nm_top_page page, uint32_t pid)
{
	view->page = page;
	view->pid = pid;
	view->cursor = view->first = 0;
	view->selected = 0;
	view->help = false;
}

static void open_process(struct nm_top_view *view, const json_t *rows)
{
	const json_t *row = json_array_get(rows, view->cursor);
	uint32_t pid = (uint32_t)json_integer_value(json_object_get(row, "pid"));
	if (pid != 0)
		turn_to(view, NM_TOP_THREADS, pid);
}

/* Goes back one step: from the help, or the page. */
static void go_back(struct nm_top_view *view)
{
	if (view->help)
		view->help = false;
	else if (view->page != NM_TOP_PROCESSES)
		turn_to(view, NM_TOP_PROCESSES, 0);
}

static void sort_by_next(struct nm_top_view *view, bool forward)
{
	size_t count = nm_table_columns(nm_top_table(view));
	size_t *sort = &view->sort[view->page];
	*sort = (*sort + (forward ? 1 : count - 1)) % count;
}

static void move_by_key(struct nm_top_view *view, int key, const json_t *rows)
{
	size_t page = view->height > 1 ? view->height - 1 : 1;
	if (key == NM_TOP_KEY_UP || key == 'k')
		move_cursor(view, rows, false, 1);
	else if (key == NM_TOP_KEY_DOWN || key == 'j')
		move_cursor(view, rows, true, 1);
	else if (key == NM_TOP_KEY_PAGE_UP)
		move_cursor(view, rows, false, page);
	else if (key == NM_TOP_KEY_PAGE_DOWN)
		move_cursor(view, rows, true, page);
	else if (key == NM_TOP_KEY_HOME)
		select_row(view, rows, 0);
	else if (key == NM_TOP_KEY_END)
		select_row(view, rows, json_array_size(rows));
}

void nm_top_press(struct nm_top_view *view, int key, const json_t *rows)
{
	if (key == 'q')
		view->quit = true;
	else if (key == 'h' || key == '?')
		view->help = !view->help;
	else if (key == NM_TOP_KEY_RIGHT)
		sort_by_next(view, true);
	else if (key == NM_TOP_KEY_LEFT)
		sort_by_next(view, false);
	else if (key == 'p')
		turn_to(view, NM_TOP_PROCESSES, 0);
	else if (key == 't')
		turn_to(view, NM_TOP_THREADS, 0);
	else if (key == NM_TOP_KEY_ENTER)
		open_process(view, rows);
	else if (key == NM_TOP_KEY_ESCAPE)
		go_back(view);
	else
		move_by_key(view, key, rows);
}
