/* SPDX-License-Identifier: MIT */
/*
 * Text in terminal columns. Pure except for the locale, which determines the width of characters.
 */
#ifndef NM_CTL_TEXT_H
#define NM_CTL_TEXT_H

#include <stdbool.h>
#include <stddef.h>

struct nm_style {
	bool color;
	bool utf8; /* the locale of the terminal supports it */
};

/* Sequences of console_codes(4), for text with style.color. */
#define NM_BOLD "\033[1m"
#define NM_USUAL "\033[0m"

#define NM_TEXT_ANY_WIDTH ((size_t)-1)

/* Writes text to `out` in at most `width` columns, truncated with "…". Control characters become
 * "?", and without UTF-8 also all non-ASCII characters. Returns the number of columns. */
size_t nm_text_fit(char *out, size_t size, const char *text, size_t width,
		   const struct nm_style *style);

/* Copies text from outside without control characters, except line breaks. */
void nm_text_clean(char *out, size_t size, const char *text);

/* Returns the number of columns of the text. */
size_t nm_text_width(const char *text);

#endif
