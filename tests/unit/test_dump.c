/* SPDX-License-Identifier: MIT */
/* Documents of the daemon: what they contain, and their limits. */
#define SET_UP open_dump
#define TEAR_DOWN close_dump
#include "../support/test.h"

#include <fcntl.h>
#include <math.h>
#include <sys/stat.h>

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

TEST(a_document_is_sealed)
{
	struct nm_dump *dump = *state;
	nm_dump_value(dump, "status", json_object());
	int fd = nm_dump_finish(dump);
	assert_true(fd >= 0);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL;
	assert_int_equal(fcntl(fd, F_GET_SEALS) & seals, seals & ~F_SEAL_SHRINK);
	show_document(fd, "status");
	assert_int_equal(json_object_size(shown.document), 2);
	assert_int_equal(json_integer_value(json_object_get(shown.document, "rows_left_out")), 0);
}

/* More threads than the kernel allows a small machine. */
TEST(rows_are_limited)
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

/* A user with many processes hides no other one. */
/* SECURITY: document-rows */
TEST(one_domain_leaves_rows_to_others)
{
	enum { MANY = 60000, OTHERS = 10 };
	struct nm_dump *dump = *state;
	unsigned admitted = 0;
	nm_dump_expect(dump, MANY + OTHERS);
	for (unsigned i = 0; i < MANY; i++)
		admitted += nm_dump_admit_of(dump, 1);
	assert_int_equal(admitted, NM_DUMP_ROWS_MAX / 2);
	for (uint64_t domain = 2; domain < 2 + OTHERS; domain++)
		assert_true(nm_dump_admit_of(dump, domain));
	assert_int_equal(dump->left_out, MANY - NM_DUMP_ROWS_MAX / 2);
}

/* Half is only for those who would take more than there is. */
TEST(rows_that_fit_are_all_shown)
{
	struct nm_dump *dump = *state;
	nm_dump_expect(dump, NM_DUMP_ROWS_MAX);
	for (unsigned i = 0; i < NM_DUMP_ROWS_MAX; i++)
		assert_true(nm_dump_admit_of(dump, 1));
	assert_false(nm_dump_admit_of(dump, 2));
}

TEST(unavailable_values_are_left_out)
{
	struct nm_process_row row;
	const double shares[] = {0.25, NAN};
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
TEST(text_that_is_not_utf8_is_escaped)
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

/* ---- documents that were handed out ---- */

static unsigned composed;

static int compose(void *context)
{
	nm_auto(nm_dump_clear) struct nm_dump dump = {0};
	(void)context;
	composed++;
	assert_int_equal(nm_dump_open(&dump), 0);
	nm_dump_value(&dump, "status", json_object());
	return nm_dump_finish(&dump);
}

static off_t size_of(int fd)
{
	struct stat file;
	assert_int_equal(fstat(fd, &file), 0);
	return file.st_size;
}

/* A reader that keeps documents open keeps no memory of the service. */
/* SECURITY: kept-documents */
TEST(few_documents_have_contents)
{
	struct nm_documents documents = {0};
	enum { COUNT = 50 };
	int fds[COUNT];
	unsigned full = 0;
	for (unsigned i = 0; i < COUNT; i++) {
		fds[i] = nm_documents_get(&documents, i * NM_DOCUMENT_NS, compose, NULL);
		assert_true(fds[i] >= 0 && size_of(fds[i]) > 0);
	}
	for (unsigned i = 0; i < COUNT; i++)
		full += size_of(fds[i]) > 0;
	assert_int_equal(full, NM_DOCUMENTS_MOST);
	show_document(fds[COUNT - 1], "status");
	for (unsigned i = 0; i < COUNT - 1; i++)
		close(fds[i]);
	nm_documents_clear(&documents);
}

/* Asking often costs nothing but a descriptor. */
/* SECURITY: kept-documents */
TEST(a_document_is_composed_once_a_second)
{
	struct nm_documents documents = {0};
	composed = 0;
	for (unsigned i = 0; i < 1000; i++)
		show_document(nm_documents_get(&documents, i * NM_DOCUMENT_NS / 500, compose, NULL),
			      "status"); /* each from its beginning */
	assert_int_equal(composed, 2);
	nm_documents_expire(&documents); /* a command has changed the state */
	close(nm_documents_get(&documents, NM_DOCUMENT_NS, compose, NULL));
	assert_int_equal(composed, 3);
	nm_documents_clear(&documents);
}

static int refuse(void *context)
{
	(void)context;
	return -ENOMEM;
}

TEST(a_document_that_fails_replaces_none)
{
	struct nm_documents documents = {0};
	int fd = nm_documents_get(&documents, 0, compose, NULL);
	for (unsigned i = 1; i < 10; i++)
		assert_int_equal(nm_documents_get(&documents, i * NM_DOCUMENT_NS, refuse, NULL),
				 -ENOMEM);
	show_document(fd, "status");
	nm_documents_clear(&documents);
}

/* Others read the same document. */
/* SECURITY: kept-documents */
TEST(a_reader_cannot_empty_a_document)
{
	struct nm_documents documents = {0};
	struct stat file;
	int fd = nm_documents_get(&documents, 0, compose, NULL);
	assert_int_equal(ftruncate(fd, 0), -1);
	assert_int_equal(fcntl(fd, F_GETFL) & O_ACCMODE, O_RDONLY);
	/* Through /proc/self/fd it can only be opened for reading, too. */
	assert_int_equal(fstat(fd, &file), 0);
	assert_int_equal(file.st_mode & 0222, 0);
	show_document(fd, "status");
	nm_documents_clear(&documents);
}

RUN_TESTS()
