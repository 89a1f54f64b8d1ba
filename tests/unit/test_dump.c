/* SPDX-License-Identifier: MIT */
/* Documents of the daemon: what they contain, and their limits. */
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "dump_fixture.h"

static int open_dump(void **state)
{
	static struct nm_dump dump;
	dump = (struct nm_dump){0};
	*state = &dump;
	return nm_dump_open(&dump);
}

static int close_dump(void **state)
{
	shown_clear();
	nm_dump_clear(*state);
	return 0;
}

static void a_document_is_sealed(void **state)
{
	struct nm_dump *dump = *state;
	nm_dump_value(dump, "status", json_object());
	int fd = nm_dump_finish(dump);
	assert_true(fd >= 0);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL;
	assert_int_equal(fcntl(fd, F_GET_SEALS) & seals, seals);
	show_document(fd, "status");
	assert_int_equal(json_object_size(shown.document), 2);
	assert_int_equal(json_integer_value(json_object_get(shown.document, "rows_left_out")), 0);
}

/* More threads than the kernel allows a small machine. */
static void rows_are_limited(void **state)
{
	enum { THREADS = 131072, PROCESSES = 10 };
	struct nm_dump *dump = *state;
	struct nm_thread_row row;
	nm_row_init(&nm_thread_table, &row);
	nm_dump_begin(dump, "processes");
	for (row.tid = 0; row.tid < PROCESSES; row.tid++)
		if (nm_dump_admit(dump))
			nm_dump_row(dump, nm_row_json(&nm_thread_table, &row));
	nm_dump_end(dump);
	nm_dump_begin(dump, "threads");
	for (row.tid = 0; row.tid < THREADS; row.tid++)
		if (nm_dump_admit(dump))
			nm_dump_row(dump, nm_row_json(&nm_thread_table, &row));
	nm_dump_end(dump);
	show_document(nm_dump_finish(dump), "threads");
	assert_int_equal(shown.rows, NM_DUMP_ROWS_MAX - PROCESSES);
	assert_int_equal(json_integer_value(json_object_get(shown.document, "rows_left_out")),
			 THREADS + PROCESSES - NM_DUMP_ROWS_MAX);
}

static void unavailable_values_are_left_out(void **state)
{
	struct nm_process_row row;
	const double shares[] = {0.25, NAN};
	(void)state;
	nm_row_init(&nm_process_table, &row);
	json_t *object = nm_row_json(&nm_process_table, &row);
	assert_int_equal(json_object_size(object), 0);
	json_decref(object);
	row.pid = 7;
	row.comm = "";
	row.local_share = INFINITY;
	row.run_share = 0;
	row.memory_shares = (struct nm_shares){shares, 2};
	object = nm_row_json(&nm_process_table, &row);
	json_t *expected = json_pack("{sisssfs[fn]}", "pid", 7, "comm", "", "run_share", 0.0,
				     "memory_shares", 0.25);
	assert_true(json_equal(object, expected));
	json_decref(expected);
	json_decref(object);
}

/* SECURITY: names */
static void text_that_is_not_utf8_is_escaped(void **state)
{
	struct nm_dump *dump = *state;
	struct nm_thread_row row;
	nm_row_init(&nm_thread_table, &row);
	row.comm = "a\xff\n\"";
	nm_dump_begin(dump, "threads");
	nm_dump_row(dump, nm_row_json(&nm_thread_table, &row));
	nm_dump_end(dump);
	show_document(nm_dump_finish(dump), "threads");
	assert_shown(1, "comm", "a\\xff\\x0a\"");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_dump, close_dump)
	const struct CMUnitTest tests[] = {
		TEST(a_document_is_sealed),
		TEST(rows_are_limited),
		TEST(unavailable_values_are_left_out),
		TEST(text_that_is_not_utf8_is_escaped),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
