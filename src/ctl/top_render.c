/* SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "ctl.h"
#include "top.h"

#define BAR_COLUMNS 10

static const char *const help_lines[] = {
	"  p            processes               t        threads of all processes",
	"  Enter        threads of a process    Esc      back",
	"  up down      choose a line (j k, PgUp, PgDn, Home, End)",
	"  left right   sort by another column  q        quit",
	"",
	"  LOCAL  share of memory accesses to the node of the thread",
	"  LAT    cycles of a memory access     INT      operations per byte from memory",
	"  PREF   node whose memory it accesses most",
	"  P\xcc\x82      performance divided by the mean of the process",
	"  DEC    last decision: numa-migrctl explain DEC",
};

void nm_top_frame_init(struct nm_top_frame *frame, size_t rows, size_t columns)
{
	*frame = (struct nm_top_frame){.rows = rows, .columns = columns};
	frame->lines = nm_must(calloc(rows > 0 ? rows : 1, sizeof(*frame->lines)));
}

void nm_top_frame_clear(struct nm_top_frame *frame)
{
	free(frame->lines);
	*frame = (struct nm_top_frame){0};
}

struct painter {
	struct nm_top_frame *frame;
	const struct nm_style *style;
	size_t used; /* number of lines */
	size_t room; /* number of lines above the foot */
};

__attribute__((format(printf, 3, 4))) static void
put(struct painter *painter, enum nm_top_look look, const char *format, ...)
{
	char text[1024];
	va_list arguments;
	if (painter->used >= painter->room)
		return;
	struct nm_top_line *line = &painter->frame->lines[painter->used++];
	va_start(arguments, format);
	(void)vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	(void)nm_text_fit(line->text, sizeof(line->text), text, painter->frame->columns,
			  painter->style);
	line->look = look;
}

static void put_row(struct painter *painter, enum nm_top_look look, const struct nm_layout *layout,
		    const json_t *row)
{
	char text[1024];
	nm_layout_row(layout, row, painter->style, text, sizeof(text));
	put(painter, look, "%s", text);
}

static const char *text_or_dash(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));
	return text ? text : "-";
}

static json_int_t number_of(const json_t *object, const char *name)
{
	return json_integer_value(json_object_get(object, name));
}

static const char *state_of(const json_t *status)
{
	if (json_is_true(json_object_get(status, "paused")))
		return "paused";
	if (json_is_true(json_object_get(status, "idle")))
		return "idle (one node has CPUs)";
	if (json_is_true(json_object_get(status, "blind")))
		return "no access samples";
	return json_is_true(json_object_get(status, "dry_run")) ? "dry run" : "running";
}

/* Nothing without a trial, so that a line more of the list is seen. */
static void put_trial(struct painter *painter, const json_t *trial)
{
	char state[NM_CELL_SIZE];
	if (!nm_ctl_trial_has_run(trial))
		return;
	nm_ctl_trial_state(trial, state, sizeof(state));
	put(painter, NM_TOP_PLAIN, "Trial: %s", state);
}

static void put_title(struct painter *painter, const struct nm_top_model *model)
{
	static const struct nm_field local = {.name = "local_share", .kind = NM_CELL_SHARE};
	const json_t *status = json_object_get(model->document, "status");
	char share[NM_CELL_SIZE];
	(void)nm_cell(&local, status, painter->style, share);
	put(painter, NM_TOP_TITLE, "numa-migrd %s: %s, policy %s", text_or_dash(status, "version"),
	    state_of(status), text_or_dash(status, "policy"));
	put(painter, NM_TOP_PLAIN,
	    "%" JSON_INTEGER_FORMAT " processes, %" JSON_INTEGER_FORMAT
	    " threads, %" JSON_INTEGER_FORMAT " assigned; local %s; %" JSON_INTEGER_FORMAT
	    " decisions, %" JSON_INTEGER_FORMAT " improved, %" JSON_INTEGER_FORMAT
	    " neutral, %" JSON_INTEGER_FORMAT " worse, %" JSON_INTEGER_FORMAT " rolled back",
	    number_of(status, "processes_managed"), number_of(status, "threads_managed"),
	    number_of(status, "threads_assigned"), share, number_of(status, "decisions"),
	    number_of(status, "verdicts_improved"), number_of(status, "verdicts_neutral"),
	    number_of(status, "verdicts_worse"), number_of(status, "verdicts_rolled_back"));
	put_trial(painter, json_object_get(model->document, "trial"));
}

