/* SPDX-License-Identifier: MIT */
#include "unit.h"

#include <string.h>

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

/* Without the spaces around it; within `text`. */
static char *trim(char *text)
{
	size_t length;

	while (is_space(*text))
		text++;
	length = strlen(text);
	while (length > 0 && is_space(text[length - 1]))
		text[--length] = '\0';
	return text;
}

static int keep(struct nm_unit *unit, const char *key, const char *value)
{
	nm_autofree char *own_key = strdup(key);
	nm_autofree char *own_value = strdup(value);

	if (!own_key || !own_value)
		return -ENOMEM;
	if (nm_reserve((void **)&unit->settings, &unit->capacity, unit->count,
		       sizeof(*unit->settings)) < 0)
		return -ENOMEM;
	unit->settings[unit->count++] =
		(struct nm_unit_setting){.key = NM_TAKE(own_key), .value = NM_TAKE(own_value)};
	return 0;
}

static int read_line(struct nm_unit *unit, char *line, bool *in_service)
{
	line = trim(line);
	if (*line == '#' || *line == ';')
		return 0;
	if (*line == '[') {
		*in_service = strcmp(line, "[Service]") == 0;
		return 0;
	}
	char *equals = strchr(line, '=');
	if (!*in_service || !equals)
		return 0;
	*equals = '\0';
	return keep(unit, trim(line), trim(equals + 1));
}

/* A backslash at the end of a line makes one line of two. */
static void join_lines(char *text)
{
	for (char *at = text; (at = strstr(at, "\\\n")) != NULL;)
		at[0] = at[1] = ' ';
}

int nm_unit_read(struct nm_unit *unit, const char *text)
{
	nm_autofree char *copy = strdup(text);
	bool in_service = false;

	if (!copy)
		return -ENOMEM;
	join_lines(copy);
	for (char *line = copy, *end; *line; line = end) {
		end = strchrnul(line, '\n');
		if (*end)
			*end++ = '\0';
		int r = read_line(unit, line, &in_service);
		if (r < 0)
			return r;
	}
	return 0;
}

const char *nm_unit_value(const struct nm_unit *unit, const char *key)
{
	for (size_t i = unit->count; i-- > 0;)
		if (strcmp(unit->settings[i].key, key) == 0)
			return unit->settings[i].value;
	return NULL;
}

static bool has_word(const char *text, const char *word)
{
	size_t length = strlen(word);

	for (const char *at = text; (at = strstr(at, word)) != NULL; at += length) {
		bool begins = at == text || is_space(at[-1]);
		if (begins && (at[length] == '\0' || is_space(at[length])))
			return true;
	}
	return false;
}

bool nm_unit_has_word(const struct nm_unit *unit, const char *key, const char *word)
{
	for (size_t i = unit->count; i-- > 0;) {
		if (strcmp(unit->settings[i].key, key) != 0)
			continue;
		if (!*unit->settings[i].value)
			return false;
		if (has_word(unit->settings[i].value, word))
			return true;
	}
	return false;
}

int nm_unit_boolean(const char *value)
{
	static const char *const words[2][4] = {{"no", "false", "off", "0"},
						{"yes", "true", "on", "1"}};

	for (size_t i = 0; value && i < NM_ARRAY_SIZE(words[0]); i++)
		for (int is = 0; is < 2; is++)
			if (strcasecmp(value, words[is][i]) == 0)
				return is;
	return -EINVAL;
}

void nm_unit_clear(struct nm_unit *unit)
{
	for (size_t i = 0; i < unit->count; i++) {
		free(unit->settings[i].key);
		free(unit->settings[i].value);
	}
	free(unit->settings);
	*unit = (struct nm_unit){0};
}
