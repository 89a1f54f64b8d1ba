/* SPDX-License-Identifier: MIT */
/* Parses a text and checks the result, for the tests of src/config. Include cmocka.h first. */
#ifndef NM_TESTS_CONFIG_CASES_H
#define NM_TESTS_CONFIG_CASES_H

#include <string.h>

#include "numa-migrd/config.h"

#define TEXT(literal) literal, sizeof(literal) - 1

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

static inline void refuse_parameters(const char *settings, const char *text, const char *message)
{
	nm_auto(nm_config_errors_clear) struct nm_config_errors errors = {0};
	struct nm_config *config = NULL;
	assert_int_equal(parse_parameters(settings, text, &errors, &config), -EINVAL);
	assert_null(config);
	assert_string_equal(errors.text[0], message);
	assert_int_equal(errors.count, 1);
}

/* The text must be refused with exactly this message. */
static inline void refuse(const char *text, const char *message)
{
	nm_auto(nm_config_errors_clear) struct nm_config_errors errors = {0};
	refuse_bytes(text, strlen(text), &errors);
	assert_string_equal(errors.text[0], message);
	assert_int_equal(errors.count, 1);
}

/* The text must be refused with one message with this prefix; the rest is worded by libconfig or
 * the system. */
static inline void refuse_prefix(const char *text, size_t length, const char *prefix)
{
	nm_auto(nm_config_errors_clear) struct nm_config_errors errors = {0};
	refuse_bytes(text, length, &errors);
	if (strncmp(errors.text[0], prefix, strlen(prefix)) != 0)
		fail_msg("\"%s\" does not begin with \"%s\"", errors.text[0], prefix);
	assert_int_equal(errors.count, 1);
}

static inline void same_settings(const struct nm_config *one, const struct nm_config *other)
{
	struct nm_config a = *one, b = *other;
	assert_int_equal(a.targets.include.count, b.targets.include.count);
	assert_int_equal(a.targets.exclude.count, b.targets.exclude.count);
	a.targets.include = a.targets.exclude = (struct nm_target_list){0};
	b.targets.include = b.targets.exclude = (struct nm_target_list){0};
	a.places = b.places = NULL;
	memset(a.metrics.place, 0, sizeof(a.metrics.place));
	memset(b.metrics.place, 0, sizeof(b.metrics.place));
	/* Both structures were allocated with calloc and filled by the same code, so padding is
	 * zero. */
	assert_memory_equal(&a, &b, sizeof(a));
}

#endif
