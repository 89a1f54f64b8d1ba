/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "top.h"

static size_t column_named(const struct nm_column *columns, size_t count, const char *key)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(columns[i].key, key) == 0)
			return i;
	return 0;
}

/* Sorts by size and, for threads, by CPU use, in descending order. */
void nm_top_view_init(struct nm_top_view *view)
{
	*view = (struct nm_top_view){.asks = true};
	view->sort[NM_TOP_PROCESSES] =
		column_named(nm_process_columns, NM_PROCESS_COLUMNS, "rss_bytes");
	view->sort[NM_TOP_THREADS] =
		column_named(nm_thread_columns, NM_THREAD_COLUMNS, "run_share");
	view->sort[NM_TOP_PAGES] = column_named(nm_region_columns, NM_REGION_COLUMNS, "bytes");
}

/* ---- the cursor ---- */

static json_int_t id_of(const struct nm_top_view *view, const json_t *row)
{
	if (view->page == NM_TOP_PAGES)
		return json_integer_value(json_object_get(row, "start"));
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

/* ---- pages ---- */

static void turn_to(struct nm_top_view *view, enum nm_top_page page, uint32_t pid)
{
	view->page = page;
	view->pid = pid;
	view->cursor = view->first = 0;
	view->selected = 0;
	view->filter[0] = '\0';
	view->help = false;
	view->asks = true;
}

static uint32_t pid_under_cursor(const struct nm_top_view *view, const json_t *rows)
{
	const json_t *row = json_array_get(rows, view->cursor);
	if (view->page == NM_TOP_PAGES)
		return view->pid;
	return (uint32_t)json_integer_value(json_object_get(row, "pid"));
}

static void open_process(struct nm_top_view *view, enum nm_top_page page, const json_t *rows)
{
	uint32_t pid = pid_under_cursor(view, rows);
	if (pid != 0)
		turn_to(view, page, pid);
}

/* Goes back one step: from the help, the filter, the page. */
static void go_back(struct nm_top_view *view)
{
	if (view->help)
		view->help = false;
	else if (view->filter[0] != '\0')
		view->filter[0] = '\0';
	else if (view->page != NM_TOP_PROCESSES)
		turn_to(view, NM_TOP_PROCESSES, 0);
}

/* ---- order and filter ---- */

static void sort_by_next(struct nm_top_view *view, bool forward)
{
	size_t count;
	(void)nm_top_columns(view, &count);
	size_t *sort = &view->sort[view->page];
	*sort = (*sort + (forward ? 1 : count - 1)) % count;
	view->reverse[view->page] = false;
}

static void erase_character(char *text)
{
	size_t length = strlen(text);
	while (length > 0 && ((unsigned char)text[length - 1] & 0xc0) == 0x80)
		length--;
	text[length > 0 ? length - 1 : 0] = '\0';
}

static void type(struct nm_top_view *view, int key)
{
	size_t length = strlen(view->filter);
	if (key == NM_TOP_KEY_ENTER) {
		view->typing = false;
	} else if (key == NM_TOP_KEY_ESCAPE) {
		view->typing = false;
		view->filter[0] = '\0';
	} else if (key == NM_TOP_KEY_ERASE) {
		erase_character(view->filter);
	} else if (key >= 0x20 && key <= 0xff && key != 0x7f && length + 1 < sizeof(view->filter)) {
		view->filter[length] = (char)key;
		view->filter[length + 1] = '\0';
	}
}

/* ---- keys ---- */

static bool moves(struct nm_top_view *view, int key, const json_t *rows)
{
	size_t page = view->height > 1 ? view->height - 1 : 1;
	switch (key) {
	case NM_TOP_KEY_UP:
	case 'k':
		move_cursor(view, rows, false, 1);
		return true;
	case NM_TOP_KEY_DOWN:
	case 'j':
		move_cursor(view, rows, true, 1);
		return true;
	case NM_TOP_KEY_PAGE_UP:
		move_cursor(view, rows, false, page);
		return true;
	case NM_TOP_KEY_PAGE_DOWN:
		move_cursor(view, rows, true, page);
		return true;
	case NM_TOP_KEY_HOME:
		select_row(view, rows, 0);
		return true;
	case NM_TOP_KEY_END:
		select_row(view, rows, json_array_size(rows));
		return true;
	default:
		return false;
	}
}

static bool turns(struct nm_top_view *view, int key, const json_t *rows)
{
	switch (key) {
	case 'p':
		turn_to(view, NM_TOP_PROCESSES, 0);
		return true;
	case 't':
		turn_to(view, NM_TOP_THREADS, 0);
		return true;
	case NM_TOP_KEY_ENTER:
		open_process(view, NM_TOP_THREADS, rows);
		return true;
	case 'm':
		open_process(view, NM_TOP_PAGES, rows);
		return true;
	case NM_TOP_KEY_ESCAPE:
	case NM_TOP_KEY_ERASE:
		go_back(view);
		return true;
	default:
		return false;
	}
}

void nm_top_press(struct nm_top_view *view, int key, const json_t *rows)
{
	if (view->typing)
		type(view, key);
	else if (key == 'q')
		view->quit = true;
	else if (key == 'h' || key == '?')
		view->help = !view->help;
	else if (key == ' ')
		view->frozen = !view->frozen;
	else if (key == '/')
		view->typing = true;
	else if (key == 's' || key == '>' || key == NM_TOP_KEY_RIGHT)
		sort_by_next(view, true);
	else if (key == '<' || key == NM_TOP_KEY_LEFT)
		sort_by_next(view, false);
	else if (key == 'r')
		view->reverse[view->page] = !view->reverse[view->page];
	else if (!moves(view, key, rows))
		(void)turns(view, key, rows);
}
