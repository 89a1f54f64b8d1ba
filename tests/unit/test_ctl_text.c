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

static const struct {
	const char *text;
	size_t width;
	const struct nm_style *style;
	const char *shown;
	size_t columns;
} fits[] = {
	{"abc", 3, &utf8, "abc", 3},
	{"abcd", 3, &utf8, "ab…", 3},
	{"abcd", 3, &ascii, "ab~", 3},
	{"abcd", 1, &utf8, "…", 1},
	{"abcd", 0, &utf8, "", 0},
	{"", 3, &utf8, "", 0},
	{"a\033[2J\x7f", NM_TEXT_ANY_WIDTH, &utf8, "a?[2J?", 6},
	{"\xc2\x9b\x32J", NM_TEXT_ANY_WIDTH, &utf8, "?2J", 3}, /* C1: a control sequence too */
	{"\xff\xfe", NM_TEXT_ANY_WIDTH, &utf8, "??", 2},
	{"café", NM_TEXT_ANY_WIDTH, &utf8, "café", 4},
	{"café", NM_TEXT_ANY_WIDTH, &ascii, "caf?", 4},
	{"P\u0302", 1, &utf8, "P\u0302", 1}, /* combining */
	{"漢字", 3, &utf8, "漢…", 3},	     /* wide */
	/* Text that reorders or hides other text in its line. */
	{"a\u202e\x62", NM_TEXT_ANY_WIDTH, &utf8, "a?b", 3},
	{"\u2066\u200b\ufeff", NM_TEXT_ANY_WIDTH, &utf8, "???", 3},
};

/* SECURITY: terminals, reordered-text */
TEST(test_fit)
{
	for (size_t i = 0; i < NM_ARRAY_SIZE(fits); i++) {
		char out[64];
		size_t columns =
			nm_text_fit(out, sizeof(out), fits[i].text, fits[i].width, fits[i].style);
		if (strcmp(out, fits[i].shown) != 0 || columns != fits[i].columns ||
		    nm_text_width(out) != columns)
			fail_msg("\"%s\" in %zu columns: \"%s\", %zu wide, expected \"%s\", %zu",
				 fits[i].text, fits[i].width, out, columns, fits[i].shown,
				 fits[i].columns);
	}
}

/* A small buffer truncates as a narrow terminal does, and never inside a character. */
TEST(test_small_buffers)
{
	char out[8];
	for (size_t size = 1; size <= sizeof(out); size++) {
		memset(out, 'x', sizeof(out));
		size_t columns = nm_text_fit(out, size, "éééé", 4, &utf8);
		assert_true(strlen(out) < size);
		assert_int_equal(nm_text_width(out), columns);
		assert_true(columns <= 4);
		assert_null(strchr(out, '?'));
	}
}

/* ---- documents ---- */

/* The text is cleaned in its copy; a ' stands for ". NULL: no document. */
static json_t *parse(const char *text)
{
	nm_autofree char *copy = nm_must(strdup(text));
	json_t *document = NULL;
	for (char *at = copy; (at = strchr(at, '\'')); at++)
		*at = '"';
	int r = nm_ctl_parse_document(copy, strlen(copy), &document);
	assert_true(r == 0 || (r == -EBADMSG && !document));
	return document;
}

/* Names of members, and values that no table contains. */
/* SECURITY: document-text */
TEST(all_text_of_a_document_is_clean)
{
	json_t *document = parse("{'status':{'a\\u001b[31m':'\\u009b\\n'},'decisions':[{'kind':"
				 "'\\u001bc','policy':['\\u202e'],'fields':'A=1\\nB=\\u001b'}]}");
	nm_autofree char *text = json_dumps(document, JSON_COMPACT);
	assert_string_equal(text, "{\"status\":{\"a?[31m\":\"??\"},\"decisions\":[{\"kind\":\"?c\","
				  "\"policy\":[\"?\"],\"fields\":\"A=1\\nB=?\"}]}");
	json_decref(document);
}

/* SECURITY: nested-document */
TEST(deep_documents_end_nothing)
{
	static const int depths[] = {100, 1000, 2000, 100000};
	for (size_t i = 0; i < NM_ARRAY_SIZE(depths); i++) {
		nm_autofree char *open = nm_must(calloc(1, (size_t)depths[i] + 1)), *text = NULL;
		nm_autofree char *shut = nm_must(calloc(1, (size_t)depths[i] + 1));
		memset(open, '[', (size_t)depths[i]);
		memset(shut, ']', (size_t)depths[i]);
		nm_must_do(asprintf(&text, "{'status':{},'x':%s%s}", open, shut));
		json_t *document = parse(text);
		assert_true(document || depths[i] > 1000);
		json_decref(document);
	}
}

/* ---- cells ---- */

/* Values, and after = what is shown, with | between them. A value may be followed by more members
 * of its row, and no value is an absent member. */
