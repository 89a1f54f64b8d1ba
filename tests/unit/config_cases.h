/* SPDX-License-Identifier: MIT */
/* Parses a text and checks the result, for the tests of src/config. Include cmocka.h first. */
#ifndef NM_TESTS_CONFIG_CASES_H
#define NM_TESTS_CONFIG_CASES_H

#include <stdio.h>
#include <string.h>

#include "numa-migrd/config.h"

static inline struct nm_config *accept_bytes(const char *text, size_t length)
{
	struct nm_config_errors errors = {0};
	struct nm_config *config = NULL;
	int r = nm_config_parse("conf", text, length, &errors, &config);
	for (size_t i = 0; i < errors.count; i++)
		print_error("unexpected: %s\n", errors.text[i]);
	assert_int_equal(errors.count, 0);
	assert_int_equal(r, 0);
	assert_non_null(config);
	return config;
}

static inline struct nm_config *accept(const char *text)
{
	return accept_bytes(text, strlen(text));
}

static inline void refuse_bytes(const char *text, size_t length, struct nm_config_errors *errors)
{
	struct nm_config *config = NULL;
	int r = nm_config_parse("conf", text, length, errors, &config);
	if (r != -EINVAL)
		print_error("not refused: %s\n", text);
	assert_int_equal(r, -EINVAL);
	assert_null(config);
	assert_true(errors->count > 0);
}

/* Parses default settings with these parameters, or reports errors. */
static inline int parse_parameters(const char *settings, const char *text,
				   struct nm_config_errors *errors, struct nm_config **ret)
{
	const struct nm_config_text file = {"conf", settings, strlen(settings)};
	const struct nm_config_text parameters = {"parameters", text, strlen(text)};
	return nm_config_parse_all(&file, 1, &parameters, errors, ret);
}

static inline struct nm_config *accept_parameters(const char *settings, const char *text)
{
	nm_auto(nm_config_errors_clear) struct nm_config_errors errors = {0};
	struct nm_config *config = NULL;
	int r = parse_parameters(settings, text, &errors, &config);
	for (size_t i = 0; i < errors.count; i++)
		print_error("unexpected: %s\n", errors.text[i]);
	assert_int_equal(r, 0);
	return config;
}

/*
 * A text, and what becomes of it: the settings that it sets, as in a file ("pages.policy = 'none';
 * n = 8"), or the errors, a line each. A ' stands for ". libconfig or the system words what a … at
 * the end of `is` stands for.
 */
struct reading {
	const char *text, *is;
	const char *next, *parameters; /* another file, and that of --parameters; NULL: none */
	size_t length;		       /* of the text; 0: all of it */
};

static inline const char *with_quotes(const char *text, size_t length)
{
	static char turns[4][4096];
	static unsigned turn;
	char *out = turns[turn++ % NM_ARRAY_SIZE(turns)];
	assert_true(length < sizeof(turns[0]));
	for (size_t i = 0; i < length; i++)
		out[i] = text[i] == '\'' ? '"' : text[i];
	out[length] = '\0';
	return out;
}

static inline struct nm_config_text reading_text(const char *name, const char *text, size_t length)
{
	length = text && !length ? strlen(text) : length;
	return (struct nm_config_text){name, text ? with_quotes(text, length) : NULL, length};
}

static inline char *print_reading(const struct nm_config *config,
				  const struct nm_config_errors *errors)
{
	struct nm_config_value value;
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	for (size_t i = 0; i < errors->count; i++)
		(void)fprintf(out, "%s%s", i > 0 ? "\n" : "", errors->text[i]);
	for (size_t i = 0; config && nm_config_show(config, i, &value); i++)
		if (value.place)
			(void)fprintf(out, "%s%s%s%s = %s", ftell(out) > 0 ? "; " : "", value.group,
				      value.group[0] ? "." : "", value.name, value.text);
	assert_int_equal(fclose(out), 0);
	return text;
}

static inline void check_reading(const struct reading *row)
{
	const struct nm_config_text texts[] = {reading_text("conf", row->text, row->length),
					       reading_text("next", row->next, 0),
					       reading_text("parameters", row->parameters, 0)};
	nm_auto(nm_config_errors_clear) struct nm_config_errors errors = {0};
	nm_auto(nm_config_freep) struct nm_config *config = NULL;
	int r = nm_config_parse_all(texts, row->next ? 2 : 1, row->parameters ? &texts[2] : NULL,
				    &errors, &config);
	nm_autofree char *found = print_reading(config, &errors);
	const char *is = with_quotes(row->is, strlen(row->is)), *rest = strrchr(is, '\xe2');
	rest = rest && strcmp(rest, "…") == 0 ? rest : NULL;
	if (rest ? strncmp(found, is, (size_t)(rest - is)) != 0 : strcmp(found, is) != 0)
		fail_msg("%s\n\tis:       %s\n\texpected: %s", row->text, found, is);
	if (r != (config ? 0 : -EINVAL) || (rest && errors.count != 1))
		fail_msg("%s\n\treturns %d, with %zu errors", row->text, r, errors.count);
}

/* A test that checks these readings. */
#define READINGS(name, ...)                                                                        \
	TEST(name)                                                                                 \
	{                                                                                          \
		static const struct reading rows[] = {__VA_ARGS__};                                \
		EACH_ROW(row, rows)                                                                \
		check_reading(row);                                                                \
	}

static inline void same_settings(const struct nm_config *one, const struct nm_config *other)
{
	struct nm_config_value first, second;
	for (size_t i = 0; nm_config_show(one, i, &first) && nm_config_show(other, i, &second); i++)
		if (strcmp(first.text, second.text) != 0)
			fail_msg("%s.%s is %s, expected %s", first.group, first.name, first.text,
				 second.text);
	struct nm_config a = *one, b = *other;
	assert_int_equal(a.targets.include.count, b.targets.include.count);
	assert_int_equal(a.targets.exclude.count, b.targets.exclude.count);
	a.targets.include = a.targets.exclude = (struct nm_target_list){0};
	b.targets.include = b.targets.exclude = (struct nm_target_list){0};
	a.places = b.places = NULL;
	a.warnings = b.warnings = (struct nm_config_errors){0}; /* test_config_warnings */
	memset(a.metrics.place, 0, sizeof(a.metrics.place));
	memset(b.metrics.place, 0, sizeof(b.metrics.place));
	/* Both structures were allocated with calloc and filled by the same code, so padding is
	 * zero. */
	if (memcmp(&a, &b, sizeof(a)) != 0)
		fail_msg("another value than the shown ones differs");
}

#endif
