/* SPDX-License-Identifier: MIT */
/* The page of a recording shows its content, states what is missing, and is well-formed with any
 * names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../../src/ctl/page/html.h"
#include "../../src/ctl/page/plot.h"
#include "report_fixture.h"

/* ---- text ---- */

static void assert_text(const char *text, size_t length, const char *expected)
{
	char *written = NULL;
	size_t size;
	FILE *out = open_memstream(&written, &size);
	nm_html_text(out, text, length);
	fclose(out);
	assert_string_equal(written, expected);
	free(written);
}

#define LOST "\xef\xbf\xbd"

static void test_text_has_no_markup(void **state)
{
	(void)state;
	assert_text("<a b='c' d=\"e\">&amp;", 20,
		    "&lt;a b=&#39;c&#39; d=&quot;e&quot;&gt;&amp;amp;");
	assert_text("]]><!--", 7, "]]&gt;&lt;!--");
	assert_text("a\tb\nc", 5, "a\tb\nc");
	assert_text("\xe6\xbc\xa2\xf0\x9f\x92\xbe", 7, "\xe6\xbc\xa2\xf0\x9f\x92\xbe");
	assert_text("", 0, "");
}

/* XML 1.0, section 2.2, invalid UTF-8, and characters that change the direction of text. */
static void test_text_has_no_foreign_characters(void **state)
{
	(void)state;
	assert_text("\0\x1b\x7f", 3, LOST LOST LOST);
	assert_text("\r", 1, LOST);
	assert_text("\xc2\x85", 2, LOST);		       /* U+0085 */
	assert_text("\xff\xc3", 2, LOST LOST); /* only a continuation, only a start */
	assert_text("\xc0\xbc", 2, LOST LOST);		       /* "<", too long */
	assert_text("\xed\xa0\x80", 3, LOST LOST LOST);	       /* a surrogate */
	assert_text("\xef\xbf\xbe\xef\xbf\xbf", 6, LOST LOST); /* U+FFFE, U+FFFF */
	assert_text("\xe2\x80\xae\xe2\x81\xa6", 6, LOST LOST); /* U+202E, U+2066 */
}

static void test_every_byte_is_valid_in_a_page(void **state)
{
	(void)state;
	for (unsigned byte = 1; byte < 256; byte++) {
		const char name[] = {'x', (char)byte, 'y', '\0'};
		const char *const names[] = {name, NULL};
		struct made_recording_options options = {.nodes = 2,
							 .processes = 1,
							 .threads = 1,
							 .intervals = 2,
							 .moves = true,
							 .names = names,
							 .message = name,
							 .config = name};
		struct page page = page_of(&options, name);
		page_clear(&page);
	}
}

static void test_times(void **state)
{
	(void)state;
	char text[NM_TIME_SIZE];
	assert_string_equal(nm_html_time(12.5, text), "12.5 s");
	assert_string_equal(nm_html_time(187, text), "3:07");
	assert_string_equal(nm_html_time(7387, text), "2:03:07");
	assert_string_equal(nm_html_time(-1, text), "0 s");
}

/* Ticks of time are round, in order, and few enough to be read. */
static void test_ticks(void **state)
{
	(void)state;
	struct nm_rng rng;
	double ticks[NM_PLOT_TICKS_MOST];
	assert_int_equal(nm_plot_times(90, 5, ticks), 4);
	assert_true(ticks[1] == 30 && ticks[3] == 90);
	assert_int_equal(nm_plot_times(0, 5, ticks), 1);
	assert_true(ticks[0] == 0);
	assert_int_equal(nm_plot_times(7200, 5, ticks), 5);
	assert_true(ticks[1] == 1800);
	nm_rng_seed(&rng, 3);
	for (unsigned i = 0; i < 20000; i++)
		assert_true(nm_plot_times(pow(10, 36 * nm_rng_unit(&rng) - 18), 5, ticks) <= 6);
}

/* ---- hostile text ---- */