static const struct {
	enum nm_cell_kind kind;
	const char *cells;
} cells[] = {
	/* A text is from another version of the daemon. */
	{NM_CELL_SHARE, "0.974=97%|0.0=0%|1=100%|[0.25,0.75]=25% 75%|'much'=much|null=–|=–"},
	/* At most three digits. */
	{NM_CELL_BYTES, "999=999|1536=1.5K|5368709120=5.0G|356515840=340M|1048576000=1.0G"},
	{NM_CELL_AGE, "1=1s|119=119s|120=2m|7199=119m|7200=2h|172799=47h|172800=2d"},
	{NM_CELL_FIGURE, "312.4=312|0.8=0.8|12345.0=12k|-12345.0=-12k|3e300=3e+282E"},
	{NM_CELL_ANY, "true=yes|false=no|0=0|''=–|[1,2,'x']=1 2 x"},
	{NM_CELL_TIME, "1700000000000000=Nov 14 22:13:20"},
	{NM_CELL_ARROW, "=–|2,'to':0=2→0|5,'to':-1=5|-1,'to':7=→7|3,'to':3=3|-1,'to':-1=–"},
	{NM_CELL_MEASURE, "0.5,'figure':'local_share'=50%|0.5,'figure':'performance'=0.5"},
};

static void check_cell(enum nm_cell_kind kind, const char *value, const char *shown)
{
	const struct nm_field column = {.name = "value", .second = "to", .kind = kind};
	char text[128], out[NM_CELL_SIZE];
	(void)snprintf(text, sizeof(text), *value ? "{'status':{'value':%s}}" : "{'status':{}}",
		       value);
	json_t *document = parse(text);
	size_t columns = nm_cell(&column, json_object_get(document, "status"), &utf8, out);
	if (strcmp(out, shown) != 0 || columns != nm_text_width(out))
		fail_msg("%s: \"%s\", expected \"%s\"", text, out, shown);
	json_decref(document);
}

TEST(test_cells)
{
	for (size_t i = 0; i < NM_ARRAY_SIZE(cells); i++) {
		nm_autofree char *copy = nm_must(strdup(cells[i].cells));
		for (char *rest = copy, *cell; (cell = strsep(&rest, "|"));) {
			const char *value = strsep(&cell, "=");
			check_cell(cells[i].kind, value, cell);
		}
	}
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

/* Prints the member "rows" of a document as a table, or its status as lines. */
static void assert_printed(const struct nm_table *table, const char *text, const char *expected)
{
	nm_autofree char *found = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&found, &size);
	json_t *document = parse(text);
	if (table)
		nm_table_print(out, &ascii, table, json_object_get(document, "rows"));
	else
		nm_ctl_print_lines(out, &ascii, json_object_get(document, "status"));
	(void)fclose(out);
	assert_string_equal(found, expected);
	json_decref(document);
}

TEST(test_table)
{
	static const struct nm_field columns[] = {
		{.name = "n", .head = "N"},
		{.name = "name", .head = "NAME", .left = true},
		{.name = "last", .head = "LAST", .left = true},
		{.name = "without a column"},
	};
	static const struct nm_table table = {.fields = columns, .count = 4};
	assert_printed(&table,
		       "{'status':{},'rows':[{'n':5,'name':'postgres'},"
		       "{'n':4711,'name':'a','last':null}]}",
		       "   N  NAME      LAST\n"
		       "   5  postgres  -\n"
		       "4711  a         -\n");
}

/* The home of a process, or the reason why it has none. */
TEST(test_homes)
{
	struct nm_table first = nm_process_table;
	first.count = 11;
	assert_printed(
		&first,
		"{'status':{},'rows':[{'pid':7,'home':3},{'pid':8,'reason':'little CPU use'}]}",
		"PID  COMMAND  STATE  HOME  THR  RUN  LOCAL  RSS  AGE  MEMORY  REASON\n"
		"  7  -        -         3    -    -      -    -    -  -       -\n"
		"  8  -        -         -    -    -      -    -    -  -       little CPU use\n");
}

TEST(test_lines)
{
	assert_printed(NULL,
		       "{'status':{'version':'0.1','threads_assigned':3,'paused':false,'more':{}}}",
		       "         version: 0.1\nthreads_assigned: 3\n          paused: no\n");
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
	static const char *const wrong[] = {"",	  "-1",	 "+1", " 1",  "1 ",
					    "1x", "0x1", "6",  "1e1", "18446744073709551616"};
	uint64_t value = 7;
	assert_true(nm_ctl_number("18446744073709551615", 0, UINT64_MAX, &value));
	assert_true(value == UINT64_MAX);
	assert_true(nm_ctl_number("0", 0, 5, &value));
	for (size_t i = 0; i < NM_ARRAY_SIZE(wrong); i++)
		if (nm_ctl_number(wrong[i], 0, 5, &value) || value != 0)
			fail_msg("\"%s\" is a number", wrong[i]);
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
