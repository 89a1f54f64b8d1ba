/* SPDX-License-Identifier: MIT */
/* numa-migrctl doctor and advise: queries and presentation of findings. */
#include <jansson.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sysexits.h>

#include <cmocka.h>

#include "bus_fixture.h"

#include "../../src/ctl/advice.h"
#include "../../src/ctl/doctor/checks.h"
#include "../../src/ctl/show_findings.h"
#include "../support/fake_service.h"
#include "../support/machine.h"
#include "../support/run_ctl.h"

#define UNAVAILABLE 69
#define NOT_ALLOWED 77
#define WIDTH 60U

static int with_service(void **state)
{
	(void)setenv("LC_ALL", "C.UTF-8", 1);
	return setup(state, open_policy, fake_service);
}

static int without_service(void **state)
{
	return setup(state, open_policy, NULL);
}

/* ---- findings as text and as JSON ---- */

static void add_some(struct nm_findings *findings)
{
	nm_findings_add(findings, "one", NM_SEVERITY_PROBLEM,
			"This is a sentence of more words than fit on a line of %u columns, é è ö.",
			WIDTH);
	nm_findings_evidence(findings, "a_word_that_is_longer_than_a_whole_line_may_be_%060d", 7);
	nm_findings_remedy(findings, "do  it");
	nm_findings_add(findings, "two", NM_SEVERITY_NOTE, "So.");
	nm_findings_add(findings, "three", NM_SEVERITY_NOTE, "So as well.");
}

static char *written_in(const struct nm_style *style, const struct nm_findings *findings,
			size_t leading)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	nm_ctl_write_findings(out, style, findings, leading, WIDTH);
	assert_int_equal(fclose(out), 0);
	return text;
}

static char *written(const struct nm_findings *findings, size_t leading)
{
	const struct nm_style plain = {.utf8 = true};

	return written_in(&plain, findings, leading);
}

static void test_text(void **state)
{
	nm_auto(nm_findings_clear) struct nm_findings findings = {0};

	(void)state;
	add_some(&findings);
	nm_autofree char *text = written(&findings, 0);
	assert_non_null(strstr(text,
			       "problem  one: This is a sentence of more words than fit on a\n"
			       "         line of 60 columns, é è ö.\n"));
	assert_non_null(strstr(text, "\n         remedy: do it\nnote     two: So.\n"));
	assert_non_null(strstr(text, "\n\n1 problem, 2 notes\n"));
	/* Only a word that exceeds the width makes a longer line. */
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
		assert_true(strlen(line) <= WIDTH + 3 || strstr(line, "longer_than"));
}

static void test_worst_findings_come_first(void **state)
{
	nm_auto(nm_findings_clear) struct nm_findings findings = {0};

	(void)state;
	nm_findings_add(&findings, "lead", NM_SEVERITY_NOTE, "L.");
	nm_findings_add(&findings, "a", NM_SEVERITY_FINE, "A.");
	nm_findings_evidence(&findings, "unsaid");
	nm_findings_add(&findings, "b", NM_SEVERITY_UNSEEN, "B.");
	nm_findings_add(&findings, "c", NM_SEVERITY_PROBLEM, "C.");
	nm_autofree char *text = written(&findings, 1);
	assert_string_equal(text,
			    "note     lead: L.\nproblem  c: C.\nunseen   b: B.\nfine     a: A.\n\n"
			    "1 problem, 1 unseen, 1 note, 1 fine\n");
}

/* Colour codes have no width, and characters that the terminal lacks are replaced. */
static void test_style(void **state)
{
	const struct nm_style colored = {.color = true};
	nm_auto(nm_findings_clear) struct nm_findings findings = {0};

	(void)state;
	nm_findings_add(&findings, "a", NM_SEVERITY_PROBLEM, "Ah: é.");
	nm_findings_add(&findings, "b", NM_SEVERITY_NOTE, "B.");
	nm_autofree char *text = written_in(&colored, &findings, 0);
	assert_string_equal(text, "\033[1;31mproblem\033[0m  \033[1ma:\033[0m Ah: ?.\n"
				  "note     \033[1mb:\033[0m B.\n\n1 problem, 1 note\n");
}

