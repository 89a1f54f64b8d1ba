/* SPDX-License-Identifier: MIT */
/* Text in columns, cells and tables: presentation of values of the daemon. */
#include "../support/test.h"

#include <fcntl.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../../src/ctl/cell.h"
#include "../../src/ctl/ctl.h"
#include "numa-migrd/file.h"

static const struct nm_style utf8 = {.utf8 = true};
static const struct nm_style ascii = {0};

/* ---- text ---- */

static void assert_fit(const char *text, size_t width, const struct nm_style *style,
		       const char *shown, size_t columns)
{
	char out[64];
	assert_int_equal(nm_text_fit(out, sizeof(out), text, width, style), columns);
	assert_string_equal(out, shown);
	assert_int_equal(nm_text_width(out), columns);
}

/* Text that reorders or hides other text in its line. */
/* SECURITY: reordered-text */
TEST(reordering_characters_are_replaced)
{
	assert_fit("a\xe2\x80\xae"
		   "b",
		   NM_TEXT_ANY_WIDTH, &utf8, "a?b", 3);
	assert_fit("\xe2\x81\xa6\xe2\x80\x8b\xef\xbb\xbf", NM_TEXT_ANY_WIDTH, &utf8, "???", 3);
}

static json_t *parse(const char *text)
{
	json_t *document = NULL;
	int r = nm_ctl_parse_document(text, strlen(text), &document);
	assert_true(r == 0 || (r == -EBADMSG && !document));
	return document;
}

/* Names of members, and values that no table contains. */
/* SECURITY: document-text */
TEST(all_text_of_a_document_is_clean)
{
	json_t *document = parse("{\"status\":{\"a\\u001b[31m\":\"\\u009b\\n\"},\"decisions\":["
				 "{\"kind\":\"\\u001bc\",\"policy\":[\"\\u202e\"],\"fields\":"
				 "\"A=1\\nB=\\u001b\"}]}");
	char *text = json_dumps(document, JSON_COMPACT);
	assert_string_equal(text, "{\"status\":{\"a?[31m\":\"??\"},\"decisions\":[{\"kind\":\"?c\","
				  "\"policy\":[\"?\"],\"fields\":\"A=1\\nB=?\"}]}");
	free(text);
	json_decref(document);
}

/* SECURITY: nested-document */
TEST(deep_documents_end_nothing)
{
	const size_t depths[] = {100, 1000, 2000, 100000};
	for (size_t i = 0; i < NM_ARRAY_SIZE(depths); i++) {
		char *text = calloc(1, 2 * depths[i] + 64);
		assert_non_null(text);
		size_t used = (size_t)sprintf(text, "{\"status\":{},\"x\":");
		memset(text + used, '[', depths[i]);
		memset(text + used + depths[i], ']', depths[i]);
		text[used + 2 * depths[i]] = '}';
		json_t *document = parse(text);
		assert_true(document || depths[i] > 1000);
		json_decref(document);
		free(text);
	}
}

/* SECURITY: terminals */
TEST(test_fit)
{
	assert_fit("abc", 3, &utf8, "abc", 3);
	assert_fit("abcd", 3, &utf8, "ab\xe2\x80\xa6", 3);
	assert_fit("abcd", 3, &ascii, "ab~", 3);
	assert_fit("abcd", 1, &utf8, "\xe2\x80\xa6", 1);
	assert_fit("abcd", 0, &utf8, "", 0);
	assert_fit("", 3, &utf8, "", 0);
	assert_fit("a\033[2J\x7f", NM_TEXT_ANY_WIDTH, &utf8, "a?[2J?", 6);
	assert_fit("\xc2\x9b"
		   "2J",
		   NM_TEXT_ANY_WIDTH, &utf8, "?2J", 3); /* C1: a control sequence too */
	assert_fit("\xff\xfe", NM_TEXT_ANY_WIDTH, &utf8, "??", 2);
	assert_fit("caf\xc3\xa9", NM_TEXT_ANY_WIDTH, &utf8, "caf\xc3\xa9", 4);
	assert_fit("caf\xc3\xa9", NM_TEXT_ANY_WIDTH, &ascii, "caf?", 4);
	assert_fit("P\xcc\x82", 1, &utf8, "P\xcc\x82", 1); /* combining */
	assert_fit("\xe6\xbc\xa2\xe5\xad\x97", 3, &utf8, "\xe6\xbc\xa2\xe2\x80\xa6", 3); /* wide */
}

/* A small buffer truncates as a narrow terminal does, and never inside a character. */
TEST(test_small_buffers)
{
	char out[8];
	for (size_t size = 1; size <= sizeof(out); size++) {
		memset(out, 'x', sizeof(out));
		size_t columns =
			nm_text_fit(out, size, "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9", 4, &utf8);
		assert_true(strlen(out) < size);
		assert_int_equal(nm_text_width(out), columns);
		assert_true(columns <= 4);
		assert_null(strchr(out, '?'));
	}
}

