/* SPDX-License-Identifier: MIT */
#include "findings.h"

#include <stdarg.h>
#include <stdio.h>

static const char *const severity_names[NM_SEVERITY_MAX] = {
	[NM_SEVERITY_FINE] = "fine",	   [NM_SEVERITY_NOTE] = "note",
	[NM_SEVERITY_UNSEEN] = "unseen",   [NM_SEVERITY_WARNING] = "warning",
	[NM_SEVERITY_PROBLEM] = "problem",
};

const char *nm_severity_name(enum nm_severity severity)
{
	return severity_names[severity];
}

/* Returns NULL if memory is short. */
static char *__attribute__((format(printf, 1, 0))) write_text(const char *format, va_list arguments)
{
	char *text;

	return vasprintf(&text, format, arguments) < 0 ? NULL : text;
}

void nm_findings_add(struct nm_findings *findings, const char *check, enum nm_severity severity,
		     const char *format, ...)
{
	va_list arguments;
	char *what = NULL;

	va_start(arguments, format);
	NM_RESERVE(findings->items, findings->capacity, findings->count);
	what = write_text(format, arguments);
	va_end(arguments);
	if (!what) {
		findings->error = -ENOMEM;
		return;
	}
	findings->items[findings->count++] =
		(struct nm_finding){.check = check, .severity = severity, .what = what};
}

/* Appends to the evidence or the remedy at `place`. */
static int __attribute__((format(printf, 2, 0)))
append_text(char **place, const char *format, va_list arguments)
{
	nm_autofree char *more = write_text(format, arguments);
	char *joined;

	if (!more)
		return -ENOMEM;
	if (!*place) {
		*place = NM_TAKE(more);
		return 0;
	}
	if (asprintf(&joined, "%s; %s", *place, more) < 0)
		return -ENOMEM;
	free(*place);
	*place = joined;
	return 0;
}

/* After a finding was lost, its evidence must not be added to the previous one. */
static struct nm_finding *last(struct nm_findings *findings)
{
	if (findings->error < 0 || findings->count == 0)
		return NULL;
	return &findings->items[findings->count - 1];
}

void nm_findings_evidence(struct nm_findings *findings, const char *format, ...)
{
	struct nm_finding *finding = last(findings);
	va_list arguments;

	va_start(arguments, format);
	if (finding && append_text(&finding->evidence, format, arguments) < 0)
		findings->error = -ENOMEM;
	va_end(arguments);
}

void nm_findings_remedy(struct nm_findings *findings, const char *format, ...)
{
	struct nm_finding *finding = last(findings);
	va_list arguments;

	va_start(arguments, format);
	if (finding && append_text(&finding->remedy, format, arguments) < 0)
		findings->error = -ENOMEM;
	va_end(arguments);
}

size_t nm_findings_count(const struct nm_findings *findings, enum nm_severity severity)
{
	size_t count = 0;

	for (size_t i = 0; i < findings->count; i++)
		count += findings->items[i].severity == severity;
	return count;
}

void nm_findings_clear(struct nm_findings *findings)
{
	for (size_t i = 0; i < findings->count; i++) {
		free(findings->items[i].what);
		free(findings->items[i].evidence);
		free(findings->items[i].remedy);
	}
	free(findings->items);
	*findings = (struct nm_findings){0};
}
