/* SPDX-License-Identifier: MIT */
/*
 * docs/troubleshooting.md has a row for each check of doctor, and no other; settings,
 * values of status and verdicts that the documents name exist.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "../../src/config/settings.h"
#include "../../src/ctl/doctor/checks.h"
#include "../../src/report/entry.h"

#define PAGE NM_SOURCE_DIR "/docs/troubleshooting.md"
#define GUIDE NM_SOURCE_DIR "/docs/is-it-helping.md"
#define PAGE_BYTES (1 << 16)

static int read_file(void **state, const char *path)
{
	FILE *file = fopen(path, "r");
	char *page = calloc(1, PAGE_BYTES);

	if (!file || !page || fread(page, 1, PAGE_BYTES - 1, file) == 0 || fclose(file) != 0)
		return -1;
	*state = page;
	return 0;
}

static int read_page(void **state)
{
	return read_file(state, PAGE);
}

static int read_guide(void **state)
{
	return read_file(state, GUIDE);
}

static int free_page(void **state)
{
	free(*state);
	return 0;
}

/* Returns the position after the line below the head of the table in that section. */
static const char *rows_of(const char *page, const char *section)
{
	const char *at = strstr(page, section);

	at = at ? strstr(at, "\n|---") : NULL;
	if (!at)
		fail_msg("%s has no table below \"%s\"", PAGE, section);
	return at ? strchr(at + 1, '\n') + 1 : NULL;
}

/* The row starts with this cell, and its other cells are not empty. Returns the next line. */
static const char *check_row(const char *row, const char *name)
{
	char expected[256];
	const char *end = strchrnul(row, '\n');

	(void)snprintf(expected, sizeof(expected), "| `%s` | ", name);
	if (strncmp(row, expected, strlen(expected)) != 0)
		fail_msg("%s: \"%.*s\" should begin with \"%s\"", PAGE, (int)(end - row), row,
			 expected);
	assert_true((size_t)(end - row) > strlen(expected) + 3);
	assert_true(end[-1] == '|');
	assert_null(memmem(row, (size_t)(end - row), "|  |", 4));
	return *end ? end + 1 : end;
}

static void every_check_has_its_row(void **state)
{
	size_t count;
	const struct nm_doctor_check *checks = nm_doctor_checks(&count);
	const char *row = rows_of(*state, "## What doctor looks at");

	for (size_t i = 0; i < count; i++)
		row = check_row(row, checks[i].name);
	assert_int_equal(*row, '\n');
}

/* ---- names ---- */

static bool is_setting(const char *group, size_t group_length, const char *name, size_t length)
{
	for (size_t i = 0; i < nm_setting_count; i++)
		if (strlen(nm_settings[i].group) == group_length &&
		    memcmp(nm_settings[i].group, group, group_length) == 0 &&
		    strlen(nm_settings[i].name) == length &&
		    memcmp(nm_settings[i].name, name, length) == 0)
			return true;
	return false;
}

static size_t check_settings_of(const char *page, const char *group)
{
	size_t count = 0, length = strlen(group);

	for (const char *at = page; (at = strstr(at, group)) != NULL; at += length) {
		const char *name = at + length + 1;
		size_t name_length = strspn(name, "abcdefghijklmnopqrstuvwxyz_0123456789");
		bool begins = at == page || strchr("` \n", at[-1]);
		if (!begins || at[length] != '.' || name_length == 0)
			continue;
		count++;
		if (!is_setting(at, length, name, name_length))
			fail_msg("there is no setting %.*s", (int)(length + 1 + name_length), at);
	}
	return count;
}

static void every_setting_exists(void **state)
{
	static const char *const groups[] = {"general", "targets", "sampling",
					     "threads", "pages",   "journal"};
	size_t count = 0;

	for (size_t i = 0; i < NM_ARRAY_SIZE(groups); i++)
		count += check_settings_of(*state, groups[i]);
	assert_true(count >= 7);
}

static void every_verdict_is_explained(void **state)
{
	static const enum nm_verdict_kind kinds[] = {NM_VERDICT_IMPROVED, NM_VERDICT_NEUTRAL,
						     NM_VERDICT_ROLLED_BACK, NM_VERDICT_CANCELLED,
						     NM_VERDICT_INCONCLUSIVE};
	char row[64];

	for (size_t i = 0; i < NM_ARRAY_SIZE(kinds); i++) {
		(void)snprintf(row, sizeof(row), "\n| `%s` | ", nm_verdict_kind_name(kinds[i]));
		assert_non_null(strstr(*state, row));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(every_check_has_its_row, read_page, free_page),
		cmocka_unit_test_setup_teardown(every_setting_exists, read_page, free_page),
		cmocka_unit_test_setup_teardown(every_setting_exists, read_guide, free_page),
		cmocka_unit_test_setup_teardown(every_verdict_is_explained, read_guide, free_page),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
