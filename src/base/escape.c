/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "numa-migrd/base.h"

#define ELLIPSIS "\xe2\x80\xa6"
#define ELLIPSIS_SIZE (sizeof(ELLIPSIS) - 1)
#define MAX_UTF8 4
#define MAX_PIECE (MAX_UTF8 * 4) /* four bytes "\xNN" for each byte */

struct range {
	uint32_t first, last;
};

/* Valid code points that control a terminal, reorder or hide text, or are no characters
 * (ascending). */
static const struct range unprintable[] = {
	{0x0000, 0x001f},   /* C0 controls */
	{0x007f, 0x009f},   /* DEL and C1 controls */
	{0x00ad, 0x00ad},   /* soft hyphen */
	{0x061c, 0x061c},   /* Arabic letter mark */
	{0x115f, 0x1160},   /* Hangul fillers */
	{0x180e, 0x180e},   /* Mongolian vowel separator */
	{0x200b, 0x200f},   /* zero-width characters, left-to-right and right-to-left marks */
	{0x2028, 0x202e},   /* line and paragraph separators, bidi embeddings and overrides */
	{0x2060, 0x206f},   /* invisible operators, bidi isolates */
	{0x3164, 0x3164},   /* Hangul filler */
	{0xfdd0, 0xfdef},   /* noncharacters */
	{0xfeff, 0xfeff},   /* byte order mark */
	{0xffa0, 0xffa0},   /* halfwidth Hangul filler */
	{0xfff0, 0xfffb},   /* unassigned, interlinear annotations */
	{0xe0000, 0xe0fff}, /* tags, variation selectors */
};

bool nm_is_printable(uint32_t code)
{
	if ((code & 0xfffe) == 0xfffe)
		return false;
	for (size_t i = 0; i < NM_ARRAY_SIZE(unprintable); i++)
		if (code >= unprintable[i].first && code <= unprintable[i].last)
			return false;
	return true;
}

static size_t sequence_length(unsigned char lead)
{
	if (lead < 0x80)
		return 1;
	if (lead >= 0xc2 && lead <= 0xdf)
		return 2;
	if (lead >= 0xe0 && lead <= 0xef)
		return 3;
	if (lead >= 0xf0 && lead <= 0xf4)
		return 4;
	return 0;
}

size_t nm_utf8_decode(const char *text, size_t length, uint32_t *ret_code)
{
	static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
	const unsigned char *bytes = (const unsigned char *)text;
	size_t size = length > 0 ? sequence_length(bytes[0]) : 0;
	if (size == 0 || size > length)
		return 0;
	uint32_t code = size == 1 ? bytes[0] : bytes[0] & (0x7fU >> size);
	for (size_t i = 1; i < size; i++) {
		if ((bytes[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (bytes[i] & 0x3f);
	}
	if (code < smallest[size] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
		return 0;
	*ret_code = code;
	return size;
}

static size_t escape_bytes(char *out, const char *text, size_t length)
{
	static const char digits[] = "0123456789abcdef";
	for (size_t i = 0; i < length; i++) {
		unsigned char byte = (unsigned char)text[i];
		*out++ = '\\';
		*out++ = 'x';
		*out++ = digits[byte >> 4];
		*out++ = digits[byte & 0xf];
	}
	return length * 4;
}

/* Writes one character of the text to `piece`, in printable form. Returns how many bytes of the
 * text it used. */
static size_t next_piece(const char *text, size_t length, char *piece, size_t *ret_piece_size)
{
	uint32_t code;
	size_t size = nm_utf8_decode(text, length, &code);
	if (size > 0 && nm_is_printable(code) && code != '\\') { /* which marks an escape */
		memcpy(piece, text, size);
		*ret_piece_size = size;
		return size;
	}
	size_t taken = size > 0 ? size : 1;
	*ret_piece_size = escape_bytes(piece, text, taken);
	return taken;
}

size_t nm_escape(char *out, size_t out_size, const char *text, size_t length)
{
	size_t room = out_size - 1, used = 0, cut = 0;
	while (length > 0) {
		char piece[MAX_PIECE];
		size_t piece_size;
		size_t taken = next_piece(text, length, piece, &piece_size);
		if (piece_size > room - used) {
			memcpy(out + cut, ELLIPSIS, ELLIPSIS_SIZE);
			used = cut + ELLIPSIS_SIZE;
			break;
		}
		memcpy(out + used, piece, piece_size);
		used += piece_size;
		if (used + ELLIPSIS_SIZE <= room)
			cut = used;
		text += taken;
		length -= taken;
	}
	out[used] = '\0';
	return used;
}
