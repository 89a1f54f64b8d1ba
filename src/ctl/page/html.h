/* SPDX-License-Identifier: MIT */
/* Output of a page. Markup is literal, and only numbers are formatted into it. All other text is
 * written by nm_html_text() or nm_html_printf(), which escape markup. */
#ifndef NM_REPORT_HTML_H
#define NM_REPORT_HTML_H

#include <stdint.h>
#include <stdio.h>

/* Writes markup, with numbers and literal words. */
void nm_html(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Writes arbitrary text (length bytes) in an element or an attribute's value: characters with a
 * meaning in HTML or XML are escaped, and characters not allowed in both become U+FFFD. */
void nm_html_text(FILE *out, const char *text, size_t length);

/* Writes formatted text in the same way. */
void nm_html_printf(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The style sheet, which is the same for all pages, and its SHA-256 in base64: the page's content
 * security policy allows no other style. */
extern const char nm_style_text[];
extern const char nm_style_hash[];

#define NM_TIME_SIZE 24

/* Returns the time since the beginning: "12.5 s", "3:07", "2:03:07". */
const char *nm_html_time(double seconds, char ret[static NM_TIME_SIZE]);

#endif