static void test_names_are_shown_unchanged(void **state)
{
	(void)state;
	struct made_recording_options options = made_usual;
	options.names = made_hostile_names;
	options.processes = 8;
	options.message = "</td><script>alert(4)</script>";
	options.config = "</pre><script>&x;";
	struct page page = page_of(&options, "</h1><script>alert(6)</script>");
	assert_int_equal(count_of(&page, "//h:script | //h:img | //h:style[position() > 1]"), 0);
	assert_int_equal(count_of(&page, "//@*[starts-with(name(), 'on')]"), 0);
	assert_string_of(&page, "string(//h:h1)", "</h1><script>alert(6)</script>");
	assert_string_of(&page, "string(//h:pre)", "</pre><script>&x;");
	assert_true(count_of(&page, "//h:li[h:bdi = '</title><script>alert(1)</script>']") > 0);
	assert_true(count_of(&page, "//h:li[contains(@title, '<img src=x onerror=alert(2)>')]") >
		    0);
	assert_true(count_of(&page, "//h:td[contains(., '<script>alert(4)</script>')]") > 0);
	page_clear(&page);
}

static void append_names(xmlNodePtr node, FILE *out)
{
	for (; node; node = node->next) {
		if (node->type != XML_ELEMENT_NODE)
			continue;
		fprintf(out, "<%s", (const char *)node->name);
		for (xmlAttrPtr attribute = node->properties; attribute;
		     attribute = attribute->next)
			fprintf(out, " %s", (const char *)attribute->name);
		append_names(node->children, out);
		fputs(">", out);
	}
}

/* Elements and attributes, without values and text. */
static char *element_structure(const struct made_recording_options *options, const char *name)
{
	char *text = NULL;
	size_t size;
	struct page page = page_of(options, name);
	FILE *out = open_memstream(&text, &size);
	append_names(xmlDocGetRootElement(page.document), out);
	fclose(out);
	page_clear(&page);
	return text;
}

/* SECURITY: recordings */
static void test_names_change_nothing_but_text(void **state)
{
	(void)state;
	struct made_recording_options options = made_usual;
	options.processes = 8;
	char *plain = element_structure(&options, "plain");
	options.names = made_hostile_names;
	options.message = "<b a='";
	options.config = "<!--";
	char *hostile = element_structure(&options, "\"><svg onload='x'>");
	assert_string_equal(plain, hostile);
	free(plain);
	free(hostile);
}

/* ---- no external resources ---- */

static void test_page_loads_no_resources(void **state)
{
	(void)state;
	struct page page = page_of(&made_usual, "usual");
	assert_int_equal(
		count_of(&page, "//h:script | //h:link | //h:base | //h:iframe | //h:object"), 0);
	assert_int_equal(count_of(&page, "//@src | //@style | //@href[not(starts-with(., '#'))]"),
			 0);
	assert_int_equal(count_of(&page, "//@href"), count_of(&page, "//@href[. != '#']"));
	assert_null(strstr(page.text, "@import"));
	assert_null(strstr(page.text, "url("));
	page_clear(&page);
}

/* Each link has exactly one target. */
static void test_ids_are_unique(void **state)
{
	(void)state;
	struct page page = page_of(&made_usual, "usual");
	int ids = count_of(&page, "//@id");
	assert_true(ids > 4);
	assert_int_equal(count_of(&page, "//*[@id][not(@id = preceding::*/@id)]"), ids);
	assert_int_equal(count_of(&page, "//h:a[not(substring(@href, 2) = //@id)]"), 0);
	page_clear(&page);
}

/* The policy permits only the style sheet of the page. */
static void test_policy_names_the_style_sheet(void **state)
{
	(void)state;
	char hash[128] = "", expected[256];
	struct page page = page_of(&made_usual, "usual");
	char *style = string_of(&page, "string(//h:style)");
	char path[] = "/tmp/numa-migrd-style-XXXXXX", command[256];
	int fd = mkstemp(path);
	assert_int_equal(write(fd, style, strlen(style)), (ssize_t)strlen(style));
	close(fd);
	snprintf(command, sizeof(command),
		 "sha256sum %s | cut -c 1-64 | tr a-f A-F | basenc --base16 --decode | base64",
		 path);
	FILE *pipe = popen(command, "re");
	assert_non_null(fgets(hash, sizeof(hash), pipe));
	pclose(pipe);
	unlink(path);
	hash[strcspn(hash, "\n")] = '\0';
	snprintf(expected, sizeof(expected),
		 "default-src 'none'; style-src 'sha256-%s'; base-uri 'none'; form-action 'none'",
		 hash);
	assert_string_of(&page, "string(//h:meta[@http-equiv='Content-Security-Policy']/@content)",
			 expected);
	free(style);
	page_clear(&page);
}

