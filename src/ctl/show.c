/* SPDX-License-Identifier: MIT */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ctl.h"

/* One variant of the basic types that Status uses; others (a newer daemon's) come as null. */
static int read_variant(sd_bus_message *reply, json_t **ret)
{
	const char *type;
	union {
		const char *text;
		uint64_t number;
		double real;
		int flag;
	} value;
	int r = sd_bus_message_peek_type(reply, NULL, &type);
	if (r < 0)
		return r;
	if (type[1] != '\0' || !strchr("stdb", type[0])) {
		*ret = json_null();
		return sd_bus_message_skip(reply, "v");
	}
	r = sd_bus_message_read(reply, "v", type, &value);
	if (r < 0)
		return r;
	if (type[0] == 's')
		*ret = json_string(value.text);
	else if (type[0] == 't')
		*ret = json_integer((json_int_t)value.number);
	else if (type[0] == 'd')
		*ret = isfinite(value.real) ? json_real(value.real) : json_null();
	else
		*ret = json_boolean(value.flag);
	return 0;
}

static int read_status(sd_bus_message *reply, json_t *object)
{
	const char *name;
	int r = sd_bus_message_enter_container(reply, 'a', "{sv}");
	while (r >= 0 && (r = sd_bus_message_enter_container(reply, 'e', "sv")) > 0) {
		json_t *value = NULL;
		r = sd_bus_message_read(reply, "s", &name);
		if (r >= 0)
			r = read_variant(reply, &value);
		if (r >= 0 && json_object_set_new(object, name, value) < 0)
			r = -ENOMEM;
		if (r >= 0)
			r = sd_bus_message_exit_container(reply);
	}
	return r;
}

static void show_value(const json_t *value)
{
	if (json_is_string(value))
		printf("%s\n", json_string_value(value));
	else if (json_is_integer(value))
		printf("%" JSON_INTEGER_FORMAT "\n", json_integer_value(value));
	else if (json_is_real(value))
		printf("%.6g\n", json_real_value(value));
	else
		printf("%s\n", json_is_true(value) ? "yes" : json_is_false(value) ? "no" : "-");
}

static void show_lines(json_t *object)
{
	const char *name;
	json_t *value;
	int width = 0;
	json_object_foreach(object, name, value)
	{
		int length = (int)strlen(name);
		width = length > width ? length : width;
	}
	json_object_foreach(object, name, value)
	{
		printf("%*s: ", width, name);
		show_value(value);
	}
}

/* A write that fails is met by the check of stdout at the end. */
static void show_json(const json_t *object)
{
	(void)json_dumpf(object, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
	(void)putchar('\n');
}

int nm_ctl_show_status(sd_bus_message *reply, bool json)
{
	nm_auto(json_decrefp) json_t *object = json_object();
	int r = object ? read_status(reply, object) : -ENOMEM;
	if (r < 0) {
		(void)fprintf(stderr, "numa-migrctl: numa-migrd's answer cannot be read: %s\n",
			      strerror(-r));
		return EXIT_FAILURE;
	}
	if (json)
		show_json(object);
	else
		show_lines(object);
	if (fflush(stdout) != 0 || ferror(stdout)) {
		perror("numa-migrctl: standard output");
		return EXIT_FAILURE;
	}
	return EXIT_SUCCESS;
}