/* ---- cells ---- */

static void assert_cell(enum nm_cell_kind kind, json_t *value, const char *shown)
{
	const struct nm_field column = {.name = "value", .second = "to", .kind = kind};
	char out[NM_CELL_SIZE];
	json_t *row = json_pack("{so?}", "value", value);
	assert_int_equal(nm_cell(&column, row, &utf8, out), nm_text_width(shown));
	assert_string_equal(out, shown);
	json_decref(row);
}

TEST(test_cells)
{
	assert_cell(NM_CELL_SHARE, json_real(0.974), "97%");
	assert_cell(NM_CELL_SHARE, json_real(0), "0%");
	assert_cell(NM_CELL_SHARE, json_integer(1), "100%");
	assert_cell(NM_CELL_BYTES, json_integer(999), "999");
	assert_cell(NM_CELL_BYTES, json_integer(1536), "1.5K");
	assert_cell(NM_CELL_BYTES, json_integer(5LL << 30), "5.0G");
	assert_cell(NM_CELL_BYTES, json_integer(340LL << 20), "340M");
	assert_cell(NM_CELL_BYTES, json_integer(1000LL << 20), "1.0G"); /* at most three digits */
	assert_cell(NM_CELL_FIGURE, json_real(312.4), "312");
	assert_cell(NM_CELL_FIGURE, json_real(0.8), "0.8");
	assert_cell(NM_CELL_FIGURE, json_real(12345), "12k");
	assert_cell(NM_CELL_FIGURE, json_real(-12345), "-12k");
	assert_cell(NM_CELL_FIGURE, json_real(3e300), "3e+282E");
	assert_cell(NM_CELL_ANY, json_true(), "yes");
	assert_cell(NM_CELL_ANY, json_false(), "no");
	assert_cell(NM_CELL_ANY, json_integer(0), "0");
	assert_cell(NM_CELL_TIME, json_integer(1700000000000000), "Nov 14 22:13:20");
	assert_cell(NM_CELL_ANY, json_string(""), "\xe2\x80\x93");
	assert_cell(NM_CELL_SHARE, json_string("much"),
		    "much"); /* from another version of the daemon */
	assert_cell(NM_CELL_SHARE, json_null(), "\xe2\x80\x93");
	assert_cell(NM_CELL_SHARE, NULL, "\xe2\x80\x93");
	assert_cell(NM_CELL_ANY, json_pack("[iis]", 1, 2, "x"), "1 2 x");
	assert_cell(NM_CELL_SHARE, json_pack("[ff]", 0.25, 0.75), "25% 75%");
	assert_cell(NM_CELL_ARROW, NULL, "\xe2\x80\x93");
}

static void assert_arrow(int from, int to, const char *shown)
{
	static const struct nm_field column = {
		.name = "from", .second = "to", .kind = NM_CELL_ARROW};
	char out[NM_CELL_SIZE];
	json_t *row = json_pack("{sisi}", "from", from, "to", to);
	(void)nm_cell(&column, row, &ascii, out);
	assert_string_equal(out, shown);
	json_decref(row);
}

TEST(test_arrows)
{
	assert_arrow(2, 0, "2>0");
	assert_arrow(5, -1, "5");
	assert_arrow(-1, 7, ">7");
	assert_arrow(3, 3, "3");
	assert_arrow(-1, -1, "-");
}

TEST(test_measures)
{
	static const struct nm_field column = {.name = "before", .kind = NM_CELL_MEASURE};
	char out[NM_CELL_SIZE];
	json_t *share = json_pack("{sfss}", "before", 0.5, "figure", "local_share");
	json_t *speed = json_pack("{sfss}", "before", 0.5, "figure", "performance");
	(void)nm_cell(&column, share, &utf8, out);
	assert_string_equal(out, "50%");
	(void)nm_cell(&column, speed, &utf8, out);
	assert_string_equal(out, "0.5");
	json_decref(share);
	json_decref(speed);
}

/* A list that is too long is truncated within the cell. */
TEST(test_long_list)
{
	const struct nm_field column = {.name = "value", .kind = NM_CELL_ANY};
	char out[NM_CELL_SIZE];
	json_t *array = json_array();
	for (int i = 0; i < 1000; i++)
		assert_int_equal(json_array_append_new(array, json_integer(1000 + i)), 0);
	json_t *row = json_pack("{so}", "value", array);
	assert_true(nm_cell(&column, row, &utf8, out) < NM_CELL_SIZE);
	assert_memory_equal(out, "1000 1001 ", 10);
	json_decref(row);
}

/* ---- tables ---- */

