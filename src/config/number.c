/* SPDX-License-Identifier: MIT */
/* Parses the text of one value into its place in struct nm_config, strictly: nothing is rounded,
 * wrapped or guessed. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "table.h"

#define DIGITS "0123456789"
#define HEX_DIGITS DIGITS "abcdefABCDEF"
#define EVENT_PARTS_MAX 16U

/* 08 is 8 for some readers and an invalid octal number for others, and is rejected. */
static bool has_leading_zero(const char *text)
{
	text += strspn(text, "+-");
	return text[0] == '0' && strspn(text + 1, DIGITS) > 0;
}

int nm_number_parse_count(const char *text, uint64_t *ret)
{
	bool hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
	const char *digits = hex ? text + 2 : text + (text[0] == '+');
	size_t length = strspn(digits, hex ? HEX_DIGITS : DIGITS);
	const char *suffix = digits + length;
	if (length == 0 || (!hex && has_leading_zero(text)))
		return -EINVAL;
	if (strcmp(suffix, "") != 0 && strcmp(suffix, "L") != 0 && strcmp(suffix, "LL") != 0)
		return -EINVAL;
	errno = 0;
	unsigned long long value = strtoull(digits, NULL, hex ? 16 : 10);
	if (errno != 0)
		return -EINVAL;
	*ret = value;
	return 0;
}

int nm_number_parse_real(const char *text, double *ret)
{
	size_t length = strlen(text);
	char *end;
	/* strtod() alone would accept "inf", "nan" and hexadecimal numbers. */
	if (length == 0 || strspn(text, DIGITS "+-.eE") != length || has_leading_zero(text))
		return -EINVAL;
	errno = 0;
	double value = strtod(text, &end);
	if (end != text + length || errno != 0 || !isfinite(value))
		return -EINVAL;
	*ret = value;
	return 0;
}

static int assign_bool(const char *text, bool *ret)
{
	if (strcmp(text, "true") != 0 && strcmp(text, "false") != 0)
		return -EINVAL;
	*ret = text[0] == 't';
	return 0;
}

static int assign_count(const struct nm_setting *setting, const char *text, uint64_t *ret)
{
	uint64_t value, low = 0, high = UINT64_MAX;
	int r = nm_number_parse_count(text, &value);
	if (r < 0)
		return r;
	(void)nm_number_parse_count(setting->low, &low);
	(void)nm_number_parse_count(setting->high, &high);
	if (value < low || value > high)
		return -EINVAL;
	if (setting->power_of_two && (value & (value - 1)) != 0)
		return -EINVAL;
	*ret = value;
	return 0;
}

static int assign_real(const struct nm_setting *setting, const char *text, double *ret)
{
	double value, low = 0, high = 0;
	int r = nm_number_parse_real(text, &value);
	if (r < 0)
		return r;
	(void)nm_number_parse_real(setting->low, &low);
	(void)nm_number_parse_real(setting->high, &high);
	if (value < low || value > high)
		return -EINVAL;
	*ret = value;
	return 0;
}

static int assign_choice(const struct nm_setting *setting, const char *text, unsigned *ret)
{
	for (unsigned i = 0; setting->choices[i]; i++) {
		if (strcmp(setting->choices[i], text) == 0) {
			*ret = i;
			return 0;
		}
	}
	return -EINVAL;
}

