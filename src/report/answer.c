/* SPDX-License-Identifier: MIT */
#include "control_internal.h"

static void open_dictionary(void *context)
{
	struct nm_answer *answer = context;
	if (answer->r >= 0 && answer->rows++ == NM_ANSWER_ROWS_MAX)
		answer->r = -E2BIG;
	if (answer->r >= 0)
		answer->r = sd_bus_message_open_container(answer->message, 'a', "{sv}");
}

static void close_dictionary(void *context)
{
	struct nm_answer *answer = context;
	if (answer->r >= 0)
		answer->r = sd_bus_message_close_container(answer->message);
}

static int begin_entry(sd_bus_message *message, const char *name, const char *type)
{
	int r = sd_bus_message_open_container(message, 'e', "sv");
	if (r >= 0)
		r = sd_bus_message_append(message, "s", name);
	return r < 0 ? r : sd_bus_message_open_container(message, 'v', type);
}

static int end_entry(sd_bus_message *message)
{
	int r = sd_bus_message_close_container(message);
	return r < 0 ? r : sd_bus_message_close_container(message);
}

static void begin_list(void *context, const char *name)
{
	struct nm_answer *answer = context;
	if (answer->r >= 0)
		answer->r = begin_entry(answer->message, name, "aa{sv}");
	if (answer->r >= 0)
		answer->r = sd_bus_message_open_container(answer->message, 'a', "a{sv}");
}

static void end_list(void *context)
{
	struct nm_answer *answer = context;
	if (answer->r >= 0)
		answer->r = sd_bus_message_close_container(answer->message);
	if (answer->r >= 0)
		answer->r = end_entry(answer->message);
}

static int append_numbers(sd_bus_message *message, const struct nm_value *value)
{
	int r = begin_entry(message, value->name, "at");
	if (r >= 0)
		r = sd_bus_message_append_array(message, 't', value->u64s.items,
						value->u64s.count * sizeof(*value->u64s.items));
	return r < 0 ? r : end_entry(message);
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
	return (struct nm_show){answer,		  open_dictionary, put_value,
				close_dictionary, begin_list,	   end_list};
}
