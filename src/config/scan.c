/* SPDX-License-Identifier: MIT */
/*
 * Processes the text of the file before libconfig. libconfig silently changes numbers (5000000000
 * becomes 705032704, 08 becomes 8, 1e999 infinity), follows @include, stops at a NUL, lets an
 * unterminated comment extend to the end, and differs between versions. Therefore numbers are
 * parsed here, and libconfig gets only the structure.
 */
#include <string.h>

#include "numa-migrd/base.h"
#include "parse.h"

#define MAX_DEPTH 16

struct cursor {
	struct nm_report *report;
	struct nm_scan *scan;
	const char *text; /* the file; scan->structure is its copy */
	size_t length, at;
	unsigned line, depth;
	size_t capacity;
};

static int refuse_text(const struct cursor *cursor, const char *what)
{
	nm_report_error(cursor->report, cursor->line, "%s", what);
	return -EINVAL;
}

static char peek(const struct cursor *cursor, size_t ahead)
{
	return cursor->at + ahead < cursor->length ? cursor->text[cursor->at + ahead] : '\0';
}

static void advance(struct cursor *cursor)
{
	if (cursor->text[cursor->at++] == '\n')
		cursor->line++;
}

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool starts_name(char c)
{
	return is_letter(c) || c == '*';
}

static bool continues_name(char c)
{
	return starts_name(c) || is_digit(c) || c == '_' || c == '-';
}

static bool starts_number(char c)
{
	return is_digit(c) || c == '.' || c == '+' || c == '-';
}

static bool is_sign_of_exponent(char before, char c)
{
	return (c == '+' || c == '-') && (before == 'e' || before == 'E');
}

static int skip_line(struct cursor *cursor)
{
	while (cursor->at < cursor->length && peek(cursor, 0) != '\n')
		advance(cursor);
	return 0;
}

static int skip_block_comment(struct cursor *cursor)
{
	unsigned start = cursor->line;
	cursor->at += 2;
	while (cursor->at < cursor->length) {
		if (peek(cursor, 0) == '*' && peek(cursor, 1) == '/') {
			cursor->at += 2;
			return 0;
		}
		advance(cursor);
	}
	cursor->line = start;
	return refuse_text(cursor, "this comment is never closed");
}

static bool is_escaped_nul(const struct cursor *cursor)
{
	return (peek(cursor, 1) == 'x' || peek(cursor, 1) == 'X') && peek(cursor, 2) == '0' &&
	       peek(cursor, 3) == '0';
}

static int skip_string(struct cursor *cursor)
{
	unsigned start = cursor->line;
	for (advance(cursor); cursor->at < cursor->length; advance(cursor)) {
		char c = peek(cursor, 0);
		if (c == '"') {
			advance(cursor);
			return 0;
		}
		if (c == '\n')
			break;
		if (c == '\\' && is_escaped_nul(cursor))
			return refuse_text(cursor, "\\x00 in a string would end it");
		if (c == '\\' && (peek(cursor, 1) == '"' || peek(cursor, 1) == '\\'))
			advance(cursor);
	}
	cursor->line = start;
	return refuse_text(cursor, "this string is not closed on its line");
}

static size_t number_length(const struct cursor *cursor)
{
	size_t length = 1;
	for (;; length++) {
		char c = peek(cursor, length);
		if (!is_letter(c) && !is_digit(c) && c != '.' && c != '_' &&
		    !is_sign_of_exponent(peek(cursor, length - 1), c))
			return length;
	}
}

/* Leaves a 0 at the end, so that blanks separate it from a name before it ("n.5"). A single sign or
 * point stays, and libconfig rejects it. */
static void blank_number(char *number, size_t length)
{
	if (length == 1 && !is_digit(*number))
		return;
	memset(number, ' ', length - 1);
	number[length - 1] = '0';
}

static int take_number(struct cursor *cursor)
{
	struct nm_scan *scan = cursor->scan;
	size_t length = number_length(cursor);
	int r = NM_RESERVE(scan->numbers, cursor->capacity, scan->count);
	if (r < 0)
		return r;
	(void)nm_escape(scan->numbers[scan->count++].text, NM_NUMBER_BYTES,
			cursor->text + cursor->at, length);
	blank_number(scan->structure + cursor->at, length);
	cursor->at += length;
	return 0;
}

static int take_bracket(struct cursor *cursor)
{
	char c = peek(cursor, 0);
	if (c == '{' || c == '[' || c == '(')
		cursor->depth++;
	else if (cursor->depth > 0)
		cursor->depth--;
	if (cursor->depth > MAX_DEPTH)
		return refuse_text(cursor, "brackets are nested too deeply");
	advance(cursor);
	return 0;
}

static int take_token(struct cursor *cursor)
{
	char c = peek(cursor, 0);
	if (c == '#' || (c == '/' && peek(cursor, 1) == '/'))
		return skip_line(cursor);
	if (c == '/' && peek(cursor, 1) == '*')
		return skip_block_comment(cursor);
	if (c == '"')
		return skip_string(cursor);
	if (c == '@')
		return refuse_text(cursor, "@include and other directives are not allowed here");
	if (strchr("{}[]()", c))
		return take_bracket(cursor);
	if (starts_number(c))
		return take_number(cursor);
	bool name = starts_name(c);
	do
		advance(cursor);
	while (name && continues_name(peek(cursor, 0)));
	return 0;
}

/* The whole file must be UTF-8 without NULs; a string may contain any byte except NUL as \xNN. */
static int check_bytes(struct cursor *cursor)
{
	while (cursor->at < cursor->length) {
		uint32_t code;
		size_t size = nm_utf8_decode(cursor->text + cursor->at, cursor->length - cursor->at,
					     &code);
		if (size == 0)
			return refuse_text(cursor, "this line is not valid UTF-8 (in a string, "
						   "other bytes are written \\xNN)");
		if (code == 0)
			return refuse_text(cursor, "this line contains a NUL byte");
		if (code == '\n')
			cursor->line++;
		cursor->at += size;
	}
	return 0;
}

int nm_scan_text(struct nm_report *report, const char *text, size_t length, struct nm_scan *ret)
{
	struct nm_scan scan = {.structure = malloc(length + 2)};
	if (!scan.structure)
		return -ENOMEM;
	if (length > 0)
		memcpy(scan.structure, text, length);
	/* libconfig recognizes a comment only by the end of its line. */
	memcpy(scan.structure + length, "\n", 2);
	struct cursor cursor = {
		.report = report, .scan = &scan, .text = text, .length = length, .line = 1};
	int r = check_bytes(&cursor);
	cursor.at = 0;
	cursor.line = 1;
	while (r == 0 && cursor.at < length)
		r = take_token(&cursor);
	if (r < 0) {
		nm_scan_clear(&scan);
		return r;
	}
	*ret = scan;
	return 0;
}

void nm_scan_clear(struct nm_scan *scan)
{
	free(scan->structure);
	free(scan->numbers);
	*scan = (struct nm_scan){0};
}
