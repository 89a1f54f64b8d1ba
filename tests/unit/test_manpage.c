/* SPDX-License-Identifier: MIT */
/* The manual pages show the default and the range of every setting and parameter as in the tables,
 * and their examples are valid. */
#define SET_UP read_page
#define TEAR_DOWN free_page
#include "../support/test.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "../../src/config/parse.h"
#include "config_cases.h"
#include "config/exclusions.h"

#define PAGE NM_SOURCE_DIR "/man/numa-migrd.conf.5"
#define POLICIES NM_SOURCE_DIR "/man/numa-migrd-policies.7"

static int read_text(const char *path, void **state)
{
	FILE *file = fopen(path, "r");
	char *page = calloc(1, 1 << 16);
	if (!file || !page || fread(page, 1, (1 << 16) - 1, file) == 0 || fclose(file) != 0)
		return -1;
	*state = page;
	return 0;
}

static int read_page(void **state)
{
	return read_text(PAGE, state);
}

static int read_policies(void **state)
{
	return read_text(POLICIES, state);
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
		fail_msg("no line \"%s\"", line);
		return NULL;
	}
	from += strlen(start) - 1;
	const char *to = strstr(from, end);
	return to ? strndup(from, (size_t)(to - from) + 1) : strdup(from);
}

/* Prints the value as in the file. */
static const char *print_value(const struct nm_setting *setting, const void *config, char *out,
			       size_t size)
{
	const void *place = (const char *)config + setting->offset;
	switch (setting->type) {
	case NM_SETTING_BOOL:
		(void)snprintf(out, size, "%s", *(const bool *)place ? "true" : "false");
		break;
	case NM_SETTING_COUNT:
		(void)snprintf(out, size, "%" PRIu64, *(const uint64_t *)place);
		break;
	case NM_SETTING_REAL:
		(void)snprintf(out, size, "%.15g", *(const double *)place);
		break;
	case NM_SETTING_CHOICE:
		(void)snprintf(out, size, "\"%s\"", setting->choices[*(const unsigned *)place]);
		break;
	case NM_SETTING_FLAGS:
	case NM_SETTING_TARGETS:
		(void)snprintf(out, size, "( )");
		break;
	case NM_SETTING_EVENT:
	case NM_SETTING_PATH:
		(void)snprintf(out, size, "\"\"");
	}
	return out;
}

static void check_setting(const char *page, const struct nm_setting *setting)
{
	nm_auto(nm_config_freep) struct nm_config *config = NULL;
	char item[80], expected[512], allowed[320], own[32], paper[32], published[48] = "";
	assert_int_equal(nm_config_default(&config), 0);
	(void)print_value(setting, config, own, sizeof(own));
	config->rules = nm_rules_paper;
	(void)print_value(setting, config, paper, sizeof(paper));
	if (strcmp(own, paper) != 0)
		(void)snprintf(published, sizeof(published), " paper: %s;", paper);
	nm_setting_allowed(setting, allowed, sizeof(allowed));
	(void)snprintf(item, sizeof(item), ".It Ic %s%s%s", setting->group,
		       setting->group[0] ? "." : "", setting->name);
	(void)snprintf(expected, sizeof(expected), "\nDefault %s;%s allowed: %s.\n", own, published,
		       allowed);
	nm_autofree char *text = section(page, item, "\n.It Ic");
	if (!strstr(text, expected))
		fail_msg("%s lacks: %s", item, expected);
}

/* Returns how many rows of the settings are parameters. */
static size_t count_parameters(void)
{
	size_t count = 0;
	for (size_t i = 0; i < nm_setting_count; i++)
		count += nm_settings[i].parameter;
	return count;
}

TEST(test_every_setting)
{
	for (size_t i = 0; i < nm_setting_count; i++)
		if (!nm_settings[i].parameter)
			check_setting(*state, &nm_settings[i]);
}

TEST_BETWEEN(read_policies, free_page, test_every_parameter)
{
	size_t defaults = 0;
	for (size_t i = 0; i < nm_parameter_count; i++)
		check_setting(*state, &nm_parameters[i]);
	for (size_t i = 0; i < nm_setting_count; i++)
		if (nm_settings[i].parameter)
			check_setting(*state, &nm_settings[i]);
	for (const char *at = *state; (at = strstr(at, "\nDefault ")) != NULL; at++)
		defaults++;
	assert_int_equal(defaults, nm_parameter_count + count_parameters());
}

/* No settings that have been removed: */
TEST(test_no_obsolete_settings_are_documented)
{
	size_t items = 0, defaults = 0;
	for (const char *at = *state; (at = strstr(at, "\n.It Ic ")) != NULL; at++)
		items++;
	for (const char *at = *state; (at = strstr(at, "\nDefault ")) != NULL; at++)
		defaults++;
	size_t settings = nm_setting_count - count_parameters();
	assert_int_equal(defaults, settings);
	assert_int_equal(items, settings + 5); /* and the keys of a pattern */
}

/* Appends the programs of the exclusion, one in a line. */
static void append_programs(char *text, size_t size, unsigned exclusion)
{
	const char *comma = "";
	for (size_t i = 0; i < nm_excluded_program_count; i++) {
		const struct nm_excluded_program *program = &nm_excluded_programs[i];
		size_t used = strlen(text);
		if (!(program->exclusions >> exclusion & 1))
			continue;
		(void)snprintf(text + used, size - used, "%s\n.Li %s%s%s", comma, program->file,
			       program->command ? " " : "",
			       program->command ? program->command : "");
		comma = " ,";
	}
}

/* The list of default exclusions: each with its programs, and no other. */
TEST(test_default_exclusions)
{
	char expected[2048] = "\n.Bl -bullet -compact";
	for (unsigned one = NM_EXCLUSION_NONE + 1; one < NM_EXCLUSIONS; one++) {
		char programs[1024] = "";
		size_t used = strlen(expected);
		append_programs(programs, sizeof(programs), one);
		(void)snprintf(expected + used, sizeof(expected) - used, "\n.It\n%s%s%s",
			       nm_exclusion_row((enum nm_exclusion)one)->text,
			       programs[0] ? ":" : "", programs);
	}
	strncat(expected, "\n.El\n", sizeof(expected) - strlen(expected) - 1);
	nm_autofree char *text = section(*state, ".Ss Default exclusions", "\n.Ss");
	if (!strstr(text, expected))
		fail_msg("numa-migrd.conf(5) lacks:\n%s", expected);
}

TEST(test_examples)
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

RUN_TESTS()
