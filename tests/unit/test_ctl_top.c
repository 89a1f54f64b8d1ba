/* SPDX-License-Identifier: MIT */
/* numa-migrctl top without a terminal: order, keys, and what a screen of any size shows. */
#define SET_UP make
#define TEAR_DOWN drop
#include "../support/test.h"

#include <locale.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/ctl/top.h"

static const struct nm_style style = {.utf8 = true};

struct fixture {
	struct nm_top_model model;
	struct nm_top_view view;
};

static json_t *process(int pid, const char *comm, double local_share)
{
	json_t *row = json_pack("{sisssssfsi}", "pid", pid, "comm", comm, "state", "managed",
				"local_share", local_share, "rss_bytes", pid * 1000000);
	if (local_share < 0)
		(void)json_object_del(row, "local_share");
	return row;
}

static json_t *thread(int tid, int pid)
{
	return json_pack("{sisisssisfsi}", "tid", tid, "pid", pid, "comm", "a worker of many",
			 "node", 1, "run_share", 1.0 / tid, "last_decision", 17);
}

static json_t *node(int number)
{
	return json_pack("{sisssfsfsisIsI}", "node", number, "cpus", "0-3,128-131", "load", 0.5,
			 "access_share", 0.25, "threads", 12, "memory_bytes", (json_int_t)1 << 38,
			 "memory_free_bytes", (json_int_t)1 << 33);
}

static int make(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));
	if (!fixture)
		return -1;
	json_t *threads = json_array();
	for (int tid = 1; tid <= 40; tid++)
		(void)json_array_append_new(threads, thread(tid, tid <= 30 ? 10 : 20));
	fixture->model.document = json_pack(
		"{s{sssssbsisisi}s[oo]s[ooooo]so}", "status", "version", "0.1.0", "policy", "imar2",
		"paused", 0, "processes_managed", 3, "threads_managed", 40, "threads_assigned", 5,
		"nodes", node(0), node(1), "processes", process(10, "postgres", 0.9),
		process(20, "perf", 0.1), process(30, "java", -1), process(40, "perf", 0.5),
		json_pack("{siss}", "pid", 50, "state", "ignored"), "threads", threads);
	nm_top_view_init(&fixture->view);
	*state = fixture;
	return 0;
}

static int drop(void **state)
{
	struct fixture *fixture = *state;
	nm_top_model_clear(&fixture->model);
	free(fixture);
	return 0;
}

/* ---- keys ---- */

static void press(struct fixture *fixture, int key)
{
	json_t *rows = nm_top_rows(&fixture->model, &fixture->view);
	nm_top_settle(&fixture->view, rows, 10);
	nm_top_press(&fixture->view, key, rows);
	json_decref(rows);
}

static void assert_order(const struct fixture *fixture, const char *key, const int *numbers,
			 size_t count)
{
	json_t *rows = nm_top_rows(&fixture->model, &fixture->view);
	assert_int_equal(json_array_size(rows), count);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(json_integer_value(json_object_get(json_array_get(rows, i), key)),
				 numbers[i]);
	json_decref(rows);
}

static void sort_by(struct fixture *fixture, const char *key)
{
	for (;;) {
		const struct nm_table *table = nm_top_table(&fixture->view);
		if (strcmp(table->fields[fixture->view.sort[fixture->view.page]].name, key) == 0)
			return;
		press(fixture, NM_TOP_KEY_RIGHT);
	}
}

/* Unknown values come last. */
TEST(test_order)
{
	struct fixture *fixture = *state;
	assert_order(fixture, "pid", (int[]){40, 30, 20, 10}, 4); /* the largest first */
	sort_by(fixture, "local_share");
	assert_order(fixture, "pid", (int[]){10, 40, 20, 30}, 4);
	sort_by(fixture, "comm");
	assert_order(fixture, "pid", (int[]){30, 20, 40, 10}, 4); /* equal rows keep their order */
	press(fixture, NM_TOP_KEY_LEFT);
	assert_int_equal(fixture->view.sort[NM_TOP_PROCESSES], 0);
	press(fixture, NM_TOP_KEY_LEFT);
	assert_int_equal(fixture->view.sort[NM_TOP_PROCESSES],
			 nm_table_columns(&nm_process_table) - 1);
	press(fixture, NM_TOP_KEY_RIGHT);
	assert_int_equal(fixture->view.sort[NM_TOP_PROCESSES], 0);
}

