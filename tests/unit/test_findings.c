/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../../src/ctl/show_findings.h"

static void a_split_process_is_gathered(void **state)
{
	nm_auto(nm_findings_clear) struct nm_findings findings = {0};

	(void)state;
	nm_findings_add(&findings, "one", NM_SEVERITY_FINE, "It is %d.", 1);
	nm_findings_add(&findings, "two", NM_SEVERITY_PROBLEM, "It is %s.", "bad");
	nm_findings_evidence(&findings, "file %s", "a");
	nm_findings_evidence(&findings, "file %s", "b");
	nm_findings_remedy(&findings, "do %d", 7);
	assert_int_equal(findings.count, 2);
	assert_string_equal(findings.items[0].what, "It is 1.");
	assert_null(findings.items[0].evidence);
	assert_null(findings.items[0].remedy);
	assert_string_equal(findings.items[1].check, "two");
	assert_string_equal(findings.items[1].what, "It is bad.");
	assert_string_equal(findings.items[1].evidence, "file a; file b");
	assert_string_equal(findings.items[1].remedy, "do 7");
}

static void many_are_counted(void **state)
{
	nm_auto(nm_findings_clear) struct nm_findings findings = {0};

	(void)state;
	for (int i = 0; i < 100; i++)
		nm_findings_add(&findings, "any", i % 4 ? NM_SEVERITY_NOTE : NM_SEVERITY_WARNING,
				"%d", i);
	assert_int_equal(findings.count, 100);
	assert_int_equal(nm_findings_count(&findings, NM_SEVERITY_WARNING), 25);
	assert_int_equal(nm_findings_count(&findings, NM_SEVERITY_NOTE), 75);
	assert_int_equal(nm_findings_count(&findings, NM_SEVERITY_PROBLEM), 0);
}

static void every_severity_has_a_name(void **state)
{
	(void)state;
	for (int a = 0; a < NM_SEVERITY_MAX; a++)
		for (int b = 0; b < a; b++)
			assert_string_not_equal(nm_severity_name((enum nm_severity)a),
						nm_severity_name((enum nm_severity)b));
}

static void cleared_twice(void **state)
{
	struct nm_findings findings = {0};

	(void)state;
	nm_findings_add(&findings, "one", NM_SEVERITY_FINE, "It is.");
	nm_findings_clear(&findings);
	nm_findings_clear(&findings);
	assert_int_equal(findings.count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_split_process_is_gathered),
		cmocka_unit_test(many_are_counted),
		cmocka_unit_test(every_severity_has_a_name),
		cmocka_unit_test(cleared_twice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