/* "" or "name/…/"; only the machine knows the valid names and terms. */
static int assign_pmu(const char *text, char *ret)
{
	static const char allowed[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ" DIGITS "_-.,=/";
	size_t length = strlen(text), name = strcspn(text, "/");

	if (length > 0 && (length >= NM_CONFIG_PMU_BYTES || strspn(text, allowed) != length ||
			   name == 0 || name == length || strcspn(text, ".,=") < name ||
			   strchr(text + name + 1, '/') != text + length - 1))
		return -EINVAL;
	memcpy(ret, text, length + 1);
	return 0;
}

bool nm_config_is_event(const char *text)
{
	static const char allowed[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ" DIGITS "_:.=";
	size_t length = strlen(text), parts = 0;

	if (length == 0 || length >= NM_CONFIG_EVENT_BYTES || strspn(text, allowed) != length)
		return false;
	for (size_t i = 0; i < length; i++)
		parts += strchr(":.=", text[i]) != NULL;
	return parts <= EVENT_PARTS_MAX;
}

/* Only the machine and libpfm4 know the valid events. */
static int assign_event(const char *text, char *ret)
{
	if (text[0] && !nm_config_is_event(text))
		return -EINVAL;
	memcpy(ret, text, strlen(text) + 1);
	return 0;
}

/* "" or an absolute path of a file; whether it can be written is not checked. */
static int assign_path(const char *text, char *ret)
{
	size_t length = strlen(text);

	if (length >= NM_CONFIG_PATH_BYTES)
		return -EINVAL;
	if (length > 0 && (text[0] != '/' || text[length - 1] == '/'))
		return -EINVAL;
	for (size_t i = 0; i < length; i++)
		if ((unsigned char)text[i] < ' ' || text[i] == 0x7f)
			return -EINVAL;
	memcpy(ret, text, length + 1);
	return 0;
}

int nm_setting_assign(const struct nm_setting *setting, const char *text, struct nm_config *config)
{
	void *place = (char *)config + setting->offset;
	switch (setting->type) {
	case NM_SETTING_BOOL:
		return assign_bool(text, place);
	case NM_SETTING_COUNT:
		return assign_count(setting, text, place);
	case NM_SETTING_REAL:
		return assign_real(setting, text, place);
	case NM_SETTING_CHOICE:
		return assign_choice(setting, text, place);
	case NM_SETTING_PMU:
		return assign_pmu(text, place);
	case NM_SETTING_EVENT:
		return assign_event(text, place);
	case NM_SETTING_PATH:
		return assign_path(text, place);
	case NM_SETTING_TARGETS:
		break;
	}
	return 0;
}

static void list_choices(const struct nm_setting *setting, char *out, size_t out_size)
{
	size_t used = 0;
	out[0] = '\0';
	for (unsigned i = 0; setting->choices[i] && used < out_size; i++) {
		const char *separator = i == 0 ? "" : setting->choices[i + 1] ? ", " : " or ";
		int written = snprintf(out + used, out_size - used, "%s\"%s\"", separator,
				       setting->choices[i]);
		used += (size_t)written;
	}
}

void nm_setting_allowed(const struct nm_setting *setting, char *out, size_t out_size)
{
	switch (setting->type) {
	case NM_SETTING_BOOL:
		(void)snprintf(out, out_size, "true or false");
		break;
	case NM_SETTING_COUNT:
		(void)snprintf(out, out_size, "a %s from %s to %s",
			       setting->power_of_two ? "power of two" : "whole number",
			       setting->low, setting->high);
		break;
	case NM_SETTING_REAL:
		(void)snprintf(out, out_size, "a number from %s to %s", setting->low,
			       setting->high);
		break;
	case NM_SETTING_CHOICE:
		list_choices(setting, out, out_size);
		break;
	case NM_SETTING_PMU:
		(void)snprintf(out, out_size, "\"\" or \"name/term=value,.../\"");
		break;
	case NM_SETTING_EVENT:
		(void)snprintf(
			out, out_size,
			"\"\" or an event as libpfm4 spells it (NAME:UMASK:...), of at most %d "
			"letters, digits, \"_\" and at most %u \":\", \".\" and \"=\"",
			NM_CONFIG_EVENT_BYTES - 1, EVENT_PARTS_MAX);
		break;
	case NM_SETTING_PATH:
		(void)snprintf(out, out_size, "\"\" or an absolute path of at most %d bytes",
			       NM_CONFIG_PATH_BYTES - 1);
		break;
	case NM_SETTING_TARGETS:
		(void)snprintf(out, out_size, "a list of groups such as ( { command = \"x*\"; } )");
		break;
	}
}
