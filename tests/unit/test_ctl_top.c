/* SPDX-License-Identifier: MIT */
/* numa-migrctl top without a terminal: order, keys, and what a screen of any size shows. */
#define SET_UP make
#define TEAR_DOWN drop
#include "../support/test.h"

#include <locale.h>

#include "../../src/ctl/top.h"
#include "../support/script.h"

static const struct nm_style style = {.utf8 = true};
static struct nm_top_model model;
static struct nm_top_view view;

static void add(const char *list, json_t *row)
{
	(void)json_array_append_new(json_object_get(model.document, list), row);
}

static void add_process(int pid, const char *comm, double local_share)
{
	json_t *row = json_pack("{sisssssi}", "pid", pid, "comm", comm, "state", "managed",
				"rss_bytes", pid * 1000000);
	if (local_share >= 0)
		(void)json_object_set_new(row, "local_share", json_real(local_share));
	add("processes", row);
}

static void add_node(int number)
{
	add("nodes", json_pack("{sisssfsfsisIsI}", "node", number, "cpus", "0-3,128-131", "load",
			       0.5, "access_share", 0.25, "threads", 12, "memory_bytes",
			       (json_int_t)1 << 38, "memory_free_bytes", (json_int_t)1 << 33));
}

static int make(void **state)
{
	(void)state;
	model.document = json_pack("{s{sssssbsisisisf}s[]s[]s[]}", "status", "version", "0.1.0",
				   "policy", "imar2", "paused", 0, "processes_managed", 3,
				   "threads_managed", 40, "threads_assigned", 5, "local_share",
				   0.75, "nodes", "processes", "threads");
	for (int number = 0; number < 2; number++)
		add_node(number);
	add_process(10, "postgres", 0.9);
	add_process(20, "perf", 0.1);
	add_process(30, "java", -1);
	add_process(40, "perf", 0.5);
	add("processes", json_pack("{siss}", "pid", 50, "state", "ignored"));
	for (int tid = 1; tid <= 40; tid++)
		add("threads", json_pack("{sisisssisfsi}", "tid", tid, "pid", tid <= 30 ? 10 : 20,
					 "comm", "a worker of many", "node", 1, "run_share",
					 1.0 / tid, "last_decision", 17));
	nm_top_view_init(&view);
	return 0;
}

static int drop(void **state)
{
	(void)state;
	nm_top_model_clear(&model);
	model.error[0] = '\0';
	return 0;
}

/* ---- words ---- */

static int key_of(const char *word)
{
	static const char *const names[] = {"up",  "down",  "page_up", "page_down", "home",
					    "end", "enter", "escape",  "right",	    "left"};
	for (int i = 0; i < (int)(sizeof(names) / sizeof(names[0])); i++)
		if (strcmp(names[i], word) == 0)
			return NM_TOP_KEY_UP + i;
	return word[0];
}

static void press(int key)
{
	json_t *rows = nm_top_rows(&model, &view);
	nm_top_settle(&view, rows, 10);
	nm_top_press(&view, key, rows);
	json_decref(rows);
}

/* press down j: keys by their names, and characters */
WORD(press)
{
	for (unsigned i = 0; i < step->count; i++)
		press(key_of(step->word[i]));
}

/* sort local_share: by this column */
WORD(sort)
{
	while (strcmp(nm_top_table(&view)->fields[view.sort[view.page]].name, step->word[0]) != 0)
		press(NM_TOP_KEY_RIGHT);
}

/* settle 30: on a screen with 30 rows */
WORD(settle)
{
	json_t *rows = nm_top_rows(&model, &view);
	nm_top_settle(&view, rows, (size_t)N(0));
	json_decref(rows);
}

/* The ids of the processes. */
static const char *order(void)
{
	static char text[64];
	json_t *rows = nm_top_rows(&model, &view);
	int used = 0;
	for (size_t i = 0; i < json_array_size(rows); i++)
		used += snprintf(
			text + used, sizeof(text) - (size_t)used, "%s%lld", i ? " " : "",
			json_integer_value(json_object_get(json_array_get(rows, i), "pid")));
	json_decref(rows);
	return text;
}

static size_t nr_rows(void)
{
	json_t *rows = nm_top_rows(&model, &view);
	size_t count = json_array_size(rows);
	json_decref(rows);
	return count;
}

/* The lines of a screen with this look, or all of them. */
static const char *screen_of(size_t rows, size_t columns, int look)
{
	static char text[40 * 1024];
	struct nm_top_frame frame;
	size_t used = 0;
	text[0] = '\0';
	nm_top_frame_init(&frame, rows, columns);
	nm_top_render(&frame, &model, &view, &style);
	for (size_t i = 0; i < rows; i++) {
		assert_true(nm_text_width(frame.lines[i].text) <= columns);
		if (look < 0 || frame.lines[i].look == (enum nm_top_look)look)
			used += (size_t)snprintf(text + used, sizeof(text) - used, "%s\n",
						 frame.lines[i].text);
	}
	nm_top_frame_clear(&frame);
	return text;
}

