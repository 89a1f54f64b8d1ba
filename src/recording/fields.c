/* SPDX-License-Identifier: MIT */
#include "fields.h"

#include <inttypes.h>

/* ---- arena ---- */

void nm_arena_clear(struct nm_arena *arena)
{
	for (size_t i = 0; i < arena->nr_items; i++)
		free(arena->items[i]);
	for (size_t i = 0; i < arena->nr_masks; i++)
		hwloc_bitmap_free(arena->masks[i]);
	arena->nr_items = arena->nr_masks = 0;
}

void *nm_arena_get(struct nm_arena *arena, size_t count, size_t size)
{
	if (NM_RESERVE(arena->items, arena->room_items, arena->nr_items) < 0)
		return NULL;
	void *item = calloc(count ? count : 1, size);
	if (item)
		arena->items[arena->nr_items++] = item;
	return item;
}

static int keep_mask(struct nm_arena *arena, hwloc_bitmap_t mask)
{
	if (NM_RESERVE(arena->masks, arena->room_masks, arena->nr_masks) < 0) {
		hwloc_bitmap_free(mask);
		return -ENOMEM;
	}
	arena->masks[arena->nr_masks++] = mask;
	return 0;
}

/* ---- numbers of several sizes ---- */

static uint64_t load_uint(const void *at, size_t size)
{
	switch (size) {
	case 1:
		return *(const uint8_t *)at;
	case 2:
		return *(const uint16_t *)at;
	case 4:
		return *(const uint32_t *)at;
	default:
		return *(const uint64_t *)at;
	}
}

static int64_t load_int(const void *at, size_t size)
{
	switch (size) {
	case 1:
		return *(const int8_t *)at;
	case 2:
		return *(const int16_t *)at;
	case 4:
		return *(const int32_t *)at;
	default:
		return *(const int64_t *)at;
	}
}

/* A number that does not fit is damage. */
static void store_uint(void *at, size_t size, uint64_t value, struct nm_cursor *cursor)
{
	if (size < 8 && value >> 8 * size)
		cursor->bad = true;
	else if (size == 1)
		*(uint8_t *)at = (uint8_t)value;
	else if (size == 2)
		*(uint16_t *)at = (uint16_t)value;
	else if (size == 4)
		*(uint32_t *)at = (uint32_t)value;
	else
		*(uint64_t *)at = value;
}

static void store_int(void *at, size_t size, int64_t value, struct nm_cursor *cursor)
{
	if (size < 8 && (value < -(1LL << (8 * size - 1)) || value >= 1LL << (8 * size - 1)))
		cursor->bad = true;
	else if (size == 1)
		*(int8_t *)at = (int8_t)value;
	else if (size == 2)
		*(int16_t *)at = (int16_t)value;
	else if (size == 4)
		*(int32_t *)at = (int32_t)value;
	else
		*(int64_t *)at = value;
}

/* Returns the number of items of the field in this value. */
static size_t count_of(const struct nm_field *field, const char *value)
{
	if (field->count)
		return (size_t)load_uint(value + field->count - 1, field->count_size);
	return field->most;
}

/* ---- writing ---- */

static void put_text(struct nm_bytes *ret, const char *text)
{
	if (!text) {
		nm_put_uint(ret, 0);
		return;
	}
	size_t size = strlen(text) + 1;
	nm_put_uint(ret, size);
	nm_put_bytes(ret, text, size);
}

static void put_mask(struct nm_bytes *ret, hwloc_const_bitmap_t mask)
{
	nm_autofree char *text = NULL;
	if (mask && hwloc_bitmap_list_asprintf(&text, mask) < 0)
		ret->failed = true;
	put_text(ret, text);
}

static void put_items(const struct nm_field *field, const char *items, size_t count,
		      struct nm_bytes *ret)
{
	if (field->count)
		nm_put_uint(ret, count);
	for (size_t i = 0; i < count; i++)
		nm_shape_put(field->shape, items + i * field->shape->size, ret);
}

static void put_field(const struct nm_field *field, const char *value, struct nm_bytes *ret)
{
	const char *at = value + field->offset;
	size_t count = count_of(field, value);
	const char *text;
	switch (field->kind) {
	case NM_FIELD_UINT:
	case NM_FIELD_BOOL:
		nm_put_uint(ret, load_uint(at, field->size));
		break;
	case NM_FIELD_INT:
		nm_put_int(ret, load_int(at, field->size));
		break;
	case NM_FIELD_REAL:
		nm_put_real(ret, *(const double *)(const void *)at);
		break;
	case NM_FIELD_CHARS:
		put_text(ret, at);
		break;
	case NM_FIELD_TEXT:
		text = *(const char *const *)(const void *)at;
		put_text(ret, text ? text : "");
		break;
	case NM_FIELD_BLOB:
		nm_put_uint(ret, count);
		nm_put_bytes(ret, *(const void *const *)(const void *)at, count);
		break;
	case NM_FIELD_MASK:
		put_mask(ret, *(const hwloc_const_bitmap_t *)(const void *)at);
		break;
	case NM_FIELD_SHAPE:
		put_items(field, at, count, ret);
		break;
	case NM_FIELD_ITEMS:
		put_items(field, *(const char *const *)(const void *)at, count, ret);
		break;
	}
}

