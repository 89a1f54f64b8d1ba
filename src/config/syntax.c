/* SPDX-License-Identifier: MIT */
/* Errors of syntax: notations of other configuration formats, and the right one. */
#include <string.h>

#include "numa-migrd/base.h"
#include "parse.h"

#define SHOWN_BYTES 96
#define NAME "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"

/* Copies the line, without the blanks around it. */
static void copy_line(const char *text, size_t length, unsigned line, char out[SHOWN_BYTES])
{
	const char *start = text, *end = text + length;
	for (unsigned i = 1; i < line && start < end; i++) {
		const char *newline = memchr(start, '\n', (size_t)(end - start));
		start = newline ? newline + 1 : end;
	}
	while (start < end && (*start == ' ' || *start == '\t'))
		start++;
	const char *newline = memchr(start, '\n', (size_t)(end - start));
	(void)nm_escape(out, SHOWN_BYTES, start, (size_t)((newline ? newline : end) - start));
}

static bool is_one_of(const char *word, size_t length, const char *const *words)
{
	for (; *words; words++)
		if (strlen(*words) == length && strncmp(*words, word, length) == 0)
			return true;
	return false;
}

/* Returns the first word that stands for a value without quotes, and its length; or NULL. */
static const char *bare_word(const char *line, size_t *ret_length)
{
	static const char *const valid[] = {"true", "false", "TRUE", "FALSE",
					    "True", "False", NULL};
	for (const char *at = strchr(line, '='); at; at = strchr(at + 1, '=')) {
		const char *word = at + 1 + strspn(at + 1, " \t");
		size_t length = strspn(word, NAME);
		if (length > 0 && !strchr("0123456789-", word[0]) &&
		    !is_one_of(word, length, valid)) {
			*ret_length = length;
			return word;
		}
	}
	return NULL;
}

/* Returns the name that stands twice before "=" or ":" in the line, otherwise its first one, and
 * its length. libconfig reports only the line of a duplicate. */
static const char *duplicate_name(const char *line, size_t *ret_length)
{
	const char *names[SHOWN_BYTES];
	size_t lengths[SHOWN_BYTES], count = 0;
	for (const char *at = line; *at;) {
		size_t length = strspn(at, NAME);
		const char *after = at + length + strspn(at + length, " \t");
		if (length > 0 && strchr("=:", *after)) {
			for (size_t i = 0; i < count; i++)
				if (lengths[i] == length && strncmp(names[i], at, length) == 0) {
					*ret_length = length;
					return at;
				}
			names[count] = at;
			lengths[count++] = length;
		}
		at += length > 0 ? length : 1;
	}
	*ret_length = strspn(line, NAME);
	return line;
}

void nm_syntax_report(struct nm_report *report, const config_t *tree, const char *text,
		      size_t length)
{
	static const char *const no_numbers[] = {"nan", "NaN", "NAN",	   "inf",
						 "Inf", "INF", "infinity", NULL};
	static const char *const booleans[] = {"yes", "no", "on",  "off", "Yes",
					       "No",  "On", "Off", NULL};
	unsigned line = (unsigned)config_error_line(tree);
	const char *what = config_error_text(tree);
	char shown[SHOWN_BYTES];
	size_t size = 0;
	copy_line(text, length, line, shown);
	size_t name = strspn(shown, NAME);
	const char *word = bare_word(shown, &size);
	if (what && strstr(what, "duplicate")) {
		const char *twice = duplicate_name(shown, &size);
		nm_report_error(report, line,
				"%.*s: the second one in this file; a group or setting stands once "
				"in a file: keep one, with the contents of both if they are groups",
				(int)size, twice);
	} else if (shown[0] == '[' && strspn(shown + 1, NAME) > 0)
		nm_report_error(report, line, "found %s, write: %.*s: { … };", shown,
				(int)strspn(shown + 1, NAME), shown + 1);
	else if (name > 0 && shown[name] == '.' && strspn(shown + name + 1, NAME) > 0)
		nm_report_error(report, line, "found %s, write: %.*s: { %s };", shown, (int)name,
				shown, shown + name + 1);
	else if (word && is_one_of(word, size, booleans))
		nm_report_error(report, line, "found %.*s, write true or false", (int)size, word);
	else if (word && is_one_of(word, size, no_numbers))
		nm_report_error(report, line, "found %.*s, write a number", (int)size, word);
	else if (word)
		nm_report_error(report, line, "found %.*s, write it in quotes: \"%.*s\"", (int)size,
				word, (int)size, word);
	else
		nm_report_error(report, line, "%s, in this line or just before it: %s",
				what ? what : "syntax error", shown);
}
