/* SPDX-License-Identifier: MIT */
/* Refuses what libconfig would follow or change without an error. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "numa-migrd/base.h"
#include "parse.h"

#define MAX_DEPTH 16

static int refuse(struct nm_report *report, unsigned line, const char *what)
{
	nm_report_error(report, line, "%s", what);
	return -EINVAL;
}

/* Letters that editors and web pages write in place of ". */
static bool is_typographic_quote(const char *text)
{
	static const char *const quotes[] = {"\u201c", "\u201d", "\u201e", "\u2018",
					     "\u2019", "\u00ab", "\u00bb"};
	for (size_t i = 0; i < NM_ARRAY_SIZE(quotes); i++)
		if (strncmp(text, quotes[i], strlen(quotes[i])) == 0)
			return true;
	return false;
}

/* Returns the length of the number, name or other token at `text`, at least 1. Comments and strings
 * are one token. */
static size_t token_length(const char *text, const char *end)
{
	static const char word[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.*";
	size_t length = 1;
	const char *close;
	if (text[0] == '#' || strncmp(text, "//", 2) == 0)
		return strcspn(text, "\n");
	if (strncmp(text, "/*", 2) == 0)
		return (close = strstr(text + 2, "*/")) ? (size_t)(close + 2 - text)
							: (size_t)(end - text);
	if (text[0] == '"') {
		while (text + length < end && text[length] != '"')
			length += text[length] == '\\' && text + length + 1 < end ? 2 : 1;
		return length + (text + length < end);
	}
	while (strchr(word, text[0]) && text + length < end &&
	       (strchr(word, text[length]) ||
		(strchr("+-", text[length]) && strchr("eE", text[length - 1]))))
		length++;
	return length;
}

static int check_number(struct nm_report *report, unsigned line, const char *token)
{
	bool hex = token[0] == '0' && (token[1] == 'x' || token[1] == 'X');
	size_t digits = strspn(token, "0123456789");
	if (!hex && strchr(".eE", token[digits]))
		return isfinite(strtod(token, NULL))
			       ? 0
			       : refuse(report, line, "this number is too large");
	errno = 0;
	return strtoull(token, NULL, hex ? 16 : 10) <= INT32_MAX && errno == 0
		       ? 0
		       : refuse(report, line, "whole numbers are at most 2147483647");
}

int nm_check_text(struct nm_report *report, const char *text, size_t length)
{
	unsigned line = 1, depth = 0, opened[MAX_DEPTH];
	char open[MAX_DEPTH];
	uint32_t code;
	if (strncmp(text, "\xef\xbb\xbf", 3) == 0)
		return refuse(report, line,
			      "this file begins with a byte order mark (BOM): save it as UTF-8 "
			      "without one");
	for (size_t at = 0, size; at < length; at += size) {
		size = nm_utf8_decode(text + at, length - at, &code);
		if (size == 0 || code == 0)
			return refuse(report, line,
				      size ? "this line contains a NUL byte"
					   : "this line is not valid UTF-8 (in a string, other "
					     "bytes are written \\xNN)");
		line += code == '\n';
	}
	line = 1;
	for (const char *at = text, *end = text + length; at < end;) {
		size_t size = token_length(at, end);
		if (*at == '@')
			return refuse(report, line,
				      "@include and other directives are not allowed here");
		if (*at == '"' && (memchr(at, '\n', size) || at[size - 1] != '"' || size == 1))
			return refuse(report, line, "this string is not closed on its line");
		if (*at == '"' && memmem(at, size, "\\x00", 4))
			return refuse(report, line, "\\x00 in a string would end it");
		if (is_typographic_quote(at))
			return refuse(report, line,
				      "this line contains a typographic quote: write \"");
		if (strchr("{[(", *at) && depth == MAX_DEPTH)
			return refuse(report, line, "brackets are nested too deeply");
		if (strchr("{[(", *at)) {
			open[depth] = *at;
			opened[depth++] = line;
		} else if (strchr("}])", *at) && depth > 0) {
			depth--;
		} else if (strchr("0123456789.", *at) && check_number(report, line, at) < 0) {
			return -EINVAL;
		}
		if (strncmp(at, "/*", 2) == 0 && (size < 4 || strncmp(at + size - 2, "*/", 2) != 0))
			return refuse(report, line, "this comment is never closed");
		for (const char *c = at; c < at + size; c++)
			line += *c == '\n';
		at += size;
	}
	if (depth == 0)
		return 0;
	nm_report_error(report, opened[depth - 1], "this \"%c\" is never closed", open[depth - 1]);
	return -EINVAL;
}