TEST(test_pages)
{
	struct fixture *fixture = *state;
	press(fixture, NM_TOP_KEY_END);
	press(fixture, NM_TOP_KEY_ENTER);
	assert_int_equal(fixture->view.page, NM_TOP_THREADS);
	assert_int_equal(fixture->view.pid, 10);
	json_t *rows = nm_top_rows(&fixture->model, &fixture->view);
	assert_int_equal(json_array_size(rows), 30); /* those of one process only */
	json_decref(rows);
	press(fixture, NM_TOP_KEY_ESCAPE);
	assert_int_equal(fixture->view.page, NM_TOP_PROCESSES);
	press(fixture, 't');
	assert_int_equal(fixture->view.pid, 0);
	rows = nm_top_rows(&fixture->model, &fixture->view);
	assert_int_equal(json_array_size(rows), 40);
	json_decref(rows);
	press(fixture, '?');
	assert_true(fixture->view.help);
	press(fixture, NM_TOP_KEY_ESCAPE);
	assert_false(fixture->view.help);
	press(fixture, 'q');
	assert_true(fixture->view.quit);
}

/* The cursor stays with the process, not with the line. */
TEST(test_cursor)
{
	struct fixture *fixture = *state;
	press(fixture, NM_TOP_KEY_DOWN);
	press(fixture, 'j');
	assert_int_equal(fixture->view.selected, 20);
	sort_by(fixture, "local_share");
	json_t *rows = nm_top_rows(&fixture->model, &fixture->view);
	nm_top_settle(&fixture->view, rows, 10);
	assert_int_equal(fixture->view.selected, 20);
	json_decref(rows);
	press(fixture, NM_TOP_KEY_UP);
	assert_int_equal(fixture->view.selected, 40);
	press(fixture, NM_TOP_KEY_PAGE_DOWN);
	press(fixture, NM_TOP_KEY_DOWN);
	assert_int_equal(fixture->view.cursor, 3);
	press(fixture, NM_TOP_KEY_HOME);
	press(fixture, NM_TOP_KEY_UP);
	assert_int_equal(fixture->view.cursor, 0);
	/* The process exited: the cursor is on the process that replaces its line. */
	press(fixture, NM_TOP_KEY_END);
	(void)json_array_clear(json_object_get(fixture->model.document, "processes"));
	press(fixture, NM_TOP_KEY_DOWN);
	assert_int_equal(fixture->view.cursor, 0);
	press(fixture, NM_TOP_KEY_ENTER); /* no such process */
	assert_int_equal(fixture->view.page, NM_TOP_PROCESSES);
}

TEST(test_window)
{
	struct fixture *fixture = *state;
	press(fixture, 't');
	for (int i = 0; i < 15; i++)
		press(fixture, NM_TOP_KEY_DOWN);
	json_t *rows = nm_top_rows(&fixture->model, &fixture->view);
	nm_top_settle(&fixture->view, rows, 10);
	assert_int_equal(fixture->view.cursor, 15);
	assert_int_equal(fixture->view.first, 6);
	nm_top_settle(&fixture->view, rows,
		      30); /* a larger terminal shows more rows instead of blanks */
	assert_in_range(fixture->view.first, 0, 10);
	nm_top_settle(&fixture->view, rows, 0);
	json_decref(rows);
}

/* ---- the screen ---- */

static struct nm_top_frame frame_of(struct fixture *fixture, size_t rows, size_t columns)
{
	struct nm_top_frame frame;
	nm_top_frame_init(&frame, rows, columns);
	nm_top_render(&frame, &fixture->model, &fixture->view, &style);
	for (size_t i = 0; i < rows; i++)
		assert_true(nm_text_width(frame.lines[i].text) <= columns);
	return frame;
}

