/* SPDX-License-Identifier: MIT */
#include <string.h>
#include <wchar.h>

#include "numa-migrd/base.h"
#include "text.h"

#define ELLIPSIS "\xe2\x80\xa6"

/* One character as displayed. */
struct glyph {
	const char *bytes;
	size_t size, columns;
	size_t taken; /* number of bytes of the text that it represents */
};

static struct glyph next_glyph(const char *text, size_t length, bool utf8)
{
	uint32_t code;
	size_t size = nm_utf8_decode(text, length, &code);
	if (size == 0)
		return (struct glyph){"?", 1, 1, 1};
	if (!nm_is_printable(code) || (code >= 0x80 && !utf8))
		return (struct glyph){"?", 1, 1, size};
	int columns = code < 0x80 ? 1 : wcwidth((wchar_t)code);
	return (struct glyph){text, size, columns < 0 ? 1 : (size_t)columns, size};
}

/* Copies the longest prefix of the text that fits into these columns and bytes; returns its
 * columns. */
static size_t copy(char *out, size_t size, const char **text, size_t width, bool utf8)
{
	size_t length = strlen(*text), columns = 0, used = 0;
	while (length > 0) {
		struct glyph glyph = next_glyph(*text, length, utf8);
		if (glyph.columns > width - columns || glyph.size >= size - used)
			break;
		memcpy(out + used, glyph.bytes, glyph.size);
		used += glyph.size;
		columns += glyph.columns;
		*text += glyph.taken;
		length -= glyph.taken;
	}
	out[used] = '\0';
	return columns;
}

size_t nm_text_fit(char *out, size_t size, const char *text, size_t width,
		   const struct nm_style *style)
{
	const char *mark = style->utf8 ? ELLIPSIS : "~";
	const char *rest = text;
	size_t columns = copy(out, size, &rest, width, style->utf8);
	if (*rest == '\0' || width == 0 || size <= strlen(mark) + 1)
		return columns;
	rest = text;
	columns = copy(out, size - strlen(mark), &rest, width - 1, style->utf8);
	memcpy(out + strlen(out), mark, strlen(mark) + 1);
	return columns + 1;
}

void nm_text_clean(char *out, size_t size, const char *text)
{
	size_t length = strlen(text), used = 0;
	while (length > 0) {
		struct glyph glyph = next_glyph(text, length, true);
		if (glyph.size >= size - used)
			break;
		memcpy(out + used, *text == '\n' ? "\n" : glyph.bytes, glyph.size);
		used += glyph.size;
		text += glyph.taken;
		length -= glyph.taken;
	}
	out[used] = '\0';
}

size_t nm_text_width(const char *text)
{
	size_t length = strlen(text), columns = 0;
	while (length > 0) {
		struct glyph glyph = next_glyph(text, length, true);
		columns += glyph.columns;
		text += glyph.taken;
		length -= glyph.taken;
	}
	return columns;
}
