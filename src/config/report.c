/* SPDX-License-Identifier: MIT */
#include <stdarg.h>

#include "parse.h"

#define MAX_ERRORS 100

static void append_error(struct nm_report *report, char *text)
{
	struct nm_config_errors *errors = report->errors;
	char **grown = reallocarray(errors->text, errors->count + 1, sizeof(*grown));
	if (!grown || !text) {
		report->out_of_memory = true;
		free(text);
	}
	if (!grown)
		return;
	errors->text = grown;
	if (text)
		errors->text[errors->count++] = text;
}

static char *with_place(const struct nm_report *report, unsigned line, const char *sentence)
{
	char *text = NULL;
	int length = line > 0 ? asprintf(&text, "%s:%u: %s", report->file, line, sentence)
			      : asprintf(&text, "%s: %s", report->file, sentence);
	return length < 0 ? NULL : text;
}

void nm_report_error(struct nm_report *report, unsigned line, const char *format, ...)
{
	nm_autofree char *sentence = NULL;
	va_list arguments;
	if (report->count++ >= MAX_ERRORS)
		return;
	va_start(arguments, format);
	int length = vasprintf(&sentence, format, arguments);
	va_end(arguments);
	if (length < 0)
		sentence = NULL;
	append_error(report, sentence ? with_place(report, line, sentence) : NULL);
}

int nm_report_result(struct nm_report *report)
{
	if (report->count > MAX_ERRORS) {
		char *text = NULL;
		if (asprintf(&text, "%s: and %zu more errors", report->file,
			     report->count - MAX_ERRORS) < 0)
			text = NULL;
		append_error(report, text);
	}
	if (report->out_of_memory)
		return -ENOMEM;
	return report->count > 0 ? -EINVAL : 0;
}

void nm_config_errors_clear(struct nm_config_errors *errors)
{
	for (size_t i = 0; i < errors->count; i++)
		free(errors->text[i]);
	free(errors->text);
	*errors = (struct nm_config_errors){0};
}
