/* SPDX-License-Identifier: MIT */
/* Stores one value in its place in struct nm_config, strictly: nothing is rounded or guessed. */
#include <stdio.h>
#include <string.h>

#include "parse.h"
#include "settings.h"

#define DIGITS "0123456789"
#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define EVENT_PARTS_MAX 16U

static int assign_bool(const config_setting_t *value, bool *ret)
{
	if (config_setting_type(value) != CONFIG_TYPE_BOOL)
		return -EINVAL;
	*ret = config_setting_get_bool(value);
	return 0;
}

static bool is_whole(const config_setting_t *value)
{
	int type = config_setting_type(value);
	return type == CONFIG_TYPE_INT || type == CONFIG_TYPE_INT64;
}

static int assign_number(const struct nm_setting *setting, const config_setting_t *value, void *ret)
{
	bool count = setting->type == NM_SETTING_COUNT;
	if (!config_setting_is_number(value) || (count && !is_whole(value)))
		return -EINVAL;
	double number = is_whole(value) ? (double)config_setting_get_int64(value)
					: config_setting_get_float(value);
	if (number < setting->low || number > setting->high)
		return -EINVAL;
	if (count)
		*(uint64_t *)ret = (uint64_t)number;
	else
		*(double *)ret = number;
	return 0;
}

static int assign_choice(const struct nm_setting *setting, const config_setting_t *value,
			 unsigned *ret)
{
	const char *text = config_setting_get_string(value);
	for (unsigned i = 0; text && setting->choices[i]; i++) {
		if (strcmp(setting->choices[i], text) == 0) {
			*ret = i;
			return 0;
		}
	}
	return -EINVAL;
}

static int assign_flags(const struct nm_setting *setting, const config_setting_t *list,
			unsigned *ret)
{
	unsigned flags = 0;
	if (!config_setting_is_list(list) && !config_setting_is_array(list))
		return -EINVAL;
	for (int i = 0; i < config_setting_length(list); i++) {
		unsigned choice;
		if (assign_choice(setting, config_setting_get_elem(list, (unsigned)i), &choice) < 0)
			return -EINVAL;
		flags |= 1U << choice;
	}
	*ret = flags;
	return 0;
}

/* "name/…/"; only the machine knows the valid names and terms. */
static bool is_pmu(const char *text)
{
	size_t length = strlen(text), name = strcspn(text, "/");
	return length < NM_CONFIG_PMU_BYTES && strspn(text, LETTERS DIGITS "_-.,=/") == length &&
	       name > 0 && name < length && strcspn(text, ".,=") > name &&
	       strchr(text + name + 1, '/') == text + length - 1;
}

bool nm_config_is_event(const char *text)
{
	size_t length = strlen(text), parts = 0;
	if (length == 0 || length >= NM_CONFIG_EVENT_BYTES ||
	    strspn(text, LETTERS DIGITS "_:.=") != length)
		return false;
	for (size_t i = 0; i < length; i++)
		parts += strchr(":.=", text[i]) != NULL;
	return parts <= EVENT_PARTS_MAX;
}

/* Only the machine and libpfm4 know the valid events. */
static int assign_event(const config_setting_t *value, struct nm_config *config)
{
	const char *text = config_setting_get_string(value);
	if (!text || (text[0] && !is_pmu(text) && !nm_config_is_event(text)))
		return -EINVAL;
	bool pmu = strchr(text, '/') != NULL;
	(void)snprintf(config->sampling.pmu, sizeof(config->sampling.pmu), "%s", pmu ? text : "");
	(void)snprintf(config->sampling.event, sizeof(config->sampling.event), "%s",
		       pmu ? "" : text);
	return 0;
}

/* "" or an absolute path of a file that node_exporter reads; whether it can be written is not
 * checked. */
