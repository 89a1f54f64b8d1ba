/* SPDX-License-Identifier: MIT */
/* A show that stores the values put into it. Include after cmocka.h. */
#ifndef NM_TEST_SHOW_FIXTURE_H
#define NM_TEST_SHOW_FIXTURE_H

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "numa-migrd/control.h"

enum { SHOWN_MOST = 4096 };

static struct shown {
	unsigned rows, open;
	const char *list; /* within a dictionary; NULL: none was begun */
	unsigned members; /* of the list */
	size_t count;
	struct {
		unsigned row;
		char name[64], text[1024];
		enum nm_value_type type;
	} values[SHOWN_MOST];
} shown;

static void shown_open(void *context)
{
	(void)context;
	assert_int_equal(shown.open++, shown.list ? 1 : 0);
	if (shown.list)
		shown.members++;
	else
		shown.rows++;
}

static void shown_close(void *context)
{
	(void)context;
	assert_int_equal(--shown.open, shown.list ? 1 : 0);
}

/* Values get names such as "candidates.1.tickets". */
static void shown_begin(void *context, const char *name)
{
	(void)context;
	assert_true(shown.open == 1 && !shown.list);
	shown.list = name;
	shown.members = 0;
}

static void shown_end(void *context)
{
	(void)context;
	assert_true(shown.open == 1 && shown.list);
	shown.list = NULL;
}

static void shown_print(char *text, size_t size, const struct nm_value *value)
{
	size_t used = 0;
	switch (value->type) {
	case NM_VALUE_TEXT:
		(void)snprintf(text, size, "%s", value->text);
		return;
	case NM_VALUE_FLAG:
		(void)snprintf(text, size, "%s", value->flag ? "true" : "false");
		return;
	case NM_VALUE_U32:
		(void)snprintf(text, size, "%" PRIu32, value->u32);
		return;
	case NM_VALUE_I32:
		(void)snprintf(text, size, "%" PRId32, value->i32);
		return;
	case NM_VALUE_U64:
		(void)snprintf(text, size, "%" PRIu64, value->u64);
		return;
	case NM_VALUE_REAL:
		(void)snprintf(text, size, "%.17g", value->real);
		return;
	case NM_VALUE_U64S:
		text[0] = '\0';
		for (size_t i = 0; i < value->u64s.count; i++)
			used += (size_t)snprintf(text + used, size - used, "%s%" PRIu64,
						 i ? " " : "", value->u64s.items[i]);
		return;
	}
}

/* A name is unique within a dictionary. */
static void shown_put(void *context, const struct nm_value *value)
{
	char name[sizeof(shown.values[0].name)];
	(void)context;
	assert_int_equal(shown.open, shown.list ? 2 : 1);
	assert_true(shown.count < SHOWN_MOST);
	if (shown.list)
		(void)snprintf(name, sizeof(name), "%s.%u.%s", shown.list, shown.members,
			       value->name);
	else
		(void)snprintf(name, sizeof(name), "%s", value->name);
	for (size_t i = 0; i < shown.count; i++)
		if (shown.values[i].row == shown.rows)
			assert_string_not_equal(shown.values[i].name, name);
	shown.values[shown.count].row = shown.rows;
	shown.values[shown.count].type = value->type;
	memcpy(shown.values[shown.count].name, name, sizeof(name));
	shown_print(shown.values[shown.count].text, sizeof(shown.values[0].text), value);
	shown.count++;
}

/* No value was put yet. */
static inline struct nm_show shown_show(void)
{
	memset(&shown, 0, sizeof(shown));
	return (struct nm_show){NULL, shown_open, shown_put, shown_close, shown_begin, shown_end};
}

/* Rows count from 1; NULL: the value is missing. */
static inline const char *shown_text(unsigned row, const char *name)
{
	for (size_t i = 0; i < shown.count; i++)
		if (shown.values[i].row == row && strcmp(shown.values[i].name, name) == 0)
			return shown.values[i].text;
	return NULL;
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
	const char *found = shown_text(row, name);
	if (!found)
		fail_msg("row %u has no %s", row, name);
	return found ? strtod(found, NULL) : 0;
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
