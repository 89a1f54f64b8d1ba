/* SPDX-License-Identifier: MIT */
/* Translates "pmu/term=value,…/" into configuration words (Documentation/ABI:
 * sysfs-bus-event_source-devices-format). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pmu.h"
#include "privileged.h"

#define DEVICES "sys/bus/event_source/devices"
#define PATH_BYTES 256
#define TEXT_BYTES 256
#define TERM_BYTES 64
#define NAME_CHARACTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-."

struct parser {
	int root;
	const char *pmu;
	struct nm_event_word *word;
};

static int read_attribute(int root, const char *pmu, const char *folder, const char *name,
			  char text[TEXT_BYTES])
{
	char path[PATH_BYTES];
	int length = snprintf(path, sizeof(path), DEVICES "/%s/%s%s", pmu, folder, name);

	if (length < 0 || (size_t)length >= sizeof(path))
		return -EINVAL;
	int r = nm_read_text(root, path, text, TEXT_BYTES);
	if (r < 0)
		return r;
	text[strcspn(text, "\n")] = '\0';
	return 0;
}

bool nm_pmu_has(int root, const char *pmu, const char *file)
{
	char path[PATH_BYTES];

	snprintf(path, sizeof(path), DEVICES "/%s/%s", pmu, file);
	return faccessat(root, path, F_OK, 0) == 0;
}

static uint64_t *config_word(struct nm_event_word *word, const char *name, size_t length)
{
	if (length == 6 && strncmp(name, "config", 6) == 0)
		return &word->config;
	if (length == 7 && strncmp(name, "config1", 7) == 0)
		return &word->config1;
	if (length == 7 && strncmp(name, "config2", 7) == 0)
		return &word->config2;
	return NULL;
}

/* Parses one "3" or "0-15" of a format, and moves the lowest bits of *value there. */
static const char *fill_range(const char *range, uint64_t *config, uint64_t *value)
{
	char *end;
	unsigned long first = strtoul(range, &end, 10), last = first;

	if (end == range)
		return NULL;
	if (*end == '-')
		last = strtoul(end + 1, &end, 10);
	if (first > last || last > 63)
		return NULL;
	for (unsigned long bit = first; bit <= last; bit++, *value >>= 1) {
		*config &= ~(1ULL << bit);
		*config |= (*value & 1) << bit;
	}
	return end;
}

/* Parses a format such as "config1:0-15,32". */
static int apply_format(struct nm_event_word *word, const char *format, uint64_t value)
{
	const char *colon = strchr(format, ':');
	uint64_t *config = colon ? config_word(word, format, (size_t)(colon - format)) : NULL;

	if (!config)
		return -EINVAL;
	do
		colon = fill_range(colon + 1, config, &value);
	while (colon && *colon == ',');
	return colon && !*colon && value == 0 ? 0 : -EINVAL;
}

static int apply_value(const struct parser *parser, const char *name, uint64_t value)
{
	char format[TEXT_BYTES];
	int r = read_attribute(parser->root, parser->pmu, "format/", name, format);

	if (r == 0)
		return apply_format(parser->word, format, value);
	uint64_t *config = config_word(parser->word, name, strlen(name));
	if (strcmp(name, "period") == 0)
		config = &parser->word->period;
	if (!config)
		return -EINVAL;
	*config = value;
	return 0;
}

static int apply_terms(const struct parser *parser, char *terms, bool within_event);

static int apply_term(const struct parser *parser, char *term, bool within_event)
{
	char *equals = strchr(term, '='), *end = NULL;
	char terms[TEXT_BYTES];
	uint64_t value = 1;

	if (equals) {
		*equals = '\0';
		errno = 0;
		value = strtoull(equals + 1, &end, 0);
		if (end == equals + 1 || *end || errno || equals[1] == '-')
			return -EINVAL;
	}
	if (!*term || strspn(term, NAME_CHARACTERS) != strlen(term) || strlen(term) >= TERM_BYTES)
		return -EINVAL;
	/* A named event of the PMU is an abbreviation of other terms. */
	if (!equals && !within_event &&
	    read_attribute(parser->root, parser->pmu, "events/", term, terms) == 0 &&
	    apply_terms(parser, terms, true) == 0)
		return 0;
	return apply_value(parser, term, value);
}

static int apply_terms(const struct parser *parser, char *terms, bool within_event)
{
	char *rest = terms;

	while (rest && *rest) {
		char *term = strsep(&rest, ",");
		int r = apply_term(parser, term, within_event);
		if (r < 0)
			return r;
	}
	return 0;
}

int nm_pmu_parse(int root, const char *text, struct nm_event_word *word)
{
	char copy[NM_PMU_TEXT], type[TEXT_BYTES];
	size_t length = strlen(text), name = strspn(text, NAME_CHARACTERS);
	struct nm_event_word parsed = *word;
	struct parser parser = {.root = root, .pmu = copy, .word = &parsed};

	if (length >= sizeof(copy) || name == 0 || text[0] == '.' || text[name] != '/' ||
	    strchr(text + name + 1, '/') != text + length - 1)
		return -EINVAL;
	memcpy(copy, text, length + 1);
	copy[name] = copy[length - 1] = '\0';
	int r = read_attribute(root, copy, "", "type", type);
	if (r < 0)
		return r;
	parsed.type = (uint32_t)strtoul(type, NULL, 10);
	r = apply_terms(&parser, copy + name + 1, false);
	if (r < 0)
		return r;
	snprintf(parsed.name, sizeof(parsed.name), "%s", text);
	*word = parsed;
	return 0;
}
