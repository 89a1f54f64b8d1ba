/* SPDX-License-Identifier: MIT */
#include "../support/test.h"

#include <stdint.h>
#include <string.h>

#include "../../src/ctl/show_findings.h"

TEST(a_split_process_is_gathered)
{
	nm_auto(nm_findings_clear) struct nm_findings findings = {0};

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

TEST(many_are_counted)
{
	nm_auto(nm_findings_clear) struct nm_findings findings = {0};

	for (int i = 0; i < 100; i++)
		nm_findings_add(&findings, "any", i % 4 ? NM_SEVERITY_NOTE : NM_SEVERITY_WARNING,
				"%d", i);
	assert_int_equal(findings.count, 100);
	assert_int_equal(nm_findings_count(&findings, NM_SEVERITY_WARNING), 25);
	assert_int_equal(nm_findings_count(&findings, NM_SEVERITY_NOTE), 75);
	assert_int_equal(nm_findings_count(&findings, NM_SEVERITY_PROBLEM), 0);
}

TEST(every_severity_has_a_name)
{
	for (int a = 0; a < NM_SEVERITY_MAX; a++)
		for (int b = 0; b < a; b++)
			assert_string_not_equal(nm_severity_name((enum nm_severity)a),
						nm_severity_name((enum nm_severity)b));
}

TEST(cleared_twice)
{
	struct nm_findings findings = {0};

	nm_findings_add(&findings, "one", NM_SEVERITY_FINE, "It is.");
	nm_findings_clear(&findings);
	nm_findings_clear(&findings);
	assert_int_equal(findings.count, 0);
}

RUN_TESTS()