TEXT(order, order())
QUANTITY(rows, nr_rows())
TEXT(screen, screen_of(24, 80, -1))
TEXT(selected_line, screen_of(24, 80, NM_TOP_SELECTED))
QUANTITY(page, view.page)
NAMES(page, {"processes", NM_TOP_PROCESSES}, {"threads", NM_TOP_THREADS})
QUANTITY(pid, view.pid)
QUANTITY(help, view.help)
QUANTITY(quit, view.quit)
QUANTITY(selected, view.selected)
QUANTITY(cursor, view.cursor)
QUANTITY(first, view.first)
QUANTITY(column, view.sort[view.page])
QUANTITY(last_column, nm_table_columns(nm_top_table(&view)) - 1)
ACTION(processes_exit, (void)json_array_clear(json_object_get(model.document, "processes")))
ACTION(no_answer, (void)strcpy(model.error, "numa-migrd is not running"))

/* trial 0|1: with 31 minutes left, which draws processes or not */
WORD(trial)
{
	(void)json_object_set_new(model.document, "trial",
				  json_pack("{sisbsf}", "remaining_s", 1801, "drawing", (int)N(0),
					    "control_percent", 50.0));
}

/* ---- keys ---- */

/* The largest first. Unknown values come last, and equal rows keep their order. */
SCRIPT(test_order, "order = 40 30 20 10; sort local_share; order = 10 40 20 30",
       "sort comm; order = 30 20 40 10; press left; column = 0; keep last = last_column",
       "press left; column = last; press right; column = 0")

/* Those of one process only, or all. */
SCRIPT(test_pages, "press end enter; page = threads; pid = 10; rows = 30; screen ~ of process 10",
       "press escape; page = processes; press t; pid = 0; rows = 40",
       "press ?; help = 1; press escape; help = 0; press q; quit = 1")

/* The cursor stays with the process, not with the line; if it exits, on that which replaces it. */
SCRIPT(test_cursor, "press down j; selected = 20; sort comm; settle 10; selected = 20",
       "cursor = 1; press up; selected = 30; press page_down down; cursor = 3; press home up; "
       "cursor = 0",
       "press end; processes_exit; press down; cursor = 0; press enter; page = processes")

/* A larger terminal shows more rows instead of blanks. */
SCRIPT(test_window, "press t", "each 15: press down",
       "settle 10; cursor = 15; first = 6; settle 30; first in 0..10; settle 0")

/* ---- the screen ---- */

SCRIPT(test_80_by_24, "screen ~ numa-migrd 0.1.0: running, policy imar2",
       "screen ~ 3 processes, 40 threads, 5 assigned",
       "screen ~ [|||||     ]    0  50%      12      25% 8.0G   256G 0-3,128-131",
       "screen ~ local 75%; screen ~ PID COMMAND  STATE; screen ~ postgres managed; screen ~ ? "
       "help; screen !~ Trial",
       "press t; screen ~ TID PID COMMAND; screen ~ P\u0302; screen ~ DEC",
       "screen ~ a worker of ma…; press ?; screen ~ q        quit; press escape",
       "no_answer; screen ~ numa-migrd is not running")

SCRIPT(a_trial_has_a_line,
       "trial 1; screen ~ Trial: running, 31 min left, draws processes for 21 min more; screen ~ "
       "50 %",
       "trial 0; screen ~ Trial: running, 31 min left, waits for the last processes; screen ~ 50 %")

SCRIPT(test_selected_line, "press down; selected_line ~ java; selected_line !~ perf")

/* With many nodes there is still space for the list; any size and any page are valid. */
TEST(test_any_size)
{
	for (int number = 2; number < 64; number++)
		add_node(number);
	assert_non_null(strstr(screen_of(24, 80, -1), "and 57 nodes more"));
	assert_non_null(strstr(screen_of(24, 80, -1), "postgres"));
	for (size_t rows = 0; rows < 40; rows++)
		for (size_t columns = 1; columns < 200; columns += 7) {
			view.page = (enum nm_top_page)(rows % NM_TOP_PAGE_MAX);
			(void)screen_of(rows, columns, -1);
		}
}

TEST(test_no_daemon_data)
{
	nm_top_model_clear(&model);
	for (view.page = 0; view.page < NM_TOP_PAGE_MAX; view.page++)
		(void)screen_of(24, 80, -1);
}

int main(void)
{
	if (!setlocale(LC_CTYPE, "C.UTF-8")) {
		print_message("skipped: no locale C.UTF-8 on this machine\n");
		return 77;
	}
	return RUN_REGISTERED(NULL, NULL);
}
