/* SPDX-License-Identifier: MIT */
#include "html.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "numa-migrd/base.h"

#define REPLACEMENT "\xef\xbf\xbd"

void nm_html(FILE *out, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	(void)vfprintf(out, format, arguments);
	va_end(arguments);
}

static const char *reference_of(uint32_t code)
{
	switch (code) {
	case '&':
		return "&amp;";
	case '<':
		return "&lt;";
	case '>':
		return "&gt;";
	case '"':
		return "&quot;";
	case '\'':
		return "&#39;";
	default:
		return NULL;
	}
}

/* Excludes characters that XML 1.0 forbids (section 2.2), and those that change the reading
 * direction, so that names are shown in their original order. */
static bool is_shown(uint32_t code)
{
	if (code < 0x20)
		return code == '\t' || code == '\n';
	if (code >= 0x7f && code <= 0x9f)
		return false;
	if ((code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069))
		return false;
	return (code & 0xfffe) != 0xfffe && !(code >= 0xfdd0 && code <= 0xfdef);
}

void nm_html_text(FILE *out, const char *text, size_t length)
{
	while (length > 0) {
		uint32_t code = 0;
		size_t size = nm_utf8_decode(text, length, &code);
		const char *reference = reference_of(code);
		if (size == 0 || !is_shown(code))
			(void)fputs(REPLACEMENT, out);
		else if (reference)
			(void)fputs(reference, out);
		else
			(void)fwrite(text, 1, size, out);
		size = size ? size : 1;
		text += size;
		length -= size;
	}
}

void nm_html_printf(FILE *out, const char *format, ...)
{
	nm_autofree char *text = NULL;
	va_list arguments;
	va_start(arguments, format);
	int length = vasprintf(&text, format, arguments);
	va_end(arguments);
	if (length < 0)
		text = NULL;
	else
		nm_html_text(out, text, (size_t)length);
}

const char *nm_html_time(double seconds, char ret[static NM_TIME_SIZE])
{
	unsigned long long whole = (unsigned long long)fmin(fmax(seconds, 0), 1e12);
	if (seconds < 60)
		(void)snprintf(ret, NM_TIME_SIZE, "%.3g s", fmax(seconds, 0));
	else if (whole < 3600)
		(void)snprintf(ret, NM_TIME_SIZE, "%llu:%02llu", whole / 60, whole % 60);
	else
		(void)snprintf(ret, NM_TIME_SIZE, "%llu:%02llu:%02llu", whole / 3600,
			       whole / 60 % 60, whole % 60);
	return ret;
}