/* ---- content ---- */

static void test_threads_are_where_they_ran(void **state)
{
	(void)state;
	struct made_recording_options options = {.nodes = 2,
						 .processes = 1,
						 .threads = 2,
						 .intervals = 10,
						 .accesses = true,
						 .moves = true};
	struct page page = page_of(&options, "small");
	/* The memory of thread 1000 is on node 0 and it starts on node 1; it is moved after
	 * interval 4. */
	assert_int_equal(count_of(&page, "//*[@id='timeline']//h:li"), 5);
	assert_int_equal(count_of(&page, "//h:rect[@class='bar n1' and @x='0.00%%' and @y='3' and "
					 "@width='40.00%%']"),
			 1);
	assert_int_equal(count_of(&page, "//h:rect[@class='bar n0' and @x='40.00%%' and @y='3' and "
					 "@width='60.00%%']"),
			 1);
	assert_int_equal(count_of(&page, "//*[@id='timeline']//h:use[@href='#m1' and "
					 "@x='40.00%%']"),
			 1);
	assert_int_equal(count_of(&page, "//*[@id='decisions']//h:tbody/h:tr"), 1);
	page_clear(&page);
}

static void test_values_match_the_recording(void **state)
{
	(void)state;
	struct page page = page_of(&made_usual, "usual");
	assert_true(page_contains(&page, "4 nodes, 32 CPUs, 16 GiB of memory"));
	assert_true(page_contains(&page, "24 threads of 3 processes"));
	assert_true(page_contains(&page, "1:30 in 90 intervals"));
	assert_true(page_contains(&page, "2025-11-22 08:26:40 UTC"));
	assert_int_equal(count_of(&page, "//h:polyline[@class='line all']"), 1);
	assert_int_equal(count_of(&page, "//h:polyline[starts-with(@class, 'line p')]"), 3);
	page_clear(&page);
}

static void test_missing_data_is_stated(void **state)
{
	(void)state;
	struct made_recording_options options = {
		.nodes = 2, .processes = 1, .threads = 2, .intervals = 5};
	struct page page = page_of(&options, "bare");
	assert_int_equal(count_of(&page, "//h:section"), 4);
	assert_int_equal(count_of(&page, "//h:section/h:p[@class='absent']"), 3);
	assert_int_equal(count_of(&page, "//h:polyline"), 0);
	page_clear(&page);
	options.processes = 0;
	options.intervals = 0;
	page = page_of(&options, "empty");
	assert_int_equal(count_of(&page, "//h:section/h:p[@class='absent']"), 4);
	page_clear(&page);
}

static void test_file_without_records(void **state)
{
	(void)state;
	struct nm_recorder_writer *writer;
	int fd = memory_file();
	assert_int_equal(nm_recording_create(dup(fd), 0, &writer), 0);
	nm_recording_close(writer);
	struct page page = page_of_file(fd, "nothing");
	assert_int_equal(count_of(&page, "//h:section/h:p[@class='absent']"), 4);
	assert_true(page_contains(&page, "the first record is missing"));
	assert_true(page_contains(&page, "the recording is still running or was interrupted"));
	page_clear(&page);
}

/* ---- bounds ---- */

enum { PAGE_BYTES_MOST = 2 << 20 };

static void test_many_threads_are_counted(void **state)
{
	(void)state;
	struct made_recording_options options = made_usual;
	options.nodes = 16;
	options.processes = 100;
	options.threads = 64;
	options.intervals = 20;
	struct page page = page_of(&options, "large");
	assert_true(page.length < PAGE_BYTES_MOST);
	assert_true(page_contains(&page, "and 6360 more threads"));
	page_clear(&page);
}

static void test_long_recordings_are_summed_up(void **state)
{
	(void)state;
	struct made_recording_options options = made_usual;
	options.processes = 2;
	options.intervals = 9000;
	struct page page = page_of(&options, "long");
	assert_true(page.length < PAGE_BYTES_MOST);
	assert_int_equal(count_of(&page, "//*[@id='decisions']//h:tbody/h:tr"), 100);
	assert_true(page_contains(&page, "2:30:00 in 9000 intervals"));
	page_clear(&page);
}