static int assign_path(const config_setting_t *value, char *ret)
{
	static const char suffix[] = ".prom";
	const char *text = config_setting_get_string(value);
	size_t length = text ? strlen(text) : 0, end = strlen(suffix);
	if (!text || length >= NM_CONFIG_PATH_BYTES)
		return -EINVAL;
	if (length > 0 && (text[0] != '/' || length <= end || text[length - end - 1] == '/' ||
			   strcmp(text + length - end, suffix) != 0))
		return -EINVAL;
	for (size_t i = 0; i < length; i++)
		if ((unsigned char)text[i] < ' ' || text[i] == 0x7f)
			return -EINVAL;
	memcpy(ret, text, length + 1);
	return 0;
}

int nm_setting_assign(const struct nm_setting *setting, const config_setting_t *value,
		      struct nm_config *config)
{
	void *place = (char *)config + setting->offset;
	switch (setting->type) {
	case NM_SETTING_BOOL:
		return assign_bool(value, place);
	case NM_SETTING_COUNT:
	case NM_SETTING_REAL:
		return assign_number(setting, value, place);
	case NM_SETTING_CHOICE:
		return assign_choice(setting, value, place);
	case NM_SETTING_FLAGS:
		return assign_flags(setting, value, place);
	case NM_SETTING_EVENT:
		return assign_event(value, config);
	case NM_SETTING_PATH:
		return assign_path(value, place);
	case NM_SETTING_TARGETS:
		return config_setting_is_list(value) || config_setting_is_array(value) ? 0
										       : -EINVAL;
	}
	return -EINVAL;
}

static void list_choices(const struct nm_setting *setting, char *out, size_t out_size)
{
	size_t used = strlen(out);
	for (unsigned i = 0; setting->choices[i] && used < out_size; i++) {
		const char *separator = i == 0 ? "" : setting->choices[i + 1] ? ", " : " or ";
		used += (size_t)snprintf(out + used, out_size - used, "%s\"%s\"", separator,
					 setting->choices[i]);
	}
}

void nm_setting_allowed(const struct nm_setting *setting, char *out, size_t out_size)
{
	out[0] = '\0';
	switch (setting->type) {
	case NM_SETTING_BOOL:
		(void)snprintf(out, out_size, "true or false");
		break;
	case NM_SETTING_COUNT:
	case NM_SETTING_REAL:
		(void)snprintf(out, out_size, "a %snumber from %.15g to %.15g",
			       setting->type == NM_SETTING_COUNT ? "whole " : "", setting->low,
			       setting->high);
		break;
	case NM_SETTING_CHOICE:
		list_choices(setting, out, out_size);
		break;
	case NM_SETTING_FLAGS:
		(void)snprintf(out, out_size, "a list ( ) of ");
		list_choices(setting, out, out_size);
		break;
	case NM_SETTING_EVENT:
		(void)snprintf(
			out, out_size,
			"\"\", an event as libpfm4 spells it (NAME:UMASK:...), of at most %d "
			"bytes and %u \":\", \".\" and \"=\", or a PMU with its terms "
			"(name/term=value,.../)",
			NM_CONFIG_EVENT_BYTES - 1, EVENT_PARTS_MAX);
		break;
	case NM_SETTING_PATH:
		(void)snprintf(out, out_size,
			       "\"\" or an absolute path of at most %d bytes that ends in .prom",
			       NM_CONFIG_PATH_BYTES - 1);
		break;
	case NM_SETTING_TARGETS:
		(void)snprintf(out, out_size, "a list of groups such as ( { command = \"x*\"; } )");
		break;
	}
}

const config_setting_t *nm_trees_lookup(const struct nm_config_trees *trees, const char *path,
					const char **ret_file)
{
	char inner[NM_SETTING_NAME_BYTES];
	(void)snprintf(inner, sizeof(inner), "parameters.%s", path);
	for (size_t i = trees->count; i > 0; i--) {
		const config_t *tree = &trees->items[i - 1].tree;
		const config_setting_t *value =
			config_lookup(tree, path) ?: config_lookup(tree, inner);
		if (value) {
			*ret_file = trees->items[i - 1].name;
			return value;
		}
	}
	return NULL;
}
