/* SPDX-License-Identifier: MIT */
/* Converts the contents of a bus message to JSON: dictionaries become objects, other values keep
 * their type. */
#include <math.h>
#include <string.h>

#include "ctl.h"

union basic {
	const char *text;
	uint8_t byte;
	int flag;
	int16_t i16;
	uint16_t u16;
	int32_t i32;
	uint32_t u32;
	int64_t i64;
	uint64_t u64;
	double real;
};

/* The owner of the bus name may send any text. */
static char *clean_text(const char *text)
{
	size_t size = strlen(text) + 1; /* the text does not become longer */
	char *clean = malloc(size);
	if (clean)
		nm_text_clean(clean, size, text);
	return clean;
}

static json_t *from_text(const char *text)
{
	nm_autofree char *clean = clean_text(text);

	return clean ? json_string(clean) : NULL;
}

/* jansson has no integers beyond 2⁶³: such numbers become text. */
static json_t *from_u64(uint64_t number)
{
	if (number <= INT64_MAX)
		return json_integer((json_int_t)number);
	return json_sprintf("%ju", (uintmax_t)number);
}

static json_t *from_basic(char type, const union basic *value)
{
	switch (type) {
	case SD_BUS_TYPE_STRING:
	case SD_BUS_TYPE_OBJECT_PATH:
	case SD_BUS_TYPE_SIGNATURE:
		return from_text(value->text);
	case SD_BUS_TYPE_BOOLEAN:
		return json_boolean(value->flag);
	case SD_BUS_TYPE_BYTE:
		return json_integer(value->byte);
	case SD_BUS_TYPE_INT16:
		return json_integer(value->i16);
	case SD_BUS_TYPE_UINT16:
		return json_integer(value->u16);
	case SD_BUS_TYPE_INT32:
		return json_integer(value->i32);
	case SD_BUS_TYPE_UINT32:
		return json_integer(value->u32);
	case SD_BUS_TYPE_INT64:
		return json_integer(value->i64);
	case SD_BUS_TYPE_UINT64:
		return from_u64(value->u64);
	case SD_BUS_TYPE_DOUBLE:
		return isfinite(value->real) ? json_real(value->real) : json_null();
	default:
		return json_null(); /* a descriptor */
	}
}

static int read_one(sd_bus_message *message, json_t **ret);

/* A second value for the same name replaces the first. */
static int read_entry(sd_bus_message *message, const char *contents, json_t *object)
{
	const char *name;
	json_t *value;
	int r = sd_bus_message_enter_container(message, SD_BUS_TYPE_DICT_ENTRY, contents);
	if (r <= 0)
		return r;
	r = sd_bus_message_read_basic(message, SD_BUS_TYPE_STRING, (void *)&name);
	if (r >= 0)
		r = read_one(message, &value);
	if (r < 0)
		return r;
	if (r == 0)
		return -ENOMEM;
	nm_autofree char *clean = clean_text(name);
	if (json_object_set_new(object, clean, value) < 0)
		return -ENOMEM;
	r = sd_bus_message_exit_container(message);
	return r < 0 ? r : 1;
}

static int read_dictionary(sd_bus_message *message, const char *contents, json_t **ret)
{
	nm_auto(json_decrefp) json_t *object = json_object();
	nm_autofree char *entry = strndup(contents + 1, strlen(contents) - 2);
	int r = object && entry ? 1 : -ENOMEM;
	while (r > 0)
		r = read_entry(message, entry, object);
	if (r == 0)
		*ret = NM_TAKE(object);
	return r;
}

static int read_list(sd_bus_message *message, json_t **ret)
{
	nm_auto(json_decrefp) json_t *array = json_array();
	json_t *value;
	int r = array ? 1 : -ENOMEM;
	while (r > 0 && (r = read_one(message, &value)) > 0)
		if (json_array_append_new(array, value) < 0)
			r = -ENOMEM;
	if (r == 0)
		*ret = NM_TAKE(array);
	return r;
}

/* Dictionaries with text keys become objects; a variant becomes its contents. */
static int read_container(sd_bus_message *message, char type, const char *contents, json_t **ret)
{
	json_t *value = NULL;
	int r = sd_bus_message_enter_container(message, type, contents);
	if (r < 0)
		return r;
	if (type == SD_BUS_TYPE_ARRAY && strncmp(contents, "{s", 2) == 0)
		r = read_dictionary(message, contents, &value);
	else if (type == SD_BUS_TYPE_VARIANT)
		r = read_one(message, &value);
	else
		r = read_list(message, &value);
	if (r >= 0)
		r = sd_bus_message_exit_container(message);
	if (r < 0) {
		json_decref(value);
		return r;
	}
	*ret = value;
	return 1;
}

/* Returns 1 with the next value, 0 at the end of the container. */
static int read_one(sd_bus_message *message, json_t **ret)
{
	const char *contents;
	char type;
	union basic value = {0};
	int r = sd_bus_message_peek_type(message, &type, &contents);
	if (r <= 0)
		return r;
	if (contents)
		return read_container(message, type, contents, ret);
	r = sd_bus_message_read_basic(message, type, &value);
	if (r < 0)
		return r;
	*ret = from_basic(type, &value);
	return *ret ? 1 : -ENOMEM;
}

int nm_value_read(sd_bus_message *message, json_t **ret)
{
	nm_auto(json_decrefp) json_t *all = NULL;
	int r = read_list(message, &all);
	if (r < 0)
		return r;
	if (json_array_size(all) > 1) {
		*ret = NM_TAKE(all);
		return 0;
	}
	json_t *only = json_array_get(all, 0);
	*ret = only ? json_incref(only) : json_null();
	return 0;
}