/* Draws the load of a node. */
static void write_bar(const json_t *node, char out[BAR_COLUMNS + 3])
{
	double load = json_number_value(json_object_get(node, "load"));
	size_t filled = load > 0 ? (size_t)(load * BAR_COLUMNS + 0.5) : 0;
	out[0] = '[';
	memset(out + 1, ' ', BAR_COLUMNS);
	memset(out + 1, '|', filled > BAR_COLUMNS ? BAR_COLUMNS : filled);
	out[BAR_COLUMNS + 1] = ']';
	out[BAR_COLUMNS + 2] = '\0';
}

/* Uses at most 1/3 of the screen. */
static void put_nodes(struct painter *painter, const json_t *nodes)
{
	size_t count = json_array_size(nodes), most = painter->room / 3, indent = BAR_COLUMNS + 3;
	size_t columns = painter->frame->columns;
	struct nm_layout layout;
	char text[1024], bar[BAR_COLUMNS + 3];
	nm_layout_columns(&layout, &nm_node_table, nodes, columns > indent ? columns - indent : 0,
			  painter->style);
	nm_layout_row(&layout, NULL, painter->style, text, sizeof(text));
	put(painter, NM_TOP_HEAD, "%*s%s", (int)indent, "", text);
	for (size_t i = 0; i < count && i < most; i++) {
		const json_t *node = json_array_get(nodes, i);
		write_bar(node, bar);
		nm_layout_row(&layout, node, painter->style, text, sizeof(text));
		put(painter, NM_TOP_PLAIN, "%s %s", bar, text);
	}
	if (count > most)
		put(painter, NM_TOP_PLAIN, "and %zu nodes more", count - most);
}

static void put_page(struct painter *painter, const struct nm_top_model *model,
		     struct nm_top_view *view, const json_t *rows)
{
	static const char *const names[NM_TOP_PAGE_MAX] = {
		[NM_TOP_PROCESSES] = "processes",
		[NM_TOP_THREADS] = "threads",
	};
	const struct nm_field *sorted = &nm_top_table(view)->fields[view->sort[view->page]];
	size_t total = json_array_size(rows);
	struct nm_layout layout;
	char of[32] = "";
	put_nodes(painter, json_object_get(model->document, nm_node_table.name));
	if (view->pid != 0)
		(void)snprintf(of, sizeof(of), " of process %u", view->pid);
	put(painter, NM_TOP_TITLE, "%s%s: %zu, by %s", names[view->page], of, total,
	    nm_column_head(sorted, painter->style));
	nm_layout_columns(&layout, nm_top_table(view), rows, painter->frame->columns,
			  painter->style);
	put_row(painter, NM_TOP_HEAD, &layout, NULL);
	nm_top_settle(view, rows, painter->room - painter->used);
	for (size_t i = view->first; i < total && painter->used < painter->room; i++)
		put_row(painter, i == view->cursor ? NM_TOP_SELECTED : NM_TOP_PLAIN, &layout,
			json_array_get(rows, i));
}

static void put_foot(struct painter *painter, const struct nm_top_model *model)
{
	painter->used = painter->frame->rows - 1;
	painter->room = painter->frame->rows;
	if (model->error[0] != '\0')
		put(painter, NM_TOP_WARNING, "%s", model->error);
	else
		put(painter, NM_TOP_FOOT,
		    "q quit  p processes  t threads  Enter open  left right sort  ? help");
}

void nm_top_render(struct nm_top_frame *frame, const struct nm_top_model *model,
		   struct nm_top_view *view, const struct nm_style *style)
{
	nm_auto(json_decrefp) json_t *rows = nm_top_rows(model, view);
	for (size_t i = 0; i < frame->rows; i++)
		frame->lines[i] = (struct nm_top_line){0};
	if (frame->rows < 2)
		return;
	struct painter painter = {.frame = frame, .style = style, .room = frame->rows - 1};
	put_title(&painter, model);
	if (!view->help)
		put_page(&painter, model, view, rows);
	else
		for (size_t i = 0; i < NM_ARRAY_SIZE(help_lines); i++)
			put(&painter, NM_TOP_PLAIN, "%s", help_lines[i]);
	put_foot(&painter, model);
}
