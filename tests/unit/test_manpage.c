/* SPDX-License-Identifier: MIT */
/* numa-migrd.conf(5) shows the default and the range of every setting as in the table, and its examples are valid. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "../../src/config/table.h"
#include "config_cases.h"

#define PAGE NM_SOURCE_DIR "/man/numa-migrd.conf.5"

static int read_page(void **state)
{
	FILE *file = fopen(PAGE, "r");
	char *page = calloc(1, 1 << 16);
	if (!file || !page || fread(page, 1, (1 << 16) - 1, file) == 0 || fclose(file) != 0)
		return -1;
	*state = page;
	return 0;
}

static int free_page(void **state)
{
	free(*state);
	return 0;
}

/* Returns the text after the line up to the line that begins with `end`, or the end of the page. */
static char *section(const char *page, const char *line, const char *end)
{
	char start[128];
	(void)snprintf(start, sizeof(start), "\n%s\n", line);
	const char *from = strstr(page, start);
	if (!from) {
		fail_msg("%s has no line \"%s\"", PAGE, line);
		return NULL;
	}
	from += strlen(start) - 1;
	const char *to = strstr(from, end);
	return to ? strndup(from, (size_t)(to - from) + 1) : strdup(from);
}

static void expected_line(const struct nm_setting *setting, char *out, size_t out_size)
{
	const char *quote = nm_setting_is_text(setting) ? "\"" : "";
	bool has_paper = setting->paper && setting->group[0];
	char allowed[256];
	nm_setting_allowed(setting, allowed, sizeof(allowed));
	(void)snprintf(out, out_size, "\nDefault %s%s%s;%s%s%s%s%s allowed: %s.\n", quote,
		       setting->shipped, quote, has_paper ? " paper: " : "", has_paper ? quote : "",
		       has_paper ? setting->paper : "", has_paper ? quote : "",
		       has_paper ? ";" : "", allowed);
}

static void test_every_setting(void **state)
{
	for (size_t i = 0; i < nm_setting_count; i++) {
		const struct nm_setting *setting = &nm_settings[i];
		char item[80], expected[512];
		(void)snprintf(item, sizeof(item), ".It Ic %s%s%s", setting->group,
			       setting->group[0] ? "." : "", setting->name);
		expected_line(setting, expected, sizeof(expected));
		nm_autofree char *text = section(*state, item, "\n.It Ic");
		if (!strstr(text, expected))
			fail_msg("%s: %s.%s lacks: %s", PAGE, setting->group, setting->name,
				 expected);
	}
}

/* No settings that have been removed: */
static void test_no_obsolete_settings_are_documented(void **state)
{
	size_t items = 0, defaults = 0;
	for (const char *at = *state; (at = strstr(at, "\n.It Ic ")) != NULL; at++)
		items++;
	for (const char *at = *state; (at = strstr(at, "\nDefault ")) != NULL; at++)
		defaults++;
	assert_int_equal(defaults, nm_setting_count);
	assert_int_equal(items, nm_setting_count + 5); /* and the keys of a pattern */
}

static void test_examples(void **state)
{
	nm_autofree char *examples = section(*state, ".Sh EXAMPLES", "\n.Sh");
	size_t count = 0;
	for (const char *at = examples; (at = strstr(at, "\n.Bd -literal")) != NULL; count++) {
		const char *start = strchr(at + 1, '\n') + 1;
		at = strstr(start, "\n.Ed");
		assert_non_null(at);
		nm_config_free(accept_bytes(start, (size_t)(at - start)));
	}
	assert_true(count >= 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_every_setting, read_page, free_page),
		cmocka_unit_test_setup_teardown(test_no_obsolete_settings_are_documented, read_page,
						free_page),
		cmocka_unit_test_setup_teardown(test_examples, read_page, free_page),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
