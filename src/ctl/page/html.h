/* SPDX-License-Identifier: MIT */
/*
 * Text of a page. Markup is ours and literal: only numbers go into it by a format; every other
 * text goes through nm_html_text() or nm_html_say(), which leave no markup in it.
 */
#ifndef NM_REPORT_HTML_H
#define NM_REPORT_HTML_H

#include <stdint.h>
#include <stdio.h>

/* Markup, with numbers and words of ours. */
void nm_html(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Anybody's text (length bytes), in an element or an attribute's value: what HTML or XML would take
 * for markup is escaped, and what is no character that both can hold is shown as U+FFFD. */
void nm_html_text(FILE *out, const char *text, size_t length);

/* The same of a formatted text. */
void nm_html_say(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define NM_AMOUNT_SIZE 24

/* "950", "1.2 k", "34 M": three digits at most, and a unit prefix; "–" where it is no number. */
const char *nm_html_amount(double value, char ret[static NM_AMOUNT_SIZE]);

/* Since the beginning: "12.5 s", "3:07", "2:03:07". */
const char *nm_html_time(double seconds, char ret[static NM_AMOUNT_SIZE]);

/* "thread" or "threads", as there are so many. */
const char *nm_html_many(uint64_t count, const char *one, const char *several);

#endif