/* ---- hostile files ---- */

static double any_real(struct nm_rng *rng)
{
	static const double odd[] = {(double)NAN,
				     (double)INFINITY,
				     -(double)INFINITY,
				     0,
				     -0.0,
				     -1,
				     1e308,
				     1e-308,
				     5e-324,
				     1};
	uint64_t which = nm_rng_below(rng, 2 * NM_ARRAY_SIZE(odd));
	return which < NM_ARRAY_SIZE(odd) ? odd[which] : nm_rng_unit(rng);
}

static uint64_t any_number(struct nm_rng *rng)
{
	static const uint64_t odd[] = {0, 1, 2, UINT32_MAX, INT64_MAX, UINT64_MAX, 1000000000};
	return odd[nm_rng_below(rng, NM_ARRAY_SIZE(odd))];
}

static void add(struct nm_recorder_writer *writer, const struct nm_recorded *record)
{
	assert_int_equal(nm_recording_add(writer, record), 0);
}

static void add_any_threads(struct nm_recorder_writer *writer, struct nm_rng *rng)
{
	struct nm_recorded_thread threads[4];
	for (unsigned i = 0; i < 4; i++)
		threads[i] = (struct nm_recorded_thread){.tid = (uint32_t)any_number(rng),
							 .pid = (uint32_t)any_number(rng),
							 .main_node = (int)any_number(rng),
							 .run_share = any_real(rng),
							 .local_share = any_real(rng),
							 .access_total = any_real(rng),
							 .latency = any_real(rng),
							 .operations = any_real(rng),
							 .intensity = any_real(rng)};
	struct nm_recorded record = {.kind = NM_RECORDED_THREADS};
	record.threads.items = threads;
	record.threads.count = 4;
	add(writer, &record);
}

static void add_any_process(struct nm_recorder_writer *writer, struct nm_rng *rng)
{
	const struct nm_recorded_process process = {.pid = (uint32_t)any_number(rng)};
	struct nm_recorded record = {.kind = NM_RECORDED_PROCESSES};
	record.processes.items = &process;
	record.processes.count = 1;
	add(writer, &record);
}

static void add_any_decisions(struct nm_recorder_writer *writer, struct nm_rng *rng)
{
	uint64_t id = any_number(rng);
	struct nm_recorded record = {.kind = NM_RECORDED_DECISION,
				     .decision = {.id = id,
						  .nr_steps = 2,
						  .steps = {{.tid = (uint32_t)any_number(rng),
							     .node_from = (int)any_number(rng)},
							    {.tid = (uint32_t)any_number(rng)}}}};
	add(writer, &record);
	record = (struct nm_recorded){.kind = NM_RECORDED_DECISION,
				      .decision = {.id = any_number(rng),
						   .kind = NM_DECISION_PAGES,
						   .nr_steps = 1,
						   .steps = {{.node_to = (int)any_number(rng)}}}};
	add(writer, &record);
	record = (struct nm_recorded){.kind = NM_RECORDED_VERDICT, .verdict = {.decision = id}};
	add(writer, &record);
}

static void write_anything(int fd, uint64_t seed)
{
	struct nm_recorder_writer *writer;
	struct nm_rng rng;
	nm_rng_seed(&rng, seed);
	assert_int_equal(nm_recording_create(dup(fd), 0, &writer), 0);
	struct nm_topology *topology = machine_topology(2, 2);
	struct nm_recorded record = {.kind = NM_RECORDED_TOPOLOGY, .topology = topology};
	add(writer, &record);
	for (unsigned i = 0; i < 6; i++) {
		record = (struct nm_recorded){.kind = NM_RECORDED_INTERVAL,
					      .about = {.number = any_number(&rng),
							.time_ns = any_number(&rng),
							.length_ns = any_number(&rng),
							.local_share = any_real(&rng)}};
		if (nm_rng_below(&rng, 4))
			add(writer, &record);
		add_any_threads(writer, &rng);
		add_any_process(writer, &rng);
		add_any_decisions(writer, &rng);
	}
	nm_recording_close(writer);
	nm_topology_free(topology);
}