void nm_shape_put(const struct nm_shape *shape, const void *value, struct nm_bytes *ret)
{
	for (size_t i = 0; i < shape->count; i++)
		put_field(&shape->fields[i], value, ret);
}

/* ---- reading ---- */

/* Must end with its NUL, and contain no other. */
static const char *get_text(struct nm_cursor *cursor)
{
	uint64_t size = nm_get_uint(cursor);
	const uint8_t *text = size ? nm_get_bytes(cursor, size) : NULL;
	if (text && memchr(text, '\0', size) != text + size - 1) {
		cursor->bad = true;
		return NULL;
	}
	return (const char *)text;
}

static void get_chars(const struct nm_field *field, struct nm_cursor *cursor, char *ret)
{
	const char *text = get_text(cursor);
	size_t size = text ? strlen(text) + 1 : 0;
	if (size == 0 || size > field->size)
		cursor->bad = true;
	else
		memcpy(ret, text, size);
}

static int get_mask(struct nm_cursor *cursor, struct nm_arena *arena, hwloc_bitmap_t *ret)
{
	const char *text = get_text(cursor);
	if (!text)
		return 0;
	hwloc_bitmap_t mask = hwloc_bitmap_alloc();
	if (!mask)
		return -ENOMEM;
	int r = keep_mask(arena, mask);
	/* The result of hwloc's parser for other text is unspecified: "-03" is infinite. */
	if (r == 0 && text[0] && nm_list_parse(text, mask) < 0)
		cursor->bad = true;
	if (r == 0)
		*ret = mask;
	return r;
}

static int get_items(const struct nm_field *field, struct nm_cursor *cursor, size_t count,
		     struct nm_arena *arena, char *ret)
{
	int r = 0;
	for (size_t i = 0; r == 0 && i < count && !cursor->bad; i++)
		r = nm_shape_get(field->shape, cursor, arena, ret + i * field->shape->size);
	return r;
}

static int get_pointed(const struct nm_field *field, struct nm_cursor *cursor, char *value,
		       struct nm_arena *arena)
{
	uint64_t count = nm_get_uint(cursor);
	/* Each field takes at least one byte: items that cannot exist are not allocated. */
	if (count > nm_cursor_left(cursor) / field->shape->count) {
		cursor->bad = true;
		return 0;
	}
	char *items = nm_arena_get(arena, (size_t)count, field->shape->size);
	if (!items)
		return -ENOMEM;
	*(void **)(void *)(value + field->offset) = items;
	store_uint(value + field->count - 1, field->count_size, count, cursor);
	return get_items(field, cursor, (size_t)count, arena, items);
}

static int get_placed(const struct nm_field *field, struct nm_cursor *cursor, char *value,
		      struct nm_arena *arena)
{
	uint64_t count = field->count ? nm_get_uint(cursor) : field->most;
	if (count > field->most) {
		cursor->bad = true;
		return 0;
	}
	if (field->count)
		store_uint(value + field->count - 1, field->count_size, count, cursor);
	return get_items(field, cursor, (size_t)count, arena, value + field->offset);
}

static void get_blob(const struct nm_field *field, struct nm_cursor *cursor, char *value)
{
	uint64_t size = nm_get_uint(cursor);
	const uint8_t *bytes = nm_get_bytes(cursor, size);
	*(const void **)(void *)(value + field->offset) = bytes;
	if (bytes)
		store_uint(value + field->count - 1, field->count_size, size, cursor);
}

/* A choice beyond the valid ones would be used as an index. */
static void get_uint(const struct nm_field *field, struct nm_cursor *cursor, char *ret)
{
	uint64_t value = nm_get_uint(cursor);
	if (field->most && value >= field->most)
		cursor->bad = true;
	else
		store_uint(ret, field->size, value, cursor);
}

static void get_bool(struct nm_cursor *cursor, char *ret)
{
	uint64_t value = nm_get_uint(cursor);
	if (value > 1)
		cursor->bad = true;
	*(bool *)ret = value == 1;
}

