/* SPDX-License-Identifier: MIT */
/* Text in columns of a terminal. Pure but for the locale, which tells the width of a character. */
#ifndef NM_CTL_TEXT_H
#define NM_CTL_TEXT_H

#include <stdbool.h>
#include <stddef.h>

struct nm_style {
	bool color;
	bool utf8; /* the terminal's locale has it */
};

#define NM_TEXT_ANY_WIDTH ((size_t)-1)

/*
 * Writes text to out so that it takes at most `width` columns, cut with "…"; control characters
 * become
 * "?", and without UTF-8 so does everything beyond ASCII. Returns the columns it takes.
 */
size_t nm_text_fit(char *out, size_t size, const char *text, size_t width,
		   const struct nm_style *style);

/* The columns that text takes. */
size_t nm_text_width(const char *text);

/* True where `part` is in text, in whatever case (ASCII letters). */
bool nm_text_contains(const char *text, const char *part);

#endif