/* Each coordinate of a plot is a number within the plot. */
static void assert_places(const struct page *page)
{
	static const char *const attributes[] = {"x",  "x1", "x2", "y",	    "y1",    "y2",
						 "cx", "cy", "r",  "width", "height"};
	for (size_t i = 0; i < NM_ARRAY_SIZE(attributes); i++) {
		const char *name = attributes[i];
		int bad = count_of(page,
				   "//*[@%s][not(number(translate(@%s, '%%', '')) >= -20 and "
				   "number(translate(@%s, '%%', '')) <= 10000)]",
				   name, name, name);
		if (bad)
			fail_msg("%d of %s are beyond: %s", bad, name, page->text);
	}
	assert_int_equal(count_of(page,
				  "//*[contains(@width, '%%')][number(translate(@width, '%%', "
				  "'')) > 100.1]"),
			 0);
	assert_int_equal(count_of(page, "//*[contains(@points, 'n')]"), 0);
}

static void test_any_numbers_make_a_page(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 300; seed++) {
		int fd = memory_file();
		write_anything(fd, seed);
		struct page page = page_of_file(fd, "any");
		assert_places(&page);
		page_clear(&page);
	}
	struct page page = page_of(&made_usual, "usual");
	assert_places(&page);
	page_clear(&page);
}

static void test_torn_and_damaged_files(void **state)
{
	(void)state;
	char error[256];
	struct nm_recording *recording;
	int fd = memory_file();
	assert_int_equal(made_recording(fd, &made_usual), 0);
	assert_int_equal(ftruncate(fd, lseek(fd, 0, SEEK_END) - 20), 0);
	struct page page = page_of_file(dup(fd), "torn");
	assert_true(page_contains(&page, "are incomplete and were ignored"));
	page_clear(&page);
	/* In the first block, followed by others. */
	const struct made_recording_options large = {
		.nodes = 8, .processes = 40, .threads = 64, .intervals = 40};
	int whole = memory_file();
	assert_int_equal(made_recording(whole, &large), 0);
	assert_int_equal(pwrite(whole, "\xff\xff\xff", 3, 60), 3);
	assert_int_equal(nm_recording_open(whole, error, sizeof(error), &recording), 0);
	FILE *out = fopen("/dev/null", "we");
	assert_int_equal(nm_report_write(recording, "damaged", out), -EBADMSG);
	fclose(out);
	nm_recording_free(recording);
	close(fd);
}

static void test_full_disk(void **state)
{
	(void)state;
	char error[256];
	struct nm_recording *recording;
	int fd = memory_file();
	assert_int_equal(made_recording(fd, &made_usual), 0);
	assert_int_equal(nm_recording_open(fd, error, sizeof(error), &recording), 0);
	FILE *out = fopen("/dev/full", "we");
	assert_non_null(out);
	assert_int_equal(nm_report_write(recording, "full", out), -EIO);
	fclose(out);
	nm_recording_free(recording);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text_has_no_markup),
		cmocka_unit_test(test_text_has_no_foreign_characters),
		cmocka_unit_test(test_every_byte_is_valid_in_a_page),
		cmocka_unit_test(test_times),
		cmocka_unit_test(test_ticks),
		cmocka_unit_test(test_names_are_shown_unchanged),
		cmocka_unit_test(test_names_change_nothing_but_text),
		cmocka_unit_test(test_page_loads_no_resources),
		cmocka_unit_test(test_ids_are_unique),
		cmocka_unit_test(test_policy_names_the_style_sheet),
		cmocka_unit_test(test_threads_are_where_they_ran),
		cmocka_unit_test(test_values_match_the_recording),
		cmocka_unit_test(test_missing_data_is_stated),
		cmocka_unit_test(test_file_without_records),
		cmocka_unit_test(test_many_threads_are_counted),
		cmocka_unit_test(test_long_recordings_are_summed_up),
		cmocka_unit_test(test_any_numbers_make_a_page),
		cmocka_unit_test(test_torn_and_damaged_files),
		cmocka_unit_test(test_full_disk),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	xmlCleanupParser();
	return failed;
}