static int get_field(const struct nm_field *field, struct nm_cursor *cursor, char *value,
		     struct nm_arena *arena)
{
	char *at = value + field->offset;
	const char *text;
	switch (field->kind) {
	case NM_FIELD_UINT:
		get_uint(field, cursor, at);
		return 0;
	case NM_FIELD_BOOL:
		get_bool(cursor, at);
		return 0;
	case NM_FIELD_INT:
		store_int(at, field->size, nm_get_int(cursor), cursor);
		return 0;
	case NM_FIELD_REAL:
		*(double *)(void *)at = nm_get_real(cursor);
		return 0;
	case NM_FIELD_CHARS:
		get_chars(field, cursor, at);
		return 0;
	case NM_FIELD_TEXT:
		text = get_text(cursor);
		*(const char **)(void *)at = text ? text : "";
		return 0;
	case NM_FIELD_BLOB:
		get_blob(field, cursor, value);
		return 0;
	case NM_FIELD_MASK:
		return get_mask(cursor, arena, (hwloc_bitmap_t *)(void *)at);
	case NM_FIELD_SHAPE:
		return get_placed(field, cursor, value, arena);
	case NM_FIELD_ITEMS:
		return get_pointed(field, cursor, value, arena);
	}
	return 0;
}

int nm_shape_get(const struct nm_shape *shape, struct nm_cursor *cursor, struct nm_arena *arena,
		 void *ret)
{
	int r = 0;
	for (size_t i = 0; r == 0 && i < shape->count && !cursor->bad; i++)
		r = get_field(&shape->fields[i], cursor, ret, arena);
	return r == 0 && cursor->bad ? -EBADMSG : r;
}

/* ---- dump ---- */

static void print_uint(const struct nm_field *field, uint64_t value, FILE *out)
{
	if (field->words && value < field->most)
		(void)fputs(field->words[value], out);
	else
		(void)fprintf(out, "%" PRIu64, value);
}

static void print_real(double value, FILE *out)
{
	if (isnan(value))
		(void)fputs("-", out);
	else
		(void)fprintf(out, "%.17g", value);
}

/* Prints the text on a single line, with any content. */
static void print_quoted(const char *text, size_t length, FILE *out)
{
	(void)fputc('"', out);
	for (size_t i = 0; i < length; i++) {
		unsigned char c = (unsigned char)text[i];
		if (c == '"' || c == '\\')
			(void)fprintf(out, "\\%c", c);
		else if (c == '\n')
			(void)fputs("\\n", out);
		else if (c < 0x20 || c >= 0x7f)
			(void)fprintf(out, "\\x%02x", c);
		else
			(void)fputc(c, out);
	}
	(void)fputc('"', out);
}

static void print_text(const char *text, FILE *out)
{
	if (text)
		print_quoted(text, strlen(text), out);
	else
		(void)fputs("-", out);
}

static void print_mask(hwloc_const_bitmap_t mask, FILE *out)
{
	nm_autofree char *text = NULL;
	if (mask && hwloc_bitmap_list_asprintf(&text, mask) < 0)
		text = NULL;
	(void)fputs(text ? text : "-", out);
}

static void print_items(const struct nm_field *field, const char *items, size_t count, FILE *out)
{
	(void)fputc('[', out);
	for (size_t i = 0; i < count; i++) {
		if (i > 0)
			(void)fputs(field->shape->fields[0].name ? "; " : " ", out);
		nm_shape_print(field->shape, items + i * field->shape->size, out);
	}
	(void)fputc(']', out);
}

static void print_field(const struct nm_field *field, const char *value, FILE *out)
{
	const char *at = value + field->offset;
	size_t count = count_of(field, value);
	switch (field->kind) {
	case NM_FIELD_UINT:
	case NM_FIELD_BOOL:
		print_uint(field, load_uint(at, field->size), out);
		break;
	case NM_FIELD_INT:
		(void)fprintf(out, "%" PRId64, load_int(at, field->size));
		break;
	case NM_FIELD_REAL:
		print_real(*(const double *)(const void *)at, out);
		break;
	case NM_FIELD_CHARS:
		print_text(at, out);
		break;
	case NM_FIELD_TEXT:
		print_text(*(const char *const *)(const void *)at, out);
		break;
	case NM_FIELD_BLOB:
		print_quoted(*(const char *const *)(const void *)at, count, out);
		break;
	case NM_FIELD_MASK:
		print_mask(*(const hwloc_const_bitmap_t *)(const void *)at, out);
		break;
	case NM_FIELD_SHAPE:
		print_items(field, at, count, out);
		break;
	case NM_FIELD_ITEMS:
		print_items(field, *(const char *const *)(const void *)at, count, out);
		break;
	}
}

void nm_shape_print(const struct nm_shape *shape, const void *value, FILE *out)
{
	for (size_t i = 0; i < shape->count; i++) {
		if (shape->fields[i].name)
			(void)fprintf(out, "%s%s=", i > 0 ? " " : "", shape->fields[i].name);
		print_field(&shape->fields[i], value, out);
	}
}
