/* SPDX-License-Identifier: MIT */
#include "control_internal.h"

#include <math.h>

/* ---- views ---- */

static void open_dictionary(void *context)
{
	struct nm_answer *answer = context;
	if (answer->r >= 0)
		answer->r = sd_bus_message_open_container(answer->message, 'a', "{sv}");
}

static void close_dictionary(void *context)
{
	struct nm_answer *answer = context;
	if (answer->r >= 0)
		answer->r = sd_bus_message_close_container(answer->message);
}

/* The innermost of the containers cannot be had by a format string: an array of any length. */
static int append_numbers(sd_bus_message *message, const struct nm_value *value)
{
	int r = sd_bus_message_open_container(message, 'e', "sv");
	if (r >= 0)
		r = sd_bus_message_append(message, "s", value->name);
	if (r >= 0)
		r = sd_bus_message_open_container(message, 'v', "at");
	if (r >= 0)
		r = sd_bus_message_append_array(message, 't', value->u64s.items,
						value->u64s.count * sizeof(*value->u64s.items));
	if (r >= 0)
		r = sd_bus_message_close_container(message);
	return r < 0 ? r : sd_bus_message_close_container(message);
}

static int append_value(sd_bus_message *message, const struct nm_value *value)
{
	const char *name = value->name;
	switch (value->type) {
	case NM_VALUE_TEXT:
		return sd_bus_message_append(message, "{sv}", name, "s", value->text);
	case NM_VALUE_FLAG:
		return sd_bus_message_append(message, "{sv}", name, "b", (int)value->flag);
	case NM_VALUE_U32:
		return sd_bus_message_append(message, "{sv}", name, "u", value->u32);
	case NM_VALUE_I32:
		return sd_bus_message_append(message, "{sv}", name, "i", value->i32);
	case NM_VALUE_U64:
		return sd_bus_message_append(message, "{sv}", name, "t", value->u64);
	case NM_VALUE_REAL:
		return sd_bus_message_append(message, "{sv}", name, "d", value->real);
	case NM_VALUE_U64S:
		return append_numbers(message, value);
	}
	return -EINVAL;
}

static void put_value(void *context, const struct nm_value *value)
{
	struct nm_answer *answer = context;
	if (answer->r >= 0)
		answer->r = append_value(answer->message, value);
}

struct nm_show nm_answer_show(struct nm_answer *answer)
{
	return (struct nm_show){answer, open_dictionary, put_value, close_dictionary};
}

static void open_numbers(void *context)
{
	struct nm_answer *answer = context;
	if (answer->r >= 0)
		answer->r = sd_bus_message_open_container(answer->message, 'a', "{st}");
}

static void put_number(void *context, const struct nm_value *value)
{
	struct nm_answer *answer = context;
	if (answer->r >= 0)
		answer->r = value->type == NM_VALUE_U64
				    ? sd_bus_message_append(answer->message, "{st}", value->name,
							    value->u64)
				    : -EINVAL;
}

struct nm_show nm_answer_numbers(struct nm_answer *answer)
{
	return (struct nm_show){answer, open_numbers, put_number, close_dictionary};
}

/* ---- Status ---- */

static int append_item(sd_bus_message *message, const struct nm_status_item *item)
{
	switch (item->type) {
	case NM_STATUS_TEXT:
		return sd_bus_message_append(message, "{sv}", item->name, "s", item->text);
	case NM_STATUS_UINT:
		return sd_bus_message_append(message, "{sv}", item->name, "t", item->number);
	case NM_STATUS_REAL:
		return isnan(item->real) ? 0
					 : sd_bus_message_append(message, "{sv}", item->name, "d",
								 item->real);
	case NM_STATUS_BOOL:
		return sd_bus_message_append(message, "{sv}", item->name, "b", (int)item->flag);
	}
	return -EINVAL;
}

int nm_answer_items(sd_bus_message *message, const struct nm_status_item *items, size_t count)
{
	int r = sd_bus_message_open_container(message, 'a', "{sv}");
	for (size_t i = 0; r >= 0 && i < count; i++)
		r = append_item(message, &items[i]);
	return r < 0 ? r : sd_bus_message_close_container(message);
}