TEST(test_table)
{
	static const struct nm_field columns[] = {
		{.name = "n", .head = "N"},
		{.name = "name", .head = "NAME", .left = true},
		{.name = "last", .head = "LAST", .left = true},
		{.name = "without a column"},
	};
	static const struct nm_table table = {.fields = columns, .count = 4};
	char *text = NULL;
	size_t size = 0;
	json_t *rows = json_pack("[{siss},{sisssn}]", "n", 5, "name", "postgres", "n", 4711, "name",
				 "a", "last");
	FILE *out = open_memstream(&text, &size);
	nm_table_print(out, &ascii, &table, rows);
	(void)fclose(out);
	assert_string_equal(text, "   N  NAME      LAST\n"
				  "   5  postgres  -\n"
				  "4711  a         -\n");
	free(text);
	json_decref(rows);
}

/* The home of a process, or the reason why it has none. */
TEST(test_homes)
{
	char *text = NULL;
	size_t size = 0;
	json_t *rows = json_pack("[{sisi},{siss}]", "pid", 7, "home", 3, "pid", 8, "reason",
				 "little CPU use");
	FILE *out = open_memstream(&text, &size);
	nm_table_print(out, &ascii, &nm_process_table, rows);
	(void)fclose(out);
	const char *home = strstr(text, "HOME");
	assert_non_null(home);
	const char *row = strchr(text, '\n') + 1;
	assert_int_equal(row[home - text + 3], '3'); /* right-aligned */
	assert_non_null(strstr(row, "little CPU use"));
	free(text);
	json_decref(rows);
}

TEST(test_lines)
{
	char *text = NULL;
	size_t size = 0;
	json_t *object = json_pack("{sssisbs{}}", "version", "0.1", "threads_assigned", 3, "paused",
				   0, "more");
	FILE *out = open_memstream(&text, &size);
	nm_ctl_print_lines(out, &ascii, object);
	(void)fclose(out);
	assert_string_equal(text,
			    "         version: 0.1\nthreads_assigned: 3\n          paused: no\n");
	free(text);
	json_decref(object);
}

/* ---- names ---- */

/* numa-migrctl(1) explains every head that is not a word. */
static void assert_documented(const char *page, const struct nm_table *table)
{
	static const char *const words[] = {"PID",  "TID",    "COMMAND", "STATE", "CPU",
					    "NODE", "NODES",  "ID",	 "TIME",  "KIND",
					    "UNIT", "RESULT", "VERDICT", "PAGES"};
	for (size_t i = 0; i < table->count; i++) {
		const struct nm_field *field = &table->fields[i];
		const char *head = field->plain_head ? field->plain_head : field->head;
		bool word = false;
		assert_int_equal(head != NULL, i < nm_table_columns(table));
		for (size_t k = 0; head && k < NM_ARRAY_SIZE(words); k++)
			word = word || strcmp(words[k], head) == 0;
		if (!head || word)
			continue;
		char of_page[32], *at;
		(void)snprintf(of_page, sizeof(of_page), " %.2s%s", head,
			       strcmp(head, "P^") == 0 ? "" : head + 2);
		while ((at = strchr(of_page, '^')))
			memcpy(at, "\\(ha", 5);
		if (!strstr(page, of_page))
			fail_msg("numa-migrctl(1) does not explain %s", head);
	}
}

TEST(test_heads_are_explained)
{
	nm_autofree char *page = calloc(1, 1 << 20);
	assert_non_null(page);
	assert_true(nm_read_text(AT_FDCWD, NM_SOURCE_DIR "/man/numa-migrctl.1", page, 1 << 20) > 0);
	assert_documented(page, &nm_process_table);
	assert_documented(page, &nm_thread_table);
	assert_documented(page, &nm_decision_table);
}

/* ---- numbers ---- */

TEST(test_numbers)
{
	uint64_t value = 7;
	assert_true(nm_ctl_number("18446744073709551615", 0, UINT64_MAX, &value));
	assert_true(value == UINT64_MAX);
	assert_true(nm_ctl_number("0", 0, 5, &value));
	assert_int_equal(value, 0);
	static const char *const wrong[] = {"",	  "-1",	 "+1", " 1",  "1 ",
					    "1x", "0x1", "6",  "1e1", "18446744073709551616"};
	for (size_t i = 0; i < NM_ARRAY_SIZE(wrong); i++)
		assert_false(nm_ctl_number(wrong[i], 0, 5, &value));
	assert_int_equal(value, 0);
}

int main(void)
{
	if (!setlocale(LC_CTYPE, "C.UTF-8")) {
		print_message("skipped: no locale C.UTF-8 on this machine\n");
		return 77;
	}
	(void)setenv("TZ", "UTC", 1);
	tzset();
	return RUN_REGISTERED(NULL, NULL);
}