static void test_document(void **state)
{
	nm_auto(nm_findings_clear) struct nm_findings findings = {0};

	(void)state;
	add_some(&findings);
	json_t *document = nm_ctl_findings_document(&findings);
	assert_int_equal(json_integer_value(json_object_get(document, "version")), 1);
	const json_t *items = json_object_get(document, "findings");
	assert_int_equal(json_array_size(items), 3);
	const json_t *second = json_array_get(items, 1);
	assert_string_equal(json_string_value(json_object_get(second, "check")), "two");
	assert_string_equal(json_string_value(json_object_get(second, "severity")), "note");
	assert_true(json_is_null(json_object_get(second, "remedy")));
	const json_t *counts = json_object_get(document, "counts");
	assert_int_equal(json_integer_value(json_object_get(counts, "note")), 2);
	assert_int_equal(json_integer_value(json_object_get(counts, "unseen")), 0);
	json_decref(document);
}

/* ---- answers of bus and /proc as input of advise ---- */

static json_t *read_json(const char *text)
{
	json_error_t error;
	json_t *value = json_loads(text, 0, &error);
	if (!value)
		fail_msg("%s: %s", error.text, text);
	return value;
}

static void test_advice(void **state)
{
	nm_auto(nm_topology_freep) struct nm_topology *topology = machine_topology(4, 8);
	nm_auto(nm_advice_clear) struct nm_advise_input advice = {0};
	(void)state;
	topology->nodes[3].os_id = 8;
	json_t *threads =
		read_json("[{\"tid\": 5, \"node\": 8, \"local_share\": 0.5, \"accesses\": 30},"
			  " {\"tid\": 6, \"node\": 3, \"leased\": true, \"run_share\": 1,"
			  "  \"local_share\": 1.0, \"accesses\": 10},"
			  " {\"tid\": 7, \"preferred_node\": 2}]");
	json_t *pages = read_json(
		"[{\"by_node\": [1, 2, 3, 4], \"exclusivity\": 0.75, \"ping_pong\": 9,"
		"  \"histogram\": [0, 0, 0, 0, 0, 2, 0, 0, 0, 6]},"
		" [{\"bytes\": 4096, \"kind\": \"mixed\", \"samples\": 7, \"exclusivity\": 0.5},"
		"  {\"bytes\": 4096}]]");
	assert_int_equal(nm_advice_take(&advice, 99, topology, threads, pages), 0);
	const struct nm_advise_input *input = &advice;
	assert_int_equal(input->nr_threads, 3);
	assert_int_equal(input->threads[0].node, 3);
	assert_int_equal(input->threads[1].node,
			 -1); /* number 3 of the kernel is not a node here */
	assert_true(input->threads[1].leased);
	assert_int_equal(input->threads[2].preferred, 2);
	assert_true(isnan(input->threads[0].run_share));
	assert_true(isnan(input->threads[2].local_share));
	assert_float_equal(input->local_share, (0.5 * 30 + 10) / 40, 1e-9);
	assert_int_equal(input->nr_regions, 1);
	assert_int_equal(input->regions[0].kind, NM_ADVISE_MIXED);
	assert_float_equal(input->shared_page_share, 0.25, 1e-9);
	assert_int_equal(input->nodes[3].pages, 4);
	assert_int_equal(input->nodes[3].os_id, 8);
	assert_int_equal(input->ping_pong, 9);
	json_decref(threads);
	json_decref(pages);
}

/* Any answers of the bus, including missing ones. */
static void test_odd_advice(void **state)
{
	static const char *const odd[] = {
		"null",	     "[]",	 "{}",
		"[null, 7]", "[[], {}]", "[{\"tid\": -3, \"node\": \"x\"}, [{\"kind\": \"odd\"}]]"};
	(void)state;
	for (size_t i = 0; i < NM_ARRAY_SIZE(odd); i++) {
		nm_auto(nm_topology_freep) struct nm_topology *topology = machine_topology(2, 4);
		nm_auto(nm_advice_clear) struct nm_advise_input advice = {0};
		nm_auto(nm_findings_clear) struct nm_findings findings = {0};
		json_t *value = json_loads(odd[i], JSON_DECODE_ANY, NULL);
		assert_non_null(value);
		assert_int_equal(nm_advice_take(&advice, 99, topology, value, value), 0);
		assert_int_equal(nm_advise(&advice, &findings), 0);
		assert_true(findings.count > 0);
		json_decref(value);
	}
}