static size_t lines_with(const struct nm_top_frame *frame, const char *text)
{
	size_t count = 0;
	for (size_t i = 0; i < frame->rows; i++)
		count += strstr(frame->lines[i].text, text) != NULL;
	return count;
}

static void assert_shows(struct fixture *fixture, const char *text)
{
	struct nm_top_frame frame = frame_of(fixture, 24, 80);
	if (lines_with(&frame, text) == 0)
		fail_msg("no line has \"%s\"", text);
	nm_top_frame_clear(&frame);
}

TEST(test_80_by_24)
{
	struct fixture *fixture = *state;
	assert_shows(fixture, "numa-migrd 0.1.0: running, policy imar2");
	assert_shows(fixture, "3 processes, 40 threads, 5 assigned");
	assert_shows(fixture, "[|||||     ]    0  50%      12      25% 8.0G   256G 0-3,128-131");
	assert_shows(fixture, "PID COMMAND  STATE");
	assert_shows(fixture, "postgres managed");
	assert_shows(fixture, "? help");
	press(fixture, 't');
	assert_shows(fixture, "TID PID COMMAND");
	assert_shows(fixture, "P\xcc\x82"); /* the whole text fits */
	assert_shows(fixture, "DEC");
	assert_shows(fixture, "a worker of ma\xe2\x80\xa6");
	press(fixture, '?');
	assert_shows(fixture, "q        quit");
	fixture->view.help = false;
	(void)strcpy(fixture->model.error, "numa-migrd is not running");
	assert_shows(fixture, "numa-migrd is not running");
}

TEST(a_trial_has_a_line)
{
	struct fixture *fixture = *state;
	struct nm_top_frame frame = frame_of(fixture, 24, 80);
	assert_int_equal(lines_with(&frame, "Trial"), 0);
	nm_top_frame_clear(&frame);
	(void)json_object_set_new(
		fixture->model.document, "trial",
		json_pack("{sisbsf}", "remaining_s", 1801, "drawing", 1, "control_percent", 50.0));
	assert_shows(fixture, "Trial: running, 31 min left, draws processes for 21 min more; 50 %");
	(void)json_object_set_new(json_object_get(fixture->model.document, "trial"), "drawing",
				  json_false());
	assert_shows(fixture, "Trial: running, 31 min left, waits for the last processes; 50 %");
}

TEST(test_selected_line)
{
	struct fixture *fixture = *state;
	press(fixture, NM_TOP_KEY_DOWN);
	struct nm_top_frame frame = frame_of(fixture, 24, 80);
	size_t found = 0;
	for (size_t i = 0; i < frame.rows; i++)
		if (frame.lines[i].look == NM_TOP_SELECTED) {
			assert_non_null(strstr(frame.lines[i].text, "java"));
			found++;
		}
	assert_int_equal(found, 1);
	nm_top_frame_clear(&frame);
}

/* With many nodes there is still space for the list; any size and any page are valid. */
TEST(test_any_size)
{
	struct fixture *fixture = *state;
	for (int number = 2; number < 64; number++)
		(void)json_array_append_new(json_object_get(fixture->model.document, "nodes"),
					    node(number));
	assert_shows(fixture, "and 57 nodes more");
	assert_shows(fixture, "postgres");
	for (size_t rows = 0; rows < 40; rows++)
		for (size_t columns = 1; columns < 200; columns += 7) {
			fixture->view.page = (enum nm_top_page)(rows % NM_TOP_PAGE_MAX);
			struct nm_top_frame frame = frame_of(fixture, rows, columns);
			nm_top_frame_clear(&frame);
		}
}

TEST(test_no_daemon_data)
{
	struct fixture *fixture = *state;
	nm_top_model_clear(&fixture->model);
	for (fixture->view.page = 0; fixture->view.page < NM_TOP_PAGE_MAX; fixture->view.page++) {
		struct nm_top_frame frame = frame_of(fixture, 24, 80);
		nm_top_frame_clear(&frame);
	}
}

int main(void)
{
	if (!setlocale(LC_CTYPE, "C.UTF-8")) {
		print_message("skipped: no locale C.UTF-8 on this machine\n");
		return 77;
	}
	return RUN_REGISTERED(NULL, NULL);
}
