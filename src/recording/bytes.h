/* SPDX-License-Identifier: MIT */
/* Encodes and decodes numbers: little-endian, and with variable length if most values are small.
 * Pure. */
#ifndef NM_RECORDING_BYTES_H
#define NM_RECORDING_BYTES_H

#include <math.h>
#include <string.h>

#include "numa-migrd/base.h"

/* Output buffer. When memory is short, it accepts no more data, and `failed` is set. */
struct nm_bytes {
	uint8_t *data;
	size_t used, capacity;
	bool failed;
};

/* Input. After an attempt to read beyond the end, `bad` is set and all values are 0. */
struct nm_cursor {
	const uint8_t *at, *end;
	bool bad;
};

static inline void nm_bytes_clear(struct nm_bytes *bytes)
{
	free(bytes->data);
	*bytes = (struct nm_bytes){0};
}

/* Returns room for `size` more bytes, or NULL. The caller advances `used`. */
static inline uint8_t *nm_bytes_room(struct nm_bytes *bytes, size_t size)
{
	if (!bytes->failed && (!bytes->data || bytes->capacity - bytes->used < size)) {
		size_t wanted = bytes->capacity * 2 + size + 256;
		uint8_t *grown = realloc(bytes->data, wanted);
		bytes->failed = !grown;
		bytes->data = grown ? grown : bytes->data;
		bytes->capacity = grown ? wanted : bytes->capacity;
	}
	return bytes->failed ? NULL : bytes->data + bytes->used;
}

#define NM_VARINT_MOST 10U

static inline void nm_put_uint(struct nm_bytes *bytes, uint64_t value)
{
	uint8_t *at = nm_bytes_room(bytes, NM_VARINT_MOST);
	if (!at)
		return;
	for (; value >= 0x80; value >>= 7)
		*at++ = (uint8_t)(value | 0x80);
	*at++ = (uint8_t)value;
	bytes->used = (size_t)(at - bytes->data);
}

static inline void nm_put_int(struct nm_bytes *bytes, int64_t value)
{
	nm_put_uint(bytes, (uint64_t)value << 1 ^ (uint64_t)(value >> 63));
}

static inline void nm_put_bytes(struct nm_bytes *bytes, const void *data, size_t size)
{
	uint8_t *at = nm_bytes_room(bytes, size);
	if (!at || size == 0)
		return;
	memcpy(at, data, size);
	bytes->used += size;
}

static inline void nm_store_u32(uint8_t *at, uint32_t value)
{
	for (unsigned i = 0; i < 4; i++)
		at[i] = (uint8_t)(value >> 8 * i);
}

static inline uint32_t nm_load_u32(const uint8_t *at)
{
	return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 |
	       (uint32_t)at[3] << 24;
}

/* Compilers differ in the sign of NaN, so a single representation is written. */
static inline void nm_put_real(struct nm_bytes *bytes, double value)
{
	uint64_t bits = 0x7ff8000000000000;
	uint8_t raw[8];
	if (!isnan(value))
		memcpy(&bits, &value, sizeof(bits));
	nm_store_u32(raw, (uint32_t)bits);
	nm_store_u32(raw + 4, (uint32_t)(bits >> 32));
	nm_put_bytes(bytes, raw, sizeof(raw));
}

static inline size_t nm_cursor_left(const struct nm_cursor *cursor)
{
	return (size_t)(cursor->end - cursor->at);
}

static inline uint64_t nm_get_uint(struct nm_cursor *cursor)
{
	uint64_t value = 0;
	for (unsigned shift = 0; shift < 64 && cursor->at < cursor->end; shift += 7) {
		uint8_t byte = *cursor->at++;
		if (shift == 63 && byte > 1)
			break;
		value |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80)
			return value;
	}
	cursor->bad = true;
	cursor->at = cursor->end;
	return 0;
}

static inline int64_t nm_get_int(struct nm_cursor *cursor)
{
	uint64_t value = nm_get_uint(cursor);
	return (int64_t)(value >> 1 ^ (0 - (value & 1)));
}

/* Returns NULL if there are fewer bytes. */
static inline const uint8_t *nm_get_bytes(struct nm_cursor *cursor, uint64_t size)
{
	const uint8_t *at = cursor->at;
	if (size > nm_cursor_left(cursor)) {
		cursor->bad = true;
		cursor->at = cursor->end;
		return NULL;
	}
	cursor->at += size;
	return at;
}

static inline double nm_get_real(struct nm_cursor *cursor)
{
	const uint8_t *raw = nm_get_bytes(cursor, 8);
	double value = 0;
	if (raw) {
		uint64_t bits = nm_load_u32(raw) | (uint64_t)nm_load_u32(raw + 4) << 32;
		memcpy(&value, &bits, sizeof(value));
	}
	return value;
}

#endif
