/* SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <string.h>

#include "numa-migrd/base.h"
#include "parse.h"

#define MAX_ERRORS 100
#define FOUND_BYTES 96

static void append(struct nm_config_errors *errors, char *text)
{
	char **grown = nm_must(reallocarray(errors->text, errors->count + 1, sizeof(*grown)));
	errors->text = grown;
	errors->text[errors->count++] = text;
}

static char *with_place(const struct nm_report *report, unsigned line, const char *sentence)
{
	char *text = NULL;
	nm_must_do(line > 0 ? asprintf(&text, "%s:%u: %s", report->file, line, sentence)
			    : asprintf(&text, "%s: %s", report->file, sentence));
	return text;
}

void nm_report_error(struct nm_report *report, unsigned line, const char *format, ...)
{
	nm_autofree char *sentence = NULL;
	va_list arguments;
	if (report->count++ >= MAX_ERRORS)
		return;
	va_start(arguments, format);
	nm_must_do(vasprintf(&sentence, format, arguments));
	va_end(arguments);
	append(report->errors, with_place(report, line, sentence));
}

void nm_report_warning(struct nm_report *report, unsigned line, const char *format, ...)
{
	nm_autofree char *sentence = NULL;
	va_list arguments;
	if (report->warnings->count >= MAX_ERRORS)
		return;
	va_start(arguments, format);
	nm_must_do(vasprintf(&sentence, format, arguments));
	va_end(arguments);
	nm_autofree char *warning = NULL;
	nm_must_do(asprintf(&warning, "warning: %s", sentence));
	append(report->warnings, with_place(report, line, warning));
}

/* Formats a value for a message: a number as in the file, a string in quotes, "a group", … */
static void describe_value(const config_setting_t *value, char out[FOUND_BYTES])
{
	char text[FOUND_BYTES - 2];
	switch (config_setting_type(value)) {
	case CONFIG_TYPE_GROUP:
		(void)snprintf(out, FOUND_BYTES, "%s",
			       config_setting_length(value) > 0 ? "a group" : "an empty group");
		break;
	case CONFIG_TYPE_ARRAY:
	case CONFIG_TYPE_LIST:
		(void)snprintf(out, FOUND_BYTES, "a list");
		break;
	case CONFIG_TYPE_BOOL:
		(void)snprintf(out, FOUND_BYTES, "%s",
			       config_setting_get_bool(value) ? "true" : "false");
		break;
	case CONFIG_TYPE_STRING:
		(void)nm_escape(text, sizeof(text), config_setting_get_string(value),
				strlen(config_setting_get_string(value)));
		(void)snprintf(out, FOUND_BYTES, "\"%s\"", text);
		break;
	case CONFIG_TYPE_FLOAT:
		(void)snprintf(out, FOUND_BYTES, "%.15g", config_setting_get_float(value));
		break;
	default:
		(void)snprintf(out, FOUND_BYTES, "%lld", config_setting_get_int64(value));
		break;
	}
}

void nm_report_value(struct nm_report *report, const char *path, const config_setting_t *value,
		     const char *allowed)
{
	char found[FOUND_BYTES];
	describe_value(value, found);
	nm_report_error(report, config_setting_source_line(value), "%s: found %s, allowed: %s",
			path, found, allowed);
}

int nm_report_result(struct nm_report *report)
{
	if (report->count > MAX_ERRORS) {
		char *text = NULL;
		nm_must_do(asprintf(&text, "%s: and %zu more errors", report->file,
				    report->count - MAX_ERRORS));
		append(report->errors, text);
	}
	return report->count > 0 ? -EINVAL : 0;
}

void nm_config_errors_clear(struct nm_config_errors *errors)
{
	for (size_t i = 0; i < errors->count; i++)
		free(errors->text[i]);
	free(errors->text);
	*errors = (struct nm_config_errors){0};
}
