/* SPDX-License-Identifier: MIT */
/* Reads documents of the daemon (dump.h). Include after cmocka.h. */
#ifndef NM_TEST_DUMP_FIXTURE_H
#define NM_TEST_DUMP_FIXTURE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "report/dump.h"

static struct shown {
	json_t *document;
	json_t *section; /* an object, or an array of rows */
	size_t rows;
} shown;

static inline void shown_clear(void)
{
	json_decref(shown.document);
	shown = (struct shown){0};
}

/* Takes over the descriptor of a document, and looks at one section. */
static inline void show_document(int fd, const char *section)
{
	json_error_t error;
	shown_clear();
	assert_true(fd >= 0);
	shown.document = json_loadfd(fd, JSON_REJECT_DUPLICATES, &error);
	close(fd);
	if (!shown.document)
		fail_msg("line %d: %s", error.line, error.text);
	shown.section = json_object_get(shown.document, section);
	assert_non_null(shown.section);
	shown.rows = json_array_size(shown.section);
}

static inline const json_t *shown_value(unsigned row, const char *name)
{
	const json_t *object = row ? json_array_get(shown.section, row - 1) : shown.section;
	return json_object_get(object, name);
}

/* Rows count from 1; 0: the section is an object. NULL: the value is missing. */
static inline const char *shown_text(unsigned row, const char *name)
{
	static char texts[8][64];
	static unsigned next;
	const json_t *value = shown_value(row, name);
	char *text = texts[next++ % NM_ARRAY_SIZE(texts)];
	if (!value || json_is_string(value))
		return json_string_value(value);
	if (json_is_boolean(value))
		return json_is_true(value) ? "true" : "false";
	if (json_is_integer(value))
		(void)snprintf(text, sizeof(texts[0]), "%" JSON_INTEGER_FORMAT,
			       json_integer_value(value));
	else
		(void)snprintf(text, sizeof(texts[0]), "%.9g", json_real_value(value));
	return text;
}

static inline void assert_shown(unsigned row, const char *name, const char *text)
{
	const char *found = shown_text(row, name);
	if (!found || strcmp(found, text) != 0)
		fail_msg("row %u: %s is \"%s\", not \"%s\"", row, name, found ? found : "(none)",
			 text);
}

static inline double shown_number(unsigned row, const char *name)
{
	const json_t *found = shown_value(row, name);
	if (!json_is_number(found))
		fail_msg("row %u has no number %s", row, name);
	return json_number_value(found);
}

/* Returns the row in which a name has this text, or 0. */
static inline unsigned shown_row(const char *name, const char *text)
{
	for (unsigned row = 1; row <= shown.rows; row++) {
		const char *found = shown_text(row, name);
		if (found && strcmp(found, text) == 0)
			return row;
	}
	return 0;
}

#endif
