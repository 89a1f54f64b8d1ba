/* SPDX-License-Identifier: MIT */
/* The [Service] section of units. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../../src/doctor/unit.h"

static void only_the_service_counts(void **state)
{
	nm_auto(nm_unit_clear) struct nm_unit unit = {0};

	(void)state;
	assert_int_equal(nm_unit_read(&unit, "A=0\n[Unit]\nA=1\n[Service]\n# A=2\n;A=3\n  A = 4 \n"
					     "no assignment\n[Install]\nA=5\n"),
			 0);
	assert_int_equal(unit.count, 1);
	assert_string_equal(nm_unit_value(&unit, "A"), "4");
	assert_null(nm_unit_value(&unit, "B"));
}

static void the_last_one_wins(void **state)
{
	nm_auto(nm_unit_clear) struct nm_unit unit = {0};

	(void)state;
	assert_int_equal(nm_unit_read(&unit, "[Service]\nA=1\nA=2"), 0);
	assert_int_equal(nm_unit_read(&unit, "[Service]\nA=3\n"), 0);
	/* A file's section ends with it. */
	assert_int_equal(nm_unit_read(&unit, "A=4\n"), 0);
	assert_string_equal(nm_unit_value(&unit, "A"), "3");
}

static void words_add_up_until_reset(void **state)
{
	nm_auto(nm_unit_clear) struct nm_unit unit = {0};

	(void)state;
	assert_int_equal(nm_unit_read(&unit, "[Service]\nC=CAP_A CAP_B\nC=CAP_LONG\n"), 0);
	assert_true(nm_unit_has_word(&unit, "C", "CAP_A"));
	assert_true(nm_unit_has_word(&unit, "C", "CAP_B"));
	assert_true(nm_unit_has_word(&unit, "C", "CAP_LONG"));
	assert_false(nm_unit_has_word(&unit, "C", "CAP"));
	assert_false(nm_unit_has_word(&unit, "C", "LONG"));
	assert_false(nm_unit_has_word(&unit, "D", "CAP_A"));
	assert_int_equal(nm_unit_read(&unit, "[Service]\nC=\nC=CAP_D\n"), 0);
	assert_true(nm_unit_has_word(&unit, "C", "CAP_D"));
	assert_false(nm_unit_has_word(&unit, "C", "CAP_A"));
}

static void long_lines_are_joined(void **state)
{
	nm_auto(nm_unit_clear) struct nm_unit unit = {0};

	(void)state;
	assert_int_equal(nm_unit_read(&unit, "[Service]\nC=CAP_A \\\n  CAP_B\nD=1\n"), 0);
	assert_true(nm_unit_has_word(&unit, "C", "CAP_B"));
	assert_string_equal(nm_unit_value(&unit, "D"), "1");
}

static void switches_have_many_names(void **state)
{
	(void)state;
	assert_int_equal(nm_unit_boolean("yes"), 1);
	assert_int_equal(nm_unit_boolean("TRUE"), 1);
	assert_int_equal(nm_unit_boolean("on"), 1);
	assert_int_equal(nm_unit_boolean("0"), 0);
	assert_int_equal(nm_unit_boolean("off"), 0);
	assert_int_equal(nm_unit_boolean("strict"), -EINVAL);
	assert_int_equal(nm_unit_boolean(""), -EINVAL);
	assert_int_equal(nm_unit_boolean(NULL), -EINVAL);
}

static void odd_texts_are_survived(void **state)
{
	static const char *const texts[] = {"",
					    "\n",
					    "[",
					    "[Service]",
					    "[Service]\n=",
					    "=\n",
					    "\\\n\\",
					    "[Service]\n=a\n",
					    "[Service]\nA"};

	(void)state;
	for (size_t i = 0; i < NM_ARRAY_SIZE(texts); i++) {
		nm_auto(nm_unit_clear) struct nm_unit unit = {0};
		assert_int_equal(nm_unit_read(&unit, texts[i]), 0);
		assert_null(nm_unit_value(&unit, "A"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_the_service_counts),
		cmocka_unit_test(the_last_one_wins),
		cmocka_unit_test(words_add_up_until_reset),
		cmocka_unit_test(long_lines_are_joined),
		cmocka_unit_test(switches_have_many_names),
		cmocka_unit_test(odd_texts_are_survived),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
