/* SPDX-License-Identifier: MIT */
/* numa-migrctl doctor: queries and presentation of findings. */
#include "../support/test.h"

#include <jansson.h>
#include <math.h>
#include <sysexits.h>

#include "bus_fixture.h"

#include "../../src/ctl/doctor/checks.h"
#include "../../src/ctl/show_findings.h"
#include "../support/fake_service.h"
#include "../support/run_ctl.h"

#define WIDTH 60U

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

TEST(test_text)
{
	nm_auto(nm_findings_clear) struct nm_findings findings = {0};

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

TEST(test_worst_findings_come_first)
{
	nm_auto(nm_findings_clear) struct nm_findings findings = {0};

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
TEST(test_style)
{
	const struct nm_style colored = {.color = true};
	nm_auto(nm_findings_clear) struct nm_findings findings = {0};

	nm_findings_add(&findings, "a", NM_SEVERITY_PROBLEM, "Ah: é.");
	nm_findings_add(&findings, "b", NM_SEVERITY_NOTE, "B.");
	nm_autofree char *text = written_in(&colored, &findings, 0);
	assert_string_equal(text, "\033[1;31mproblem\033[0m  \033[1ma:\033[0m Ah: ?.\n"
				  "note     \033[1mb:\033[0m B.\n\n1 problem, 1 note\n");
}

TEST(test_document)
{
	nm_auto(nm_findings_clear) struct nm_findings findings = {0};

	add_some(&findings);
	json_t *document = nm_ctl_findings_document(&findings);
	assert_int_equal(json_integer_value(json_object_get(document, "version")), 2);
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

TEST(test_doctor_needs_no_bus)
{
	size_t count;
	int status;
	(void)nm_doctor_checks(&count);
	(void)setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path=/nonexistent/bus", 1);
	json_t *found = document("doctor --json", &status);
	const json_t *counts = json_object_get(found, "counts");
	bool problems = json_integer_value(json_object_get(counts, "problem")) > 0;
	assert_int_equal(status, problems ? EXIT_FAILURE : EXIT_SUCCESS);
	assert_int_equal(json_array_size(json_object_get(found, "findings")), count);
	json_decref(found);
}

TEST(test_doctor_prints_text)
{
	char text[32768];
	(void)setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path=/nonexistent/bus", 1);
	assert_true(ctl("doctor", text, sizeof(text)) <= EXIT_FAILURE);
	assert_non_null(strstr(text, " outlook: "));
	assert_non_null(strstr(text, " balancing: "));
}

RUN_TESTS()