static void test_own_process(void **state)
{
	nm_auto(nm_topology_freep) struct nm_topology *topology = machine_topology(2, 4);
	nm_auto(nm_platform_freep) struct nm_platform *platform = NULL;
	nm_auto(nm_advice_clear) struct nm_advise_input advice = {0};
	const struct nm_platform_options direct = {.root_path = "/", .dry_run = true};
	char text[64];
	(void)state;
	(void)snprintf(text, sizeof(text), "[{\"tid\": %d}]", (int)getpid());
	json_t *threads = read_json(text);
	assert_int_equal(nm_platform_linux_new(&direct, &platform), 0);
	assert_int_equal(nm_advice_take(&advice, (uint32_t)getpid(), topology, threads, NULL), 0);
	nm_advice_look(&advice, platform, topology);
	assert_true(advice.rss_bytes > 0);
	json_decref(threads);
}

static void test_hinting(void **state)
{
	nm_auto(nm_advice_clear) struct nm_advise_input advice = {0};
	const struct nm_hinting before = {.faults = 100, .local = 50, .migrated = 7, .known = true};
	const struct nm_hinting after = {
		.faults = 300, .local = 100, .migrated = 27, .known = true};
	(void)state;
	nm_advice_set_hinting(&advice, &before, &after, 2);
	assert_float_equal(advice.hint_faults_per_s, 100, 1e-9);
	assert_float_equal(advice.migrated_per_s, 10, 1e-9);
	assert_float_equal(advice.hint_local_share, 0.25, 1e-9);
}

/* ---- the commands ---- */

static json_t *document(const char *arguments, int *ret_status)
{
	char text[32768];
	json_error_t error;
	*ret_status = ctl(arguments, text, sizeof(text));
	json_t *found = json_loads(text, JSON_REJECT_DUPLICATES, &error);
	if (!found)
		fail_msg("numa-migrctl %s: exit %d, %s in \"%s\"", arguments, *ret_status,
			 error.text, text);
	return found;
}

static void test_doctor_needs_no_bus(void **state)
{
	size_t count;
	int status;
	(void)state;
	(void)nm_doctor_checks(&count);
	(void)setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path=/nonexistent/bus", 1);
	json_t *found = document("doctor --json", &status);
	const json_t *counts = json_object_get(found, "counts");
	bool problems = json_integer_value(json_object_get(counts, "problem")) > 0;
	assert_int_equal(status, problems ? EXIT_FAILURE : EXIT_SUCCESS);
	assert_int_equal(json_array_size(json_object_get(found, "findings")), count);
	json_decref(found);
}

static void test_doctor_prints_text(void **state)
{
	char text[32768];
	(void)state;
	(void)setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path=/nonexistent/bus", 1);
	assert_true(ctl("doctor", text, sizeof(text)) <= EXIT_FAILURE);
	assert_non_null(strstr(text, " outlook: "));
	assert_non_null(strstr(text, " locked-memory: "));
}

static void test_advise(void **state)
{
	int status;
	need_bus(state);
	json_t *found = document("--json advise 4711", &status);
	assert_int_equal(status, EXIT_SUCCESS);
	assert_true(json_array_size(json_object_get(found, "findings")) > 0);
	json_decref(found);
	assert_ctl("advise", EX_USAGE, "advise needs a process id");
	assert_ctl("advise x", EX_USAGE, "not a process id: x");
	assert_ctl("advise 5", EXIT_FAILURE, "is not managed");
	assert_ctl("advise 13", NOT_ALLOWED, "");
}

static void test_advise_without_daemon(void **state)
{
	need_bus(state);
	assert_ctl("advise 4711", UNAVAILABLE, "not running");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_worst_findings_come_first),
		cmocka_unit_test(test_style),
		cmocka_unit_test(test_document),
		cmocka_unit_test(test_advice),
		cmocka_unit_test(test_odd_advice),
		cmocka_unit_test(test_own_process),
		cmocka_unit_test(test_hinting),
		cmocka_unit_test_setup_teardown(test_advise, with_service, teardown),
		cmocka_unit_test_setup_teardown(test_advise_without_daemon, without_service,
						teardown),
		cmocka_unit_test(test_doctor_needs_no_bus),
		cmocka_unit_test(test_doctor_prints_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
