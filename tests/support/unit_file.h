/* SPDX-License-Identifier: MIT */
/* The settings of the [Service] section of a unit file, in their order. Include after cmocka.h. */
#ifndef NM_TEST_UNIT_FILE_H
#define NM_TEST_UNIT_FILE_H

#include <fcntl.h>
#include <string.h>

#include "numa-migrd/file.h"

#define UNIT_BYTES 16384
#define UNIT_SETTINGS 128

/* Initialize with {0}; `text` holds the strings. */
struct unit_file {
	char text[UNIT_BYTES];
	struct {
		const char *key, *value;
	} settings[UNIT_SETTINGS];
	size_t count;
};

static inline void unit_take_line(struct unit_file *unit, char *line)
{
	char *equals = strchr(line, '=');

	if (!equals || strchr("#;[ \t", line[0]))
		return;
	*equals = '\0';
	assert_true(unit->count < UNIT_SETTINGS);
	unit->settings[unit->count].key = line;
	unit->settings[unit->count++].value = equals + 1;
}

static inline void unit_read(const char *path, struct unit_file *unit)
{
	assert_true(nm_read_text(AT_FDCWD, path, unit->text, sizeof(unit->text)) > 0);
	char *line = strstr(unit->text, "\n[Service]\n");
	assert_non_null(line);
	/* A backslash at the end of a line joins it with the next. */
	for (char *at = line; (at = strstr(at, "\\\n")) != NULL;)
		at[0] = at[1] = ' ';
	char *rest = NULL;
	for (line = strtok_r(line + strlen("\n[Service]"), "\n", &rest); line && line[0] != '[';
	     line = strtok_r(NULL, "\n", &rest))
		unit_take_line(unit, line);
}

/* Returns the last value assigned, or NULL. */
static inline const char *unit_value(const struct unit_file *unit, const char *key)
{
	for (size_t i = unit->count; i-- > 0;)
		if (strcmp(unit->settings[i].key, key) == 0)
			return unit->settings[i].value;
	return NULL;
}

#endif
